package redact

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

const (
	defaultHold = 1 << 10
	// A stream that lies still is let go when this much came after it.
	maxQueue = 512
	maxSize  = 4 << 20
	// maxMatch is how long a find at the end of a stream is waited for.
	maxMatch = 64 << 10
)

// held is an entry that waits for its pieces, or for those before it.
type held struct {
	entry  envelope.Entry
	pieces []*piece
	size   int
}

// piece is a string of an entry that is part of a longer text.
type piece struct {
	stream   *stream
	start    int // of the quoted string in the frame
	from, to int // in the stream's text
	clear    bool
	spans    []span // once clear
}

// stream is one longer text, as far as it is needed: from base on.
type stream struct {
	name    string
	first   string // value of its first key
	lines   bool   // complete lines: only what spans lines can be split
	text    string
	base    int
	settled int // pieces up to here are clear
	open    int // where the find starts that goes on beyond settled; -1 for none
	pieces  []*piece
}

func (s *stream) end() int { return s.base + len(s.text) }

// Add takes an entry and returns, redacted, those that are clear, in order: no
// text that can still arrive makes a part of them a secret's part. After an
// error nothing may be written any more.
func (r *Redactor) Add(e envelope.Entry) ([]envelope.Entry, error) {
	h := &held{entry: e}
	switch e := e.(type) {
	case *envelope.ExpectOutbound:
		r.pieces(h, envelope.Out, e.Frame)
	case *envelope.EmitInbound:
		if e.Channel == "" || e.Channel == envelope.Protocol {
			r.pieces(h, envelope.In, e.Frame)
		} else if len(e.Frame) > 0 && e.Frame[0] == '"' {
			r.piece(h, string(e.Channel), "", 0, envelope.Unquote(e.Frame)).lines = true
			h.size = len(e.Frame)
		}
	case *envelope.RuntimeExit:
		r.settleAll()
	}
	r.queue = append(r.queue, h)
	r.size += h.size
	for _, p := range h.pieces {
		if s := p.stream; s.lines || s.end()-s.settled >= 2*r.hold() {
			s.settle(r, false)
		}
	}
	for r.config.Hold >= 0 && (len(r.queue) > maxQueue || r.size > maxSize) && !r.queue[0].isClear() {
		for _, p := range r.queue[0].pieces {
			p.stream.settle(r, true)
		}
	}
	return r.release()
}

// Flush returns what is still held, redacted: nothing more will arrive.
func (r *Redactor) Flush() ([]envelope.Entry, error) {
	r.settleAll()
	return r.release()
}

func (r *Redactor) settleAll() {
	names := make([]string, 0, len(r.streams))
	for name := range r.streams {
		names = append(names, name)
	}
	slices.Sort(names) // what is learned must not depend on the map's order
	for _, name := range names {
		r.streams[name].settle(r, true)
		delete(r.streams, name)
	}
}

func (r *Redactor) hold() int {
	switch {
	case r.config.Hold < 0:
		return 1 << 40
	case r.config.Hold == 0:
		return defaultHold
	}
	return r.config.Hold
}

func (h *held) isClear() bool {
	return !slices.ContainsFunc(h.pieces, func(p *piece) bool { return !p.clear })
}

func (r *Redactor) release() ([]envelope.Entry, error) {
	var out []envelope.Entry
	for len(r.queue) > 0 && r.queue[0].isClear() && r.err == nil {
		e, err := r.entry(r.queue[0])
		if err != nil {
			r.err = err
			break
		}
		out = append(out, e)
		r.size -= r.queue[0].size
		r.queue = r.queue[1:]
	}
	return out, r.err
}

// pieces finds the pieces of longer texts in a frame, and what ends some.
func (r *Redactor) pieces(h *held, dir envelope.Direction, frame []byte) {
	h.size = len(frame)
	if len(r.config.Streams) == 0 {
		return
	}
	method := gjson.GetBytes(frame, "method")
	if !method.Exists() {
		method = gjson.GetBytes(frame, "type")
	}
	for i := range r.config.Streams {
		s := &r.config.Streams[i]
		if dir == envelope.In {
			for _, end := range s.Ends {
				if end[0] == method.Str {
					r.close(keyText(gjson.GetBytes(frame, end[1])))
				}
			}
		}
		if s.Dir != dir || s.Method != "*" && s.Method != method.Str {
			continue
		}
		text := gjson.GetBytes(frame, s.Path)
		if text.Type != gjson.String || text.Index == 0 {
			continue
		}
		var name strings.Builder
		name.WriteString(s.Method + "\x00" + s.Path)
		first := ""
		for k, path := range s.Key {
			v := keyText(gjson.GetBytes(frame, path))
			if k == 0 {
				first = v
			}
			name.WriteString("\x00" + v)
		}
		r.piece(h, name.String(), first, text.Index, envelope.Unquote([]byte(text.Raw)))
	}
}

