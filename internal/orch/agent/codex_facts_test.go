package agent

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// feed hands inbound frames to fresh facts, with thread T as ours.
func feed(lines ...string) (events []orch.ProviderEvent) {
	c := newCodexFacts(func(e orch.ProviderEvent) { events = append(events, e) })
	c.own("T")
	for _, line := range lines {
		feedFrame(c, gjson.Parse(line))
	}
	return events
}

func feedFrame(c *codexFacts, f gjson.Result) {
	method, id := f.Get("method").Str, f.Get("id")
	switch {
	case method != "" && id.Exists():
		c.request(id.Raw, method, f.Get("params"))
	case method != "":
		c.notification(method, f.Get("params"))
	}
}

func started(thread, turn string) string {
	return `{"method":"turn/started","params":{"threadId":"` + thread + `","turn":{"id":"` + turn + `"}}}`
}

func ended(thread, turn, status string) string {
	return `{"method":"turn/completed","params":{"threadId":"` + thread + `","turn":{"id":"` + turn + `","status":"` + status + `"}}}`
}

func item(event, thread, turn, body string) string {
	return `{"method":"item/` + event + `","params":{"threadId":"` + thread + `","turnId":"` + turn + `","item":{` + body + `}}}`
}

// A child may start, work and even end before the item that spawned it names
// it: nothing of it is seen until then, and then everything in order.
func TestChildBeforeSpawnItem(t *testing.T) {
	got := feed(
		started("T", "U"),
		item("started", "T", "U", `"type":"collabAgentToolCall","id":"s","tool":"spawnAgent","receiverThreadIds":[],"prompt":"look","model":""`),
		started("C", "V"),
		item("completed", "C", "V", `"type":"agentMessage","id":"m","text":"found"`),
		ended("C", "V", "completed"),
		item("completed", "T", "U", `"type":"agentMessage","id":"n","text":"meanwhile"`),
		item("completed", "T", "U", `"type":"collabAgentToolCall","id":"s","tool":"spawnAgent","status":"completed","receiverThreadIds":["C"],"prompt":"look","model":"small","agentsStates":{"C":{"status":"pendingInit","message":null}}`),
		item("completed", "T", "U", `"type":"collabAgentToolCall","id":"w","tool":"wait","receiverThreadIds":["C"],"agentsStates":{"C":{"status":"completed","message":"found"}}`),
		item("completed", "C", "V", `"type":"collabAgentToolCall","id":"x","tool":"sendMessage","receiverThreadIds":["T"],"agentsStates":{}`),
		ended("T", "U", "completed"),
		ended("T", "U", "completed"),
	)
	child := orch.SubagentUpdated{
		NativeThreadID: "T", NativeTurnID: "U", NativeTaskID: "C", ChildNativeThreadID: "C",
		Prompt: "look", Model: "small", Status: "running",
	}
	childDone := child
	childDone.Status, childDone.Result = "completed", "found"
	message := func(thread, turn, id, text string) orch.ItemUpdated {
		return orch.ItemUpdated{NativeThreadID: thread, NativeTurnID: turn, Item: orch.ProviderItem{
			NativeID: id, Type: "assistant_message", Status: "completed", Text: text,
		}}
	}
	want := []orch.ProviderEvent{
		orch.TurnStarted{NativeThreadID: "T", NativeTurnID: "U"},
		message("T", "U", "n", "meanwhile"),
		child,
		orch.TurnStarted{NativeThreadID: "C", NativeTurnID: "V"},
		message("C", "V", "m", "found"),
		orch.TurnEnded{NativeThreadID: "C", NativeTurnID: "V", Status: "completed"},
		childDone,
		orch.TurnEnded{NativeThreadID: "T", NativeTurnID: "U", Status: "completed"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The other order, and the other kind of item: the child is named first, gets
// a second task after its first, and outlives its parent's turn.
func TestChildAfterActivityItem(t *testing.T) {
	activity := func(kind string) string {
		return item("completed", "T", "U", `"type":"subAgentActivity","id":"a-`+kind+`","kind":"`+kind+`","agentThreadId":"C","agentPath":"/root/helper"`)
	}
	var status []string
	for _, e := range feed(
		started("T", "U"), activity("started"),
		started("C", "V"), ended("C", "V", "interrupted"), activity("interrupted"),
		activity("interacted"), started("C", "W"),
		ended("T", "U", "completed"),
		item("completed", "C", "W", `"type":"agentMessage","id":"m","text":"two"`), ended("C", "W", "completed"), activity("completed"),
	) {
		switch e := e.(type) {
		case orch.SubagentUpdated:
			status = append(status, e.Title+" "+e.Status+" "+e.Result)
		case orch.TurnEnded:
			status = append(status, "end "+e.NativeThreadID)
		}
	}
	want := []string{
		"helper running ", "end C", "helper interrupted ", "helper running ", "end T", "end C", "helper completed two",
	}
	if diff := cmp.Diff(want, status); diff != "" {
		t.Error(diff)
	}
}

// What agent tools report of a child counts while it has no turn: it ends the
// child once. A child that ended before it was named needs no report.
func TestChildReports(t *testing.T) {
	collab := func(tool, child, state, message string) string {
		return item("completed", "T", "U", `"type":"collabAgentToolCall","id":"i","tool":"`+tool+`","receiverThreadIds":["`+child+`"],"agentsStates":{"`+child+`":{"status":"`+state+`","message":`+message+`}}`)
	}
	var got []string
	for _, e := range feed(
		started("T", "U"),
		collab("spawnAgent", "A", "running", "null"), collab("wait", "A", "errored", `"no luck"`), collab("closeAgent", "A", "shutdown", "null"),
		collab("spawnAgent", "B", "pendingInit", "null"), started("B", "V"), collab("wait", "B", "completed", "null"), ended("B", "V", "failed"),
		started("C", "W"), ended("C", "W", "completed"), collab("spawnAgent", "C", "running", "null"),
	) {
		if e, ok := e.(orch.SubagentUpdated); ok {
			got = append(got, strings.TrimSpace(e.NativeTaskID+" "+e.Status+" "+e.Result))
		}
	}
	want := []string{"A running", "A failed no luck", "B running", "B failed", "C running", "C completed"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What each kind of item becomes, and what becomes of items that are never
// completed.
func TestItems(t *testing.T) {
	var got []string
	for _, e := range feed(
		started("T", "U"),
		item("started", "T", "U", `"type":"agentMessage","id":"cut","text":""`),
		`{"method":"item/agentMessage/delta","params":{"threadId":"T","turnId":"U","itemId":"cut","delta":"half"}}`,
		item("started", "T", "U", `"type":"agentMessage","id":"next","text":""`),
		item("completed", "T", "U", `"type":"reasoning","id":"r","summary":["one","two"]`),
		item("completed", "T", "U", `"type":"plan","id":"p","text":"# Plan"`),
		item("started", "T", "U", `"type":"commandExecution","id":"c","command":"ls <x>","cwd":"/w","status":"inProgress"`),
		`{"method":"item/commandExecution/outputDelta","params":{"threadId":"T","turnId":"U","itemId":"c","delta":"a\n"}}`,
		item("completed", "T", "U", `"type":"commandExecution","id":"c","command":"ls <x>","cwd":"/w","status":"failed","exitCode":2,"aggregatedOutput":null`),
		item("started", "T", "U", `"type":"commandExecution","id":"bg","command":"serve","cwd":"/w"`),
		item("completed", "T", "U", `"type":"fileChange","id":"f","status":"declined","changes":[{"path":"a","kind":{"type":"update","move_path":"b"},"diff":"@@"}]`),
		item("completed", "T", "U", `"type":"webSearch","id":"w","query":"q","action":{"type":"search"}`),
		item("completed", "T", "U", `"type":"mcpToolCall","id":"t","server":"s","tool":"u","status":"completed","arguments":{"k":1},"result":null`),
		item("completed", "T", "U", `"type":"dynamicToolCall","id":"d","tool":"v","arguments":{}`),
		item("completed", "T", "U", `"type":"contextCompaction","id":"z"`),
		item("completed", "T", "U", `"type":"collabAgentToolCall","id":"s","tool":"spawnAgent","status":"failed","receiverThreadIds":[],"prompt":"no"`),
		`{"method":"turn/plan/updated","params":{"threadId":"T","turnId":"U","explanation":"why","plan":[{"step":"a","status":"inProgress"}]}}`,
		ended("T", "U", "completed"),
		item("completed", "T", "U", `"type":"agentMessage","id":"cut","text":"late"`),
		item("completed", "T", "U", `"type":"commandExecution","id":"bg","command":"serve","cwd":"/w","status":"completed","exitCode":0,"aggregatedOutput":"served"`),
	) {
		switch e := e.(type) {
		case orch.ItemUpdated:
			i := e.Item
			got = append(got, strings.Join([]string{i.NativeID, i.Type, i.Status, i.Title, i.Text, string(i.Detail)}, "|"))
		case orch.TurnEnded:
			got = append(got, "end")
		}
	}
	want := []string{
		`cut|assistant_message|running|||`,
		`cut|assistant_message|interrupted||half|`,
		`next|assistant_message|running|||`,
		"r|reasoning|completed||one\n\ntwo|",
		`p|proposed_plan|completed||# Plan|`,
		`c|command_execution|running|ls <x>||{"command":"ls <x>","cwd":"/w","exitCode":null}`,
		"c|command_execution|failed|ls <x>|a\n" + `|{"command":"ls <x>","cwd":"/w","exitCode":2}`,
		`bg|command_execution|running|serve||{"command":"serve","cwd":"/w","exitCode":null}`,
		`f|file_change|cancelled|a||{"changes":[{"path":"a","kind":"update","movePath":"b","diff":"@@"}]}`,
		`w|web_search|completed|q||{"query":"q","action":{"type":"search"}}`,
		`t|dynamic_tool|completed|s.u||{"server":"s","tool":"u","arguments":{"k":1}}`,
		`d|dynamic_tool|completed|v||{"tool":"v","arguments":{}}`,
		`z|compaction|completed|||`,
		`s|dynamic_tool|failed|spawn_agent||{"prompt":"no"}`,
		`todo:U|todo_list|running|||{"explanation":"why","steps":[{"step":"a","status":"in_progress"}]}`,
		`next|assistant_message|interrupted|||`,
		`todo:U|todo_list|completed|||{"explanation":"why","steps":[{"step":"a","status":"in_progress"}]}`,
		`end`,
		`bg|command_execution|completed|serve|served|{"command":"serve","cwd":"/w","exitCode":0}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTurnFailure(t *testing.T) {
	errorNote := func(retry string) string {
		return `{"method":"error","params":{"threadId":"T","turnId":"U","willRetry":` + retry + `,"error":{"message":"` + retry + `"}}}`
	}
	tests := []struct{ name, frame, want string }{
		{"its own reason", `{"method":"turn/completed","params":{"threadId":"T","turn":{"id":"U","status":"failed","error":{"message":"boom"}}}}`, "failed: boom"},
		{"the last error that was not retried", ended("T", "U", "failed"), "failed: false"},
		{"an unknown status", ended("T", "U", "melted"), `failed: turn ended with status "melted"`},
		{"cancelled", ended("T", "U", "cancelled"), "cancelled: "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			events := feed(started("T", "U"), errorNote("false"), errorNote("true"), test.frame)
			end := events[len(events)-1].(orch.TurnEnded)
			if got := end.Status + ": " + end.Error; got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
