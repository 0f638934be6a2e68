package agent

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// feedCursor hands updates of run R to fresh facts with agent A, then the
// given frames that end it.
func feedCursor(cancel bool, updates []string, ends ...string) (events []orch.ProviderEvent) {
	c := newCursorFacts(func(e orch.ProviderEvent) { events = append(events, e) })
	c.open("A")
	c.start("R")
	for _, u := range updates {
		c.update("R", gjson.Parse(u))
	}
	if cancel {
		c.cancel("R")
	}
	s := &cursorSession{facts: c}
	for _, f := range ends {
		s.handle(rpcMessage{Method: gjson.Get(f, "type").Str, Params: gjson.Parse(f)})
	}
	return events
}

func cursorTool(event, id, call string) string {
	return `{"type":"tool-call-` + event + `","callId":"` + id + `","toolCall":` + call + `}`
}

const cursorFinished = `{"type":"run.completed","result":{"id":"R","status":"finished","result":"all of it"}}`

// tellCursor writes events down, a line each.
func tellCursor(events []orch.ProviderEvent) (lines []string) {
	for _, e := range events {
		switch e := e.(type) {
		case orch.ItemUpdated:
			i := e.Item
			lines = append(lines, strings.Join([]string{i.NativeID, i.Type, i.Status, i.Title, i.Text, string(i.Detail)}, "|"))
		case orch.SubagentUpdated:
			lines = append(lines, strings.Join([]string{e.NativeTaskID, e.ChildNativeThreadID, e.Status, e.Title, e.Prompt, e.Model, e.Result}, "/"))
		case orch.TurnEnded:
			lines = append(lines, "end "+e.Status)
		}
	}
	return lines
}

