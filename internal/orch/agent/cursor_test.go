package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/internal/orch"
)

const (
	cursorReady   = `< {"type":"bridge.ready","bridge":1,"protocol":"cursor-agent-sdk.local","sdk":{"name":"@cursor/sdk","version":"1.0.32"}}` + "\n"
	cursorOptionT = `"options":{"model":{"id":"m","params":[{"id":"fast","value":"true"}]},"name":"replaypeer orchestrator","mode":"plan","local":{"cwd":"/w","autoReview":false,"sandboxOptions":{"enabled":true},"enableAgentRetries":true}}}` + "\n"
)

var cursorOptionsT = orch.ThreadOptions{
	Cwd: "/w", Model: "m", RuntimeMode: "approval-required", InteractionMode: "plan", Options: []byte(`{"params":[{"id":"fast","value":"true"}]}`),
}

func newCursorFake(t *testing.T, script string) orch.Agent {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return NewCursor(CursorConfig{Command: []string{exe}, Env: append(os.Environ(), scriptVariable+"="+file, "GORACE=atexit_sleep_ms=0")})
}

func openCursor(t *testing.T, script string) *cursorSession {
	t.Helper()
	return must[orch.AgentSession](t)(newCursorFake(t, cursorReady+script).Open(testContext(t), orch.SessionConfig{})).(*cursorSession)
}

func endCursor(t *testing.T, s *cursorSession) (events []orch.ProviderEvent) {
	t.Helper()
	if err := s.Close(testContext(t)); err != nil {
		t.Error(err)
	}
	for e := range s.Events() {
		events = append(events, e)
	}
	<-s.events.done
	return events
}

// A thread, a turn that is interrupted, and the end: the agent is closed
// before the bridge, which ends a live run. A run that is over can't be
// interrupted.
func TestCursorTurn(t *testing.T) {
	s := openCursor(t, `> {"type":"agent.open","operation":"create",`+cursorOptionT+`< {"type":"agent.opened","agentId":"A"}
> {"type":"run.start","message":"hi <you>","options":{"model":{"id":"m"},"mode":"agent"}}
< {"type":"run.started","runId":"R","agentId":"A"}
< {"type":"interaction.update","runId":"R","update":{"type":"text-delta","text":"ha"}}
> {"type":"run.cancel","runId":"R"}
< {"type":"interaction.update","runId":"R","update":{"type":"text-delta","text":"lf"}}
< {"type":"run.completed","result":{"id":"R","status":"cancelled"}}
> {"type":"run.start","message":"again","options":{"model":{"id":"m"},"mode":"agent"}}
< {"type":"run.started","runId":"Q","agentId":"A"}
> {"type":"agent.close","agentId":"A"}
< {"type":"run.completed","result":{"id":"Q","status":"cancelled"}}
eof`)
	ctx := testContext(t)
	thread, err := s.StartThread(ctx, cursorOptionsT)
	if err != nil || thread.ID != "A" {
		t.Fatal(thread, err)
	}
	if err := s.StartTurn(ctx, turn("hi <you>")); err != nil {
		t.Fatal(err)
	}
	if err := s.Interrupt(ctx, "A", "R"); err != nil {
		t.Fatal(err)
	}
	var got []orch.ProviderEvent
	for e := range s.Events() {
		got = append(got, e)
		if _, over := e.(orch.TurnEnded); over {
			break
		}
	}
	if err := s.Interrupt(ctx, "A", "R"); !errors.Is(err, orch.ErrTurnNotActive) {
		t.Errorf("second interrupt: %v", err)
	}
	if err := s.StartTurn(ctx, turn("again")); err != nil {
		t.Fatal(err)
	}
	got = append(got, endCursor(t, s)...)
	text := orch.ProviderItem{NativeID: "assistant_message:1", Type: "assistant_message", Status: "running", Streaming: true}
	half := orch.ProviderItem{NativeID: "assistant_message:1", Type: "assistant_message", Status: "interrupted", Text: "half"}
	want := []orch.ProviderEvent{
		orch.TurnStarted{NativeThreadID: "A", NativeTurnID: "R"},
		orch.ItemUpdated{NativeThreadID: "A", NativeTurnID: "R", Item: text},
		orch.ItemUpdated{NativeThreadID: "A", NativeTurnID: "R", Item: half},
		orch.TurnEnded{NativeThreadID: "A", NativeTurnID: "R", Status: "interrupted"},
		orch.TurnStarted{NativeThreadID: "A", NativeTurnID: "Q"},
		orch.TurnEnded{NativeThreadID: "A", NativeTurnID: "Q", Status: "cancelled"},
		orch.SessionEnded{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Only an agent that is not there is a refusal to resume; the session goes on
// after one. A bridge that gives up says why.
func TestCursorRefusals(t *testing.T) {
	resume := `> {"type":"agent.open","operation":"resume","agentId":"A",` + cursorOptionT
	s := openCursor(t, resume+`< {"type":"call.failed","call":"agent.open","error":{"name":"AgentNotFoundError","message":"no A","code":"agent_not_found"}}
`+resume+`< {"type":"call.failed","call":"agent.open","error":{"name":"NetworkError","message":"no route"}}
> {"type":"run.start","message":"x","options":{"model":{"id":"m"},"mode":"agent"}}
< {"type":"bridge.fatal","error":{"name":"TypeError","message":"it broke"}}
exit 70`)
	ctx := testContext(t)
	if _, err := s.ResumeThread(ctx, "A", cursorOptionsT); !errors.Is(err, orch.ErrResume) {
		t.Errorf("unknown agent: %v", err)
	}
	if _, err := s.ResumeThread(ctx, "A", cursorOptionsT); errors.Is(err, orch.ErrResume) || err == nil || !strings.Contains(err.Error(), "no route") {
		t.Errorf("network: %v", err)
	}
	if err := s.StartTurn(ctx, turn("x")); !errors.Is(err, orch.ErrSessionEnded) || !strings.Contains(err.Error(), "it broke") {
		t.Errorf("fatal: %v", err)
	}
	events := endCursor(t, s)
	if ended, ok := events[len(events)-1].(orch.SessionEnded); !ok || ended.Err == nil {
		t.Errorf("events %v", events)
	}
	if _, err := newCursorFake(t, "stderr no SDK\nexit 69").Open(ctx, orch.SessionConfig{}); err == nil || !strings.Contains(err.Error(), "no SDK") {
		t.Errorf("no bridge: %v", err)
	}
}
