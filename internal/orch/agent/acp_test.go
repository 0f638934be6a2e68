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
	acpHello = `> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":false,"writeTextFile":false},"terminal":false,"elicitation":{"form":{}}},"clientInfo":{"name":"replaypeer_orchestrator","title":"replaypeer orchestrator","version":"1"}}}
< {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}
`
	acpHelloDraft = `> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":2,"capabilities":{"elicitation":{"form":{}}},"info":{"name":"replaypeer_orchestrator","title":"replaypeer orchestrator","version":"1"}}}
< {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":2,"capabilities":{},"info":{"name":"a","version":"1"}}}
`
	acpNew = `> {"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}
< {"jsonrpc":"2.0","id":2,"result":{"sessionId":"T"}}
`
)

// openACP opens a session of an agent on a process that plays a script.
func openACP(t *testing.T, name, script string) *acpSession {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	exe := must[string](t)(os.Executable())
	a := must[orch.Agent](t)(NewACP(ACPConfig{Agent: name, Command: []string{exe}, Env: append(os.Environ(), scriptVariable+"="+file, "GORACE=atexit_sleep_ms=0")}))
	return must[orch.AgentSession](t)(a.Open(testContext(t), orch.SessionConfig{})).(*acpSession)
}

// acpTurnIn is a turn in a runtime mode.
func acpTurnIn(mode, attempt, text string) orch.TurnInput {
	return orch.TurnInput{NativeThreadID: "T", AttemptID: attempt, Text: text, Options: orch.ThreadOptions{Cwd: "/w", RuntimeMode: mode}}
}

func acpUpdate(session, update string) string {
	return `< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"` + session + `","update":{"sessionUpdate":` + update + `}}}` + "\n"
}

func acpPromptLine(id, text string) string {
	return `> {"jsonrpc":"2.0","id":` + id + `,"method":"session/prompt","params":{"sessionId":"T","prompt":[{"type":"text","text":"` + text + `"}]}}` + "\n"
}

// collect reads events up to one that is wanted. A session that says nothing
// more fails the test.
func collect(t *testing.T, s *acpSession, wanted func(orch.ProviderEvent) bool) (events []orch.ProviderEvent) {
	t.Helper()
	ctx := testContext(t)
	for {
		select {
		case e, ok := <-s.Events():
			if !ok {
				t.Fatalf("the session ended after %+v", events)
			}
			if events = append(events, e); wanted(e) {
				return events
			}
		case <-ctx.Done():
			t.Fatalf("nothing came after %+v", events)
		}
	}
}

func asked(e orch.ProviderEvent) bool {
	_, ok := e.(orch.RequestOpened)
	return ok
}

func turnEnd(e orch.ProviderEvent) bool {
	_, ok := e.(orch.TurnEnded)
	return ok
}

func closeACP(t *testing.T, s *acpSession) {
	t.Helper()
	if err := s.Close(testContext(t)); err != nil {
		t.Error(err)
	}
	var last orch.ProviderEvent
	for e := range s.Events() {
		last = e
	}
	if last != (orch.SessionEnded{}) {
		t.Errorf("last event %+v: want the session's end", last)
	}
}

// items lists type, status and text of the items in events that are done.
func doneItems(events []orch.ProviderEvent) (items []string) {
	for _, e := range events {
		if i, ok := e.(orch.ItemUpdated); ok && i.Item.Status != "running" {
			items = append(items, strings.Join([]string{i.NativeThreadID, i.Item.Type, i.Item.Status, i.Item.Title, i.Item.Text}, "|"))
		}
	}
	return items
}