// What each kind of update becomes: deltas make one item up to what ends it,
// lists of steps one of the run, tasks subagents; and what a run leaves open.
func TestCursorItems(t *testing.T) {
	got := tellCursor(feedCursor(false, []string{
		`{"type":"thinking-delta","text":"h"}`, `{"type":"token-delta","tokens":1}`, `{"type":"thinking-delta","text":"m"}`,
		`{"type":"thinking-completed","thinkingDurationMs":1}`,
		`{"type":"text-delta","text":"I "}`, `{"type":"text-delta","text":"run"}`,
		`{"type":"partial-tool-call","callId":"s","toolCall":{"type":"shell","args":{}}}`,
		cursorTool("started", "s", `{"type":"shell","args":{"command":"ls <x>"}}`),
		cursorTool("completed", "s", `{"type":"shell","args":{"command":"ls <x>"},"result":{"status":"success","value":{"exitCode":2,"stdout":"a\n","stderr":"b"}}}`),
		cursorTool("completed", "s", `{"type":"shell","args":{"command":"twice"}}`),
		cursorTool("started", "x", `{"type":"shell","args":{"command":"no"}}`),
		cursorTool("completed", "x", `{"type":"shell","args":{"command":"no"},"result":{"status":"error","error":{"message":"blocked"}}}`),
		cursorTool("started", "t", `{"type":"updateTodos","args":{"todos":[{"content":"b","status":"completed"}]}}`),
		cursorTool("completed", "t", `{"type":"updateTodos","args":{"todos":[{"content":"b","status":"completed"}]},"result":{"status":"success","value":{"todos":[{"content":"a","status":"inProgress"},{"content":"b","status":"completed"}],"totalCount":2}}}`),
		cursorTool("started", "p", `{"type":"createPlan","args":{"plan":"# Plan"}}`),
		cursorTool("completed", "p", `{"type":"createPlan","args":{"plan":"# Plan"},"result":{"status":"success","value":{}}}`),
		cursorTool("started", "k1", `{"type":"task","args":{"description":"One","prompt":"be one","model":"small"}}`),
		cursorTool("started", "k2", `{"type":"task","args":{"description":"Two","prompt":"be two"}}`),
		cursorTool("completed", "k1", `{"type":"task","args":{},"result":{"status":"success","value":{"conversationSteps":[{"assistantMessage":{"text":"first"}},{"assistantMessage":{"text":"one is done"}},{"toolCall":{}}]}}}`),
		cursorTool("started", "e", `{"type":"edit","args":{"path":"f"}}`),
		cursorTool("started", "g", `{"type":"grep","args":{"pattern":"q"}}`),
		cursorTool("completed", "g", `{"type":"grep","args":{"pattern":"q"},"result":{"status":"error","error":{"message":"no"}}}`),
		cursorTool("started", "m", `{"type":"mcp","args":{"k":1}}`),
		`{"type":"nobody-knows"}`,
		`{"type":"text-delta","text":"done"}`,
		`{"type":"step-completed","stepId":1}`,
		`{"type":"text-delta","text":"more"}`,
	}, cursorFinished, cursorFinished))
	want := []string{
		"reasoning:1|reasoning|running|||", "reasoning:1|reasoning|completed||hm|",
		"assistant_message:2|assistant_message|running|||", "assistant_message:2|assistant_message|completed||I run|",
		`s|command_execution|running|ls <x>||{"command":"ls <x>","exitCode":null}`,
		"s|command_execution|failed|ls <x>|a\nb|" + `{"command":"ls <x>","exitCode":2}`,
		`x|command_execution|running|no||{"command":"no","exitCode":null}`,
		`x|command_execution|failed|no|blocked|{"command":"no","exitCode":null}`,
		`todo|todo_list|running|||{"steps":[{"step":"a","status":"in_progress"},{"step":"b","status":"completed"}]}`,
		"p|proposed_plan|running||# Plan|", "p|proposed_plan|completed||# Plan|",
		"k1//running/One/be one/small/", "k2//running/Two/be two//", "k1//completed/One/be one/small/one is done",
		`e|file_change|running|f||{"tool":"edit","path":"f"}`,
		`g|file_search|running|q||{"tool":"grep","query":"q"}`, `g|file_search|failed|q||{"tool":"grep","query":"q"}`,
		`m|dynamic_tool|running|mcp||{"tool":"mcp","arguments":{"k":1}}`,
		"assistant_message:3|assistant_message|running|||", "assistant_message:3|assistant_message|completed||done|",
		"assistant_message:4|assistant_message|running|||", "assistant_message:4|assistant_message|completed||more|",
		`e|file_change|failed|f||{"tool":"edit","path":"f"}`, `m|dynamic_tool|failed|mcp||{"tool":"mcp","arguments":{"k":1}}`,
		"k2//failed/Two/be two//",
		`todo|todo_list|completed|||{"steps":[{"step":"a","status":"in_progress"},{"step":"b","status":"completed"}]}`,
		"end completed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// How a run ends, and what becomes of its text. What comes after its end, or
// of another run, means nothing.
func TestCursorEnds(t *testing.T) {
	half := []string{`{"type":"text-delta","text":"half"}`}
	for _, test := range []struct {
		name    string
		cancel  bool
		updates []string
		end     string
		text    string // of the last item, with its status
		want    string
	}{
		{"finished", false, half, cursorFinished, "half completed", "completed: "},
		{"only the result has text", false, nil, cursorFinished, "all of it completed", "completed: "},
		{"cancelled by another", false, half, `{"type":"run.completed","result":{"id":"R","status":"cancelled"}}`, "half cancelled", "cancelled: "},
		{"interrupted", true, half, `{"type":"run.completed","result":{"id":"R","status":"cancelled"}}`, "half interrupted", "interrupted: "},
		{"finished before the interrupt", true, half, cursorFinished, "half interrupted", "interrupted: "},
		{"failed", false, half, `{"type":"run.completed","result":{"id":"R","status":"error","error":{"message":"quota"}}}`, "half failed", "failed: quota"},
		{"an unknown status", false, half, `{"type":"run.completed","result":{"id":"R","status":"melted"}}`, "half failed", `failed: run ended with status "melted"`},
		{"no result", false, half, `{"type":"runtime.exit","status":"error","error":{"message":"boom"}}`, "half failed", "failed: boom"},
		{"no result but an abort", true, half, `{"type":"runtime.exit","status":"cancelled","error":{"message":"aborted"}}`, "half interrupted", "interrupted: "},
		{"another run", false, half, `{"type":"run.completed","result":{"id":"Q","status":"finished"}}`, " running", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			text, end := "", ""
			for _, e := range feedCursor(test.cancel, test.updates, test.end) {
				switch e := e.(type) {
				case orch.ItemUpdated:
					text = e.Item.Text + " " + e.Item.Status
				case orch.TurnEnded:
					end = e.Status + ": " + e.Error
				}
			}
			if text != test.text || end != test.want {
				t.Errorf("text %q, end %q; want %q, %q", text, end, test.text, test.want)
			}
		})
	}
}

// Recorded traffic of the real service: every run starts and ends once, in
// that order; each item ends once.
func TestCursorCorpus(t *testing.T) {
	files := corpusOf(t, "cursor")
	if len(files) == 0 {
		t.Skip("no recorded traffic: set TRANSCRIPT_CORPUS to a folder of NAME/cursor.ndjson")
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			var events []orch.ProviderEvent
			c := newCursorFacts(func(e orch.ProviderEvent) { events = append(events, e) })
			s := &cursorSession{facts: c}
			runs := 0
			for _, e := range readEntries(t, file) {
				switch f := e.Get("frame"); f.Get("type").Str {
				case "agent.opened":
					c.open(f.Get("agentId").Str)
				case "run.started":
					runs++
					c.start(f.Get("runId").Str)
				case "run.cancel":
					if !c.cancel(f.Get("runId").Str) {
						t.Errorf("run %s is not live", f.Get("runId"))
					}
				default:
					s.handle(rpcMessage{Method: f.Get("type").Str, Params: f})
				}
			}
			if got := checkEvents(t, events); got != runs {
				t.Errorf("%d runs ended, want the %d started", got, runs)
			}
		})
	}
}
