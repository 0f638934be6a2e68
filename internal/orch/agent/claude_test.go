package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/internal/orch"
)

const (
	claudeArgs  = "args --output-format stream-json --verbose --input-format stream-json --permission-prompt-tool=stdio --disallowedTools=AskUserQuestion --model=m --permission-mode="
	claudeHello = `> {"type":"control_request","request_id":"1","request":{"subtype":"initialize"}}
< {"type":"control_response","response":{"subtype":"success","request_id":"1","response":{"pid":1}}}
`
	claudeInit = `< {"type":"system","subtype":"init","session_id":"S"}` + "\n"
	claudeDone = `< {"type":"result","subtype":"success","is_error":false,"result":"done","uuid":"r"}` + "\n"
)

var claudeOptions = orch.ThreadOptions{Model: "m", RuntimeMode: "full-access", AttemptID: "attempt:1"}

func claudeTurnInput(attempt, text string) orch.TurnInput {
	return orch.TurnInput{AttemptID: attempt, MessageID: "message:" + text, Text: text, Options: claudeOptions}
}

// prompted is the line of a prompt.
func prompted(attempt, text, priority string) string {
	if priority != "" {
		priority = `"priority":"` + priority + `",`
	}
	return fmt.Sprintf(`> {"type":"user","message":{"role":"user","content":"%s"},"parent_tool_use_id":null,%s"uuid":"%s"}`+"\n",
		text, priority, promptUUID(attempt, text))
}

func promptUUID(attempt, text string) string { return claudeID("prompt", attempt, "message:"+text) }

