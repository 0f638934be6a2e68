package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/internal/orch"
)

func TestCodexTurn(t *testing.T) {
	s := openFake(t, "0.171.0", startThread+turnStart(3, "hi <you>", "U")+
		"< "+fmt.Sprintf(turnStarted, "T", "U")+`
< {"method":"item/started","params":{"threadId":"T","turnId":"U","item":{"type":"userMessage","id":"u","content":[]}}}
< {"method":"item/started","params":{"threadId":"T","turnId":"U","item":{"type":"reasoning","id":"r","summary":[],"content":[]}}}
< {"method":"item/completed","params":{"threadId":"T","turnId":"U","item":{"type":"reasoning","id":"r","summary":[],"content":[]}}}
< {"method":"item/started","params":{"threadId":"T","turnId":"U","item":{"type":"agentMessage","id":"m","text":"","phase":"final_answer"}}}
< {"method":"item/agentMessage/delta","params":{"threadId":"T","turnId":"U","itemId":"m","delta":"hello "}}
< {"method":"item/agentMessage/delta","params":{"threadId":"T","turnId":"U","itemId":"m","delta":"there"}}
< {"method":"item/completed","params":{"threadId":"T","turnId":"U","item":{"type":"agentMessage","id":"m","text":"","phase":"final_answer"}}}
< {"method":"nobody/knows","params":{"threadId":"T"}}
`+"< "+fmt.Sprintf(turnCompleted, "T", "U", "completed")+"\neof")
	ctx := testContext(t)
	thread := must[orch.NativeThread](t)(s.StartThread(ctx, options))
	if thread.ID != "T" {
		t.Errorf("thread %q, want T", thread.ID)
	}
	if err := s.StartTurn(ctx, turn("hi <you>")); err != nil {
		t.Fatal(err)
	}
	message := orch.ProviderItem{
		NativeID: "m", Type: "assistant_message", Status: "running", Streaming: true, Detail: []byte(`{"phase":"final_answer"}`),
	}
	done := message
	done.Status, done.Streaming, done.Text = "completed", false, "hello there"
	want := []orch.ProviderEvent{
		orch.TurnStarted{NativeThreadID: "T", NativeTurnID: "U"},
		orch.ItemUpdated{NativeThreadID: "T", NativeTurnID: "U", Item: message},
		orch.ItemUpdated{NativeThreadID: "T", NativeTurnID: "U", Item: done},
		orch.TurnEnded{NativeThreadID: "T", NativeTurnID: "U", Status: "completed"},
	}
	var got []orch.ProviderEvent
	for range want {
		got = append(got, <-s.Events())
	}
	got = append(got, finish(t, s)...)
	if diff := cmp.Diff(append(want, orch.SessionEnded{}), got); diff != "" {
		t.Error(diff)
	}
}

// The acknowledgement of an interrupt ends nothing: the turn ends with its
// own terminal event, and as interrupted even if the server calls it
// completed. The command it leaves running is ended too.
func TestCodexInterrupt(t *testing.T) {
	s := openFake(t, "0.171.0", startThread+turnStart(3, "sleep", "U")+`
< {"method":"item/started","params":{"threadId":"T","turnId":"U","item":{"type":"commandExecution","id":"c","command":"sleep 30","cwd":"/w","processId":"77","status":"inProgress","aggregatedOutput":null,"exitCode":null}}}
> {"id":4,"method":"turn/interrupt","params":{"threadId":"T","turnId":"U"}}
< {"id":4,"result":{}}
< {"method":"thread/status/changed","params":{"threadId":"T","status":{"type":"idle"}}}
> {"id":5,"method":"thread/backgroundTerminals/terminate","params":{"threadId":"T","processId":"77"}}
< {"id":5,"result":{"terminated":true}}
> {"id":6,"method":"turn/steer","params":{"threadId":"T","input":[{"type":"text","text":"late"}],"expectedTurnId":"U"}}
< {"id":6,"error":{"code":-32600,"message":"no active turn to steer"}}
`+"< "+fmt.Sprintf(turnCompleted, "T", "U", "completed")+"\neof")
	ctx := testContext(t)
	must[orch.NativeThread](t)(s.StartThread(ctx, options))
	if err := s.StartTurn(ctx, turn("sleep")); err != nil {
		t.Fatal(err)
	}
	if e, want := <-s.Events(), (orch.TurnStarted{NativeThreadID: "T", NativeTurnID: "U"}); e != want {
		t.Fatalf("got %v, want %v", e, want)
	}
	<-s.Events() // the command runs
	if err := s.Interrupt(ctx, "T", "U"); err != nil {
		t.Fatal(err)
	}
	if s.facts.turnEnded("U") {
		t.Error("the turn ended with the acknowledgement")
	}
	if err := s.Steer(ctx, "T", "U", turn("late")); !errors.Is(err, orch.ErrTurnNotActive) {
		t.Errorf("steer: got %v, want ErrTurnNotActive", err)
	}
	item := (<-s.Events()).(orch.ItemUpdated).Item
	if item.NativeID != "c" || item.Status != "interrupted" {
		t.Errorf("command left open: got %+v, want it interrupted", item)
	}
	want := orch.TurnEnded{NativeThreadID: "T", NativeTurnID: "U", Status: "interrupted"}
	if e := <-s.Events(); e != want {
		t.Errorf("got %v, want %v", e, want)
	}
	if err := s.Interrupt(ctx, "T", "U"); !errors.Is(err, orch.ErrTurnNotActive) {
		t.Errorf("interrupt again: got %v, want ErrTurnNotActive without a frame", err)
	}
	finish(t, s)
}

