package redact

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// LeakError says that a transcript still holds what should not be in it. It
// does not hold the secret itself.
type LeakError struct {
	File string
	Line int // 0 when it is not in a file yet
	Rule string
	Path string // of the value in the line, keys joined by dots
}

// Error returns "file:line: rule at path".
func (e *LeakError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s in %s", e.Rule, e.Path)
	}
	return fmt.Sprintf("%s:%d: %s at %s", e.File, e.Line, e.Rule, e.Path)
}

// Check reads a redacted transcript and looks for what is left: with all the
// rules, in whole lines, labels included, in the joined text of streams from
// end to end, and for every credential that was replaced, by its value in all
// its forms. A find is a *LeakError.
func (r *Redactor) Check(file string, src io.Reader) error {
	c := &check{r: r, file: file, find: r.find, texts: map[string]*joined{}}
	c.find.wire, c.find.known = false, slices.Clone(r.find.known)
	c.values = r.values()
	in := envelope.NewReader(file, src)
	h, err := in.Header()
	if err != nil {
		return err
	}
	c.line(h.Line, envelope.In, envelope.AppendHeader(nil, h), nil)
	for {
		e, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		c.entry(e)
	}
	for _, j := range c.texts {
		c.joined(j)
	}
	if c.leak != nil {
		return c.leak
	}
	return nil
}

// check is one run of Check.
type check struct {
	r      *Redactor
	file   string
	find   finder
	values map[string]string // forms of replaced credentials to their rules
	texts  map[string]*joined
	leak   *LeakError // the first
}

// joined is the whole text of a stream and where it comes from.
type joined struct {
	text  strings.Builder
	ends  []int // of each piece
	lines []int
	first string // value of its first key
	path  string
}

func (c *check) found(line int, rule, path string) {
	if c.leak == nil || line < c.leak.Line {
		c.leak = &LeakError{c.file, line, rule, path}
	}
}

// ended looks at the texts that a frame ends.
func (c *check) ended(key string) {
	for name, j := range c.texts {
		if j.first == key {
			c.joined(j)
			delete(c.texts, name)
		}
	}
}

func (c *check) entry(e envelope.Entry) {
	line, _ := e.Position()
	raw, err := envelope.AppendEntry(nil, e)
	if err != nil {
		return // unreachable: the reader made it
	}
	h := &held{}
	probe := &Redactor{config: c.r.config, streams: map[string]*stream{}, closed: c.ended}
	dir := envelope.In
	switch e := e.(type) {
	case *envelope.RuntimeExit: // what the next process says is another text
		for _, j := range c.texts {
			c.joined(j)
		}
		clear(c.texts)
	case *envelope.ExpectOutbound:
		dir = envelope.Out
		probe.pieces(h, dir, e.Frame)
	case *envelope.EmitInbound:
		if e.Channel == "" || e.Channel == envelope.Protocol {
			probe.pieces(h, dir, e.Frame)
		} else if e.Frame[0] == '"' {
			probe.piece(h, string(e.Channel), "", 0, envelope.Unquote(e.Frame))
		}
	}
	for _, p := range h.pieces {
		j := c.texts[p.stream.name]
		if j == nil {
			j = &joined{first: p.stream.first, path: "frame"}
			c.texts[p.stream.name] = j
		}
		j.text.WriteString(p.stream.text)
		j.ends = append(j.ends, j.text.Len())
		j.lines = append(j.lines, line)
	}
	c.line(line, dir, raw, h.pieces)
}

// line looks at one line, without the pieces of streams, but for the values.
func (c *check) line(line int, dir envelope.Direction, raw []byte, pieces []*piece) {
	raw = bytes.TrimSuffix(raw, []byte("\n"))
	frame := bytes.Index(raw, []byte(`"frame":`)) + len(`"frame":`) // the entry's own key: what could stand before it has its quotes escaped
	walk(raw, func(w *walker, t token) {
		inFrame := len(w.path) > 0 && w.path[0] == "frame"
		if t.kind == tokenNumber {
			return
		}
		if slices.ContainsFunc(pieces, func(p *piece) bool { return t.start == frame+p.start }) {
			return
		}
		text := envelope.Unquote(raw[t.start:t.end])
		var spans []span
		switch {
		case t.kind == tokenKey:
			spans = c.find.find(text, false)
		case !inFrame && t.depth == 1:
			// A label is a method. That a user is called like one is chance.
			spans = slices.DeleteFunc(c.find.find(text, t.key != "label" && t.key != "group"), func(s span) bool { return s.rule == "user" || s.rule == "host" })
		default:
			spans = c.find.member(t.key, text, t.id())
		}
		if inFrame && t.depth == 2 {
			inner := t
			inner.depth--
			if inner.fixed() {
				spans = slices.DeleteFunc(spans, func(s span) bool { return s.personal })
			}
		}
		if len(spans) > 0 {
			c.found(line, spans[0].rule, w.at())
		}
	})
	for form, rule := range c.values {
		if i := bytes.Index(raw, []byte(form)); i >= 0 {
			c.found(line, rule, "byte "+fmt.Sprint(i))
		}
	}
}

// joined looks at the whole text of a stream.
func (c *check) joined(j *joined) {
	text := j.text.String()
	at := func(i int) int {
		k, _ := slices.BinarySearch(j.ends, i+1)
		return j.lines[min(k, len(j.lines)-1)]
	}
	for _, s := range c.find.find(text, false) {
		c.found(at(s.start), s.rule, j.path)
	}
	for form, rule := range c.values {
		if i := strings.Index(text, form); i >= 0 {
			c.found(at(i), rule, j.path)
		}
	}
}

// values are the credentials that were replaced, in the forms that could be
// left: plain, as JSON and URLs write them, and in base64 at any alignment.
func (r *Redactor) values() map[string]string {
	forms := map[string]string{}
	add := func(value, rule string) {
		if len(value) < 8 {
			return
		}
		forms[value] = rule
		quoted := string(envelope.AppendString(nil, value))
		forms[quoted[1:len(quoted)-1]] = rule
		forms[url.QueryEscape(value)] = rule
		forms[url.PathEscape(value)] = rule
		for skip := range 3 {
			for _, code := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
				s := code.EncodeToString(append(make([]byte, skip), value...))
				from, to := (skip*8+5)/6, (skip+len(value))*8/6 // only what the value alone decides
				if to-from >= 12 {
					forms[s[from:to]] = rule
				}
			}
		}
	}
	for _, k := range r.find.known {
		if !k.exact {
			add(k.value, k.rule)
		}
	}
	return forms
}
