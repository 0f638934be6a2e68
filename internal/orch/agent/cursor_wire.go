package agent

import (
	"encoding/json"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// The wire of the bridge is one object per line, told apart by its type, and
// nobody numbers calls (docs/flavor-cursor.md):
//
//	{"type":"agent.open","operation":"create","options":{…}}
//	{"type":"agent.opened","agentId":"agent-1"}
//	{"type":"call.failed","call":"run.start","error":{"name":"…","message":"…","code":"…"}}
//
// To the rpc agent.open and run.start are calls, which are answered in order;
// everything else is a notification named by its type, with the whole frame as
// params.
const (
	cursorOpen   = "agent.open"
	cursorRun    = "run.start"
	cursorCancel = "run.cancel"
	cursorClose  = "agent.close"

	cursorNoAgent = "(agent_not_found)" // end of the refusal to resume an agent
)

// cursorFrame is any outbound frame.
type cursorFrame struct {
	Type      string         `json:"type"`
	Operation string         `json:"operation,omitempty"` // create, resume
	AgentID   string         `json:"agentId,omitempty"`
	RunID     string         `json:"runId,omitempty"`
	Message   string         `json:"message,omitempty"`
	Options   *cursorOptions `json:"options,omitempty"`
}

// cursorOptions are those of an agent; a run has the model and the mode.
type cursorOptions struct {
	Model cursorModel  `json:"model"`
	Name  string       `json:"name,omitempty"`
	Mode  string       `json:"mode"` // agent, plan
	Local *cursorLocal `json:"local,omitempty"`
}

type cursorModel struct {
	ID string `json:"id,omitempty"`
	// Params are the model's own: [{"id":"fast","value":"true"}].
	Params json.RawMessage `json:"params,omitempty"`
}

type cursorLocal struct {
	Cwd            string `json:"cwd"`
	AutoReview     bool   `json:"autoReview"`
	SandboxOptions struct {
		Enabled bool `json:"enabled"`
	} `json:"sandboxOptions"`
	EnableAgentRetries bool `json:"enableAgentRetries"`
}

// newCursorAgentOptions takes the settings of a thread. The SDK never asks: a
// sandbox is all that stands for a runtime mode short of full access.
func newCursorAgentOptions(t orch.ThreadOptions) *cursorOptions {
	o := newCursorRunOptions(t)
	o.Name = "replaypeer orchestrator"
	o.Local = &cursorLocal{Cwd: t.Cwd, EnableAgentRetries: true}
	o.Local.SandboxOptions.Enabled = t.RuntimeMode != "full-access"
	return o
}

func newCursorRunOptions(t orch.ThreadOptions) *cursorOptions {
	o := &cursorOptions{Model: cursorModel{ID: t.Model}, Mode: "agent"}
	if t.InteractionMode == "plan" {
		o.Mode = "plan"
	}
	if gjson.ValidBytes(t.Options) {
		o.Model.Params = raw(gjson.GetBytes(t.Options, "params"))
	}
	return o
}

// cursorCalls pairs answers with calls, which the wire does not.
type cursorCalls struct {
	mu   sync.Mutex
	open map[string][]string // ids by call, oldest first
}

func newCursorWire() rpcWire {
	c := &cursorCalls{open: map[string][]string{}}
	return rpcWire{encode: c.encode, decode: c.decode}
}

func (c *cursorCalls) encode(f rpcFrame) any {
	if f.ID != nil {
		c.mu.Lock()
		c.open[f.Method] = append(c.open[f.Method], string(f.ID))
		c.mu.Unlock()
	}
	return f.Params
}

func (c *cursorCalls) decode(f gjson.Result) rpcIncoming {
	switch typ := f.Get("type").Str; typ {
	case "agent.opened":
		return c.answer(cursorOpen, f)
	case "run.started":
		return c.answer(cursorRun, f)
	case "call.failed":
		in := c.answer(f.Get("call").Str, f)
		in.refusal = cursorRefusal(f.Get("error"))
		return in
	case "bridge.fatal": // the end of the process follows
		return rpcIncoming{answer: true, refusal: cursorRefusal(f.Get("error"))}
	default:
		return rpcIncoming{rpcMessage: rpcMessage{Method: typ, Params: f}}
	}
}

// answer settles the oldest call of its kind; none, when it was not called.
func (c *cursorCalls) answer(call string, f gjson.Result) rpcIncoming {
	c.mu.Lock()
	defer c.mu.Unlock()
	in := rpcIncoming{answer: true, result: f}
	if ids := c.open[call]; len(ids) > 0 {
		in.ID, c.open[call] = ids[0], ids[1:]
	}
	return in
}

func cursorRefusal(e gjson.Result) *rpcError {
	text := firstText(e.Get("message").String(), e.Get("name").String())
	if code := e.Get("code").String(); code != "" {
		text += " (" + code + ")"
	}
	return &rpcError{Message: text}
}