// openClaude opens a session on a provider that plays a script per start.
func openClaude(t *testing.T, scripts ...string) *claudeSession {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script")
	for i, script := range scripts {
		if err := os.WriteFile(fmt.Sprintf("%s.%d", file, i+1), []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a := NewClaude(ClaudeConfig{Command: []string{exe}, Env: append(os.Environ(), scriptVariable+"="+file, "GORACE=atexit_sleep_ms=0")})
	return must[orch.AgentSession](t)(a.Open(testContext(t), orch.SessionConfig{})).(*claudeSession)
}

// startClaude opens a session and a thread.
func startClaude(t *testing.T, scripts ...string) *claudeSession {
	t.Helper()
	s := openClaude(t, scripts...)
	if _, err := s.StartThread(testContext(t), claudeOptions); err != nil {
		t.Fatal(err)
	}
	return s
}

// endClaude closes the session and returns all events that were not read.
func endClaude(t *testing.T, s *claudeSession) (events []orch.ProviderEvent) {
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

// claudeEvents fills in the thread and the turn of the first attempt.
func claudeEvents(items ...any) []orch.ProviderEvent {
	thread, turn := claudeID("session", "attempt:1"), "turn:attempt:1"
	events := []orch.ProviderEvent{orch.TurnStarted{NativeThreadID: thread, NativeTurnID: turn}}
	for _, item := range items {
		switch v := item.(type) {
		case orch.ProviderItem:
			events = append(events, orch.ItemUpdated{NativeThreadID: thread, NativeTurnID: turn, Item: v})
		case orch.TurnEnded:
			v.NativeThreadID, v.NativeTurnID = thread, turn
			events = append(events, v)
		case orch.ProviderEvent:
			events = append(events, v)
		}
	}
	return events
}

func TestClaudeTurn(t *testing.T) {
	s := startClaude(t, claudeArgs+"bypassPermissions --session-id="+claudeID("session", "attempt:1")+"\n"+claudeHello+
		prompted("attempt:1", "hi <you>", "")+claudeInit+
		`< {"type":"assistant","uuid":"a","message":{"id":"msg","content":[{"type":"thinking","thinking":"hm"},{"type":"tool_use","id":"tu","name":"Bash","input":{"command":"ls","description":"list"}}]}}
< {"type":"assistant","uuid":"sub","parent_tool_use_id":"other","message":{"content":[{"type":"text","text":"a child's"}]}}
< {"type":"user","uuid":"u","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"tu","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}}
< {"type":"nobody_knows"}
< this is no message
< {"type":"assistant","uuid":"b","message":{"id":"msg2","content":[{"type":"text","text":"two files"},{"type":"tool_use","id":"open","name":"Write","input":{"file_path":"x"}}]}}
`+claudeDone+prompted("attempt:2", "again", "")+claudeDone+"eof")
	ctx := testContext(t)
	if err := s.StartTurn(ctx, claudeTurnInput("attempt:1", "hi <you>")); err != nil {
		t.Fatal(err)
	}
	command := orch.ProviderItem{NativeID: "tu", Type: "command_execution", Status: "running", Title: "ls", Detail: []byte(`{"command":"ls","description":"list"}`)}
	listed := command
	listed.Status, listed.Text = "completed", "a\nb"
	write := orch.ProviderItem{NativeID: "open", Type: "file_change", Status: "running", Title: "x", Detail: []byte(`{"tool":"Write","path":"x","input":{"file_path":"x"}}`)}
	lost := write
	lost.Status = "failed"
	want := claudeEvents(
		orch.ProviderItem{NativeID: "a", Type: "reasoning", Status: "completed", Text: "hm"}, command, listed,
		orch.ProviderItem{NativeID: "b", Type: "assistant_message", Status: "completed", Text: "two files"}, write, lost,
		orch.HeadChanged{NativeThreadID: claudeID("session", "attempt:1"), NativeTurnID: "turn:attempt:1", Head: "b"},
		orch.TurnEnded{Status: "completed"},
	)
	var got []orch.ProviderEvent
	for range want {
		got = append(got, <-s.Events())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := s.StartTurn(ctx, claudeTurnInput("attempt:2", "again")); err != nil {
		t.Fatal(err)
	}
	<-s.Events()
	fallback := (<-s.Events()).(orch.ItemUpdated).Item
	if fallback.Text != "done" || fallback.Type != "assistant_message" {
		t.Errorf("without text the result's counts: got %+v", fallback)
	}
	if diff := cmp.Diff([]orch.ProviderEvent{
		orch.TurnEnded{NativeThreadID: claudeID("session", "attempt:1"), NativeTurnID: "turn:attempt:2", Status: "completed"},
		orch.SessionEnded{},
	}, endClaude(t, s)); diff != "" {
		t.Error(diff)
	}
}

// The same app ids give the same ids on the wire, others give others.
func TestClaudeIDs(t *testing.T) {
	id := claudeID("session", "attempt:1")
	if id != claudeID("session", "attempt:1") || id == claudeID("prompt", "attempt:1") || claudeID("s", "a", "b") == claudeID("s", "ab") {
		t.Error("ids do not follow from app ids")
	}
	if len(id) != 36 || id[14] != '5' || !strings.Contains("89ab", id[19:20]) {
		t.Errorf("%s is no UUID of version 5", id)
	}
	s := openClaude(t)
	if _, err := s.StartThread(testContext(t), orch.ThreadOptions{}); err == nil {
		t.Error("a thread without an attempt has no name, and was opened")
	}
	endClaude(t, s)
}

// A steer cuts the provider's turn short; ours ends with the result of the
// last message.
func TestClaudeSteer(t *testing.T) {
	result := func(text, reason string) string {
		return fmt.Sprintf(`< {"type":"result","subtype":"success","is_error":false,"terminal_reason":"%s","result":"","user_message_uuids":["%s"]}`+"\n", reason, promptUUID("attempt:1", text))
	}
	s := startClaude(t, claudeHello+prompted("attempt:1", "count", "")+claudeInit+
		`< {"type":"assistant","uuid":"a","aborted":true,"message":{"content":[{"type":"text","text":"One."}]}}`+"\n"+
		prompted("attempt:1", "stop", "now")+result("count", "aborted_streaming")+claudeInit+result("stop", "completed")+"eof")
	ctx := testContext(t)
	if err := s.StartTurn(ctx, claudeTurnInput("attempt:1", "count")); err != nil {
		t.Fatal(err)
	}
	<-s.Events()
	if item := (<-s.Events()).(orch.ItemUpdated).Item; item.Status != "interrupted" {
		t.Errorf("text cut short: got %s, want interrupted", item.Status)
	}
	if err := s.Steer(ctx, "", "turn:attempt:1", claudeTurnInput("attempt:1", "stop")); err != nil {
		t.Fatal(err)
	}
	<-s.Events() // where it ended
	if e, ok := (<-s.Events()).(orch.TurnEnded); !ok || e.Status != "completed" {
		t.Errorf("got %+v, want the turn completed", e)
	}
	if err := s.Steer(ctx, "", "turn:attempt:1", claudeTurnInput("attempt:1", "late")); !errors.Is(err, orch.ErrTurnNotActive) {
		t.Errorf("late steer: got %v, want ErrTurnNotActive", err)
	}
	endClaude(t, s)
}

// The acknowledgement of an interrupt ends nothing.
func TestClaudeInterrupt(t *testing.T) {
	s := startClaude(t, claudeHello+prompted("attempt:1", "count", "")+
		`> {"type":"control_request","request_id":"2","request":{"subtype":"interrupt","cancel_queued":true}}
< {"type":"control_response","response":{"subtype":"success","request_id":"2","response":{"still_queued":[]}}}
> {"type":"control_request","request_id":"3","request":{"subtype":"interrupt","cancel_queued":true}}
< {"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_streaming","errors":["[ede_diagnostic]"]}
< {"type":"control_response","response":{"subtype":"error","request_id":"3","error":"nothing runs"}}
eof`)
	ctx := testContext(t)
	if err := s.StartTurn(ctx, claudeTurnInput("attempt:1", "count")); err != nil {
		t.Fatal(err)
	}
	<-s.Events()
	if err := s.Interrupt(ctx, "", "turn:attempt:1"); err != nil {
		t.Fatal(err)
	}
	if !s.facts.active("turn:attempt:1") {
		t.Error("the turn ended with the acknowledgement")
	}
	if err := s.Interrupt(ctx, "", "turn:attempt:1"); err == nil || !strings.Contains(err.Error(), "interrupt: nothing runs") {
		t.Errorf("got %v, want the provider's refusal", err)
	}
	if e := (<-s.Events()).(orch.TurnEnded); e.Status != "interrupted" || e.Error != "" {
		t.Errorf("got %+v, want interrupted", e)
	}
	if err := s.Interrupt(ctx, "", "turn:attempt:1"); !errors.Is(err, orch.ErrTurnNotActive) {
		t.Errorf("interrupt again: got %v, want ErrTurnNotActive without a frame", err)
	}
	endClaude(t, s)
}

func TestClaudeRequests(t *testing.T) {
	ask := func(id, call, tool, rest string) string {
		return fmt.Sprintf(`< {"type":"control_request","request_id":"%s","request":{"subtype":"can_use_tool","tool_name":"%s","input":{"a":1},"tool_use_id":"%s"%s}}`+"\n", id, tool, call, rest)
	}
	answer := func(id, body string) string {
		return fmt.Sprintf(`> {"type":"control_response","response":{"subtype":"success","request_id":"%s","response":%s}}`+"\n", id, body)
	}
	s := startClaude(t, claudeHello+prompted("attempt:1", "x", "")+
		ask("p1", "t1", "Bash", "")+answer("p1", `{"behavior":"allow","updatedInput":{"a":1},"toolUseID":"t1"}`)+
		ask("p2", "t2", "Write", `,"permission_suggestions":[{"type":"setMode","mode":"acceptEdits","destination":"session"},{"type":"addRules","rules":[{"toolName":"Write"}],"behavior":"allow","destination":"localSettings"}]`)+
		answer("p2", `{"behavior":"allow","updatedInput":{"a":1},"updatedPermissions":[{"type":"addRules","rules":[{"toolName":"Write"}],"behavior":"allow","destination":"session"}],"toolUseID":"t2"}`)+
		ask("p3", "t3", "Read", "")+answer("p3", `{"behavior":"deny","message":"The user declined this.","toolUseID":"t3"}`)+
		ask("p4", "t4", "Odd", "")+answer("p4", `{"behavior":"deny","message":"The user declined this.","interrupt":true,"toolUseID":"t4"}`)+
		ask("p5", "t5", "ExitPlanMode", "")+answer("p5", `{"behavior":"deny","message":"The plan was taken down. Stop here; the user will answer in another message.","toolUseID":"t5"}`)+
		`< {"type":"control_request","request_id":"p6","request":{"subtype":"hook_callback"}}
> {"type":"control_response","response":{"subtype":"error","request_id":"p6","error":"hook_callback is not supported by this client"}}
`+ask("p7", "t7", "Bash", "")+ask("p8", "t8", "Bash", "")+`< {"type":"control_cancel_request","request_id":"p8"}
`+claudeDone+"eof")
	ctx := testContext(t)
	if err := s.StartTurn(ctx, claudeTurnInput("attempt:1", "x")); err != nil {
		t.Fatal(err)
	}
	<-s.Events()
	for _, tt := range []struct{ call, kind, decision string }{
		{"t1", "command", "accept"}, {"t2", "file-change", "acceptForSession"}, {"t3", "file-read", "decline"}, {"t4", "command", "cancel"},
	} {
		r := (<-s.Events()).(orch.RequestOpened)
		if r.NativeRequestID != tt.call || r.Kind != tt.kind || r.NativeTurnID != "turn:attempt:1" {
			t.Errorf("got %+v, want %s of kind %s", r, tt.call, tt.kind)
		}
		if err := s.Respond(ctx, tt.call, orch.Decision{Kind: "maybe"}); err == nil {
			t.Error("an unknown decision was sent")
		}
		if err := s.Respond(ctx, tt.call, orch.Decision{Kind: tt.decision}); err != nil {
			t.Fatal(err)
		}
		if err := s.Respond(ctx, tt.call, orch.Decision{Kind: "accept"}); err == nil {
			t.Error("a request was answered twice")
		}
	}
	var closed []string
	for e := range s.Events() {
		if e, ok := e.(orch.RequestClosed); ok {
			closed = append(closed, e.NativeRequestID)
		}
		if _, ok := e.(orch.TurnEnded); ok {
			break
		}
	}
	endClaude(t, s)
	if diff := cmp.Diff([]string{"t8", "t7"}, closed); diff != "" {
		t.Error(diff)
	}
}
