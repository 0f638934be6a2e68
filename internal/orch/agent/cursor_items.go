package agent

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// toolStarted takes a call of the model:
//
//	{"type":"shell","args":{"command":"ls"},"result":{"status":"success","value":{…}}}
//
// whose result is there once it is completed. Tasks become subagents. Lists of
// steps become one item of the whole run when they are completed: a call may
// name only the steps that change.
func (c *cursorFacts) toolStarted(t *cursorTurn, id string, call gjson.Result) {
	id = strings.Clone(id)
	switch kind := call.Get("type").Str; {
	case id == "" || kind == "updateTodos" || t.tool(id) != nil || t.task(id) != nil:
	case kind == "task":
		args := call.Get("args")
		task := &orch.SubagentUpdated{
			NativeThreadID: c.thread, NativeTurnID: t.id, NativeTaskID: id, Status: "running",
			Prompt: args.Get("prompt").String(), Title: args.Get("description").String(), Model: args.Get("model").String(),
		}
		t.tasks = append(t.tasks, task)
		c.push(*task)
	default:
		item := cursorToolItem(kind, call.Get("args"))
		item.NativeID, item.Status, item.Streaming = id, "running", streams(item.Type)
		t.tools = append(t.tools, &item)
		c.emit(t, item)
	}
}

func (c *cursorFacts) toolCompleted(t *cursorTurn, id string, call gjson.Result) {
	result := call.Get("result")
	status := "completed"
	if result.Get("status").Str == "error" {
		status = "failed"
	}
	if call.Get("type").Str == "updateTodos" {
		c.todoUpdated(t, result.Get("value.todos"))
		return
	}
	if task := t.task(id); task != nil {
		t.tasks = slices.DeleteFunc(t.tasks, func(other *orch.SubagentUpdated) bool { return other == task })
		task.Status, task.Result = status, cursorReport(result)
		c.push(*task)
		return
	}
	item := t.tool(id)
	if item == nil {
		return
	}
	t.tools = slices.DeleteFunc(t.tools, func(other *orch.ProviderItem) bool { return other == item })
	item.Status, item.Streaming = status, false
	if item.Type == "command_execution" {
		cursorCommandEnded(item, call.Get("args"), result)
	}
	c.emit(t, *item)
}

func (t *cursorTurn) tool(id string) *orch.ProviderItem {
	if i := slices.IndexFunc(t.tools, func(item *orch.ProviderItem) bool { return item.NativeID == id }); i >= 0 {
		return t.tools[i]
	}
	return nil
}

func (t *cursorTurn) task(id string) *orch.SubagentUpdated {
	if i := slices.IndexFunc(t.tasks, func(task *orch.SubagentUpdated) bool { return task.NativeTaskID == id }); i >= 0 {
		return t.tasks[i]
	}
	return nil
}

// cursorCommand is what is kept of a command.
type cursorCommand struct {
	Command  string `json:"command"`
	ExitCode *int64 `json:"exitCode"`
}

// cursorToolItem says how a tool is seen.
func cursorToolItem(kind string, args gjson.Result) orch.ProviderItem {
	switch kind {
	case "shell":
		command := args.Get("command").String()
		return orch.ProviderItem{Type: "command_execution", Title: command, Detail: detail(cursorCommand{Command: command})}
	case "createPlan":
		return orch.ProviderItem{Type: "proposed_plan", Text: args.Get("plan").String()}
	case "edit", "write", "delete":
		path := args.Get("path").String()
		return orch.ProviderItem{Type: "file_change", Title: path, Detail: detail(struct {
			Tool string `json:"tool"`
			Path string `json:"path"`
		}{kind, path})}
	case "glob", "grep", "semSearch":
		query := pickText(args, []string{"pattern", "globPattern", "query"})
		return orch.ProviderItem{Type: "file_search", Title: query, Detail: detail(struct {
			Tool  string `json:"tool"`
			Query string `json:"query"`
		}{kind, query})}
	}
	return callItem(kind, args)
}

// cursorCommandEnded adds how a command went. The SDK takes any exit code for
// success.
func cursorCommandEnded(item *orch.ProviderItem, args, result gjson.Result) {
	value := result.Get("value")
	item.Text = value.Get("stdout").String() + value.Get("stderr").String()
	code := value.Get("exitCode")
	if code.Type != gjson.Number {
		item.Text = firstText(item.Text, result.Get("error.message").String())
		return
	}
	n := code.Int()
	if n != 0 {
		item.Status = "failed"
	}
	item.Detail = detail(cursorCommand{args.Get("command").String(), &n})
}

// cursorReport is what a subagent said last, or why there is none.
func cursorReport(result gjson.Result) string {
	steps := result.Get("value.conversationSteps").Array()
	for _, step := range slices.Backward(steps) {
		if text := step.Get("assistantMessage.text").String(); text != "" {
			return strings.Clone(text)
		}
	}
	return result.Get("error.message").String()
}

// todoUpdated makes one item of all the lists of a run.
func (c *cursorFacts) todoUpdated(t *cursorTurn, todos gjson.Result) {
	if !todos.IsArray() {
		return
	}
	var steps []todoStep
	for _, todo := range todos.Array() {
		status := todo.Get("status").String()
		if status == "inProgress" {
			status = "in_progress"
		}
		steps = append(steps, todoStep{todo.Get("content").String(), status})
	}
	t.todo = &orch.ProviderItem{NativeID: "todo", Type: "todo_list", Status: "running", Detail: todoDetail(steps)}
	c.emit(t, *t.todo)
}
