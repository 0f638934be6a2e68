package agent

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// claudeTodo is a step of the list that the model keeps of its work, with a
// tool call for each change:
//
//	TaskCreate {"subject":"Look"}                       its result has the id: {"task":{"id":"1",…}}
//	TaskUpdate {"taskId":"1","status":"in_progress"}    or completed, pending, deleted
//	TodoWrite  {"todos":[{"content":"Look","status":"pending"}]}
//
// The list outlives a turn; each turn that changes it has one item of it.
type claudeTodo struct {
	id string // "" where steps have none
	todoStep
}

// claudeTodoCall is a change of the list that was not answered.
type claudeTodoCall struct {
	id, tool string
	input    gjson.Result
}

// todoCalled takes the call of a tool if it changes the list.
func (t *claudeTurn) todoCalled(id, tool string, input gjson.Result) bool {
	switch tool {
	case "TaskCreate", "TaskUpdate", "TodoWrite":
		t.todoCalls = append(t.todoCalls, claudeTodoCall{strings.Clone(id), tool, gjson.Parse(strings.Clone(input.Raw))})
		return true
	}
	return false
}

// todoAnswered takes the result of a tool if it is that of such a call. One
// that failed changed nothing.
func (c *claudeFacts) todoAnswered(t *claudeTurn, id string, m gjson.Result, failed bool) bool {
	at := slices.IndexFunc(t.todoCalls, func(call claudeTodoCall) bool { return call.id == id })
	if at < 0 {
		return false
	}
	call := t.todoCalls[at]
	t.todoCalls = slices.Delete(t.todoCalls, at, at+1)
	if failed {
		return true
	}
	switch call.tool {
	case "TaskCreate":
		c.todos = append(c.todos, claudeTodo{strings.Clone(m.Get("tool_use_result.task.id").String()), todoStep{call.input.Get("subject").String(), "pending"}})
	case "TaskUpdate":
		c.todoUpdated(call.input)
	case "TodoWrite":
		c.todos = nil
		for _, s := range call.input.Get("todos").Array() {
			c.todos = append(c.todos, claudeTodo{"", todoStep{s.Get("content").String(), s.Get("status").String()}})
		}
	}
	var steps []todoStep
	for _, todo := range c.todos {
		steps = append(steps, todo.todoStep)
	}
	t.todo = &orch.ProviderItem{NativeID: "todo:" + t.id, Type: "todo_list", Status: "running", Detail: todoDetail(steps)}
	c.emit(t, *t.todo)
	return true
}

// todoUpdated changes a step. One that was made before this process was there
// is known by its id alone.
func (c *claudeFacts) todoUpdated(input gjson.Result) {
	id := input.Get("taskId").String()
	at := slices.IndexFunc(c.todos, func(s claudeTodo) bool { return s.id == id })
	if at < 0 {
		at, c.todos = len(c.todos), append(c.todos, claudeTodo{id, todoStep{"Task " + id, "pending"}})
	}
	s := &c.todos[at]
	s.Step = firstText(input.Get("subject").String(), s.Step)
	s.Status = firstText(input.Get("status").String(), s.Status)
	if s.Status == "deleted" {
		c.todos = slices.Delete(c.todos, at, at+1)
	}
}
