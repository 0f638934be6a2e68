package agent

import (
	"fmt"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// cursorFacts turns what the bridge says into provider events. It is fed on
// the reading goroutine, in wire order.
//
// A run speaks in deltas that name no message. A stretch of text or thinking
// is one item; it ends where the other kind or a tool begins, and with the
// model's step.
type cursorFacts struct {
	mu     sync.Mutex // guards all below; push is called with it held
	push   func(orch.ProviderEvent)
	thread string      // the agent that is open; "" for none
	turn   *cursorTurn // the run that is live, or nil
}

// cursorTurn is a run.
type cursorTurn struct {
	id         string
	cancelling bool
	stretch    *cursorStretch // that grows, or nil
	stretches  int
	spoke      bool // there was text
	tools      []*orch.ProviderItem
	tasks      []*orch.SubagentUpdated
	todo       *orch.ProviderItem // of the whole run, or nil
}

// cursorStretch is text or thinking that grows.
type cursorStretch struct {
	item orch.ProviderItem
	text strings.Builder
}

func newCursorFacts(push func(orch.ProviderEvent)) *cursorFacts {
	return &cursorFacts{push: push}
}

func (c *cursorFacts) open(agentID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.thread, c.turn = agentID, nil
}

// close returns the agent that was open and forgets it; "" for none.
func (c *cursorFacts) close() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.thread
	if c.turn == nil {
		c.thread = "" // else its end is still told
	}
	return id
}

func (c *cursorFacts) start(runID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn = &cursorTurn{id: runID}
	c.push(orch.TurnStarted{NativeThreadID: c.thread, NativeTurnID: runID})
}

// cancel notes that a run is about to be cancelled; false when it is not live.
func (c *cursorFacts) cancel(runID string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.turn == nil || c.turn.id != runID {
		return false
	}
	c.turn.cancelling = true
	return true
}

// update takes one of the SDK's updates; unknown ones mean nothing here, and
// neither do those of a run that is over.
func (c *cursorFacts) update(runID string, u gjson.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.turn
	if t == nil || t.id != runID {
		return
	}
	switch u.Get("type").Str {
	case "text-delta":
		t.spoke = true
		c.grow(t, "assistant_message", u.Get("text").String())
	case "thinking-delta":
		c.grow(t, "reasoning", u.Get("text").String())
	case "thinking-completed":
		if s := t.stretch; s != nil && s.item.Type == "reasoning" {
			c.endStretch(t, "completed")
		}
	case "tool-call-started":
		c.endStretch(t, "completed")
		c.toolStarted(t, u.Get("callId").String(), u.Get("toolCall"))
	case "tool-call-completed":
		c.toolCompleted(t, u.Get("callId").String(), u.Get("toolCall"))
	case "step-completed":
		c.endStretch(t, "completed")
	case "summary-completed":
		c.endStretch(t, "completed")
		c.emit(t, orch.ProviderItem{NativeID: t.nextID("summary"), Type: "compaction", Status: "completed"})
	}
}

// grow adds to the stretch of a kind, or begins one.
func (c *cursorFacts) grow(t *cursorTurn, kind, delta string) {
	if delta == "" {
		return
	}
	if t.stretch == nil || t.stretch.item.Type != kind {
		c.endStretch(t, "completed")
		t.stretch = &cursorStretch{item: orch.ProviderItem{NativeID: t.nextID(kind), Type: kind, Status: "running", Streaming: true}}
		c.emit(t, t.stretch.item)
	}
	t.stretch.text.WriteString(delta)
}

func (c *cursorFacts) endStretch(t *cursorTurn, status string) {
	s := t.stretch
	if s == nil {
		return
	}
	t.stretch = nil
	s.item.Status, s.item.Streaming, s.item.Text = status, false, s.text.String()
	c.emit(t, s.item)
}

// nextID names an item that the SDK does not.
func (t *cursorTurn) nextID(kind string) string {
	t.stretches++
	return fmt.Sprintf("%s:%d", kind, t.stretches)
}

// completed takes the result of a run.
func (c *cursorFacts) completed(result gjson.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.turn
	if t == nil || t.id != result.Get("id").Str {
		return
	}
	switch status := result.Get("status").Str; status {
	case "finished":
		if text := result.Get("result").String(); !t.spoke && text != "" {
			c.grow(t, "assistant_message", text)
		}
		c.end("completed", "")
	case "cancelled":
		c.end("cancelled", "")
	case "error":
		c.end("failed", firstText(result.Get("error.message").String(), "the provider gave no reason"))
	default:
		c.end("failed", fmt.Sprintf("run ended with status %q", status))
	}
}

// exited takes the end of a run that has no result.
func (c *cursorFacts) exited(status, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.turn == nil:
	case status == "cancelled":
		c.end("cancelled", "")
	default:
		c.end("failed", firstText(reason, "the provider gave no reason"))
	}
}

// end ends the turn: first what the run left open, then the turn. A run that
// was asked to stop has stopped, however it ended.
func (c *cursorFacts) end(status, reason string) {
	t := c.turn
	c.turn = nil
	if t.cancelling {
		status, reason = "interrupted", ""
	}
	c.endStretch(t, cut(status, "completed"))
	for _, tool := range t.tools {
		tool.Status = cut(status, "failed")
		c.emit(t, *tool)
	}
	for _, task := range t.tasks {
		task.Status = cut(status, "failed")
		c.push(*task)
	}
	if t.todo != nil {
		t.todo.Status = status
		c.emit(t, *t.todo)
	}
	c.push(orch.TurnEnded{NativeThreadID: c.thread, NativeTurnID: t.id, Status: status, Error: reason})
}

// cut is the status of what a turn with a status left open; completed is that
// of a turn that completed.
func cut(status, completed string) string {
	if status == "completed" {
		return completed
	}
	return status
}

func (c *cursorFacts) emit(t *cursorTurn, item orch.ProviderItem) {
	c.push(orch.ItemUpdated{NativeThreadID: c.thread, NativeTurnID: t.id, Item: item})
}
