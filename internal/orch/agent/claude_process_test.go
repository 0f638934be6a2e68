package agent

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// A session that the provider does not have leaves room for a new one; the
// death of a process that was not ready is not the session's.
func TestClaudeResumeRefused(t *testing.T) {
	refused := `> {"type":"control_request","request_id":"1","request":{"subtype":"initialize"}}
< {"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found with session ID: S"]}
exit 1`
	s := openClaude(t, claudeArgs+"bypassPermissions --resume=S\n"+refused,
		strings.ReplaceAll(refused, `< {"type":"result"`, `< {"type":"other"`), claudeHello+"eof")
	ctx := testContext(t)
	_, err := s.ResumeThread(ctx, "S", claudeOptions)
	if !errors.Is(err, orch.ErrResume) || !strings.Contains(err.Error(), "No conversation found") {
		t.Errorf("got %v, want ErrResume and the provider's words", err)
	}
	if _, err := s.ResumeThread(ctx, "S", claudeOptions); err == nil || errors.Is(err, orch.ErrResume) || !errors.Is(err, orch.ErrSessionEnded) {
		t.Errorf("a crash: got %v, want no ErrResume", err)
	}
	if _, err := s.StartThread(ctx, claudeOptions); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]orch.ProviderEvent{orch.SessionEnded{}}, endClaude(t, s)); diff != "" {
		t.Error(diff)
	}
	if _, err := s.StartThread(ctx, claudeOptions); !errors.Is(err, orch.ErrSessionEnded) {
		t.Errorf("after close: got %v, want ErrSessionEnded", err)
	}
}

// A rollback goes on in another process, at the last message of the turn that
// stays, which the turn's end told; so does a fork of it in another session.
func TestClaudeRollback(t *testing.T) {
	said := func(uuid string) string {
		return `< {"type":"assistant","uuid":"` + uuid + `","message":{"content":[{"type":"text","text":"x"}]}}` + "\n" + claudeDone
	}
	thread := claudeID("session", "attempt:1")
	s := startClaude(t,
		claudeHello+prompted("attempt:1", "one", "")+said("h1")+prompted("attempt:2", "two", "")+said("h2")+"eof",
		claudeArgs+"bypassPermissions --resume="+thread+" --resume-session-at=h1\n"+claudeHello+prompted("attempt:3", "three", "")+said("h3")+"eof",
		claudeArgs+"default --resume="+thread+" --resume-session-at=h3 --session-id="+claudeID("session", "attempt:9")+" --fork-session\n"+claudeHello+"eof")
	ctx := testContext(t)
	play := func(attempt, text string) (events []orch.ProviderEvent) {
		if err := s.StartTurn(ctx, claudeTurnInput(attempt, text)); err != nil {
			t.Fatal(err)
		}
		for e := range s.Events() {
			events = append(events, e)
			if _, ok := e.(orch.TurnEnded); ok {
				break
			}
		}
		return events
	}
	if events := play("attempt:1", "one"); events[2] != (orch.HeadChanged{NativeThreadID: thread, NativeTurnID: "turn:attempt:1", Head: "h1"}) {
		t.Errorf("got %+v, want the turn's last message before its end", events)
	}
	play("attempt:2", "two")
	if _, err := s.Rollback(ctx, thread, "", 2); err == nil {
		t.Error("a rollback to before the first turn was done")
	}
	if _, err := s.Rollback(ctx, thread, "turn:attempt:7", 2); err == nil {
		t.Error("a rollback to a turn without a message was done")
	}
	native := must[orch.NativeThread](t)(s.Rollback(ctx, thread, "h1", 1))
	if native.ID != thread || native.Head != "h1" {
		t.Errorf("got %+v, want the thread at h1", native)
	}
	if events := play("attempt:3", "three"); events[1] != (orch.HeadChanged{NativeThreadID: thread}) {
		t.Errorf("got %+v, want the head gone with the next turn", events[1])
	}
	other := must[orch.AgentSession](t)(s.agent.Open(ctx, orch.SessionConfig{})).(*claudeSession)
	fork, err := other.ForkThread(ctx, thread, "h3", orch.ThreadOptions{Model: "m", AttemptID: "attempt:9"})
	if err != nil || fork.ID != claudeID("session", "attempt:9") {
		t.Errorf("got %+v, %v, want the fork", fork, err)
	}
	endClaude(t, other)
	if diff := cmp.Diff([]orch.ProviderEvent{orch.SessionEnded{}}, endClaude(t, s)); diff != "" {
		t.Error(diff)
	}
}

