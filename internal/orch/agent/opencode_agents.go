package agent

import (
	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// task takes the tool call that a subagent works for. It names the subagent's
// session as soon as it runs:
//
//	{"status":"running","input":{"description":"…","prompt":"…"},"metadata":{"sessionId":"ses_2","model":{"modelID":"m"}}}
//
// A subagent is identified by its session.
func (c *openCodeFacts) task(t *openCodeTurn, id string, state gjson.Result) {
	status, input := state.Get("status").Str, state.Get("input")
	child := state.Get("metadata.sessionId").Str
	if child == "" {
		if status == "error" { // it did not come to a session
			failed := toolItem("task", struct {
				Prompt string `json:"prompt"`
			}{input.Get("prompt").String()})
			failed.NativeID, failed.Status = id, "failed"
			failed.Text = firstText(state.Get("error").String())
			c.emitItem(t, &openCodeItem{last: failed})
		}
		return
	}
	s := c.session(child)
	if s == t.session || s.named && s.child == nil {
		return // ours
	}
	fresh := s.child == nil
	if fresh {
		s.child = &orch.SubagentUpdated{
			NativeThreadID: t.session.id, NativeTurnID: t.id, NativeTaskID: s.id, ChildNativeThreadID: s.id,
		}
	}
	c.updateChild(s, func(a *orch.SubagentUpdated) {
		if fresh {
			a.Status = "running"
		}
		a.Prompt = firstText(a.Prompt, input.Get("prompt").String())
		a.Title = firstText(a.Title, input.Get("description").String())
		a.Model = firstText(a.Model, state.Get("metadata.model.modelID").String())
	})
	if fresh {
		c.name(s)
		if s.turn == nil && s.last != nil {
			c.childEnded(s.last)
		}
	}
	switch {
	case s.turn != nil: // it ends with that
	case status == "completed":
		c.childOver(s, "completed", state.Get("output").String())
	case status == "error" && t.stopping():
		c.childOver(s, "interrupted", "")
	case status == "error":
		c.childOver(s, "failed", state.Get("error").String())
	}
}

// childOver ends a subagent that is thought to run without a turn.
func (c *openCodeFacts) childOver(s *openCodeFactsSession, status, result string) {
	c.updateChild(s, func(a *orch.SubagentUpdated) {
		if a.Status == "running" {
			a.Status, a.Result = status, firstText(a.Result, result)
		}
	})
}

// childRuns takes the start of a turn, which may be a subagent's next one.
func (c *openCodeFacts) childRuns(s *openCodeFactsSession) {
	if s.child != nil {
		c.updateChild(s, func(a *orch.SubagentUpdated) { a.Status = "running" })
	}
}

// childEnded takes the end of a turn, which may be a subagent's.
func (c *openCodeFacts) childEnded(t *openCodeTurn) {
	if t.session.child != nil {
		c.updateChild(t.session, func(a *orch.SubagentUpdated) {
			a.Status, a.Result = t.status, firstText(t.answer, a.Result)
		})
	}
}

// updateChild changes what is known of a subagent and passes it on when that
// made a difference.
func (c *openCodeFacts) updateChild(s *openCodeFactsSession, change func(*orch.SubagentUpdated)) {
	before := *s.child
	change(s.child)
	if *s.child != before {
		c.emit(c.session(s.child.NativeThreadID), *s.child)
	}
}

// below tells whether a session is another one or a child of it, at any depth.
func (c *openCodeFacts) below(s, root *openCodeFactsSession) bool {
	for range len(c.sessions) {
		if s == root {
			return true
		}
		if s = c.sessions[s.parent]; s == nil {
			return false
		}
	}
	return false
}
