package flavors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// rpc is a JSON-RPC message or its logical frame, member by member: nil where
// there is none.
type rpc struct {
	version                           []byte // "jsonrpc" on the wire, "kind" in a logical frame
	id, method, params, result, fault []byte
	name                              string // the method, decoded
}

// readRPC reads an object that has only the members of a JSON-RPC message, and
// one whose quoted key is first.
func readRPC(s source, first string) (m rpc, err error) {
	raw := s.raw
	ok, err := s.members(func(key, value []byte) error {
		var to *[]byte
		switch name := unescaped(key); string(name) {
		case first:
			to = &m.version
		case `"id"`:
			to = &m.id
		case `"method"`:
			to = &m.method
			if value[0] != '"' {
				return errors.New("method is not a string")
			}
			m.name = s.text(value)
		case `"params"`:
			to = &m.params
		case `"result"`:
			to = &m.result
		case `"error"`:
			to = &m.fault
		default:
			return fmt.Errorf("unknown key %s in a message", key)
		}
		if *to != nil {
			return fmt.Errorf("two members %s in one message", key)
		}
		*to = value
		return nil
	})
	if err == nil {
		err = objectError(raw, ok)
	}
	return m, err
}

// wireKind says what a message is, and whether it is legal JSON-RPC 2.0. An
// agent's error may lack its id.
func (m *rpc) wireKind(dir envelope.Direction) (Kind, error) {
	answered := m.result != nil || m.fault != nil
	switch {
	case string(m.version) != `"2.0"`:
		return 0, errors.New(`want "jsonrpc":"2.0"`)
	case m.method != nil && answered:
		return 0, fmt.Errorf("%s has both a method and a result or error", m.name)
	case m.method == nil && (m.result != nil) == (m.fault != nil):
		return 0, errors.New("a response wants exactly one of result and error")
	case m.method == nil && m.params != nil:
		return 0, errors.New("a response has params")
	case m.method == nil && m.id == nil && (dir == envelope.Out || m.fault == nil):
		return 0, errors.New("a response without an id")
	case m.params != nil && !bytes.ContainsAny(m.params[:1], "{[n"):
		return 0, fmt.Errorf("params of %s are no object, array or null", m.name)
	}
	if m.fault != nil {
		code, message := gjson.GetBytes(m.fault, "code"), gjson.GetBytes(m.fault, "message")
		if m.fault[0] != '{' || code.Type != gjson.Number || bytes.ContainsAny([]byte(code.Raw), ".eE") || message.Type != gjson.String {
			return 0, errors.New("error: want an object with an integer code and a message")
		}
	}
	switch {
	case m.id != nil:
		if err := checkACPID(m.id); err != nil {
			return 0, err
		}
		if m.method != nil {
			return Request, nil
		}
		return Response, nil
	case m.method != nil:
		return Notification, nil
	}
	return Response, nil
}

// acpCodec adds and takes off what a logical frame leaves out. It knows the
// open requests of both sides, to name the method of a response.
type acpCodec struct {
	open  [2]map[string]string // by the asking direction: id to method
	asked map[string]bool      // every id the client has used
	frame [1]Frame             // what Decode returned last
}

func newACPCodec() *acpCodec {
	return &acpCodec{open: [2]map[string]string{{}, {}}, asked: map[string]bool{}}
}

// Greeting writes nothing: an agent waits for initialize.
func (c *acpCodec) Greeting(dst []byte) []byte { return dst }

// End completes nothing: a message ends with its line.
func (c *acpCodec) End(envelope.Direction) ([]Frame, error) { return nil, nil }

func (c *acpCodec) Decode(dir envelope.Direction, wire []byte) ([]Frame, error) {
	m, err := readRPC(source{raw: wire}, `"jsonrpc"`)
	if err != nil {
		return nil, err
	}
	kind, err := m.wireKind(dir)
	if err != nil {
		return nil, err
	}
	f := Frame{Kind: kind, Method: m.name, ID: m.id}
	switch kind {
	case Request:
		c.ask(dir, m.id, m.name)
	case Response:
		if name, ok := c.answer(dir, m.id); ok {
			f.Method, m.method = name, envelope.AppendString(nil, name)
		}
	default:
		if err := c.checkCancel(dir, &m); err != nil {
			return nil, err
		}
	}
	f.Raw = m.logical(kind)
	c.frame[0] = f
	return c.frame[:], nil
}

// logical writes the logical frame of a message.
func (m *rpc) logical(kind Kind) json.RawMessage {
	const keys = len(`{"kind":"notification","id":,"method":,"params":}`)
	raw := make([]byte, 0, keys+len(m.id)+len(m.method)+len(m.params)+len(m.result)+len(m.fault))
	raw = append(raw, `{"kind":"`...)
	raw = append(append(raw, kind.String()...), '"')
	return append(m.rest(raw, m.id, m.method), '}')
}

// rest appends the members after the first.
func (m *rpc) rest(dst, id, method []byte) []byte {
	for _, v := range []struct {
		key   string
		value []byte
	}{{`,"id":`, id}, {`,"method":`, method}, {`,"params":`, m.params}, {`,"result":`, m.result}, {`,"error":`, m.fault}} {
		if v.value != nil {
			dst = append(append(dst, v.key...), v.value...)
		}
	}
	return dst
}

func (c *acpCodec) ask(dir envelope.Direction, id json.RawMessage, method string) {
	c.open[dir][plainID(id)] = method
	if dir == envelope.Out {
		c.asked[plainID(id)] = true
	}
}

// answer closes the request that a response of one direction answers and
// returns its method.
func (c *acpCodec) answer(dir envelope.Direction, id json.RawMessage) (string, bool) {
	open := c.open[dir.Opposite()]
	method, ok := open[plainID(id)]
	delete(open, plainID(id))
	return method, ok
}

// checkCancel says whether the client withdraws a request of its own. That it
// was answered in the meantime is no mistake.
func (c *acpCodec) checkCancel(dir envelope.Direction, m *rpc) error {
	if dir != envelope.Out || m.name != "$/cancel_request" {
		return nil
	}
	id := gjson.GetBytes(m.params, "requestId")
	if id.Exists() && !c.asked[plainID(json.RawMessage(id.Raw))] {
		return fmt.Errorf("$/cancel_request withdraws request %s, which the client has not sent", id.Raw)
	}
	return nil
}

func (c *acpCodec) Encode(dst []byte, dir envelope.Direction, f Frame, id json.RawMessage) ([]byte, error) {
	m, err := readRPC(source{raw: f.Raw}, `"kind"`)
	if err != nil {
		return dst, err
	}
	if id == nil {
		id = m.id
	}
	method := m.method
	switch f.Kind {
	case Request:
		if id == nil {
			return dst, fmt.Errorf("request %s without an id", m.name)
		}
		c.ask(dir, id, m.name)
	case Response:
		if id == nil && method != nil {
			return dst, fmt.Errorf("response to %s without an id", m.name)
		}
		c.answer(dir, id)
		method = nil
	default:
		id = nil
	}
	dst = append(dst, `{"jsonrpc":"2.0"`...)
	return append(m.rest(dst, id, method), "}\n"...), nil
}

// plainID spells a request id in one way: strings are the same id when they
// mean the same, however they are escaped.
func plainID(id json.RawMessage) string {
	if len(id) > 0 && id[0] == '"' && bytes.IndexByte(id, '\\') >= 0 {
		return string(envelope.AppendString(nil, envelope.Unquote(id)))
	}
	return string(id)
}
