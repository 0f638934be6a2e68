package flavors

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// impliedID is the request id of a query.open that no initialize carries. Its
// answer is not on the wire.
const impliedID = `"query.open"`

// claudeCodec is the codec of one `claude` process.
type claudeCodec struct {
	args   []string
	full   bool // the options projection
	opened bool // query.open is behind us
	calls  [2]claudeCalls
	frames [2]Frame // what Decode returned last
}

func newClaudeCodec(l Launch) *claudeCodec {
	recording := l.Header.Protocol == ""
	return &claudeCodec{
		args: l.Args,
		full: recording || gjson.GetBytes(l.Header.Metadata, "optionsProjection").Str == "full",
	}
}

// claudeCall is a control request that was on the wire.
type claudeCall struct {
	id      json.RawMessage // as frames have it
	wire    string          // as the wire has it
	method  string
	toolUse string // of a permission request
	done    bool   // answered or withdrawn
}

// claudeCalls are the control requests of one direction. Answered ones are
// kept: an answer that comes late or twice must still be told apart from one
// to nothing.
type claudeCalls struct {
	list   []*claudeCall // in order
	byWire map[string]*claudeCall
	byID   map[string]*claudeCall
	next   int // id of a request that comes without one
}

func (s *claudeCalls) add(c claudeCall) {
	if s.byWire == nil {
		s.byWire, s.byID = map[string]*claudeCall{}, map[string]*claudeCall{}
	}
	if before := s.byWire[c.wire]; before != nil {
		before.done = true // its id is another's now
	}
	s.list = append(s.list, &c)
	s.byWire[c.wire] = &c
	s.byID[string(c.id)] = &c
}

// answer finds the request that a response of a method answers: by id, where
// there is one, else the oldest open.
func (s *claudeCalls) answer(id json.RawMessage, method string) *claudeCall {
	if id != nil {
		return s.byID[string(id)]
	}
	for _, c := range s.list {
		if !c.done && c.method == method {
			return c
		}
	}
	return nil
}

// open finds the youngest open permission request of a tool use, or the
// oldest open request of a method that is of no tool use.
func (s *claudeCalls) open(method, toolUse string) *claudeCall {
	if toolUse == "" {
		for _, c := range s.list {
			if !c.done && c.method == method && c.toolUse == "" {
				return c
			}
		}
		return nil
	}
	for i := len(s.list) - 1; i >= 0; i-- {
		if c := s.list[i]; c.toolUse == toolUse && !c.done {
			return c
		}
	}
	return nil
}

func (c *claudeCodec) of(dir envelope.Direction) *claudeCalls {
	if dir == envelope.Out {
		return &c.calls[0]
	}
	return &c.calls[1]
}

func (c *claudeCodec) Greeting(dst []byte) []byte { return dst }

func (c *claudeCodec) End(envelope.Direction) ([]Frame, error) { return nil, nil }

func (c *claudeCodec) Decode(dir envelope.Direction, wire []byte) ([]Frame, error) {
	if dir == envelope.Out {
		return c.decodeOut(wire)
	}
	var h claudeHead
	if err := h.read(source{raw: wire}); err != nil {
		return nil, err
	}
	switch envelope.Unquote(h.typ) {
	case "keep_alive":
		return nil, nil
	case "control_request", "control_response", "control_cancel_request":
		o, err := readObject(wire)
		if err != nil {
			return nil, err
		}
		f, err := c.decodeControl(envelope.In, o)
		if err != nil {
			return nil, err
		}
		return c.give(f), nil
	case "query.response", "permission.request", "hook.request", "mcp.request", "control.request",
		"permission.aborted", "control.aborted", "session.forked":
		return nil, fmt.Errorf("message of type %s: that is a frame, not a message of the wire", h.typ)
	}
	f, err := classifyClaude(envelope.In, wire)
	if err != nil {
		return nil, err // unreachable: what is no message has been sorted out
	}
	return c.give(f), nil
}

func (c *claudeCodec) give(f Frame) []Frame {
	c.frames[0] = f
	return c.frames[:1]
}

