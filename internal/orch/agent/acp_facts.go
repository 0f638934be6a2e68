package agent

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// acpFacts turns what the agent says into provider events. It is fed on the
// reading goroutine, in wire order.
//
// The protocol names no turns: one begins with our prompt and ends, in version
// 1, with the prompt's answer, in version 2 with the session being idle again.
// What an agent says of its session between two turns means nothing here: it
// repeats history, tells its settings, or chats on. The protocol has no mark by
// which something that was said just before a prompt arrived could be told from
// the answer to it.
//
// A session is ours, a named child's, or not named yet: what is said of the
// last kind is held until it is.
type acpFacts struct {
	mu       sync.Mutex // guards all below; push is called with it held
	push     func(orch.ProviderEvent)
	kind     acpAgent
	protocol int64
	threads  map[string]*acpThread
	settings acpSettings
	requests []*acpRequest // open ones, in the order asked
}

// acpThread is a session.
type acpThread struct {
	id        string
	named     bool
	repeating bool              // what it says is history
	child     *acpChild         // nil for ours
	turn      *acpTurn          // that runs, or nil
	held      []func()          // what was said before it was named
	terminals map[string]string // output by id, in version 2
}

// acpTurn is a turn.
type acpTurn struct {
	id           string
	mode         string // runtime mode
	interrupting bool
	accepted     bool // the agent took the prompt up; version 2
	segment      *acpSegment
	segments     int
	tools        []*acpTool // in the order they were started
	todo         *orch.ProviderItem
	answer       string // last assistant text
}

func newACPFacts(kind acpAgent, push func(orch.ProviderEvent)) *acpFacts {
	return &acpFacts{kind: kind, push: push, protocol: 1, threads: map[string]*acpThread{}}
}

// speaks sets the protocol version that was agreed on.
func (c *acpFacts) speaks(protocol int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.protocol = protocol
}

// opened takes the answer to a call that opens a session of ours.
func (c *acpFacts) opened(id string, result gjson.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settings = readACPSettings(result)
	c.name(c.thread(id))
}

// begin starts a turn.
func (c *acpFacts) begin(threadID, turnID, mode string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.thread(threadID)
	if t.turn != nil {
		return errors.New("a turn is running")
	}
	t.turn = &acpTurn{id: turnID, mode: mode}
	c.push(orch.TurnStarted{NativeThreadID: t.id, NativeTurnID: turnID})
	return nil
}

// interrupt notes that a turn is to be cancelled, and takes back what the
// agent asks in it. ok is false when the turn does not run.
func (c *acpFacts) interrupt(threadID, turnID string) (answers []acpAnswer, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.threads[threadID]
	if t == nil || t.turn == nil || t.turn.id != turnID {
		return nil, false
	}
	t.turn.interrupting = true
	return c.dropRequests(func(*acpRequest) bool { return true }), true
}

// prompted takes the answer to a prompt.
func (c *acpFacts) prompted(turnID string, result gjson.Result, refusal *rpcError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.threads {
		switch {
		case t.turn == nil || t.turn.id != turnID:
		case refusal != nil && t.turn.interrupting:
			c.end(t, "interrupted", "")
		case refusal != nil:
			c.end(t, "failed", refusal.Error())
		case c.protocol > 1:
			t.turn.accepted = true
		default:
			status, reason := t.turn.outcome(result.Get("stopReason").Str, "")
			c.end(t, status, reason)
		}
	}
}

// outcome maps a stop reason. Only a cancelled turn did not complete; one that
// we did not cancel was cancelled by the agent.
func (t *acpTurn) outcome(stop, message string) (status, reason string) {
	switch {
	case stop == "cancelled" && t.interrupting:
		return "interrupted", ""
	case stop == "cancelled":
		return "cancelled", ""
	case stop == "error" && t.interrupting:
		return "interrupted", ""
	case stop == "error":
		return "failed", firstText(message, "the agent gave no reason")
	}
	return "completed", ""
}

// notification takes one of the agent's notifications; unknown ones mean
// nothing here. It returns what is to be answered because of it.
func (c *acpFacts) notification(method string, p gjson.Result) []acpAnswer {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case method == "session/update":
		c.said(p.Get("sessionId").String(), func(t *acpThread) { c.update(t, p.Get("update")) })
	case method == "$/cancel_request":
		id := p.Get("requestId").Raw
		return c.dropRequests(func(r *acpRequest) bool { return r.id == id })
	case method == c.kind.ended && method != "":
		c.said(p.Get("sessionId").String(), func(t *acpThread) { c.stopped(t, p.Get("stopReason").Str, p.Get("agentResult").String()) })
	case slices.Contains(c.kind.notes, method):
		if t := c.threads[p.Get("sessionId").String()]; t != nil {
			c.note(t, p.Get("update"))
		}
	}
	return nil
}

