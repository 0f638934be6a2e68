package agent

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// codexFacts turns what the server says into provider events. It is fed on
// the reading goroutine, in wire order; decisions that depend on the order of
// two frames (a turn's end before or after the acknowledgement of its
// interrupt) are therefore the same in a replay.
//
// A thread is ours (started, resumed or forked here), a named child, or not
// named yet: a child may speak before the item that spawned it names it. The
// events of the last kind are held until then.
type codexFacts struct {
	mu       sync.Mutex // guards all below; push is called with it held
	push     func(orch.ProviderEvent)
	threads  map[string]*codexThread
	turns    map[string]*codexTurnFacts // by turn id
	requests map[string]*codexRequest   // open ones, by id literal
}

type codexThread struct {
	held
	id    string
	child *orch.SubagentUpdated // what was last said of it; nil for ours
	order []string              // turn ids, oldest first
	model string
	plan  bool // the last turn was in plan mode
}

type codexTurnFacts struct {
	id           string
	thread       *codexThread
	ended        bool
	interrupting bool
	status       string          // once ended
	items        []*codexItem    // open ones, in the order they were started
	closed       map[string]bool // items that were closed for the server
	answer       string          // last assistant text
	err          string          // last error that will not be retried
}

func newCodexFacts(push func(orch.ProviderEvent)) *codexFacts {
	return &codexFacts{
		push:     push,
		threads:  map[string]*codexThread{},
		turns:    map[string]*codexTurnFacts{},
		requests: map[string]*codexRequest{},
	}
}

// own makes a thread ours.
func (c *codexFacts) own(threadID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.name(c.thread(threadID))
}

// opened takes the answer to a call that opens or cuts a thread.
func (c *codexFacts) opened(result gjson.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := result.Get("thread.id").String()
	if id == "" {
		return
	}
	t := c.thread(id)
	if m := result.Get("model").Str; m != "" {
		t.model = strings.Clone(m)
	}
	if mode := result.Get("collaborationMode.mode"); mode.Exists() {
		t.plan = mode.Str == "plan"
	}
	if turns := result.Get("thread.turns.#.id").Array(); len(turns) > 0 {
		t.order = nil
		for _, turn := range turns {
			t.order = append(t.order, strings.Clone(turn.String()))
		}
	}
	c.name(t)
}

// settings returns the model and mode that a thread's next turn inherits.
func (c *codexFacts) settings(threadID string) (model string, plan bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.thread(threadID)
	return t.model, t.plan
}

// after returns the turn that follows a turn of a thread and how many follow.
// throughTurnID "" stands before the first.
func (c *codexFacts) after(threadID, throughTurnID string) (first string, n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rest := c.thread(threadID).order
	if throughTurnID != "" {
		i := slices.Index(rest, throughTurnID)
		if i < 0 {
			return "", 0, fmt.Errorf("turn %s of thread %s is not known here", throughTurnID, threadID)
		}
		rest = rest[i+1:]
	}
	if len(rest) == 0 {
		return "", 0, nil
	}
	return rest[0], len(rest), nil
}

// cut forgets the turns after one; "" forgets all.
func (c *codexFacts) cut(threadID, throughTurnID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.thread(threadID)
	if i := slices.Index(t.order, throughTurnID); i >= 0 || throughTurnID == "" {
		t.order = t.order[:i+1]
	}
}

// turnAccepted takes the answer to turn/start.
func (c *codexFacts) turnAccepted(threadID, turnID string, plan bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.thread(threadID)
	c.name(t)
	t.plan = plan
	c.turn(threadID, turnID)
}

func (c *codexFacts) turnEnded(turnID string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.turns[turnID]
	return t != nil && t.ended
}

// interrupted takes the acknowledgement of an interrupt, which ends nothing.
// It returns the process ids of the commands that still run.
func (c *codexFacts) interrupted(turnID string) (processIDs []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.turns[turnID]
	if t == nil || t.ended {
		return nil
	}
	t.interrupting = true
	for _, item := range t.items {
		if item.processID != "" {
			processIDs = append(processIDs, item.processID)
		}
	}
	return processIDs
}

