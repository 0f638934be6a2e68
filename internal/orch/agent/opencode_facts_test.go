package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// openCodeRig feeds events to facts and writes down what comes of them.
type openCodeRig struct {
	*openCodeFacts
	said []string
}

// newOpenCodeRig has session S as ours.
func newOpenCodeRig() *openCodeRig {
	r := &openCodeRig{}
	r.openCodeFacts = newOpenCodeFacts(func(e orch.ProviderEvent) { r.said = append(r.said, describeEvent(e)) })
	r.own("S")
	return r
}

func (r *openCodeRig) feed(events ...string) {
	for _, e := range events {
		if id := r.event(gjson.Parse(e)); id != "" {
			r.said = append(r.said, "grant "+id)
		}
	}
}

func describeEvent(e orch.ProviderEvent) string {
	switch e := e.(type) {
	case orch.TurnStarted:
		return fmt.Sprintf("%s %s started", e.NativeThreadID, e.NativeTurnID)
	case orch.TurnEnded:
		return strings.TrimSpace(fmt.Sprintf("%s %s %s %s", e.NativeThreadID, e.NativeTurnID, e.Status, e.Error))
	case orch.ItemUpdated:
		return fmt.Sprintf("%s %s %s %s %s|%s|%s|%s", e.NativeThreadID, e.NativeTurnID, e.Item.NativeID, e.Item.Type, e.Item.Status, e.Item.Title, e.Item.Text, e.Item.Detail)
	case orch.RequestOpened:
		return fmt.Sprintf("%s %s asks %s about %q: %s %q %s", e.NativeThreadID, e.NativeTurnID, e.NativeRequestID, e.NativeItemID, e.Kind, e.Title, e.Detail)
	case orch.RequestClosed:
		return fmt.Sprintf("%s closes %s", e.NativeThreadID, e.NativeRequestID)
	case orch.SubagentUpdated:
		return fmt.Sprintf("%s %s child %s %s: %q %q", e.NativeThreadID, e.NativeTurnID, e.ChildNativeThreadID, e.Status, e.Prompt, e.Result)
	case orch.SessionEnded:
		return fmt.Sprintf("gone: %v", e.Err)
	}
	return fmt.Sprintf("%T", e)
}

func ocEvent(kind, session, properties string) string {
	return fmt.Sprintf(`{"type":%q,"properties":{"sessionID":%q,%s}}`, kind, session, properties)
}

func ocStatus(session, status string) string {
	return ocEvent("session.status", session, `"status":{"type":"`+status+`"}`)
}

func ocMessage(session, id, rest string) string {
	return ocEvent("message.updated", session, fmt.Sprintf(`"info":{"id":%q,"sessionID":%q,%s}`, id, session, rest))
}

func ocUser(session, id string) string { return ocMessage(session, id, `"role":"user"`) }

func ocAssistant(session, id, parent string) string {
	return ocMessage(session, id, `"role":"assistant","parentID":"`+parent+`","time":{"created":1}`)
}

func ocComplete(session, id, parent string) string {
	return ocMessage(session, id, `"role":"assistant","parentID":"`+parent+`","time":{"created":1,"completed":2}`)
}

func ocPart(session, message, id, rest string) string {
	return ocEvent("message.part.updated", session, fmt.Sprintf(`"part":{"id":%q,"messageID":%q,"sessionID":%q,%s}`, id, message, session, rest))
}

func ocTextPart(session, message, id, text string) string {
	return ocPart(session, message, id, `"type":"text","text":"`+text+`","time":{"start":1,"end":2}`)
}

func ocTool(session, message, id, tool, state string) string {
	return ocPart(session, message, id, fmt.Sprintf(`"type":"tool","tool":%q,"callID":"call_%s","state":{%s}`, tool, id, state))
}

func ocAborted(session string) string {
	return ocEvent("session.error", session, `"error":{"name":"MessageAbortedError","data":{"message":"Aborted"}}`)
}

