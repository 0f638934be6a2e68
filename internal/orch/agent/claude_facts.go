package agent

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// claudeFacts turns what the provider says into provider events. It is fed on
// the reading goroutine, in wire order.
//
// The provider names no turns and starts some on its own, to take in what a
// background task has done. So a turn here is what a message of the user asked
// for: it starts when the message goes out, and ends with the result of the
// last message that was offered to it. What comes in between without a
// message of the user belongs to the turn that ended last.
type claudeFacts struct {
	mu       sync.Mutex // guards all below; push is called with it held
	push     func(orch.ProviderEvent)
	thread   string
	turn     *claudeTurn // that runs, or nil
	last     *claudeTurn // that ended last, or nil
	moved    bool        // the thread has a conversation head that the next turn makes obsolete
	marked   bool        // the provider marks the start of our messages
	started  bool        // it did, and its turn has not begun
	foreign  bool        // the provider's turn is one of its own
	tasks    []*claudeTask
	todos    []claudeTodo
	requests []*claudeRequest // open ones, in the order asked
}

// claudeTurn is a turn.
type claudeTurn struct {
	id           string
	offered      []string // messages without a result, oldest first
	steered      int      // turns of the provider that a steer cuts short
	interrupting bool
	spoke        bool          // the provider's turn had text
	tools        []*claudeTool // open ones, in the order they were started
	todoCalls    []claudeTodoCall
	todo         *orch.ProviderItem // the list as the turn left it; nil when it did not change
	head, told   string             // the last message of the conversation, and which one was passed on
	failure      string             // what the provider said in place of an answer
}

func newClaudeFacts(push func(orch.ProviderEvent)) *claudeFacts {
	return &claudeFacts{push: push}
}

// open names the thread.
func (c *claudeFacts) open(threadID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.thread, c.marked, c.started, c.foreign = threadID, false, false, false
}

// rolledBack notes that the thread's head is not its last message.
func (c *claudeFacts) rolledBack() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moved = true
}

func (c *claudeFacts) isRolledBack() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.moved
}

// begin starts a turn with a message.
func (c *claudeFacts) begin(turnID, prompt string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.turn != nil {
		return errors.New("claude: a turn is running")
	}
	c.turn = &claudeTurn{id: turnID, offered: []string{prompt}}
	c.push(orch.TurnStarted{NativeThreadID: c.thread, NativeTurnID: turnID})
	if c.moved {
		c.moved = false
		c.push(orch.HeadChanged{NativeThreadID: c.thread})
	}
	return nil
}

// steer gives the turn another message; false when it does not run.
func (c *claudeFacts) steer(turnID, prompt string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.turn == nil || c.turn.id != turnID {
		return false
	}
	c.turn.offered = append(c.turn.offered, prompt)
	c.turn.steered++
	return true
}

func (c *claudeFacts) active(turnID string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.turn != nil && c.turn.id == turnID
}

// interrupted takes the acknowledgement of an interrupt, which ends nothing.
func (c *claudeFacts) interrupted(turnID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.turn != nil && c.turn.id == turnID {
		c.turn.interrupting = true
	}
}

// gone takes the end of the process. One that was asked to stop its turn has
// stopped it.
func (c *claudeFacts) gone() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.turn != nil && c.turn.interrupting {
		c.end("interrupted", "")
	}
}

// message takes one of the provider's messages; unknown ones mean nothing
// here.
func (c *claudeFacts) message(typ string, m gjson.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch typ {
	case "command_lifecycle":
		c.lifecycle(m.Get("command_uuid").Str, m.Get("state").Str)
	case "system":
		c.system(m)
	case "assistant":
		c.assistant(m)
	case "user":
		c.toolResults(m)
	case "result":
		c.result(m)
	case "control_cancel_request":
		c.dropRequest(m.Get("request_id").Raw)
	}
}

func (c *claudeFacts) system(m gjson.Result) {
	switch m.Get("subtype").Str {
	case "init":
		c.foreign = c.marked && !c.started
		c.started = false
		if c.turn != nil && !c.foreign {
			c.turn.spoke = false
		}
	case "task_started":
		c.taskStarted(m)
	case "task_progress", "task_updated":
		c.taskProgress(m)
	case "task_notification":
		c.taskEnded(m)
	case "compact_boundary":
		if t := c.speaking(); t != nil {
			c.emit(t, orch.ProviderItem{NativeID: m.Get("uuid").String(), Type: "compaction", Status: "completed"})
		}
	}
}