// Requests are answered with the very id they came with. One that the server
// drops is closed, one that nobody can answer is refused.
func TestCodexRequests(t *testing.T) {
	ask := func(id, method, rest string) string {
		return fmt.Sprintf(`< {"method":"%s","id":%s,"params":{"threadId":"T","turnId":"U","itemId":"c"%s}}`+"\n", method, id, rest)
	}
	s := openFake(t, "0.171.0", startThread+turnStart(3, "x", "U")+
		ask("0", "item/commandExecution/requestApproval", `,"command":"rm x","cwd":"/w","reason":null,"availableDecisions":["accept"]`)+
		`> {"id":0,"result":{"decision":"accept"}}
< {"method":"serverRequest/resolved","params":{"threadId":"T","requestId":0}}
`+ask(`"0"`, "item/fileChange/requestApproval", `,"reason":"outside"`)+`> {"id":"0","result":{"decision":"decline"}}
`+ask("12345678901234567890", "item/tool/requestUserInput", `,"questions":[{"id":"b"},{"id":"a"}]`)+
		`> {"id":12345678901234567890,"result":{"answers":{"a":{"answers":["1","2"]},"b":{"answers":[]}}}}
`+ask("3", "item/permissions/requestApproval", `,"cwd":"/w","permissions":{"network":{"enabled":true}}`)+
		`> {"id":3,"result":{"permissions":{"network":{"enabled":true}},"scope":"turn"}}
`+ask("4", "item/tool/call", "")+`> {"id":4,"error":{"code":-32601,"message":"item/tool/call is not supported by this client"}}
`+ask("5", "item/commandExecution/requestApproval", `,"command":"a"`)+ask("10", "item/commandExecution/requestApproval", `,"command":"b"`)+
		ask("11", "item/commandExecution/requestApproval", `,"command":"c"`)+
		`< {"method":"serverRequest/resolved","params":{"threadId":"T","requestId":10}}
< `+fmt.Sprintf(turnCompleted, "T", "U", "interrupted")+"\neof")
	ctx := testContext(t)
	must[orch.NativeThread](t)(s.StartThread(ctx, options))
	if err := s.StartTurn(ctx, turn("x")); err != nil {
		t.Fatal(err)
	}
	<-s.Events()
	opened := func() orch.RequestOpened { return (<-s.Events()).(orch.RequestOpened) }
	answer := func(r orch.RequestOpened, d orch.Decision) {
		t.Helper()
		if err := s.Respond(ctx, r.NativeRequestID, d); err != nil {
			t.Fatal(err)
		}
	}
	r := opened()
	want := orch.RequestOpened{
		NativeThreadID: "T", NativeTurnID: "U", NativeRequestID: "0", NativeItemID: "c", Kind: "command", Title: "rm x",
		Detail: []byte(`{"command":"rm x","cwd":"/w","availableDecisions":["accept"]}`),
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
	if err := s.Respond(ctx, "0", orch.Decision{Kind: "maybe"}); err == nil {
		t.Error("an unknown decision was sent")
	}
	answer(r, orch.Decision{Kind: "accept"})
	if err := s.Respond(ctx, "0", orch.Decision{Kind: "accept"}); err == nil {
		t.Error("a request was answered twice")
	}
	answer(opened(), orch.Decision{Kind: "decline"})
	answer(opened(), orch.Decision{Answers: map[string][]string{"b": nil, "a": {"1", "2"}}})
	answer(opened(), orch.Decision{Kind: "accept"})
	for range 3 {
		opened()
	}
	for _, id := range []string{"10", "5", "11"} {
		if e, want := <-s.Events(), (orch.RequestClosed{NativeThreadID: "T", NativeRequestID: id}); e != want {
			t.Errorf("got %v, want %v", e, want)
		}
	}
	finish(t, s)
}

// A refusal of the thread is ErrResume; an internal error is not.
func TestCodexResumeRefused(t *testing.T) {
	s := openFake(t, "0.171.0", `
> {"id":2,"method":"thread/resume","params":{"threadId":"gone"}}
< {"id":2,"error":{"code":-32600,"message":"no rollout found"}}
> {"id":3,"method":"thread/resume","params":{"threadId":"gone"}}
< {"id":3,"error":{"code":-32603,"message":"broken"}}
eof`)
	_, err := s.ResumeThread(testContext(t), "gone", orch.ThreadOptions{})
	if !errors.Is(err, orch.ErrResume) || !strings.Contains(err.Error(), "no rollout found") {
		t.Errorf("got %v, want ErrResume with the reason", err)
	}
	_, err = s.ResumeThread(testContext(t), "gone", orch.ThreadOptions{})
	if errors.Is(err, orch.ErrResume) || !strings.Contains(err.Error(), "broken") {
		t.Errorf("got %v, want the reason and not ErrResume", err)
	}
	finish(t, s)
}

// TestCodexCalls plays the calls of one session in order: what goes out
// depends on the server's version and on the turns it told of.
func TestCodexCalls(t *testing.T) {
	ctx := testContext(t)
	plan := orch.TurnInput{NativeThreadID: "T", Text: "p", Options: orch.ThreadOptions{
		RuntimeMode: "approval-required", InteractionMode: "plan", Options: []byte(`{"reasoningEffort":"high"}`),
	}}
	edits := turn("e")
	edits.Options = orch.ThreadOptions{RuntimeMode: "auto-accept-edits"}
	resume := func(s *codexSession) error { _, err := s.ResumeThread(ctx, "T", options); return err }
	resumed := `> {"id":2,"method":"thread/resume","params":{"threadId":"T","cwd":"/w","model":"m"}}
< {"id":2,"result":{"thread":{"id":"T","turns":[{"id":"A"},{"id":"B"},{"id":"C"}]},"model":"m2"}}
`
	tests := []struct {
		name, version, script string
		calls                 []func(*codexSession) error
	}{
		{"revert, go on, and revert again", "0.171.0", resumed + `
> {"id":3,"method":"thread/revert","params":{"threadId":"T","beforeTurnId":"B"}}
< {"id":3,"result":{"thread":{"id":"T","turns":[]}}}
` + turnStart(4, "d", "D") + `
> {"id":5,"method":"thread/revert","params":{"threadId":"T","beforeTurnId":"D"}}
< {"id":5,"result":{"thread":{"id":"T","turns":[]}}}
> {"id":6,"method":"thread/revert","params":{"threadId":"T","beforeTurnId":"A"}}
< {"id":6,"result":{"thread":{"id":"T","turns":[]}}}
eof`, []func(*codexSession) error{
			resume,
			func(s *codexSession) error { _, err := s.Rollback(ctx, "T", "A", 2); return err },
			func(s *codexSession) error { return s.StartTurn(ctx, turn("d")) },
			func(s *codexSession) error { _, err := s.Rollback(ctx, "T", "D", 0); return err },
			func(s *codexSession) error { _, err := s.Rollback(ctx, "T", "A", 1); return err },
			func(s *codexSession) error {
				for _, keep := range []string{"A", "B"} { // nothing follows A; B is gone
					if _, err := s.Rollback(ctx, "T", keep, 1); err == nil {
						return fmt.Errorf("rollback to %s went through", keep)
					}
				}
				return nil
			},
			func(s *codexSession) error { _, err := s.Rollback(ctx, "T", "", 1); return err },
		}},
		{"rollback", "0.141.0", resumed + `
> {"id":3,"method":"thread/rollback","params":{"threadId":"T","numTurns":2}}
< {"id":3,"result":{"thread":{"id":"T","turns":[{"id":"A"}]}}}
eof`, []func(*codexSession) error{
			resume,
			func(s *codexSession) error { _, err := s.Rollback(ctx, "T", "A", 2); return err },
		}},
		{"no rollback any more", "0.165.0", resumed + `
> {"id":3,"method":"thread/rollback","params":{"threadId":"T","numTurns":1}}
< {"id":3,"error":{"code":-32600,"message":"unknown variant thread/rollback, expected one of …"}}
> {"id":4,"method":"thread/revert","params":{"threadId":"T","beforeTurnId":"C"}}
< {"id":4,"result":{"thread":{"id":"T"}}}
eof`, []func(*codexSession) error{
			resume,
			func(s *codexSession) error { _, err := s.Rollback(ctx, "T", "B", 1); return err },
		}},
		{"fork", "0.171.0", `
> {"id":2,"method":"thread/fork","params":{"threadId":"T","lastTurnId":"A","cwd":"/w","model":"m"}}
< {"id":2,"result":{"thread":{"id":"F"}}}
eof`, []func(*codexSession) error{
			func(s *codexSession) error { _, err := s.ForkThread(ctx, "T", "A", options); return err },
		}},
		{"fork by rollback", "0.141.0", resumed + `
> {"id":3,"method":"thread/fork","params":{"threadId":"T","cwd":"/w","model":"m"}}
< {"id":3,"result":{"thread":{"id":"F"}}}
> {"id":4,"method":"thread/rollback","params":{"threadId":"F","numTurns":2}}
< {"id":4,"result":{"thread":{"id":"F"}}}
eof`, []func(*codexSession) error{
			resume,
			func(s *codexSession) error { _, err := s.ForkThread(ctx, "T", "A", options); return err },
		}},
		{"plan and back", "0.171.0", resumed + `
> {"id":3,"method":"turn/start","params":{"threadId":"T","input":[{"type":"text","text":"p"}],"effort":"high","approvalPolicy":"untrusted","approvalsReviewer":"user","sandboxPolicy":{"type":"readOnly","networkAccess":false},"collaborationMode":{"mode":"plan","settings":{"model":"m2","reasoning_effort":"high","developer_instructions":null}}}}
< {"id":3,"result":{"turn":{"id":"P"}}}
> {"id":4,"method":"turn/steer","params":{"threadId":"T","input":[{"type":"text","text":"s"}],"expectedTurnId":"P"}}
< {"id":4,"result":{"turnId":"P"}}
> {"id":5,"method":"turn/start","params":{"threadId":"T","input":[{"type":"text","text":"e"}],"approvalPolicy":"on-request","approvalsReviewer":"user","sandboxPolicy":{"type":"workspaceWrite","writableRoots":[],"networkAccess":false},"collaborationMode":{"mode":"default","settings":{"model":"m2","reasoning_effort":null,"developer_instructions":null}}}}
< {"id":5,"result":{"turn":{"id":"E"}}}
` + turnStart(6, "d", "D") + "eof", []func(*codexSession) error{
			resume,
			func(s *codexSession) error { return s.StartTurn(ctx, plan) },
			func(s *codexSession) error { return s.Steer(ctx, "T", "P", turn("s")) },
			func(s *codexSession) error { return s.StartTurn(ctx, edits) },
			func(s *codexSession) error { return s.StartTurn(ctx, turn("d")) },
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := openFake(t, test.version, test.script)
			defer finish(t, s)
			for i, call := range test.calls {
				if err := call(s); err != nil {
					t.Fatalf("call %d: %v", i, err)
				}
			}
		})
	}
}

// A provider that dies, with everything it left behind, explains both the
// call in flight and the session's end.
func TestCodexDies(t *testing.T) {
	s := openFake(t, "0.171.0", startThread+turnStart(3, "x", "U")+`
< oops, this is a log line
stderr thread 'main' panicked
half {"method":"turn/comp
> {"id":4,"method":"turn/interrupt","params":{"threadId":"T","turnId":"U"}}
exit 3`)
	ctx := testContext(t)
	must[orch.NativeThread](t)(s.StartThread(ctx, options))
	if err := s.StartTurn(ctx, turn("x")); err != nil {
		t.Fatal(err)
	}
	callErr := s.Interrupt(ctx, "T", "U")
	events := drain(s) // ends without Close
	ended, _ := events[len(events)-1].(orch.SessionEnded)
	for _, err := range []error{callErr, ended.Err} {
		for _, want := range []string{"codex ended: exit code 3", "thread 'main' panicked", `not a message on stdout: "{\"method\":\"turn/comp"`} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want it to say %s", err, want)
			}
		}
	}
	if err := s.StartTurn(ctx, turn("x")); err == nil || !strings.Contains(err.Error(), "exit code 3") {
		t.Errorf("a call after the end: got %v", err)
	}
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}

