package lint

import (
	"bytes"
	"hash/maphash"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// lineSums sees the bytes of a transcript go by and keeps a checksum per
// line, so that a line can be compared with its canonical form without being
// held. Lines are taken off in order.
type lineSums struct {
	seed   maphash.Seed
	hash   maphash.Hash
	begun  bool
	filled bool // the current line has a byte
	queue  []uint64
	first  int  // lines taken off before queue[0]
	open   bool // the input does not end in LF
}

// Write implements io.Writer; it never fails.
func (l *lineSums) Write(p []byte) (int, error) {
	n := len(p)
	if !l.begun {
		l.begun = true
		l.seed = maphash.MakeSeed()
		l.hash.SetSeed(l.seed)
	}
	for len(p) > 0 {
		part, rest, ended := bytes.Cut(p, []byte{'\n'})
		if len(part) > 0 {
			l.hash.Write(part)
			l.filled = true
		}
		if ended {
			l.push()
		}
		p = rest
	}
	l.open = l.filled
	return n, nil
}

func (l *lineSums) push() {
	l.queue = append(l.queue, l.hash.Sum64())
	l.hash.Reset()
	l.filled = false
}

// close ends a last line that has no LF.
func (l *lineSums) close() {
	if l.filled {
		l.push()
	}
}

// take drops the lines before the given one and returns its checksum. It may
// be called once per line, in order, when the line has been read.
func (l *lineSums) take(line int) uint64 {
	for l.first < line-1 && len(l.queue) > 0 {
		l.queue = l.queue[1:]
		l.first++
	}
	if len(l.queue) == 0 {
		l.push() // the last line, not terminated
	}
	sum := l.queue[0]
	l.queue = l.queue[1:]
	l.first++
	return sum
}

// is says whether sum is that of the line, with or without a CR at its end.
func (l *lineSums) is(sum uint64, line []byte) bool {
	line = bytes.TrimSuffix(line, []byte{'\n'})
	return sum == maphash.Bytes(l.seed, line) || sum == maphash.Bytes(l.seed, append(line, '\r'))
}

func checkSyntax(_ *run, found report) checker {
	return checker{syntax: func(e *envelope.SyntaxError) {
		found(e.Line, "", "", "%s", e.Msg)
	}}
}

func checkCRLF(c *run, found report) checker {
	first := 0
	mark := func(line int) {
		if first == 0 && c.crlf > 0 {
			first = line
		}
	}
	return checker{
		header: func(h *envelope.Header) { mark(h.Line) },
		entry:  func(s *step) { mark(s.line) },
		end: func() {
			mark(max(c.last, 1))
			if c.crlf > 0 {
				found(first, "", "run fmt", "%s in CR LF", lines(c.crlf, "ends", "end"))
			}
		},
	}
}

func checkFinalNewline(c *run, found report) checker {
	return checker{end: func() {
		if c.sums.open {
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
	var buf []byte
	bad := map[int]bool{} // lines that syntax errors account for
	look := func(line int, canonical []byte) {
		expect := c.sums.first + 1
		sum := c.sums.take(line)
		for ; expect < line; expect++ {
			if !bad[expect] {
				add(expect) // a blank line
			}
		}
		clear(bad)
		if !c.sums.is(sum, canonical) {
			add(line)
		}
	}
	return checker{
		syntax: func(e *envelope.SyntaxError) { bad[e.Line] = true },
		header: func(h *envelope.Header) {
			buf = envelope.AppendHeader(buf[:0], h)
			look(h.Line, buf)
		},
		entry: func(s *step) {
			line, err := envelope.AppendEntry(buf[:0], s.entry)
			if err != nil {
				return // unreachable unless an entry type is added
			}
			buf = line
			look(s.line, buf)
		},
		end: func() {
			for i := range c.sums.queue {
				if line := c.sums.first + 1 + i; !bad[line] {
					add(line)
				}
			}
			if count > 0 {
				found(first, "", "run fmt", "%s not in canonical form", lines(count, "is", "are"))
			}
		},
	}
}
