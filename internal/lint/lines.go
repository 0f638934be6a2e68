package lint

import (
	"github.com/replaypeer/replaypeer/pkg/envelope"
)

func checkSyntax(_ *run, found report) checker {
	return checker{syntax: func(e *envelope.SyntaxError) {
		found(e.Line, "", "", "%s", e.Msg)
	}}
}

func checkCRLF(c *run, found report) checker {
	first := 0
	mark := func(line int) {
		if first == 0 && c.lines.CRLF() > 0 {
			first = line
		}
	}
	return checker{
		header: func(h *envelope.Header) { mark(h.Line) },
		entry:  func(s *step) { mark(s.line) },
		end: func() {
			mark(max(c.last, 1))
			if c.lines.CRLF() > 0 {
				found(first, "", "run fmt", "%s in CR LF", lines(c.lines.CRLF(), "ends", "end"))
			}
		},
	}
}

func checkFinalNewline(c *run, found report) checker {
	return checker{end: func() {
		if !c.lines.Terminated() {
			found(max(c.last, 1), "", "run fmt", "the last line is not terminated")
		}
	}}
}

func checkCanonical(c *run, found report) checker {
	first, count := 0, 0
	add := func(line int) {
		if first == 0 {
			first = line
		}
		count++
	}
	expect := 1
	blank := func(upto int) { // lines that nothing was read from
		for ; expect < upto; expect++ {
			add(expect)
		}
		expect = upto + 1
	}
	return checker{
		syntax: func(e *envelope.SyntaxError) { blank(e.Line) }, // which is told as such
		header: func(h *envelope.Header) {
			blank(h.Line)
			if string(c.lines.Line())+"\n" != string(envelope.AppendHeader(nil, h)) {
				add(h.Line)
			}
		},
		entry: func(s *step) {
			blank(s.line)
			if !c.lines.Canonical(s.entry) {
				add(s.line)
			}
		},
		end: func() {
			blank(c.lines.Lines() + 1)
			if count > 0 {
				found(first, "", "run fmt", "%s not in canonical form", lines(count, "is", "are"))
			}
		},
	}
}