// asked is a prompt that the server has begun to answer.
func ocAsked(session, user, part, assistant string) []string {
	return []string{
		ocUser(session, user), ocTextPart(session, user, part, "words"), ocStatus(session, "busy"),
		ocAssistant(session, assistant, user),
	}
}

// Idle alone ends no turn. Each case is a second turn, after one that was
// aborted; the end must come with the last event and not before.
func TestOpenCodeEndOfTurn(t *testing.T) {
	answered := slices.Clip(append(ocAsked("S", "u2", "p2", "a2"), ocComplete("S", "a2", "u2")))
	idle := ocStatus("S", "idle")
	tests := []struct {
		name   string
		events []string
		want   string
	}{
		{"answered", append(answered, ocStatus("S", "busy"), idle), "completed"},
		{"the other idle event", append(answered, `{"type":"session.idle","properties":{"sessionID":"S"}}`), "completed"},
		{"the aborted turn's second idle", append([]string{idle, ocUser("S", "u2"), idle, ocTextPart("S", "u2", "p2", "x"), idle, ocStatus("S", "busy"),
			ocAssistant("S", "a2", "u2"), idle, ocComplete("S", "a2", "u2")}, idle), "completed"},
		{"the aborted turn's message", append([]string{ocComplete("S", "a1", "u1"), idle}, append(answered, idle)...), "completed"},
		{"the model's error", append(ocAsked("S", "u2", "p2", "a2"), ocStatus("S", "retry"),
			ocEvent("session.error", "S", `"error":{"name":"APIError","data":{"message":"no"}}`), idle, ocComplete("S", "a2", "u2")), "failed no"},
		{"no answer was begun", []string{ocUser("S", "u2"), ocStatus("S", "busy"), ocEvent("session.error", "S", `"error":{"name":"UnknownError","data":{"message":"no model"}}`), idle}, "failed no model"},
		{"the prompt was not taken up", []string{ocEvent("session.error", "S", `"error":{"name":"UnknownError","data":{"message":"no agent"}}`)}, "failed no agent"},
		{"an error that a later answer made good", append(append(ocAsked("S", "u2", "p2", "a0"), ocMessage("S", "a0", `"role":"assistant","parentID":"u2","error":{"name":"X"}`)),
			append(ocAsked("S", "u2", "p2", "a2"), ocComplete("S", "a2", "u2"), idle)...), "completed"},
		{"aborted by somebody else", append(ocAsked("S", "u2", "p2", "a2"), ocAborted("S"), idle, ocComplete("S", "a2", "u2")), "interrupted"},
		{"aborted, complete before it is idle", append(ocAsked("S", "u2", "p2", "a2"), ocAborted("S"), ocComplete("S", "a2", "u2"), idle), "interrupted"},
		{"an older message is told of again", append([]string{ocUser("S", "u2"), ocUser("S", "u0")}, append(answered, idle)...), "completed"},
		{"another session is idle", append(answered, ocStatus("C", "idle"), idle), "completed"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newOpenCodeRig()
			r.begin("S", "t1", "p1", "full-access")
			r.feed(ocAsked("S", "u1", "p1", "a1")...)
			r.interrupting("t1")
			r.feed(ocAborted("S"), idle, ocMessage("S", "a1", `"role":"assistant","parentID":"u1","time":{"completed":1},"error":{"name":"MessageAbortedError"}`))
			if err := r.begin("S", "t2", "p2", "full-access"); err != nil {
				t.Fatal(err)
			}
			r.said = nil
			for i, e := range test.events {
				r.feed(e)
				if last := i == len(test.events)-1; len(r.said) > 0 != last {
					t.Fatalf("after event %d of %d: %q\n%s", i+1, len(test.events), r.said, e)
				}
			}
			if want := []string{"S t2 " + test.want}; !cmp.Equal(want, r.said) {
				t.Errorf("got %q, want %q", r.said, want)
			}
		})
	}
}

