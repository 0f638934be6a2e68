package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// CursorConfig says how to run the bridge to the Cursor Agent SDK.
type CursorConfig struct {
	Command []string // nil: {"cursor-bridge"}
	Env     []string // KEY=value; nil: the caller's environment
}

// NewCursor returns the adapter of the Cursor Agent SDK in local mode, behind
// a bridge on stdio. It was written against SDK 1.0.32.
//
// A bridge has one agent at a time, which is a thread, and one run of it,
// which is a turn. The SDK asks for nothing, rolls nothing back and copies
// nothing; a live run takes no more input.
func NewCursor(cfg CursorConfig) orch.Agent {
	if len(cfg.Command) == 0 {
		cfg.Command = []string{"cursor-bridge"}
	}
	return &cursor{cfg}
}

type cursor struct{ cfg CursorConfig }

func (c *cursor) Driver() string { return "cursor" }

func (c *cursor) Capabilities() orch.Capabilities {
	return orch.Capabilities{
		SteeringByRestart: true,
		Interrupt:         true,
		NativeTurnIDs:     true,
		Subagents:         true,
		Resume:            true,
	}
}

// Open starts the bridge and waits until it is ready.
func (c *cursor) Open(ctx context.Context, cfg orch.SessionConfig) (orch.AgentSession, error) {
	s := &cursorSession{cfg: cfg, events: newEventQueue(), ready: make(chan struct{})}
	s.facts = newCursorFacts(s.events.push)
	s.io = stdio{name: "cursor"}
	s.io.rpc = newRPC(s.handle, cfg.Diagnostics)
	s.io.rpc.wire = newCursorWire()
	if err := s.io.open(ctx, c.cfg.Command, cfg.Cwd, c.cfg.Env, s.events, s.awaitReady); err != nil {
		return nil, err
	}
	return s, nil
}

// cursorSession is one bridge.
type cursorSession struct {
	cfg    orch.SessionConfig
	io     stdio
	events *eventQueue
	facts  *cursorFacts
	ready  chan struct{} // closed by the bridge's first line; changed by handle only
}

func (s *cursorSession) awaitReady(ctx context.Context) error {
	select {
	case <-s.ready:
		return nil
	case <-s.io.rpc.over:
		return s.io.rpc.reason()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// handle takes what the bridge says on its own account.
func (s *cursorSession) handle(m rpcMessage) {
	switch m.Method {
	case "bridge.ready":
		select {
		case <-s.ready:
		default:
			close(s.ready)
		}
	case "interaction.update":
		s.facts.update(m.Params.Get("runId").Str, m.Params.Get("update"))
	case "run.completed":
		s.facts.completed(m.Params.Get("result"))
	case "runtime.exit":
		s.facts.exited(m.Params.Get("status").Str, m.Params.Get("error.message").String())
	}
}

func (s *cursorSession) Events() <-chan orch.ProviderEvent { return s.events.out }

// Close closes the agent first, which ends a live run.
func (s *cursorSession) Close(ctx context.Context) error {
	if id := s.facts.close(); id != "" {
		// A bridge that is gone, or does not read, is ended all the same.
		_ = s.io.rpc.notify(ctx, cursorClose, cursorFrame{Type: cursorClose, AgentID: id})
	}
	return s.io.close(ctx)
}

func (s *cursorSession) StartThread(ctx context.Context, t orch.ThreadOptions) (orch.NativeThread, error) {
	return s.openAgent(ctx, cursorFrame{Operation: "create"}, t)
}

// ResumeThread takes an agent that the SDK does not know for a refusal. It
// resumes at the end of the conversation only.
func (s *cursorSession) ResumeThread(ctx context.Context, nativeID string, t orch.ThreadOptions) (orch.NativeThread, error) {
	thread, err := s.openAgent(ctx, cursorFrame{Operation: "resume", AgentID: nativeID}, t)
	var refusal *rpcError
	if errors.As(err, &refusal) && strings.HasSuffix(refusal.Message, cursorNoAgent) {
		return thread, fmt.Errorf("%w: %w", orch.ErrResume, err)
	}
	return thread, err
}

func (s *cursorSession) openAgent(ctx context.Context, f cursorFrame, t orch.ThreadOptions) (orch.NativeThread, error) {
	f.Type, f.Options = cursorOpen, newCursorAgentOptions(t)
	result, err := s.io.rpc.call(ctx, cursorOpen, f, func(result gjson.Result) {
		s.facts.open(strings.Clone(result.Get("agentId").String()))
	})
	if err != nil {
		return orch.NativeThread{}, err
	}
	id := result.Get("agentId").String()
	if id == "" {
		return orch.NativeThread{}, errors.New(cursorOpen + ": the answer names no agent")
	}
	return orch.NativeThread{ID: id}, nil
}

func (s *cursorSession) StartTurn(ctx context.Context, in orch.TurnInput) error {
	f := cursorFrame{Type: cursorRun, Message: in.Text, Options: newCursorRunOptions(in.Options)}
	_, err := s.io.rpc.call(ctx, cursorRun, f, func(result gjson.Result) {
		s.facts.start(strings.Clone(result.Get("runId").String()))
	})
	return err
}

// Interrupt is acknowledged by nothing but the run's end.
func (s *cursorSession) Interrupt(ctx context.Context, _, nativeTurnID string) error {
	if !s.facts.cancel(nativeTurnID) {
		return fmt.Errorf("%s: %w", cursorCancel, orch.ErrTurnNotActive)
	}
	return s.io.rpc.notify(ctx, cursorCancel, cursorFrame{Type: cursorCancel, RunID: nativeTurnID})
}

// What follows is not asked of a provider without the capability.

func (s *cursorSession) ForkThread(context.Context, string, string, orch.ThreadOptions) (orch.NativeThread, error) {
	return orch.NativeThread{}, errors.New("cursor: threads can't be copied")
}

func (s *cursorSession) Rollback(context.Context, string, string, int) (orch.NativeThread, error) {
	return orch.NativeThread{}, errors.New("cursor: threads can't be rolled back")
}

func (s *cursorSession) Steer(context.Context, string, string, orch.TurnInput) error {
	return errors.New("cursor: a turn takes no more input")
}

func (s *cursorSession) Respond(context.Context, string, orch.Decision) error {
	return errors.New("cursor: there are no requests to answer")
}