func (c *claudeCodec) decodeOut(wire []byte) ([]Frame, error) {
	o, err := readObject(wire)
	if err != nil {
		return nil, err
	}
	typ, ok := o.str("type")
	if !ok {
		return nil, errors.New("message has no type")
	}
	var f Frame
	switch typ {
	case "keep_alive":
		return nil, nil
	case "control_request", "control_response", "control_cancel_request":
		opened := c.opened
		if f, err = c.decodeControl(envelope.Out, o); err != nil {
			return nil, err
		}
		if !opened && c.opened {
			return c.give(f), nil
		}
	case "user":
		f.Raw = c.prompt(o)
	case "update_environment_variables":
		f.Raw = environment(o)
	default:
		f.Raw = object{}.withString("type", "host.message").with("message", o.json()).json()
	}
	if f.Method == "" && f.ID == nil {
		if f, err = classifyClaude(envelope.Out, f.Raw); err != nil {
			return nil, err // unreachable: the frame was made here
		}
	}
	if c.opened {
		return c.give(f), nil
	}
	c.opened = true
	raw := object{}.withString("type", "query.open").with("initialize", []byte("false")).
		with("options", c.options(nil)).json()
	c.of(envelope.Out).add(claudeCall{id: json.RawMessage(impliedID), method: "query.open"})
	c.frames = [2]Frame{{Kind: Request, Method: "query.open", ID: json.RawMessage(impliedID), Raw: raw}, f}
	return c.frames[:], nil
}

// prompt is the frame of a user message. What the SDK adds to a message, and
// what transcripts of the core projection lack, is left out.
func (c *claudeCodec) prompt(o object) json.RawMessage {
	if s, ok := o.str("session_id"); ok && s == "" {
		o = o.without("session_id")
	}
	if !c.full {
		o = o.without("session_id", "uuid")
	}
	return object{}.withString("type", "prompt.offer").with("message", o.json()).json()
}

// environment is the frame of changed environment variables: their names.
func environment(o object) json.RawMessage {
	return object{}.withString("type", "environment.update").with("names", names(o.get("variables"))).json()
}

func (c *claudeCodec) Encode(dst []byte, dir envelope.Direction, f Frame, id json.RawMessage) ([]byte, error) {
	if id == nil {
		id = f.ID
	}
	typ := envelope.Unquote(textAt(f.Raw[envelope.SkipSpace(f.Raw, 0):], "type"))
	wire, err := f.Raw, error(nil)
	switch {
	case dir == envelope.In && typ == "session.forked", dir == envelope.Out && typ == "session.fork":
		return nil, fmt.Errorf("%s is not on the wire: the SDK forks a session in its own process", typ)
	case dir == envelope.In && f.Kind == Notification && typ != "control.aborted" && typ != "permission.aborted":
		// A message of the wire as it came, whatever is in it.
	default:
		var o object
		if o, err = readObject(f.Raw); err == nil {
			wire, err = c.encode(dir, f, typ, o, id)
		}
	}
	if err != nil {
		return nil, err
	}
	if wire == nil {
		return dst, nil
	}
	return append(append(dst, wire...), '\n'), nil
}

// encode returns the wire message of a frame that is not one itself, nil for
// none.
func (c *claudeCodec) encode(dir envelope.Direction, f Frame, typ string, o object, id json.RawMessage) (json.RawMessage, error) {
	switch {
	case f.Kind == Request:
		return c.encodeRequest(dir, f.Method, typ, o, id)
	case f.Kind == Response:
		return c.encodeAnswer(dir, f.Method, typ, o, id)
	}
	switch typ {
	case "prompt.offer", "host.message":
		return o.get("message"), nil
	case "environment.update":
		return object{}.withString("type", "update_environment_variables").with("variables", unnames(o.get("names"), `""`)).json(), nil
	case "query.cancel", "control.aborted", "permission.aborted":
		method, _ := o.str("method")
		toolUse, _ := o.str("toolUseID")
		call := c.of(dir).open(method, toolUse)
		if call == nil {
			return nil, fmt.Errorf("%s withdraws no open request", typ)
		}
		call.done = true
		return object{}.withString("type", "control_cancel_request").withString("request_id", call.wire).json(), nil
	}
	return f.Raw, nil
}
