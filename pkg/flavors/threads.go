package flavors

import (
	"bytes"
	"errors"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// Where frames say which conversation thread they belong to.
var (
	codexThreads = []Place{
		{envelope.In, "*", "params.threadId"}, {envelope.In, "*", "params.thread.id"},
		{envelope.In, "*", "result.thread.id"}, {envelope.Out, "*", "params.threadId"},
	}

	claudeThreads = []Place{{envelope.In, "*", "parent_tool_use_id"}}

	acpThreads = []Place{
		{envelope.In, "*", "params.sessionId"}, {envelope.In, "*", "result.sessionId"}, {envelope.Out, "*", "params.sessionId"},
	}

	openCodeThreads = []Place{
		{envelope.In, "*", "event.properties.sessionID"}, {envelope.In, "*", "event.properties.info.sessionID"},
		{envelope.In, "*", "event.properties.part.sessionID"}, {envelope.Out, "*", "input.sessionID"},
	}
)

// Spans returns where in the raw frame the piece of the stream stands, none
// where the frame has none.
func (s Stream) Spans(dir envelope.Direction, f Frame) [][2]int {
	if !s.Fits(f) {
		return nil
	}
	return Spans([]Place{s.Place()}, dir, f)
}

// Place is where the piece stands in a frame that fits.
func (s Stream) Place() Place { return Place{s.Dir, "*", s.Path} }

// Fits says whether frames of this kind have a piece of the stream.
func (s Stream) Fits(f Frame) bool {
	return s.Method == "*" || s.Method == f.Method || s.Method == gjson.GetBytes(f.Raw, "type").Str
}

// Name tells the frame's text apart from others of the stream.
func (s Stream) Name(f Frame) string {
	var name strings.Builder
	for _, path := range s.Key {
		name.WriteString(gjson.GetBytes(f.Raw, path).Raw)
		name.WriteByte(0)
	}
	return name.String()
}

// AppendName appends the Name of a frame that was scanned.
func (s *Stream) AppendName(dst []byte, f *Frame, v envelope.Value) []byte {
	for _, path := range s.Key {
		if raw := tokenAt(v, path); raw != nil {
			dst = append(dst, raw...)
		} else {
			dst = append(dst, gjson.GetBytes(f.Raw, path).Raw...)
		}
		dst = append(dst, 0)
	}
	return dst
}

// tokenAt is valueAt of what was scanned.
func tokenAt(v envelope.Value, path string) []byte {
	tokens, at := v.Tape.Tokens, v.Index
	for more := true; more; {
		var key string
		key, path, more = strings.Cut(path, ".")
		end, next := int(tokens[at].Next), 0
		if tokens[at].Kind != '{' {
			return nil
		}
		for i := at + 1; i < end && next == 0; i = int(tokens[i+1].Next) {
			k := v.Tape.Bytes(tokens[i])
			if tokens[i].Escaped {
				return nil
			}
			if string(k[1:len(k)-1]) == key {
				next = i + 1
			}
		}
		if next == 0 {
			return nil
		}
		at = next
	}
	return v.Tape.Bytes(tokens[at])
}

// valueAt is gjson's Get of a path of plain keys, where it is easy: nil where
// there is no such value, or keys are escaped.
func valueAt(raw []byte, path string) []byte {
	for more := true; more; {
		var key string
		key, path, more = strings.Cut(path, ".")
		if len(raw) == 0 || raw[0] != '{' {
			return nil
		}
		var at []byte
		_ = envelope.EachMember(raw, func(k, value []byte) error {
			switch {
			case string(k[1:len(k)-1]) == key:
				at = value
				return errFound
			case bytes.IndexByte(k, '\\') >= 0:
				return errFound
			}
			return nil
		})
		raw = at
	}
	return raw
}

// errFound ends a search.
var errFound = errors.New("found")
