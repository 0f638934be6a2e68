package agent

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// acpRequest is a question of the agent that was not answered.
type acpRequest struct {
	id     string // literal
	thread *acpThread
	ask    acpAsk
	params gjson.Result
	tool   *acpTool // that it guards; nil for none
}

// acpAnswer is an answer to one of the agent's requests.
type acpAnswer struct {
	id     string // literal
	result any
}

// acpAsk says how a request is put to the user, and what an answer looks like
// on the wire.
type acpAsk struct {
	kind      string // of the request; "" goes by the tool that it guards
	title     []string
	detail    func(params gjson.Result) json.RawMessage
	answer    func(c *acpFacts, d orch.Decision, params gjson.Result) (any, error)
	cancelled any // the answer when nobody is asked any more
}

// acpAsks are the protocol's own.
var acpAsks = map[string]acpAsk{
	"session/request_permission": {
		title: []string{"toolCall.rawInput.command", "title", "toolCall.title", "subject.command"},
		detail: func(p gjson.Result) json.RawMessage {
			return pick(p, []string{"description", "subject", "toolCall", "options"})
		},
		answer: answerACPPermission, cancelled: acpCancelled(),
	},
	"elicitation/create": {
		kind: "user_input", title: []string{"message"}, detail: acpFormDetail,
		answer: answerACPForm, cancelled: acpFormAnswer{Action: "cancel"},
	},
	// As an older draft had it.
	"session/elicitation": {
		kind: "user_input", title: []string{"message"}, detail: acpFormDetail,
		answer: func(c *acpFacts, d orch.Decision, p gjson.Result) (any, error) {
			a, err := answerACPForm(c, d, p)
			return acpNestedAnswer{a}, err
		},
		cancelled: acpNestedAnswer{acpFormAnswer{Action: "cancel"}},
	},
}

type acpNestedAnswer struct {
	Action any `json:"action"`
}

// request takes a question of the agent; ok is false when it is one that this
// client can't put to anyone. One that has its answer already gets it.
func (c *acpFacts) request(id, method string, p gjson.Result) (answer any, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.kind.answers[method]; known != "" {
		return json.RawMessage(known), true
	}
	ask, ok := acpAsks[method]
	if !ok {
		ask, ok = c.kind.asks[method]
	}
	if !ok {
		return nil, false
	}
	t := c.asking(p.Get("sessionId").String())
	if t == nil {
		return ask.cancelled, true
	}
	r := &acpRequest{id: strings.Clone(id), thread: t, ask: ask, params: p}
	kind := ask.kind
	if kind == "" {
		call := p.Get("toolCall")
		if !call.Exists() {
			call = p.Get("subject.toolCall")
		}
		c.toolUpdated(t, call)
		r.tool = t.turn.tool(call.Get("toolCallId").String())
		if kind = r.kind(); t.turn.permits(kind) {
			answer, err := ask.answer(c, orch.Decision{Kind: "accept"}, p)
			return answer, err == nil
		}
	}
	c.requests = append(c.requests, r)
	open := orch.RequestOpened{
		NativeThreadID: t.id, NativeTurnID: t.turn.id, NativeRequestID: r.id,
		Kind: kind, Title: pickText(p, ask.title), Detail: ask.detail(p),
	}
	if r.tool != nil {
		open.NativeItemID = r.tool.id
	}
	c.push(open)
	return nil, true
}

// asking is the session whose turn a request belongs to; nil for none.
func (c *acpFacts) asking(sessionID string) *acpThread {
	t := c.threads[sessionID]
	if t != nil && t.named && t.child != nil && t.turn == nil {
		c.childBegins(t)
	}
	if t != nil && t.named && t.turn != nil {
		return t
	}
	for _, t := range c.threads { // there is at most one of ours
		if t.child == nil && t.turn != nil {
			return t
		}
	}
	return nil
}

// permits tells what need not be asked in the turn's runtime mode, where the
// agent has no mode of its own for it.
func (t *acpTurn) permits(kind string) bool {
	return t.mode == "full-access" || t.mode == "auto-accept-edits" && kind == "file-change"
}

// kind is what a permission is for.
func (r *acpRequest) kind() string {
	tool := ""
	if r.tool != nil {
		tool = r.tool.kind
	}
	switch tool {
	case "read", "search":
		return "file-read"
	case "edit", "delete", "move":
		return "file-change"
	case "execute", "":
		return "command"
	}
	return "dynamic_tool_call"
}

// respond takes an open request off the list and returns its answer.
func (c *acpFacts) respond(id string, d orch.Decision) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.requests, func(r *acpRequest) bool { return r.id == id })
	if i < 0 {
		return nil, errors.New("it is not open")
	}
	r := c.requests[i]
	answer, err := r.ask.answer(c, d, r.params)
	if err != nil {
		return nil, err
	}
	if r.tool != nil && (d.Kind == "decline" || d.Kind == "cancel") {
		r.tool.declined = true
	}
	c.requests = slices.Delete(c.requests, i, i+1)
	return answer, nil
}

// dropRequests closes requests that nobody is asked any more, and returns
// their answers.
func (c *acpFacts) dropRequests(which func(*acpRequest) bool) (answers []acpAnswer) {
	c.requests = slices.DeleteFunc(c.requests, func(r *acpRequest) bool {
		if !which(r) {
			return false
		}
		answers = append(answers, acpAnswer{r.id, r.ask.cancelled})
		c.push(orch.RequestClosed{NativeThreadID: r.thread.id, NativeRequestID: r.id})
		return true
	})
	return answers
}

// acpOptionKinds are the kinds of permission options for a decision, the
// wanted one first.
var acpOptionKinds = map[string][]string{
	"accept":           {"allow_once", "allow_always"},
	"acceptForSession": {"allow_always", "allow_once"},
	"decline":          {"reject_once", "reject_always"},
}

// answerACPPermission picks an option by its kind: ids are the agent's own.
// Without any that says no, the question is cancelled.
func answerACPPermission(c *acpFacts, d orch.Decision, p gjson.Result) (any, error) {
	kinds, ok := acpOptionKinds[d.Kind]
	if !ok && d.Kind != "cancel" {
		return nil, wrongDecision(d, "accept, acceptForSession, decline or cancel")
	}
	options := p.Get("options").Array()
	pickOption := func(is func(gjson.Result) bool) (any, bool) {
		i := slices.IndexFunc(options, is)
		if i < 0 {
			return nil, false
		}
		return acpSelected(options[i].Get("optionId").String()), true
	}
	if d.Kind == "acceptForSession" && c.kind.forSession != nil {
		kinds = []string{"allow_once"}
		for _, id := range c.kind.forSession {
			if answer, ok := pickOption(func(o gjson.Result) bool { return o.Get("optionId").Str == id }); ok {
				return answer, nil
			}
		}
	}
	for _, kind := range kinds {
		if answer, ok := pickOption(func(o gjson.Result) bool { return o.Get("kind").Str == kind }); ok {
			return answer, nil
		}
	}
	if d.Kind == "accept" || d.Kind == "acceptForSession" {
		return nil, errors.New("the agent offers no option that allows it")
	}
	return acpCancelled(), nil
}