// A thread that was rolled back and not used since is resumed where it stands.
func TestClaudeResumeAtHead(t *testing.T) {
	s := openClaude(t, claudeArgs+"bypassPermissions --resume=S --resume-session-at=h1\n"+claudeHello+prompted("attempt:1", "one", "")+claudeDone+"eof")
	ctx := testContext(t)
	options := claudeOptions
	options.Head = "h1"
	if _, err := s.ResumeThread(ctx, "S", options); err != nil {
		t.Fatal(err)
	}
	if err := s.StartTurn(ctx, claudeTurnInput("attempt:1", "one")); err != nil {
		t.Fatal(err)
	}
	<-s.Events()
	if e := <-s.Events(); e != (orch.HeadChanged{NativeThreadID: "S"}) {
		t.Errorf("got %+v, want the head gone with the next turn", e)
	}
	endClaude(t, s)
}

// Settings that change between turns are said, or take a new process.
func TestClaudeSettings(t *testing.T) {
	thread := claudeID("session", "attempt:1")
	s := startClaude(t, claudeHello+`> {"type":"control_request","request_id":"2","request":{"subtype":"set_model","model":"other"}}
< {"type":"control_response","response":{"subtype":"success","request_id":"2","response":{"model":"other"}}}
> {"type":"control_request","request_id":"3","request":{"subtype":"set_permission_mode","mode":"plan"}}
< {"type":"control_response","response":{"subtype":"success","request_id":"3"}}
`+prompted("attempt:1", "one", "")+claudeDone+"eof",
		claudeArgs+"bypassPermissions --effort=high --resume="+thread+"\n"+claudeHello+prompted("attempt:2", "two", "")+claudeDone+"eof")
	ctx := testContext(t)
	in := claudeTurnInput("attempt:1", "one")
	in.NativeThreadID, in.Options.Model, in.Options.InteractionMode = thread, "other", "plan"
	if err := s.StartTurn(ctx, in); err != nil {
		t.Fatal(err)
	}
	for range 3 { // started, text, ended
		<-s.Events()
	}
	in = claudeTurnInput("attempt:2", "two")
	in.NativeThreadID, in.Options.Options = thread, []byte(`{"effort":"high"}`)
	if err := s.StartTurn(ctx, in); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		<-s.Events()
	}
	endClaude(t, s)
}

// What a process that died left behind explains its end.
func TestClaudeDies(t *testing.T) {
	s := startClaude(t, claudeHello+prompted("attempt:1", "x", "")+claudeInit+"stderr out of memory\nhalf {\"type\":\nexit 3")
	ctx := testContext(t)
	if err := s.StartTurn(ctx, claudeTurnInput("attempt:1", "x")); err != nil {
		t.Fatal(err)
	}
	if _, ok := (<-s.Events()).(orch.TurnStarted); !ok {
		t.Fatal("the turn did not start")
	}
	end, ok := (<-s.Events()).(orch.SessionEnded)
	if !ok || end.Err == nil {
		t.Fatalf("got %+v, want the session's end", end)
	}
	for _, want := range []string{"claude ended: exit code 3", "out of memory", `"{\"type\":"`} {
		if !strings.Contains(end.Err.Error(), want) {
			t.Errorf("%q does not say %s", end.Err, want)
		}
	}
	if err := s.Interrupt(ctx, "", "turn:attempt:1"); !errors.Is(err, orch.ErrSessionEnded) {
		t.Errorf("interrupt: got %v, want ErrSessionEnded", err)
	}
	endClaude(t, s)
}

// A provider that stops instead of ending its interrupted turn has ended it.
func TestClaudeInterruptedExit(t *testing.T) {
	s := startClaude(t, claudeHello+prompted("attempt:1", "x", "")+
		`> {"type":"control_request","request_id":"2","request":{"subtype":"interrupt","cancel_queued":true}}
< {"type":"control_response","response":{"subtype":"success","request_id":"2"}}
exit 0`)
	ctx := testContext(t)
	if err := s.StartTurn(ctx, claudeTurnInput("attempt:1", "x")); err != nil {
		t.Fatal(err)
	}
	if err := s.Interrupt(ctx, "", "turn:attempt:1"); err != nil {
		t.Fatal(err)
	}
	<-s.Events()
	if e, ok := (<-s.Events()).(orch.TurnEnded); !ok || e.Status != "interrupted" {
		t.Errorf("got %+v, want the turn interrupted", e)
	}
	endClaude(t, s)
}

func TestClaudeLongLine(t *testing.T) {
	const size = 5 << 20
	s := startClaude(t, claudeHello+prompted("attempt:1", "x", "")+
		`big 5242880 {"type":"assistant","uuid":"a","message":{"content":[{"type":"text","text":"%s"}]}}`+"\n"+claudeDone+"eof")
	if err := s.StartTurn(testContext(t), claudeTurnInput("attempt:1", "x")); err != nil {
		t.Fatal(err)
	}
	<-s.Events()
	if text := (<-s.Events()).(orch.ItemUpdated).Item.Text; len(text) != size {
		t.Errorf("got %d bytes, want %d", len(text), size)
	}
	endClaude(t, s)
}