// A stand-in that refuses a frame answers with an internal error, says why on
// stderr and exits 97: both the call and the session's end carry it.
func TestCodexRefusesFrame(t *testing.T) {
	s := openFake(t, "0.171.0", startThread+turnStart(3, "recorded", "U"))
	ctx := testContext(t)
	must[orch.NativeThread](t)(s.StartThread(ctx, options))
	err := s.StartTurn(ctx, turn("something else"))
	if want := "turn/start: outbound mismatch (error -32603)"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	events := drain(s)
	ended, _ := events[len(events)-1].(orch.SessionEnded)
	for _, want := range []string{"exit code 97", "error answer: outbound mismatch (error -32603)", `got  {"id":3`, "something else"} {
		if ended.Err == nil || !strings.Contains(ended.Err.Error(), want) {
			t.Errorf("got %v, want it to say %s", ended.Err, want)
		}
	}
	finishClosed(t, s)
}

func finishClosed(t *testing.T, s *codexSession) {
	t.Helper()
	if err := s.Close(testContext(t)); err != nil {
		t.Error(err)
	}
}

// Lines may be of any length, and a reader that reads nothing holds up no
// answer.
func TestCodexLongLine(t *testing.T) {
	const size = 5 << 20
	s := openFake(t, "0.171.0", startThread+fmt.Sprintf(`
big %d {"method":"item/completed","params":{"threadId":"T","turnId":"U","item":{"type":"agentMessage","id":"m","text":"%%s"}}}
`, size)+strings.Repeat("< "+fmt.Sprintf(turnStarted, "T", "V")+"\n", 2000)+
		turnStart(3, "x", "W")+"eof")
	ctx := testContext(t)
	must[orch.NativeThread](t)(s.StartThread(ctx, options))
	if err := s.StartTurn(ctx, turn("x")); err != nil {
		t.Fatal(err)
	}
	events := finish(t, s)
	item := events[1].(orch.ItemUpdated).Item
	if len(item.Text) != size || len(events) != 5 {
		t.Errorf("got %d bytes and %d events, want %d and 5", len(item.Text), len(events), size)
	}
}

