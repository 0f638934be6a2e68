package flavors

import (
	"encoding/json"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// source is a frame to classify: its bytes, which are checked on the way, or a
// value that a tape holds already.
type source struct {
	raw  json.RawMessage
	tape *envelope.Tape // nil for bytes
	at   int
}

// text decodes a string of the frame.
func (s source) text(quoted []byte) string {
	if s.tape == nil {
		return envelope.Unquote(quoted)
	}
	return s.tape.Word(quoted)
}

// members is envelope.ValidMembers.
func (s source) members(fn func(key, value []byte) error) (ok bool, err error) {
	if s.tape == nil {
		return envelope.ValidMembers(s.raw, fn)
	}
	err = envelope.Value{Tape: s.tape, Index: s.at}.Members(fn)
	return err == nil, err
}

// fromBytes and fromTape are the two ways to call a function that classifies.
func fromBytes(classify func(envelope.Direction, source) (Frame, error)) func(envelope.Direction, json.RawMessage) (Frame, error) {
	return func(dir envelope.Direction, raw json.RawMessage) (Frame, error) {
		return classify(dir, source{raw: raw})
	}
}

func fromTape(classify func(envelope.Direction, source) (Frame, error)) func(envelope.Direction, envelope.Value) (Frame, error) {
	return func(dir envelope.Direction, v envelope.Value) (Frame, error) {
		return classify(dir, source{raw: v.Bytes(), tape: v.Tape, at: v.Index})
	}
}