// notification takes one of the server's notifications; unknown ones mean
// nothing here.
func (c *codexFacts) notification(method string, p gjson.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	threadID, turnID := p.Get("threadId").String(), p.Get("turnId").String()
	switch method {
	case "turn/started":
		c.turn(threadID, p.Get("turn.id").String())
	case "turn/completed":
		c.turnCompleted(threadID, p.Get("turn"))
	case "turn/plan/updated":
		c.todoUpdated(threadID, turnID, p)
	case "item/started":
		c.itemStarted(threadID, turnID, p.Get("item"))
	case "item/completed":
		c.itemCompleted(threadID, turnID, p.Get("item"))
	case "item/agentMessage/delta", "item/plan/delta", "item/reasoning/summaryTextDelta",
		"item/reasoning/textDelta", "item/commandExecution/outputDelta":
		c.textDelta(turnID, p.Get("itemId").Str, p.Get("delta").Str)
	case "item/reasoning/summaryPartAdded":
		if p.Get("summaryIndex").Int() > 0 {
			c.textDelta(turnID, p.Get("itemId").Str, "\n\n")
		}
	case "error":
		if t := c.turns[turnID]; t != nil && !p.Get("willRetry").Bool() {
			t.err = strings.Clone(p.Get("error.message").String())
		}
	case "serverRequest/resolved":
		c.requestResolved(p.Get("requestId").Raw)
	}
}

// emit passes on an event that concerns a thread, or holds it.
func (c *codexFacts) emit(t *codexThread, e orch.ProviderEvent) {
	t.emit(c.push, e)
}

func (c *codexFacts) thread(id string) *codexThread {
	t := c.threads[id]
	if t == nil {
		t = &codexThread{id: strings.Clone(id)}
		c.threads[t.id] = t
	}
	return t
}

// name lets a thread's events through, those held first.
func (c *codexFacts) name(t *codexThread) {
	t.name(c.push)
}

// turn returns a turn; the first mention starts it. nil when a frame names no
// thread or no turn.
func (c *codexFacts) turn(threadID, turnID string) *codexTurnFacts {
	if threadID == "" || turnID == "" {
		return nil
	}
	t := c.turns[turnID]
	if t == nil {
		thread := c.thread(threadID)
		t = &codexTurnFacts{id: strings.Clone(turnID), thread: thread}
		c.turns[t.id] = t
		if !slices.Contains(thread.order, t.id) {
			thread.order = append(thread.order, t.id)
		}
		c.childRuns(thread)
		c.emit(thread, orch.TurnStarted{NativeThreadID: thread.id, NativeTurnID: t.id})
	}
	return t
}

// turnCompleted ends a turn: first the items and requests that the server
// left open, then the turn, then the child agent that it was a turn of.
func (c *codexFacts) turnCompleted(threadID string, turn gjson.Result) {
	t := c.turn(threadID, turn.Get("id").String())
	if t == nil || t.ended {
		return
	}
	t.ended = true
	var reason string
	t.status, reason = t.outcome(turn)
	c.closeItems(t)
	c.closeRequests(t)
	c.emit(t.thread, orch.TurnEnded{
		NativeThreadID: t.thread.id, NativeTurnID: t.id, Status: t.status, Error: reason,
	})
	c.childEnded(t)
}

// outcome maps the status of a completed turn. One that completed after its
// interrupt was acknowledged counts as interrupted.
func (t *codexTurnFacts) outcome(turn gjson.Result) (status, reason string) {
	switch s := turn.Get("status").String(); s {
	case "completed":
		if t.interrupting {
			return "interrupted", ""
		}
		return "completed", ""
	case "interrupted", "cancelled":
		return s, ""
	case "failed":
		reason = turn.Get("error.message").String()
		if reason == "" {
			reason = t.err
		}
		if reason == "" {
			reason = "the provider gave no reason"
		}
		return "failed", strings.Clone(reason)
	default:
		return "failed", fmt.Sprintf("turn ended with status %q", s)
	}
}