func TestCodexOpenFails(t *testing.T) {
	dir := t.TempDir()
	_, err := NewCodex(CodexConfig{Command: []string{filepath.Join(dir, "none")}}).Open(testContext(t), orch.SessionConfig{})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no program: got %v", err)
	}

	exe := must[string](t)(os.Executable())
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("stderr not logged in\nexit 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), scriptVariable+"="+script)
	_, err = NewCodex(CodexConfig{Command: []string{exe}, Env: env}).Open(testContext(t), orch.SessionConfig{})
	if err == nil || !strings.Contains(err.Error(), "open codex: initialize: codex ended: exit code 1\nstderr: not logged in") {
		t.Errorf("dies at once: got %v", err)
	}

	if err := os.WriteFile(script, []byte("eof\neof"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(testContext(t))
	cfg := orch.SessionConfig{Diagnostics: func(outbound bool, _ []byte) { cancel() }} // initialize is out
	if _, err = NewCodex(CodexConfig{Command: []string{exe}, Env: env}).Open(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Errorf("says nothing: got %v, want context.Canceled", err)
	}
}

func TestNewUnknownProvider(t *testing.T) {
	if _, err := New("cobol", nil, nil); err == nil || !strings.HasPrefix(err.Error(), `unknown provider "cobol": want codex, claude, cursor, opencode, `) || !strings.HasSuffix(err.Error(), ", qwen, registry") {
		t.Errorf("got %v", err)
	}
	a := must[orch.Agent](t)(New("codex", nil, nil))
	if a.Driver() != "codex" || !a.Capabilities().ActiveSteering {
		t.Errorf("got %s with %+v", a.Driver(), a.Capabilities())
	}
}