// said passes on what concerns a session, or holds it. Agents without
// subagents have no other session than ours.
func (c *acpFacts) said(sessionID string, f func(*acpThread)) {
	t := c.threads[sessionID]
	switch {
	case t == nil && (!c.kind.subagents || sessionID == ""):
	case t == nil || !t.named:
		t = c.thread(sessionID)
		t.held = append(t.held, func() { f(t) })
	default:
		f(t)
	}
}

// update takes an update of a session.
func (c *acpFacts) update(t *acpThread, u gjson.Result) {
	kind := u.Get("sessionUpdate").Str
	if t.repeating {
		t.repeating = kind != c.kind.loads
		return
	}
	if kind == "subagent_update" {
		c.subagentUpdated(t, u)
		return
	}
	if t.child != nil && t.turn == nil && acpWork[kind] {
		c.childBegins(t)
	}
	if t.turn == nil {
		return
	}
	switch kind {
	case "agent_message_chunk", "agent_thought_chunk":
		c.chunk(t, acpTextTypes[kind], u.Get("messageId").String(), acpContentText(u.Get("content")))
	case "agent_message", "agent_thought":
		c.whole(t, acpTextTypes[kind], u.Get("messageId").String(), u.Get("content"))
	case "user_message_chunk", "user_message", "session_message":
		c.childPrompt(t, u)
	case "tool_call", "tool_call_update":
		c.toolUpdated(t, u)
	case "tool_call_content_chunk":
		c.toolContent(t, u)
	case "terminal_update", "terminal_output_chunk":
		c.terminalUpdated(t, u)
	case "plan":
		c.todoUpdated(t, u.Get("entries"))
	case "plan_update":
		c.todoUpdated(t, u.Get("plan.entries"))
	case "current_mode_update", "config_option_update":
		if t.child == nil {
			c.settings.update(u)
		}
	case "state_update":
		c.stateUpdated(t, u)
	}
}

// acpTextTypes are the item types of text.
var acpTextTypes = map[string]string{
	"agent_message_chunk": "assistant_message", "agent_message": "assistant_message",
	"agent_thought_chunk": "reasoning", "agent_thought": "reasoning",
}

// stateUpdated takes the state of a session in version 2: a turn that was
// taken up ends when the session is idle.
func (c *acpFacts) stateUpdated(t *acpThread, u gjson.Result) {
	switch u.Get("state").Str {
	case "running":
		t.turn.accepted = true
	case "idle":
		if t.child == nil && !t.turn.accepted {
			return // the one before
		}
		c.stopped(t, u.Get("stopReason").Str, firstText(u.Get("error.message").String(), u.Get("message").String()))
	}
}

// stopped ends the turn of a session, if one runs.
func (c *acpFacts) stopped(t *acpThread, stop, message string) {
	if t.turn == nil {
		return
	}
	status, reason := t.turn.outcome(stop, message)
	c.end(t, status, reason)
}

// end ends a turn: first the text, tools and requests that it leaves open,
// then the turn, then the child that it was a turn of.
func (c *acpFacts) end(t *acpThread, status, reason string) {
	turn := t.turn
	c.closeSegment(t, status)
	c.closeTools(t, status)
	c.dropRequests(func(r *acpRequest) bool { return r.thread == t })
	t.turn = nil
	c.push(orch.TurnEnded{NativeThreadID: t.id, NativeTurnID: turn.id, Status: status, Error: reason})
	if t.child != nil {
		c.childEnded(t, status, turn.answer)
	}
}

func (c *acpFacts) thread(id string) *acpThread {
	t := c.threads[id]
	if t == nil {
		t = &acpThread{id: strings.Clone(id)}
		c.threads[t.id] = t
	}
	return t
}

// name lets through what was said of a session.
func (c *acpFacts) name(t *acpThread) {
	if t.named {
		return
	}
	t.named = true
	held := t.held
	t.held = nil
	for _, f := range held {
		f()
	}
}

func (c *acpFacts) emit(t *acpThread, item orch.ProviderItem) {
	c.push(orch.ItemUpdated{NativeThreadID: t.id, NativeTurnID: t.turn.id, Item: item})
}
