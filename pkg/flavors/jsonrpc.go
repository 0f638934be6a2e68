package flavors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// classifyRPC reads a JSON-RPC shaped object without a "jsonrpc" member: a
// method and an id make a request, a method alone a notification, an id alone
// a response, which has exactly one of result and error.
func classifyRPC(_ envelope.Direction, s source) (Frame, error) {
	raw := s.raw
	f := Frame{Raw: raw}
	var hasMethod, hasResult, hasError bool
	ok, err := s.members(func(key, value []byte) error {
		switch string(unescaped(key)) {
		case `"method"`:
			if hasMethod {
				return errors.New("two methods in one frame")
			}
			hasMethod = true
			if value[0] != '"' {
				return errors.New("method is not a string")
			}
			f.Method = s.text(value)
		case `"id"`:
			if f.ID != nil {
				return errors.New("two ids in one frame")
			}
			f.ID = value
		case `"result"`:
			hasResult = true
		case `"error"`:
			hasError = true
		}
		return nil
	})
	if err == nil {
		err = objectError(raw, ok)
	}
	switch {
	case err != nil:
		return f, err
	case hasMethod && (hasResult || hasError):
		return f, fmt.Errorf("%s has both a method and a result or error", f.Method)
	case hasMethod && f.ID != nil:
		f.Kind = Request
	case hasMethod:
		f.Kind = Notification
	case f.ID == nil:
		return f, errors.New("neither method nor id: not a request, notification or response")
	case hasResult == hasError:
		return f, fmt.Errorf("response %s wants exactly one of result and error", f.ID)
	default:
		f.Kind = Response
	}
	return f, nil
}

// objectError says why a message is no JSON object, nil when it is one.
func objectError(raw []byte, valid bool) error {
	switch {
	case !valid:
		return errors.New("not JSON")
	case raw[envelope.SkipSpace(raw, 0)] == '[':
		return errors.New("a batch array: send one message per line")
	case raw[envelope.SkipSpace(raw, 0)] != '{':
		return errors.New("not a JSON object")
	}
	return nil
}

// unescaped returns a quoted key in its plain spelling.
func unescaped(key []byte) []byte {
	if bytes.IndexByte(key, '\\') < 0 {
		return key
	}
	return envelope.AppendString(nil, envelope.Unquote(key))
}

// checkScalarID accepts a string or an integer.
func checkScalarID(id json.RawMessage) error {
	if len(id) > 0 && (id[0] == '"' || !bytes.ContainsAny(id, ".eE{[ntf")) {
		return nil
	}
	return fmt.Errorf("request id %s: want a string or an integer", id)
}

// replaceID appends the frame with the literal of its "id" member replaced and
// every other byte kept.
func replaceID(dst []byte, f Frame, id json.RawMessage) []byte {
	if f.ID == nil || bytes.Equal(f.ID, id) {
		return append(dst, f.Raw...)
	}
	object := f.Raw[envelope.SkipSpace(f.Raw, 0):]
	at, end := 0, 0
	_ = envelope.EachMember(object, func(key, value []byte) error {
		if end == 0 && string(plainKey(key)) == `"id"` {
			at = cap(f.Raw) - cap(value) // value is a slice of f.Raw
			end = at + len(value)
		}
		return nil
	})
	dst = append(dst, f.Raw[:at]...)
	dst = append(dst, id...)
	return append(dst, f.Raw[end:]...)
}

// plainKey returns a quoted key without the escapes it does not need.
func plainKey(key []byte) []byte {
	if bytes.IndexByte(key, '\\') < 0 {
		return key
	}
	return envelope.AppendString(nil, envelope.Unquote(key))
}

// plainCodec is the codec of a protocol whose wire messages are its logical
// frames, one object per line.
type plainCodec struct {
	classify func(envelope.Direction, json.RawMessage) (Frame, error)
	frame    [1]Frame // what Decode returned last
}

func (c *plainCodec) Greeting(dst []byte) []byte { return dst }

func (c *plainCodec) End(envelope.Direction) ([]Frame, error) { return nil, nil }

func (c *plainCodec) Decode(dir envelope.Direction, wire []byte) ([]Frame, error) {
	f, err := c.classify(dir, wire)
	if err != nil {
		return nil, err
	}
	c.frame[0] = f
	return c.frame[:], nil
}

func (c *plainCodec) Encode(dst []byte, _ envelope.Direction, f Frame, id json.RawMessage) ([]byte, error) {
	if id != nil {
		dst = replaceID(dst, f, id)
	} else {
		dst = append(dst, f.Raw...)
	}
	return append(dst, '\n'), nil
}
