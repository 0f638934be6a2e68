//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// echoAgent is a provider that runs some commands in a turn and answers.
type echoAgent struct{ items int }

func (echoAgent) Driver() string { return "echo" }
func (echoAgent) Capabilities() orch.Capabilities {
	return orch.Capabilities{NativeTurnIDs: true, Resume: true, Interrupt: true}
}

func (a echoAgent) Open(context.Context, orch.SessionConfig) (orch.AgentSession, error) {
	return &echoSession{agent: a, events: make(chan orch.ProviderEvent, 64)}, nil
}

// echoSession answers one turn at a time.
type echoSession struct {
	orch.AgentSession // what no turn of a benchmark asks for
	agent             echoAgent
	events            chan orch.ProviderEvent
	turns             int
	closed            bool
}

func (s *echoSession) Events() <-chan orch.ProviderEvent { return s.events }

func (s *echoSession) Close(context.Context) error {
	if !s.closed {
		s.closed = true
		s.events <- orch.SessionEnded{}
		close(s.events)
	}
	return nil
}

func (s *echoSession) StartThread(_ context.Context, t orch.ThreadOptions) (orch.NativeThread, error) {
	return orch.NativeThread{ID: "native-" + t.AttemptID}, nil
}

func (s *echoSession) StartTurn(_ context.Context, in orch.TurnInput) error {
	s.turns++
	turn := fmt.Sprintf("turn-%s-%d", in.NativeThreadID, s.turns)
	s.events <- orch.TurnStarted{NativeThreadID: in.NativeThreadID, NativeTurnID: turn}
	for i := range s.agent.items {
		item := orch.ProviderItem{
			NativeID: fmt.Sprint("item-", i), Type: "command_execution", Status: "completed", Title: "go test ./...",
			Text:   "ok  \texample.test/pkg/one\t0.021s\nok  \texample.test/pkg/two\t1.310s\n",
			Detail: json.RawMessage(`{"command":"go test ./...","exitCode":0}`),
		}
		s.events <- orch.ItemUpdated{NativeThreadID: in.NativeThreadID, NativeTurnID: turn, Item: item}
	}
	s.events <- orch.ItemUpdated{NativeThreadID: in.NativeThreadID, NativeTurnID: turn, Item: orch.ProviderItem{
		NativeID: "answer", Type: "assistant_message", Status: "completed", Text: "a message that is about as long as usual",
	}}
	s.events <- orch.TurnEnded{NativeThreadID: in.NativeThreadID, NativeTurnID: turn, Status: "completed"}
	return nil
}
