package flavors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// classifyRPC reads a JSON-RPC shaped object without a "jsonrpc" member: a
// method and an id make a request, a method alone a notification, an id alone
// a response, which has exactly one of result and error.
func classifyRPC(_ envelope.Direction, raw json.RawMessage) (Frame, error) {
	f := Frame{Raw: raw}
	if i := bytes.IndexByte(raw, '{'); i < 0 || len(bytes.TrimLeft(raw[:i], " \t\r")) > 0 {
		if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) {
			return f, errors.New("a batch array: send one message per line")
		}
		return f, errors.New("not a JSON object")
	}
	var hasMethod, hasResult, hasError bool
	var err error
	gjson.ParseBytes(raw).ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "method":
			hasMethod = true
			if value.Type != gjson.String {
				err = errors.New("method is not a string")
			}
			f.Method = value.Str
		case "id":
			if f.ID != nil {
				err = errors.New("two ids in one frame")
			}
			f.ID = json.RawMessage(value.Raw)
		case "result":
			hasResult = true
		case "error":
			hasError = true
		}
		return err == nil
	})
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

// checkScalarID accepts a string or an integer.
func checkScalarID(id json.RawMessage) error {
	if len(id) > 0 && (id[0] == '"' || !bytes.ContainsAny(id, ".eE{[ntf")) {
		return nil
	}
	return fmt.Errorf("request id %s: want a string or an integer", id)
}

// replaceID returns raw with the value of its top-level member key replaced
// and every other byte kept.
func replaceID(dst []byte, raw json.RawMessage, key string, id json.RawMessage) []byte {
	r := gjson.GetBytes(raw, key)
	if r.Index <= 0 {
		return append(dst, raw...)
	}
	dst = append(dst, raw[:r.Index]...)
	dst = append(dst, id...)
	return append(dst, raw[r.Index+len(r.Raw):]...)
}

// plainCodec is the codec of a protocol whose wire messages are its logical
// frames, one object per line.
type plainCodec struct {
	idKey    string
	classify func(envelope.Direction, json.RawMessage) (Frame, error)
}

func (c plainCodec) Decode(dir envelope.Direction, wire []byte) ([]Frame, error) {
	if !json.Valid(wire) {
		return nil, errors.New("not JSON")
	}
	f, err := c.classify(dir, wire)
	if err != nil {
		return nil, err
	}
	return []Frame{f}, nil
}

func (c plainCodec) Encode(dst []byte, _ envelope.Direction, f Frame, id json.RawMessage) ([]byte, error) {
	if id != nil && c.idKey != "" {
		dst = replaceID(dst, f.Raw, c.idKey, id)
	} else {
		dst = append(dst, f.Raw...)
	}
	return append(dst, '\n'), nil
}
