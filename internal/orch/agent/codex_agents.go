package agent

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// agentItem takes an item that may name or describe child agents:
//
//	{"type":"collabAgentToolCall","tool":"spawnAgent","receiverThreadIds":["…"],"prompt":"…",
//	 "agentsStates":{"…":{"status":"pendingInit","message":null}}}
//	{"type":"subAgentActivity","kind":"started","agentThreadId":"…","agentPath":"/root/name"}
//
// A child is identified by its thread id, in every item and in every session.
func (c *codexFacts) agentItem(t *codexTurnFacts, item gjson.Result, completed bool) {
	switch item.Get("type").Str {
	case "collabAgentToolCall":
		spawn := item.Get("tool").Str == "spawnAgent"
		receivers := item.Get("receiverThreadIds").Array()
		for _, r := range receivers {
			said := orch.SubagentUpdated{}
			if spawn {
				said.Prompt, said.Model = item.Get("prompt").String(), item.Get("model").String()
			}
			c.nameChild(t, r.String(), said)
		}
		if completed {
			item.Get("agentsStates").ForEach(func(id, state gjson.Result) bool {
				c.childState(id.Str, state.Get("status").Str, state.Get("message").String())
				return true
			})
		}
		if spawn && completed && len(receivers) == 0 && itemStatus(item.Get("status").Str) == "failed" {
			failed := toolItem("spawn_agent", struct {
				Prompt string `json:"prompt"`
			}{item.Get("prompt").String()})
			failed.NativeID, failed.Status = item.Get("id").String(), "failed"
			c.emitItem(t, &codexItem{last: failed})
		}
	case "subAgentActivity":
		id, path := item.Get("agentThreadId").String(), item.Get("agentPath").Str
		c.nameChild(t, id, orch.SubagentUpdated{
			Title: path[strings.LastIndexByte(path, '/')+1:],
			Model: item.Get("model").String(),
		})
		if kind := item.Get("kind").Str; kind == "completed" || kind == "interrupted" {
			c.childState(id, kind, "")
		}
	}
}

// nameChild makes a thread a child of the turn, unless it is somebody's
// already: agents also write to their parent and to each other. What is said
// fills what was not known.
func (c *codexFacts) nameChild(t *codexTurnFacts, childID string, said orch.SubagentUpdated) {
	if childID == "" || childID == t.thread.id {
		return
	}
	child := c.thread(childID)
	if child.named && child.child == nil {
		return // ours
	}
	fresh := child.child == nil
	if fresh {
		child.child = &orch.SubagentUpdated{
			NativeThreadID: t.thread.id, NativeTurnID: t.id,
			NativeTaskID: child.id, ChildNativeThreadID: child.id,
		}
	}
	c.updateChild(child, func(a *orch.SubagentUpdated) {
		if fresh {
			a.Status = "running"
		}
		a.Prompt = firstText(a.Prompt, said.Prompt)
		a.Title = firstText(a.Title, said.Title)
		a.Model = firstText(a.Model, said.Model)
	})
	if fresh {
		c.name(child)
		c.childSettled(child)
	}
}

// childState takes what an agent tool reports of a child. It ends a child
// that is thought to run without a turn; one with a turn ends with that. Only
// a new turn makes it run again.
func (c *codexFacts) childState(childID, status, message string) {
	child := c.threads[childID]
	if child == nil || child.child == nil {
		return
	}
	if last := c.lastTurn(child); last != nil && !last.ended {
		return
	}
	ended := map[string]string{
		"completed": "completed", "errored": "failed", "interrupted": "interrupted", "shutdown": "cancelled", "notFound": "failed",
	}[status]
	if ended == "" {
		return
	}
	c.updateChild(child, func(a *orch.SubagentUpdated) {
		if a.Status == "running" {
			a.Status = ended
		}
		if a.Status == ended && message != "" {
			a.Result = strings.Clone(message)
		}
	})
}

// childRuns takes the start of a turn, which may be a child's next one.
func (c *codexFacts) childRuns(t *codexThread) {
	if t.child != nil {
		c.updateChild(t, func(a *orch.SubagentUpdated) { a.Status = "running" })
	}
}

// childEnded takes the end of a turn, which may be a child's.
func (c *codexFacts) childEnded(t *codexTurnFacts) {
	if t.thread.child == nil {
		return
	}
	c.updateChild(t.thread, func(a *orch.SubagentUpdated) {
		a.Status = t.status
		a.Result = firstText(t.answer, a.Result)
	})
}

// childSettled catches up with the turns that a child ended before it was
// named.
func (c *codexFacts) childSettled(t *codexThread) {
	if last := c.lastTurn(t); last != nil && last.ended {
		c.childEnded(last)
	}
}

// lastTurn returns a thread's newest turn, nil when it had none here.
func (c *codexFacts) lastTurn(t *codexThread) *codexTurnFacts {
	if len(t.order) == 0 {
		return nil
	}
	return c.turns[t.order[len(t.order)-1]]
}

// updateChild changes what is known of a child and passes it on when that
// made a difference.
func (c *codexFacts) updateChild(t *codexThread, change func(*orch.SubagentUpdated)) {
	before := *t.child
	change(t.child)
	if *t.child != before {
		c.emit(c.thread(t.child.NativeThreadID), *t.child)
	}
}

// firstText returns a copy of the first text that is not empty.
func firstText(texts ...string) string {
	i := slices.IndexFunc(texts, func(s string) bool { return s != "" })
	if i < 0 {
		return ""
	}
	return strings.Clone(texts[i])
}
