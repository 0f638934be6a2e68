package agent

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// claudeTask is a subagent. A call of the Agent tool announces it, a
// task_started makes it one:
//
//	{"type":"assistant",…{"type":"tool_use","id":"toolu_1","name":"Agent","input":{"prompt":"…"}}}
//	{"type":"system","subtype":"task_started","task_id":"a7","tool_use_id":"toolu_1","task_type":"local_agent"}
//	{"type":"system","subtype":"task_notification","task_id":"a7","status":"completed","summary":"…"}
//	{"type":"user",…{"type":"tool_result","tool_use_id":"toolu_1","content":[…]}}
//
// The last two come in either order, and the result of a call that went to the
// background says only that.
type claudeTask struct {
	call string // tool use id
	said orch.SubagentUpdated
}

func (c *claudeFacts) task(found func(*claudeTask) bool) *claudeTask {
	for _, t := range c.tasks {
		if found(t) {
			return t
		}
	}
	return nil
}

func (c *claudeFacts) taskOf(id string) *claudeTask {
	return c.task(func(t *claudeTask) bool { return id != "" && t.said.NativeTaskID == id })
}

func (c *claudeFacts) taskOfCall(id string) *claudeTask {
	return c.task(func(t *claudeTask) bool { return id != "" && t.call == id })
}

// agentCalled notes what a subagent was asked to do.
func (c *claudeFacts) agentCalled(call string, input gjson.Result) {
	if call == "" || c.taskOfCall(call) != nil {
		return
	}
	t := &claudeTask{call: call}
	t.said.Prompt, t.said.Title, t.said.Model = input.Get("prompt").String(), input.Get("description").String(), input.Get("model").String()
	c.tasks = append(c.tasks, t)
}

// taskStarted starts a subagent. Commands in the background are none.
func (c *claudeFacts) taskStarted(m gjson.Result) {
	turn, id := c.speaking(), strings.Clone(m.Get("task_id").String())
	if turn == nil || id == "" || strings.HasSuffix(m.Get("task_type").Str, "bash") || c.taskOf(id) != nil {
		return
	}
	t := c.taskOfCall(m.Get("tool_use_id").Str)
	if t == nil || t.said.NativeTaskID != "" {
		t = &claudeTask{call: strings.Clone(m.Get("tool_use_id").String())}
		c.tasks = append(c.tasks, t)
	}
	t.said.NativeThreadID, t.said.NativeTurnID, t.said.NativeTaskID, t.said.Status = c.thread, turn.id, id, "running"
	t.said.Prompt = firstText(t.said.Prompt, m.Get("prompt").String())
	t.said.Title = firstText(t.said.Title, m.Get("description").String())
	c.push(t.said)
}

// taskProgress starts a task again that went on after its end.
func (c *claudeFacts) taskProgress(m gjson.Result) {
	t := c.taskOf(m.Get("task_id").Str)
	if t == nil || m.Get("patch.status").Str != "running" || t.said.Status == "running" {
		return
	}
	t.said.Status = "running"
	c.push(t.said)
}

func (c *claudeFacts) taskEnded(m gjson.Result) {
	t := c.taskOf(m.Get("task_id").Str)
	if t == nil {
		return
	}
	status := map[string]string{"completed": "completed", "stopped": "cancelled"}[m.Get("status").Str]
	summary := m.Get("summary").String()
	if summary == m.Get("description").String() || summary == t.said.Title {
		summary = "" // it only says what the task was
	}
	c.endTask(t, firstText(status, "failed"), summary)
}

// endTask passes on an end, or a better result of one that was told.
func (c *claudeFacts) endTask(t *claudeTask, status, result string) {
	before := t.said
	if t.said.Status == "running" {
		t.said.Status = status
	}
	t.said.Result = firstText(result, t.said.Result)
	if t.said != before {
		c.push(t.said)
	}
}

// agentReturned takes the result of a tool if it is that of a subagent's call.
func (c *claudeFacts) agentReturned(call string, m, block gjson.Result) bool {
	t := c.taskOfCall(call)
	if t == nil {
		return false
	}
	text := block.Get("content.0.text").String()
	if block.Get("content").Type == gjson.String {
		text = block.Get("content").Str
	}
	launched := m.Get("tool_use_result.status").Str == "async_launched" || strings.HasPrefix(text, "Async agent launched")
	if launched || t.said.NativeTaskID == "" {
		return true
	}
	status := "completed"
	if block.Get("is_error").Bool() {
		status = "failed"
	}
	c.endTask(t, status, report(text))
	return true
}

// report takes a subagent's words out of the frame that the provider puts
// around them for the model.
func report(whole string) string {
	const frame, begin, end = "[Subagent hand-back]", "The report follows:\n", "\nagentId: "
	_, text, ok := strings.Cut(whole, frame)
	if !ok {
		return whole
	}
	if _, rest, ok := strings.Cut(text, begin); ok {
		text = rest
	}
	if i := strings.LastIndex(text, end); i >= 0 {
		text = text[:i]
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "  ")
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
