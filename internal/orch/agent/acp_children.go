package agent

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// acpChild is what a session is as a subagent of another one.
type acpChild struct {
	said  orch.SubagentUpdated // what was last said of it
	turns int
}

// acpWork are the updates of a child that it makes in a turn.
var acpWork = map[string]bool{
	"user_message_chunk": true, "user_message": true,
	"agent_message_chunk": true, "agent_message": true, "agent_thought_chunk": true, "agent_thought": true,
	"tool_call": true, "tool_call_update": true, "plan": true, "plan_update": true,
}

// subagentUpdated takes what a session says of a child, which has a session of
// its own:
//
//	{"sessionUpdate":"subagent_update","sessionId":"…","title":"…","state":{"state":"idle","stopReason":"end_turn"}}
func (c *acpFacts) subagentUpdated(parent *acpThread, u gjson.Result) {
	child := c.nameChild(parent, u.Get("sessionId").String(), orch.SubagentUpdated{
		Title: u.Get("title").String(),
	})
	if child == nil {
		return
	}
	switch state := u.Get("state"); state.Get("state").Str {
	case "running":
		if child.turn == nil {
			c.childBegins(child)
		}
	case "idle":
		c.childStopped(child, state.Get("stopReason").Str, state.Get("error.message").String())
	}
}

// note takes what Grok tells of its subagents beside the protocol:
//
//	{"sessionUpdate":"subagent_spawned","child_session_id":"…","description":"…","model":"…"}
//	{"sessionUpdate":"subagent_finished","child_session_id":"…","status":"completed","output":"…"}
func (c *acpFacts) note(parent *acpThread, u gjson.Result) {
	id := pickText(u, []string{"child_session_id", "subagent_id"})
	switch u.Get("sessionUpdate").Str {
	case "subagent_spawned":
		c.nameChild(parent, id, orch.SubagentUpdated{Title: u.Get("description").String(), Model: u.Get("model").String()})
	case "subagent_finished":
		child := c.threads[id]
		if child == nil || child.child == nil {
			return
		}
		stop := map[string]string{"completed": "end_turn", "cancelled": "cancelled"}[u.Get("status").Str]
		if output := u.Get("output").String(); child.turn != nil && output != "" && child.turn.segment == nil {
			child.turn.answer = strings.Clone(output)
		}
		c.childStopped(child, firstText(stop, "error"), u.Get("error").String())
	}
}

// nameChild makes a session a child of the turn that runs in its parent. What
// is said fills what was not known. nil when it is no child, or nobody's.
func (c *acpFacts) nameChild(parent *acpThread, id string, said orch.SubagentUpdated) *acpThread {
	if id == "" || id == parent.id {
		return nil
	}
	t := c.thread(id)
	if t.child == nil {
		if t.named || parent.turn == nil {
			return nil
		}
		t.child = &acpChild{said: orch.SubagentUpdated{
			NativeThreadID: parent.id, NativeTurnID: parent.turn.id,
			NativeTaskID: t.id, ChildNativeThreadID: t.id, Status: "running",
		}}
	}
	c.childSaid(t, func(a *orch.SubagentUpdated) {
		a.Title = firstText(a.Title, said.Title)
		a.Prompt = firstText(a.Prompt, said.Prompt)
		a.Model = firstText(a.Model, said.Model)
	})
	c.name(t)
	return t
}

// childSaid changes what is known of a child and passes it on when that is
// news.
func (c *acpFacts) childSaid(t *acpThread, f func(*orch.SubagentUpdated)) {
	before := t.child.said
	f(&t.child.said)
	if t.child.said != before || !t.named {
		c.push(t.child.said)
	}
}

// childBegins starts a turn of a child: it names none, and works.
func (c *acpFacts) childBegins(t *acpThread) {
	t.child.turns++
	t.turn = &acpTurn{id: "turn:" + t.id + ":" + strconv.Itoa(t.child.turns), accepted: true}
	if parent := c.threads[t.child.said.NativeThreadID]; parent != nil && parent.turn != nil {
		t.turn.mode = parent.turn.mode
	}
	c.childSaid(t, func(a *orch.SubagentUpdated) { a.Status = "running" })
	c.push(orch.TurnStarted{NativeThreadID: t.id, NativeTurnID: t.turn.id})
}

// childPrompt takes what a child was told to do: as a user's message, or as
// one that went from session to session.
func (c *acpFacts) childPrompt(t *acpThread, u gjson.Result) {
	to := u.Get("recipientSessionId")
	if t.child != nil && (!to.Exists() || to.Str == t.id) {
		text := acpContentText(u.Get("content"))
		c.childSaid(t, func(a *orch.SubagentUpdated) { a.Prompt = firstText(a.Prompt, text) })
	}
}

// childStopped ends a child's turn. One that never said anything has ended all
// the same.
func (c *acpFacts) childStopped(t *acpThread, stop, message string) {
	if t.turn == nil {
		if t.child.said.Status != "running" {
			return
		}
		c.childBegins(t)
	}
	if parent := c.threads[t.child.said.NativeThreadID]; parent != nil && parent.turn != nil {
		t.turn.interrupting = parent.turn.interrupting
	}
	c.stopped(t, stop, message)
}

// childEnded takes the end of a child's turn.
func (c *acpFacts) childEnded(t *acpThread, status, answer string) {
	c.childSaid(t, func(a *orch.SubagentUpdated) {
		a.Status = status
		a.Result = firstText(answer, a.Result)
	})
}