// A prompt that is queued at a turn is part of it: an idle in between ends
// nothing, and neither does the answer to the one before.
func TestOpenCodeQueuedPrompt(t *testing.T) {
	r := newOpenCodeRig()
	r.begin("S", "t", "p1", "full-access")
	r.feed(ocAsked("S", "u1", "p1", "a1")...)
	if !r.steer("t", "p2") || r.steer("other", "p3") {
		t.Error("only the running turn can be steered")
	}
	r.said = nil
	r.feed(ocComplete("S", "a1", "u1"), ocStatus("S", "idle")) // the server does not know it yet
	r.feed(ocUser("S", "u2"), ocTextPart("S", "u2", "p2", "x"), ocStatus("S", "idle"))
	r.feed(ocAsked("S", "u2", "p2", "a2")...)
	r.feed(ocStatus("S", "idle"))
	if len(r.said) > 0 {
		t.Fatalf("it ended early: %q", r.said)
	}
	r.feed(ocComplete("S", "a2", "u2"), ocUser("S", "u1"), ocStatus("S", "idle"))
	r.begin("S", "v", "p4", "full-access")
	r.feed(ocAsked("S", "u4", "p4", "a4")...)
	r.steer("v", "p5")
	r.feed(ocComplete("S", "a4", "u4"), ocStatus("S", "idle"))
	r.unsteer("v", "p5") // the server refused it
	if want := []string{"S t completed", "S v started", "S v completed"}; !cmp.Equal(want, r.said) {
		t.Errorf("got %q, want %q", r.said, want)
	}
}

// A subagent speaks before the tool call that names it: nothing of it is seen
// until then. Its end is not its parent's. What its mode allows is allowed.
func TestOpenCodeChild(t *testing.T) {
	task := func(state string) string {
		return ocTool("S", "a1", "k", "task", `"input":{"prompt":"look","description":"d"},"metadata":{"sessionId":"C"},`+state)
	}
	r := newOpenCodeRig()
	r.begin("S", "t", "p1", "full-access")
	r.feed(ocAsked("S", "u1", "p1", "a1")...)
	r.feed(`{"type":"session.created","properties":{"info":{"id":"C","parentID":"S"}}}`)
	r.feed(ocAsked("C", "v1", "x", "b1")...)
	r.feed(ocTextPart("C", "b1", "y", "found"))
	if len(r.said) != 1 {
		t.Errorf("seen before it is named: %q", r.said[1:])
	}
	r.feed(task(`"status":"running"`),
		ocEvent("permission.asked", "C", `"id":"per_1","permission":"bash","patterns":["ls"]`),
		ocComplete("C", "b1", "v1"), ocStatus("C", "idle"),
		task(`"status":"completed","output":"<task>found</task>"`), // says nothing new
		ocComplete("S", "a1", "u1"), ocStatus("S", "idle"))
	want := []string{
		"S t started",
		`S t child C running: "look" ""`,
		"C turn:v1 started",
		"C turn:v1 y assistant_message completed||found|",
		"grant per_1",
		"C turn:v1 completed",
		`S t child C completed: "look" "found"`,
		"S t completed",
	}
	if diff := cmp.Diff(want, r.said); diff != "" {
		t.Error(diff)
	}
}