// What comes outside of a turn means nothing; text ends where other work
// begins; a tool may be announced by the question about it, and a declined one
// is never heard of again. An option is chosen by its kind.
func TestACPTurn(t *testing.T) {
	before := acpUpdate("T", `"agent_message_chunk","content":{"type":"text","text":"before the turn"}`)
	s := openACP(t, "registry", acpHello+strings.Replace(acpNew, "\n", "\n"+before, 1)+
		acpPromptLine("3", "hi <you>")+
		acpUpdate("T", `"user_message_chunk","content":{"type":"text","text":"hi"}`)+
		acpUpdate("T", `"agent_thought_chunk","content":{"type":"text","text":"hm"}`)+
		acpUpdate("T", `"agent_message_chunk","content":{"type":"text","text":"one "}`)+
		acpUpdate("other", `"agent_message_chunk","content":{"type":"text","text":"of nobody"}`)+
		acpUpdate("T", `"agent_message_chunk","content":{"type":"text","text":"two"}`)+
		acpUpdate("T", `"tool_call","toolCallId":"c","kind":"execute","title":"Shell","status":"pending","rawInput":{}`)+
		acpUpdate("T", `"tool_call_update","toolCallId":"c","status":"completed","rawInput":{"command":"echo"},"content":[{"type":"content","content":{"type":"text","text":"out"}}]`)+
		`< {"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{"sessionId":"T","toolCall":{"toolCallId":"d","kind":"delete","title":"Delete","locations":[{"path":"/w/f"}]},"options":[{"optionId":"a","kind":"allow_always","name":"A"},{"optionId":"b","kind":"reject_always","name":"B"},{"optionId":"c","kind":"reject_once","name":"C"}]}}
> {"jsonrpc":"2.0","id":"q","result":{"outcome":{"outcome":"selected","optionId":"c"}}}
< {"jsonrpc":"2.0","id":7,"method":"fs/read_text_file","params":{"sessionId":"T","path":"/etc/passwd"}}
> {"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"fs/read_text_file is not supported by this client"}}
`+acpUpdate("T", `"plan","entries":[{"content":"Look","status":"completed"},{"content":"Leap","status":"in_progress"}]`)+
		acpUpdate("T", `"agent_message_chunk","content":{"type":"text","text":"three"}`)+
		`< {"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}
eof`)
	ctx := testContext(t)
	must[orch.NativeThread](t)(s.StartThread(ctx, options))
	if err := s.StartTurn(ctx, acpTurnIn("approval-required", "A", "hi <you>")); err != nil {
		t.Fatal(err)
	}
	events := collect(t, s, asked)
	if open := events[len(events)-1].(orch.RequestOpened); open.Kind != "file-change" || open.NativeItemID != "d" || open.NativeRequestID != `"q"` {
		t.Errorf("request %+v", open)
	}
	if err := s.Respond(ctx, `"q"`, orch.Decision{Kind: "decline"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Respond(ctx, `"q"`, orch.Decision{Kind: "accept"}); err == nil {
		t.Error("a request was answered twice")
	}
	events = append(events, collect(t, s, turnEnd)...)
	want := []string{
		"T|reasoning|completed||hm", "T|assistant_message|completed||one two", "T|command_execution|completed|echo|out",
		"T|assistant_message|completed||three", "T|file_change|cancelled|/w/f|", "T|todo_list|completed||",
	}
	if diff := cmp.Diff(want, doneItems(events)); diff != "" {
		t.Error(diff)
	}
	if e, want := events[len(events)-1], (orch.TurnEnded{NativeThreadID: "T", NativeTurnID: "turn:A", Status: "completed"}); e != want {
		t.Errorf("got %+v, want %+v", e, want)
	}
	closeACP(t, s)
}

// An interrupt writes the cancel and then takes back what is asked. It ends
// nothing: the prompt's answer does, and only then there is a next turn.
func TestACPInterrupt(t *testing.T) {
	s := openACP(t, "registry", acpHello+acpNew+acpPromptLine("3", "wait")+
		`< {"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"T","toolCall":{"toolCallId":"c","kind":"execute","title":"sleep"},"options":[]}}
> {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"T"}}
> {"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"cancelled"}}}
< {"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":0}}
< {"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}
`+acpPromptLine("4", "more")+
		`< {"jsonrpc":"2.0","id":4,"result":{"stopReason":"cancelled"}}
`+acpPromptLine("5", "again")+
		`< {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"sessionId":"T","mode":"form","message":"Which?","requestedSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}}
< {"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}
> {"jsonrpc":"2.0","id":1,"result":{"action":"cancel"}}
< {"jsonrpc":"2.0","id":5,"error":{"code":-32603,"message":"the model is gone"}}
eof`)
	ctx := testContext(t)
	must[orch.NativeThread](t)(s.StartThread(ctx, options))
	if err := s.StartTurn(ctx, acpTurnIn("approval-required", "A", "wait")); err != nil {
		t.Fatal(err)
	}
	collect(t, s, asked)
	if err := s.StartTurn(ctx, acpTurnIn("approval-required", "B", "early")); err == nil {
		t.Error("a second prompt went out before the answer to the first")
	}
	if err := s.Interrupt(ctx, "T", "turn:A"); err != nil {
		t.Fatal(err)
	}
	events := collect(t, s, turnEnd)
	want := []orch.ProviderEvent{orch.RequestClosed{NativeThreadID: "T", NativeRequestID: "0"}}
	if diff := cmp.Diff(want, events[:1]); diff != "" {
		t.Error(diff)
	}
	ended := func(attempt, status, reason string) {
		t.Helper()
		want := orch.TurnEnded{NativeThreadID: "T", NativeTurnID: "turn:" + attempt, Status: status, Error: reason}
		if got := events[len(events)-1]; got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	ended("A", "interrupted", "")
	if err := s.Interrupt(ctx, "T", "turn:A"); !errors.Is(err, orch.ErrTurnNotActive) {
		t.Errorf("interrupt again: %v: want ErrTurnNotActive without a frame", err)
	}
	for _, next := range []struct{ attempt, text, status, reason string }{
		{"B", "more", "cancelled", ""}, // the agent's own doing
		{"C", "again", "failed", "the model is gone (error -32603)"},
	} {
		if err := s.StartTurn(ctx, acpTurnIn("approval-required", next.attempt, next.text)); err != nil {
			t.Fatal(err)
		}
		events = collect(t, s, turnEnd)
		ended(next.attempt, next.status, next.reason)
	}
	closeACP(t, s)
}

// In the draft of version 2 an answered prompt ends nothing: the idle state
// does. Settings are options of the session.
func TestACPDraft(t *testing.T) {
	s := openACP(t, "claude-acp-2", acpHelloDraft+
		`> {"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}
`+acpUpdate("T", `"state_update","state":"idle"`)+
		`< {"jsonrpc":"2.0","id":2,"result":{"sessionId":"T","configOptions":[{"configId":"m","category":"mode","type":"select","currentValue":"default","options":[{"value":"default"},{"value":"bypassPermissions"}]}]}}
> {"jsonrpc":"2.0","id":3,"method":"session/set_config_option","params":{"sessionId":"T","configId":"m","type":"id","value":"bypassPermissions"}}
< {"jsonrpc":"2.0","id":3,"result":{"configOptions":[]}}
`+acpPromptLine("4", "hi")+
		acpUpdate("T", `"state_update","state":"idle"`)+
		acpUpdate("T", `"user_message","messageId":"u","content":[{"type":"text","text":"hi"}]`)+
		`< {"jsonrpc":"2.0","id":4,"result":{"messageId":"u"}}
`+acpUpdate("T", `"state_update","state":"running"`)+
		acpUpdate("T", `"agent_message_chunk","messageId":"m","content":{"type":"text","text":"wrong"}`)+
		acpUpdate("T", `"agent_message","messageId":"m","content":[{"type":"text","text":"right"}]`)+
		acpUpdate("T", `"agent_message_chunk","messageId":"n","content":{"type":"text","text":"next"}`)+
		acpUpdate("T", `"terminal_update","terminalId":"t","command":"echo","output":{"text":"out"}`)+
		acpUpdate("T", `"tool_call_update","toolCallId":"c","kind":"execute","title":"echo","status":"in_progress","content":[{"type":"terminal","terminalId":"t"}]`)+
		acpUpdate("T", `"tool_call_update","toolCallId":"c","status":"completed"`)+
		acpUpdate("T", `"plan_update","plan":{"type":"items","planId":"p","entries":[{"content":"Look","status":"completed"}]}`)+
		acpUpdate("T", `"state_update","state":"requires_action"`)+
		acpUpdate("T", `"state_update","state":"idle","stopReason":"end_turn"`)+
		acpPromptLine("5", "wait")+
		`< {"jsonrpc":"2.0","id":5,"result":{"messageId":"v"}}
> {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"T"}}
`+acpUpdate("T", `"state_update","state":"idle","stopReason":"cancelled"`)+"eof")
	ctx := testContext(t)
	must[orch.NativeThread](t)(s.StartThread(ctx, options))
	if err := s.StartTurn(ctx, acpTurnIn("full-access", "A", "hi")); err != nil {
		t.Fatal(err)
	}
	events := collect(t, s, turnEnd)
	want := []string{
		"T|assistant_message|completed||right", "T|assistant_message|completed||next",
		"T|command_execution|completed|echo|out", "T|todo_list|completed||",
	}
	if diff := cmp.Diff(want, doneItems(events)); diff != "" {
		t.Error(diff)
	}
	if err := s.StartTurn(ctx, acpTurnIn("full-access", "B", "wait")); err != nil {
		t.Fatal(err)
	}
	if err := s.Interrupt(ctx, "T", "turn:B"); err != nil {
		t.Fatal(err)
	}
	events = collect(t, s, turnEnd)
	if e, want := events[len(events)-1], (orch.TurnEnded{NativeThreadID: "T", NativeTurnID: "turn:B", Status: "interrupted"}); e != want {
		t.Errorf("got %+v, want %+v", e, want)
	}
	closeACP(t, s)
}

// What the protocol has not is refused without a frame, as what it is; so is a
// session that is gone, and a mode that is not there.
func TestACPRefusals(t *testing.T) {
	s := openACP(t, "registry", acpHello+
		`> {"jsonrpc":"2.0","id":2,"method":"session/load","params":{"sessionId":"old","cwd":"/w","mcpServers":[]}}
`+acpUpdate("old", `"agent_message_chunk","content":{"type":"text","text":"history"}`)+
		`< {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no such session"}}
`+strings.Replace(acpNew, `"id":2`, `"id":3`, 2)+"eof")
	ctx := testContext(t)
	if _, err := s.ResumeThread(ctx, "old", options); !errors.Is(err, orch.ErrResume) {
		t.Errorf("resume: %v: want ErrResume", err)
	}
	must[orch.NativeThread](t)(s.StartThread(ctx, options))
	_, forkErr := s.ForkThread(ctx, "T", "", options)
	_, rollbackErr := s.Rollback(ctx, "T", "turn:A", 1)
	for name, err := range map[string]error{"fork": forkErr, "rollback": rollbackErr, "steer": s.Steer(ctx, "T", "turn:A", turn("x"))} {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v: want errors.ErrUnsupported", name, err)
		}
	}
	plan := acpTurnIn("full-access", "A", "plan")
	plan.Options.InteractionMode = "plan"
	if err := s.StartTurn(ctx, plan); err == nil || !strings.Contains(err.Error(), "planning") {
		t.Errorf("plan: %v: want the mode missed", err)
	}
	closeACP(t, s)
}
