package scenario

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// faultyAgent is an agent whose sessions are broken as the hooks say.
type faultyAgent struct {
	orch.Agent
	hooks hooks
}

// hooks stand between the orchestrator and a session; nil ones change nothing.
type hooks struct {
	event     func(s *faultySession, e orch.ProviderEvent, emit func(orch.ProviderEvent))
	start     func(s *faultySession, ctx context.Context, in orch.TurnInput) error
	interrupt func(s *faultySession, ctx context.Context, thread, turn string) error
	steer     func(s *faultySession, ctx context.Context, thread, turn string, in orch.TurnInput) error
	respond   func(s *faultySession, ctx context.Context, id string, d orch.Decision) error
	resume    func(s *faultySession, ctx context.Context, id string, t orch.ThreadOptions) (orch.NativeThread, error)
	fork      func(s *faultySession, ctx context.Context, id, through string, t orch.ThreadOptions) (orch.NativeThread, error)
	rollback  func(s *faultySession, ctx context.Context, id, keep string, dropped int) (orch.NativeThread, error)
	claims    func(*orch.Capabilities)
}

func (a faultyAgent) Capabilities() orch.Capabilities {
	c := a.Agent.Capabilities()
	if a.hooks.claims != nil {
		a.hooks.claims(&c)
	}
	return c
}

func (a faultyAgent) Open(ctx context.Context, cfg orch.SessionConfig) (orch.AgentSession, error) {
	inner, err := a.Agent.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	s := &faultySession{AgentSession: inner, hooks: a.hooks, out: make(chan orch.ProviderEvent, 1024)}
	go s.pump()
	return s, nil
}

type faultySession struct {
	orch.AgentSession
	hooks hooks
	out   chan orch.ProviderEvent

	mu     sync.Mutex
	closed bool
	root   orch.TurnStarted
}

// first returns the first turn of the session, once it has started.
func (s *faultySession) first() orch.TurnStarted {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.root
}