// lifecycle takes what becomes of one of our messages. One that was taken back
// has no result.
func (c *claudeFacts) lifecycle(prompt, state string) {
	c.marked = true
	switch state {
	case "started":
		c.started = true
	case "cancelled":
		if t := c.turn; t != nil && t.answered(prompt) && len(t.offered) == 0 {
			c.end("interrupted", "")
		}
	}
}

// answered takes a message off the list of those without a result.
func (t *claudeTurn) answered(prompt string) bool {
	i := slices.Index(t.offered, prompt)
	if i >= 0 {
		t.offered = slices.Delete(t.offered, i, i+1)
	}
	return i >= 0
}

// speaking is the turn that messages without a mark belong to; nil for none.
func (c *claudeFacts) speaking() *claudeTurn {
	if c.turn != nil && !c.foreign {
		return c.turn
	}
	return c.last
}

// result takes the end of the provider's turn, which is the end of ours unless
// a message of the user is still to be answered.
func (c *claudeFacts) result(m gjson.Result) {
	foreign := c.foreign || m.Get("origin.kind").Str == "task-notification"
	c.foreign = false
	t := c.turn
	if t == nil || foreign {
		c.tellHead(c.last)
		return
	}
	aborted := strings.HasPrefix(m.Get("terminal_reason").Str, "aborted_")
	if prompts := m.Get("user_message_uuids").Array(); len(prompts) > 0 {
		for _, p := range prompts {
			t.answered(p.Str)
		}
		if len(t.offered) > 0 && !t.interrupting {
			return // a steer's turn follows
		}
	} else if t.steered > 0 && aborted && !t.interrupting {
		t.steered--
		return
	}
	status, reason := t.outcome(m, aborted)
	if text := m.Get("result").String(); status == "completed" && !t.spoke && text != "" {
		c.emit(t, orch.ProviderItem{NativeID: m.Get("uuid").String(), Type: "assistant_message", Status: "completed", Text: strings.Clone(text)})
	}
	c.end(status, reason)
}

// outcome maps a result. A turn that completed after its interrupt was
// acknowledged counts as interrupted.
func (t *claudeTurn) outcome(m gjson.Result, aborted bool) (status, reason string) {
	reason = errorsOf(m)
	lower := strings.ToLower(reason)
	switch success := m.Get("subtype").Str == "success"; {
	case aborted || !success && strings.Contains(lower, "interrupt"):
		return "interrupted", ""
	case success && m.Get("is_error").Bool():
		return "failed", reason
	case success && t.interrupting:
		return "interrupted", ""
	case success:
		return "completed", ""
	case strings.Contains(lower, "cancel"):
		return "cancelled", ""
	}
	return "failed", firstText(reason, t.failure, "the provider gave no reason")
}

// errorsOf is what a result says of its failure.
func errorsOf(m gjson.Result) string {
	var texts []string
	for _, e := range m.Get("errors").Array() {
		texts = append(texts, e.String())
	}
	if len(texts) == 0 {
		texts = []string{firstText(m.Get("result").String(), m.Get("subtype").Str)}
	}
	return strings.Join(texts, "\n")
}

// end ends the turn: first the tools and requests that the provider left open,
// then the turn.
func (c *claudeFacts) end(status, reason string) {
	t := c.turn
	c.turn, c.last = nil, t
	for _, tool := range t.tools {
		tool.last.Status = "failed"
		if status == "interrupted" || status == "cancelled" {
			tool.last.Status = status
		}
		c.emit(t, tool.last)
	}
	t.tools = nil
	if t.todo != nil {
		t.todo.Status = status
		c.emit(t, *t.todo)
	}
	for len(c.requests) > 0 {
		c.dropRequest(c.requests[0].id)
	}
	c.tellHead(t)
	c.push(orch.TurnEnded{NativeThreadID: c.thread, NativeTurnID: t.id, Status: status, Error: reason})
}

// tellHead says where a turn ends, if that is news.
func (c *claudeFacts) tellHead(t *claudeTurn) {
	if t != nil && t.head != t.told {
		t.told = t.head
		c.push(orch.HeadChanged{NativeThreadID: c.thread, NativeTurnID: t.id, Head: t.head})
	}
}

func (c *claudeFacts) emit(t *claudeTurn, item orch.ProviderItem) {
	c.push(orch.ItemUpdated{NativeThreadID: c.thread, NativeTurnID: t.id, Item: item})
}
