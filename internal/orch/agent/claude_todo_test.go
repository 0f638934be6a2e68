package agent

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// A turn has one item of the list, whatever tools change it; the list stays
// for the next turn.
func TestClaudeTodo(t *testing.T) {
	c, events := newTestFacts()
	use := func(id, tool, input string) string {
		return fmt.Sprintf(`{"type":"assistant","message":{"content":[{"type":"tool_use","id":%q,"name":%q,"input":%s}]}}`, id, tool, input)
	}
	done := func(id, result string) string {
		return fmt.Sprintf(`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":%q,%s}]}`, id, result)
	}
	c.begin("turn:1", "p1")
	c.say(use("a", "TaskCreate", `{"subject":"Look"}`), use("b", "TaskCreate", `{"subject":"Leap"}`),
		done("b", `"content":"no","is_error":true`)+`}`, done("a", `"content":"ok"`)+`,"tool_use_result":{"task":{"id":"1"}}}`,
		use("c", "TaskUpdate", `{"taskId":"1","status":"in_progress"}`), done("c", `"content":"ok"`)+`}`,
		use("d", "TaskUpdate", `{"taskId":"7","status":"completed"}`), done("d", `"content":"ok"`)+`}`,
		`{"type":"result","subtype":"success","result":"x"}`)
	c.begin("turn:2", "p2")
	c.say(use("e", "TaskUpdate", `{"taskId":"7","status":"deleted"}`), done("e", `"content":"ok"`)+`}`,
		use("f", "TodoWrite", `{"todos":[{"content":"Rest","status":"pending"}]}`), done("f", `"content":"ok"`)+`}`,
		`{"type":"result","subtype":"error_max_turns","is_error":true}`)
	var got []string
	for _, e := range *events {
		if i, ok := e.(orch.ItemUpdated); ok && i.Item.Type != "assistant_message" {
			got = append(got, fmt.Sprintf("%s %s %s %s", i.Item.Type, i.Item.NativeID, i.Item.Status, i.Item.Detail))
		}
	}
	want := []string{
		`todo_list todo:turn:1 running {"steps":[{"step":"Look","status":"pending"}]}`,
		`todo_list todo:turn:1 running {"steps":[{"step":"Look","status":"in_progress"}]}`,
		`todo_list todo:turn:1 running {"steps":[{"step":"Look","status":"in_progress"},{"step":"Task 7","status":"completed"}]}`,
		`todo_list todo:turn:1 completed {"steps":[{"step":"Look","status":"in_progress"},{"step":"Task 7","status":"completed"}]}`,
		`todo_list todo:turn:2 running {"steps":[{"step":"Look","status":"in_progress"}]}`,
		`todo_list todo:turn:2 running {"steps":[{"step":"Rest","status":"pending"}]}`,
		`todo_list todo:turn:2 failed {"steps":[{"step":"Rest","status":"pending"}]}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