func TestOpenCodeItems(t *testing.T) {
	r := newOpenCodeRig()
	r.begin("S", "t", "p1", "approval-required")
	r.feed(ocAsked("S", "u1", "p1", "a1")...)
	r.said = nil
	r.feed(
		ocMessage("S", "a0", `"role":"assistant","parentID":"u1","summary":true,"time":{"completed":1}`), ocTextPart("S", "a0", "s", "in short"),
		ocPart("S", "u1", "k", `"type":"compaction","auto":true`),
		ocPart("S", "a1", "r", `"type":"reasoning","text":"why","time":{"start":1,"end":2}`),
		ocPart("S", "a1", "m", `"type":"text","text":"","time":{"start":1}`),
		ocTool("S", "a1", "c", "bash", `"status":"pending","input":{}`),
		ocEvent("permission.asked", "S", `"id":"per_1","permission":"bash","patterns":["ls"],"metadata":{"command":"ls"},"tool":{"messageID":"a1","callID":"call_c"}`),
		ocTool("S", "a1", "c", "bash", `"status":"running","input":{"command":"ls"}`),
		ocTool("S", "a1", "c", "bash", `"status":"completed","input":{"command":"ls"},"output":"a\n","metadata":{"exit":2}`),
		ocTool("S", "a1", "e", "write", `"status":"error","input":{"filePath":"/w/a"},"error":"no"`),
		ocEvent("todo.updated", "S", `"todos":[{"content":"look","status":"in_progress","priority":"high"}]`),
		ocEvent("question.asked", "S", `"id":"que_1","questions":[{"header":"h","question":"which?","options":[{"label":"l","description":"d"}]},{"header":"h","question":"?","options":[]}]`),
		ocTool("S", "a1", "w", "bash", `"status":"running","input":{"command":"wait"}`),
		ocEvent("message.part.delta", "S", `"messageID":"a1","partID":"m","field":"text","delta":"I s"`),
	)
	path, body, err := r.respond("que_1", orch.Decision{Answers: map[string][]string{"h": {"l"}, "2": {"x", "y"}}})
	if got := fmt.Sprintf("%s %v %v", path, body, err); got != "/question/que_1/reply {[[l] [x y]]} <nil>" {
		t.Errorf("answer: %s", got)
	}
	turn := r.interrupting("t")
	r.feed(ocAborted("S"), ocTool("S", "a1", "w", "bash", `"status":"completed","input":{"command":"wait"},"output":"","metadata":{"exit":null}`),
		ocStatus("S", "idle"), ocComplete("S", "a1", "u1"))
	for _, left := range r.abandoned(turn) { // though the turn is over
		path, body := left.refusal()
		r.said = append(r.said, fmt.Sprintf("refuse %s %v", path, body))
	}
	if left := r.abandoned(turn); left != nil {
		t.Errorf("refused twice: %v", left)
	}
	want := []string{
		`S t k compaction completed|||`,
		`S t r reasoning completed||why|`,
		`S t c command_execution running|ls||{"command":"","exitCode":null}`,
		`S t asks per_1 about "c": command "ls" {"permission":"bash","patterns":["ls"],"metadata":{"command":"ls"}}`,
		`S t c command_execution running|ls||{"command":"ls","exitCode":null}`,
		`S t c command_execution completed|ls|a` + "\n" + `|{"command":"ls","exitCode":2}`,
		`S t e file_change failed|/w/a|no|{"tool":"write","path":"/w/a","input":{"filePath":"/w/a"}}`,
		`S t todo:t todo_list running|||{"steps":[{"step":"look","status":"in_progress"}]}`,
		`S t asks que_1 about "": user_input "which?" {"questions":[{"id":"h","header":"h","question":"which?","options":[{"label":"l","description":"d"}],"multiple":false},{"id":"2","header":"h","question":"?","options":[],"multiple":false}]}`,
		`S t w command_execution running|wait||{"command":"wait","exitCode":null}`,
		`S t w command_execution interrupted|wait||{"command":"wait","exitCode":null}`,
		`S t m assistant_message interrupted||I s|`,
		`S t todo:t todo_list interrupted|||{"steps":[{"step":"look","status":"in_progress"}]}`,
		`S closes per_1`,
		`S t interrupted`,
		`refuse /permission/per_1/reply {reject }`,
	}
	if diff := cmp.Diff(want, r.said); diff != "" {
		t.Error(diff)
	}
}