func (s *faultySession) pump() {
	for e := range s.AgentSession.Events() {
		if t, ok := e.(orch.TurnStarted); ok {
			s.mu.Lock()
			if s.root.NativeTurnID == "" {
				s.root = t
			}
			s.mu.Unlock()
		}
		if s.hooks.event != nil {
			s.hooks.event(s, e, s.emit)
		} else {
			s.emit(e)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	close(s.out)
}

func (s *faultySession) emit(e orch.ProviderEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.out <- e
	}
}

// end tells the end of a turn that nobody ended.
func (s *faultySession) end(t orch.TurnStarted, status string) {
	s.emit(orch.TurnEnded{NativeThreadID: t.NativeThreadID, NativeTurnID: t.NativeTurnID, Status: status})
}

func (s *faultySession) Events() <-chan orch.ProviderEvent { return s.out }

func (s *faultySession) StartTurn(ctx context.Context, in orch.TurnInput) error {
	if s.hooks.start != nil {
		return s.hooks.start(s, ctx, in)
	}
	return s.AgentSession.StartTurn(ctx, in)
}

func (s *faultySession) Interrupt(ctx context.Context, thread, turn string) error {
	if s.hooks.interrupt != nil {
		return s.hooks.interrupt(s, ctx, thread, turn)
	}
	return s.AgentSession.Interrupt(ctx, thread, turn)
}

func (s *faultySession) Steer(ctx context.Context, thread, turn string, in orch.TurnInput) error {
	if s.hooks.steer != nil {
		return s.hooks.steer(s, ctx, thread, turn, in)
	}
	return s.AgentSession.Steer(ctx, thread, turn, in)
}

func (s *faultySession) Respond(ctx context.Context, id string, d orch.Decision) error {
	if s.hooks.respond != nil {
		return s.hooks.respond(s, ctx, id, d)
	}
	return s.AgentSession.Respond(ctx, id, d)
}

func (s *faultySession) ResumeThread(ctx context.Context, id string, t orch.ThreadOptions) (orch.NativeThread, error) {
	if s.hooks.resume != nil {
		return s.hooks.resume(s, ctx, id, t)
	}
	return s.AgentSession.ResumeThread(ctx, id, t)
}

func (s *faultySession) ForkThread(ctx context.Context, id, through string, t orch.ThreadOptions) (orch.NativeThread, error) {
	if s.hooks.fork != nil {
		return s.hooks.fork(s, ctx, id, through, t)
	}
	return s.AgentSession.ForkThread(ctx, id, through, t)
}

func (s *faultySession) Rollback(ctx context.Context, id, keep string, dropped int) (orch.NativeThread, error) {
	if s.hooks.rollback != nil {
		return s.hooks.rollback(s, ctx, id, keep, dropped)
	}
	return s.AgentSession.Rollback(ctx, id, keep, dropped)
}

func agentFault(h hooks) *faults {
	return &faults{wrapAgent: func(a orch.Agent) orch.Agent { return faultyAgent{a, h} }}
}

// faultyStore changes what is asked of a store and what is stored.
type faultyStore struct {
	orch.Store
	request func(*orch.CommitRequest)
	batch   func(orch.Batch) orch.Batch
	thread  func(orch.StoredThread) orch.StoredThread
	events  func([]orch.StoredEvent) []orch.StoredEvent
}

func (s faultyStore) Commit(ctx context.Context, req orch.CommitRequest, decide func() (orch.Batch, error)) (orch.CommitResult, error) {
	if s.request != nil {
		s.request(&req)
	}
	return s.Store.Commit(ctx, req, func() (orch.Batch, error) {
		b, err := decide()
		if err == nil && s.batch != nil {
			b = s.batch(b)
		}
		return b, err
	})
}

func (s faultyStore) Thread(ctx context.Context, id string, take func(orch.Kind, []string)) (orch.StoredThread, error) {
	t, err := s.Store.Thread(ctx, id, take)
	if err == nil && s.thread != nil {
		t = s.thread(t)
	}
	return t, err
}

func (s faultyStore) Events(ctx context.Context, after int64, limit int) ([]orch.StoredEvent, error) {
	e, err := s.Store.Events(ctx, after, limit)
	if err == nil && s.events != nil {
		e = s.events(e)
	}
	return e, err
}

func storeFault(s faultyStore) *faults {
	return &faults{wrapStore: func(inner orch.Store) orch.Store {
		s.Store = inner
		return s
	}}
}

// without drops the events and rows of a kind that a text names.
func without(kind orch.Kind, text string) func(orch.Batch) orch.Batch {
	return func(b orch.Batch) orch.Batch {
		b.Events = slices.DeleteFunc(slices.Clone(b.Events), func(e orch.Event) bool {
			return strings.HasPrefix(e.Type, string(kind)+".") && strings.Contains(string(e.Payload), text)
		})
		b.Rows = slices.DeleteFunc(slices.Clone(b.Rows), func(r orch.Row) bool {
			return r.Kind == kind && strings.Contains(string(r.Payload), text)
		})
		return b
	}
}

// rewrite replaces text in events and rows of a kind.
func rewrite(kind orch.Kind, old, new string) func(orch.Batch) orch.Batch {
	return func(b orch.Batch) orch.Batch {
		b.Events, b.Rows = slices.Clone(b.Events), slices.Clone(b.Rows)
		for i, e := range b.Events {
			if strings.HasPrefix(e.Type, string(kind)+".") {
				b.Events[i].Payload = json.RawMessage(strings.ReplaceAll(string(e.Payload), old, new))
			}
		}
		for i, r := range b.Rows {
			if r.Kind == kind {
				b.Rows[i].Payload = []byte(strings.ReplaceAll(string(r.Payload), old, new))
			}
		}
		return b
	}
}

// faultyCheckpoints are broken snapshots.
type faultyCheckpoints struct {
	orch.Checkpoints
	capture func(orch.CaptureRequest, orch.Capture) (orch.Capture, error)
	restore func() error
}

func (c faultyCheckpoints) Capture(ctx context.Context, req orch.CaptureRequest) (orch.Capture, error) {
	got, err := c.Checkpoints.Capture(ctx, req)
	if err == nil && c.capture != nil {
		return c.capture(req, got)
	}
	return got, err
}

func (c faultyCheckpoints) Restore(ctx context.Context, cwd, ref string) error {
	if c.restore != nil {
		return c.restore()
	}
	return c.Checkpoints.Restore(ctx, cwd, ref)
}

func checkpointFault(c faultyCheckpoints) *faults {
	return &faults{wrapCheckpoints: func(inner orch.Checkpoints) orch.Checkpoints {
		c.Checkpoints = inner
		return c
	}}
}
