package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// newTestFacts returns facts of thread T and where their events go.
func newTestFacts() (*claudeFacts, *[]orch.ProviderEvent) {
	var events []orch.ProviderEvent
	c := newClaudeFacts(func(e orch.ProviderEvent) { events = append(events, e) })
	c.open("T")
	return c, &events
}

func (c *claudeFacts) say(lines ...string) {
	for _, line := range lines {
		m := gjson.Parse(line)
		if m.Get("type").Str == "control_request" {
			c.ask(m.Get("request_id").Raw, m.Get("request"))
		} else {
			c.message(m.Get("type").Str, m)
		}
	}
}

func TestClaudeResults(t *testing.T) {
	tests := []struct {
		name, result   string
		interrupting   bool
		status, reason string
	}{
		{"success", `"subtype":"success","is_error":false`, false, "completed", ""},
		{"success while interrupting", `"subtype":"success","is_error":false`, true, "interrupted", ""},
		{"api error", `"subtype":"success","is_error":true,"result":"API Error: 529"`, false, "failed", "API Error: 529"},
		{"aborted stream", `"subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_streaming"`, false, "interrupted", ""},
		{"aborted tools", `"subtype":"success","is_error":false,"terminal_reason":"aborted_tools"`, true, "interrupted", ""},
		{"interrupt text", `"subtype":"error_during_execution","errors":["Interrupted by user"]`, false, "interrupted", ""},
		{"cancel text", `"subtype":"error_during_execution","errors":["Request was cancelled"]`, false, "cancelled", ""},
		{"max turns", `"subtype":"error_max_turns","is_error":true`, false, "failed", "error_max_turns"},
		{"errors", `"subtype":"error_during_execution","errors":["one","two"]`, false, "failed", "one\ntwo"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, events := newTestFacts()
			if err := c.begin("turn:1", "p"); err != nil {
				t.Fatal(err)
			}
			if err := c.begin("turn:2", "p"); err == nil {
				t.Error("two turns ran at once")
			}
			c.turn.interrupting = tt.interrupting
			c.say(`{"type":"result",` + tt.result + `}`)
			want := orch.TurnEnded{NativeThreadID: "T", NativeTurnID: "turn:1", Status: tt.status, Error: tt.reason}
			if got := (*events)[len(*events)-1]; got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// What a steer cuts short ends nothing, also where results name no messages.
func TestClaudeSteeredResults(t *testing.T) {
	const aborted = `{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_streaming"}`
	c, events := newTestFacts()
	c.begin("turn:1", "p1")
	c.steer("turn:1", "p2")
	c.say(aborted)
	if len(*events) != 1 {
		t.Errorf("got %+v, want the turn to run", *events)
	}
	c.say(aborted)
	if e, ok := (*events)[1].(orch.TurnEnded); !ok || e.Status != "interrupted" {
		t.Errorf("got %+v, want the turn interrupted", (*events)[1])
	}
}

// A message that was taken back before its turn has no result.
func TestClaudeCancelledPrompt(t *testing.T) {
	c, events := newTestFacts()
	c.begin("turn:1", "p1")
	c.interrupted("turn:1")
	c.say(`{"type":"command_lifecycle","command_uuid":"p1","state":"cancelled"}`)
	if e, ok := (*events)[1].(orch.TurnEnded); !ok || e.Status != "interrupted" {
		t.Errorf("got %+v, want the turn interrupted", (*events)[1])
	}
}

// A turn of the provider's own ends none of ours, though it comes while ours
// waits; what is said in it belongs to the turn before, and is where that turn ends.
func TestClaudeForeignTurn(t *testing.T) {
	const text = `{"type":"assistant","uuid":"%","message":{"content":[{"type":"text","text":"%"}]}}`
	c, events := newTestFacts()
	c.begin("turn:1", "p1")
	c.say(`{"type":"command_lifecycle","command_uuid":"p1","state":"started"}`, `{"type":"system","subtype":"init"}`,
		strings.ReplaceAll(text, "%", "first"), `{"type":"result","subtype":"success"}`, `{"type":"system","subtype":"init"}`)
	c.begin("turn:2", "p2")
	c.say(`{"type":"command_lifecycle","command_uuid":"p2","state":"queued"}`, strings.ReplaceAll(text, "%", "late"),
		`{"type":"result","subtype":"success","origin":{"kind":"task-notification"}}`,
		`{"type":"command_lifecycle","command_uuid":"p2","state":"started"}`, `{"type":"system","subtype":"init"}`,
		strings.ReplaceAll(text, "%", "second"), `{"type":"result","subtype":"success","user_message_uuids":["p2"]}`)
	var got []string
	for _, e := range *events {
		switch e := e.(type) {
		case orch.ItemUpdated:
			got = append(got, e.NativeTurnID+" "+e.Item.Text)
		case orch.TurnEnded:
			got = append(got, e.NativeTurnID+" "+e.Status)
		case orch.HeadChanged:
			got = append(got, e.NativeTurnID+" at "+e.Head)
		}
	}
	want := []string{"turn:1 first", "turn:1 at first", "turn:1 completed", "turn:1 late", "turn:1 at late", "turn:2 second", "turn:2 at second", "turn:2 completed"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestClaudeSubagents(t *testing.T) {
	const call = `{"type":"assistant","uuid":"a","message":{"content":[{"type":"tool_use","id":"t1","name":"Agent","input":{"description":"help","prompt":"do it","model":"small"}}]}}`
	const started = `{"type":"system","subtype":"task_started","task_id":"k","tool_use_id":"t1","task_type":"local_agent","description":"help","prompt":"do it"}`
	returned := func(text, rest string) string {
		return `{"type":"user","uuid":"u","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"` + text + `"}]` + rest + `}]}}`
	}
	ended := func(status, summary string) string {
		return `{"type":"system","subtype":"task_notification","task_id":"k","status":"` + status + `","summary":"` + summary + `"}`
	}
	tests := []struct {
		name   string
		lines  []string
		status []string
		result string
	}{
		{"foreground", []string{ended("completed", "help"), returned("the report", "")}, []string{"running", "completed", "completed"}, "the report"},
		{"hand-back", []string{ended("completed", "found it"), returned(`  <notes>\n[Subagent hand-back] Words. The report follows:\n  line\n    two\nagentId: k (more)`, "")}, []string{"running", "completed", "completed"}, "line\n  two"},
		{"result first", []string{returned("all done", ""), ended("completed", "help")}, []string{"running", "completed"}, "all done"},
		{"background", []string{returned("Async agent launched successfully.", ""), `{"type":"result","subtype":"success"}`, ended("completed", "late report")}, []string{"running", "completed"}, "late report"},
		{"stopped", []string{ended("stopped", "help")}, []string{"running", "cancelled"}, ""},
		{"failed", []string{ended("killed", "help")}, []string{"running", "failed"}, ""},
		{"call failed", []string{returned("no such agent", `,"is_error":true`)}, []string{"running", "failed"}, "no such agent"},
		{"goes on", []string{ended("completed", "help"), `{"type":"system","subtype":"task_updated","task_id":"k","patch":{"status":"running"}}`}, []string{"running", "completed", "running"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, events := newTestFacts()
			c.begin("turn:1", "p")
			c.say(call, started, started, `{"type":"system","subtype":"task_started","task_id":"b","task_type":"local_bash"}`)
			c.say(tt.lines...)
			var status []string
			var last orch.SubagentUpdated
			for _, e := range *events {
				switch e := e.(type) {
				case orch.SubagentUpdated:
					last, status = e, append(status, e.Status)
				case orch.ItemUpdated:
					t.Errorf("the Agent tool became an item: %+v", e)
				}
			}
			if diff := cmp.Diff(tt.status, status); diff != "" {
				t.Error(diff)
			}
			want := orch.SubagentUpdated{
				NativeThreadID: "T", NativeTurnID: "turn:1", NativeTaskID: "k", Prompt: "do it", Title: "help", Model: "small",
				Status: last.Status, Result: tt.result,
			}
			if last != want {
				t.Errorf("got %+v, want %+v", last, want)
			}
		})
	}
}

// claudeCorpus lists recorded traffic as corpusFiles does, and that of this
// repository.
func claudeCorpus(tb testing.TB) []string {
	dir := os.Getenv("TRANSCRIPT_CORPUS")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared", "corpus")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "claude.ndjson"))
	if err != nil {
		tb.Fatal(err)
	}
	own, err := filepath.Glob(filepath.Join("..", "..", "..", "transcripts", "*", "claude.ndjson"))
	if err != nil {
		tb.Fatal(err)
	}
	return append(files, own...)
}

// Recorded traffic keeps the order that checkEvents wants, and every prompt
// but a steer's is a turn that ends.
func TestClaudeCorpus(t *testing.T) {
	files := claudeCorpus(t)
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			c, events := newTestFacts()
			prompts := 0
			settled := map[string]bool{} // questions that nobody was asked
			for _, e := range readEntries(t, file) {
				f := e.Get("frame")
				switch e.Get("type").Str + " " + f.Get("type").Str {
				case "expect_outbound prompt.offer":
					uuid := f.Get("message.uuid").Str
					if f.Get("message.priority").Str == "now" && c.turn != nil {
						c.steer(c.turn.id, uuid)
						break
					}
					prompts++
					if err := c.begin("turn:"+string(rune('0'+prompts)), uuid); err != nil {
						t.Error(err)
					}
				case "expect_outbound query.interrupt":
					if c.turn != nil {
						c.interrupted(c.turn.id)
					}
				case "expect_outbound permission.response":
					if settled[f.Get("result.toolUseID").Str] {
						break
					}
					d := orch.Decision{Kind: map[string]string{"allow": "accept", "deny": "decline"}[f.Get("result.behavior").Str]}
					if _, _, err := c.respond(f.Get("result.toolUseID").Str, d); err != nil {
						t.Error(err)
					}
				case "emit_inbound permission.request":
					ask := `{"tool_name":` + f.Get("toolName").Raw + `,"input":` + f.Get("input").Raw + `,"tool_use_id":` + f.Get("options.toolUseID").Raw + `}`
					settled[f.Get("options.toolUseID").Str] = c.ask(`"r"`, gjson.Parse(ask)) != nil
				case "runtime_exit ":
					c.gone()
					if c.turn != nil { // the orchestrator says so, by the end of the session
						c.end("cancelled", "")
					}
					c.open("T")
				default:
					if e.Get("type").Str == "emit_inbound" {
						c.message(f.Get("type").Str, f)
					}
				}
			}
			if got := checkEvents(t, *events); got != prompts {
				t.Errorf("%d turns ended, want %d", got, prompts)
			}
		})
	}
}

// FuzzClaudeFacts feeds messages of any shape: nothing panics, and no turn
// ends twice.
func FuzzClaudeFacts(f *testing.F) {
	for _, file := range claudeCorpus(f) {
		var frames []string
		for _, e := range readEntries(f, file) {
			if e.Get("type").Str == "emit_inbound" && len(frames) < 40 && e.Get("frame.type").Str != "query.response" {
				frames = append(frames, e.Get("frame").Raw)
			}
		}
		f.Add(strings.Join(frames, "\n"))
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, events := newTestFacts()
		c.begin("turn:1", "p")
		for line := range strings.Lines(text) {
			if gjson.Valid(line) {
				c.say(line)
			}
		}
		ends := 0
		for _, e := range *events {
			if _, ok := e.(orch.TurnEnded); ok {
				ends++
			}
		}
		if ends > 1 {
			t.Errorf("the turn ended %d times", ends)
		}
	})
}