// keyText is a key's value; nothing is "" and null is a value.
func keyText(v gjson.Result) string {
	if v.Exists() && v.Type == gjson.Null {
		return "null"
	}
	return v.String()
}

func (r *Redactor) piece(h *held, name, first string, start int, text string) *stream {
	s := r.streams[name]
	if s == nil {
		s = &stream{name: name, first: first, open: -1}
		r.streams[name] = s
	}
	p := &piece{stream: s, start: start, from: s.end(), to: s.end() + len(text)}
	s.text += text
	s.pieces = append(s.pieces, p)
	h.pieces = append(h.pieces, p)
	return s
}

// close ends the streams whose first key has the value.
func (r *Redactor) close(value string) {
	if value == "" {
		return
	}
	if r.closed != nil {
		r.closed(value)
		return
	}
	var names []string
	for name, s := range r.streams {
		if s.first == value {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		r.streams[name].settle(r, true)
		delete(r.streams, name)
	}
}

// settle clears the pieces that no secret can reach beyond. With final set
// nothing is waited for.
func (s *stream) settle(r *Redactor, final bool) {
	if len(s.pieces) == 0 {
		return
	}
	spans := r.find.find(s.text, false)
	for _, x := range spans {
		if start := s.base + x.start; start < s.settled && s.base+x.end > s.settled && start != s.open && r.err == nil {
			r.err = &LeakError{Rule: x.rule, Path: "a text that went on after its beginning was let go"}
		}
	}
	limit := s.end()
	if !final {
		if !s.lines {
			limit -= r.hold()
		} else if !strings.HasSuffix(s.text, "\n") {
			limit = s.settled
		}
		for i := len(spans) - 1; i >= 0; i-- {
			if start, end := s.base+spans[i].start, s.base+spans[i].end; end > limit || s.lines && end == limit && spans[i].rule == "private-key" {
				if limit-start > maxMatch {
					break
				}
				limit = min(limit, start)
			}
		}
		if s.lines && limit == s.end() {
			limit = s.pendingLines(limit)
		}
	}
	n := 0
	for ; n < len(s.pieces) && s.pieces[n].to <= limit; n++ {
		p := s.pieces[n]
		p.clear = true
		for _, x := range spans {
			start, end := s.base+x.start, s.base+x.end
			if start < p.to && end > p.from {
				x.rest = start < p.from
				x.start, x.end = max(start, p.from)-p.from, min(end, p.to)-p.from
				p.spans = append(p.spans, x)
			}
		}
		s.settled = p.to
	}
	s.pieces = s.pieces[n:]
	s.open = -1
	edge := s.settled
	for _, x := range spans {
		if s.base+x.start < s.settled && s.base+x.end > s.settled {
			s.open = s.base + x.start
			edge = min(edge, s.open)
		}
	}
	keep := edge - max(min(r.hold(), maxMatch), defaultHold) // what stands before may tell
	if s.lines && limit == s.end() {                         // whole lines depend on nothing before
		keep = s.end()
	}
	if keep > s.base {
		s.text = s.text[keep-s.base:]
		s.base = keep
	}
}

// pendingLines returns where something begins that may go on in the next line,
// or the end: a private key, or a word that a terminal has cut.
func (s *stream) pendingLines(end int) int {
	if i := strings.LastIndex(s.text, "-----BEGIN "); i >= 0 && len(s.text)-i < 256 && strings.Contains(s.text[i:], "PRIVATE KEY") {
		return s.base + i
	}
	last := strings.TrimRight(s.text, "\r\n")
	start := strings.LastIndexByte(last, '\n') + 1
	if len(last)-start >= terminal && tokenByte(last[len(last)-1]) {
		return s.base + start
	}
	return end
}
