package orch_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/replaypeer/replaypeer/internal/orch"
	"github.com/replaypeer/replaypeer/internal/orch/sqlite"
)

// stub is an agent whose provider is a script. It stands where a provider
// process would: everything on this side of it is production code.
type stub struct {
	driver       string // "" is codex
	capabilities orch.Capabilities
	// turn plays one turn on the session; nil echoes the input.
	turn func(t *turn)
	// open, start and resume fail with these when set.
	openErr, startErr, resumeErr, rollbackErr error
	rolledBack                                string // id of a thread after a rollback; "" keeps it
	// hold keeps StartTurn from returning until it is closed; nil does not.
	hold chan struct{}

	mu       sync.Mutex
	calls    []string // in order: "open", "thread/start", "turn/start <text>" …
	threads  int
	turns    int
	current  *turn
	sessions []*stubSession
}

func newStub() *stub {
	return &stub{capabilities: orch.Capabilities{NativeTurnIDs: true, Resume: true, Interrupt: true}}
}

func (a *stub) Driver() string {
	if a.driver == "" {
		return "codex"
	}
	return a.driver
}
func (a *stub) Capabilities() orch.Capabilities { return a.capabilities }

func (a *stub) call(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, fmt.Sprintf(format, args...))
}

func (a *stub) wire() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.calls...)
}

func (a *stub) Open(ctx context.Context, cfg orch.SessionConfig) (orch.AgentSession, error) {
	a.call("open")
	if a.openErr != nil {
		return nil, a.openErr
	}
	s := &stubSession{agent: a, events: make(chan orch.ProviderEvent), quit: make(chan struct{})}
	a.mu.Lock()
	a.sessions = append(a.sessions, s)
	a.mu.Unlock()
	return s, nil
}

// last is the turn that was started last.
func (a *stub) last() *turn {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.current
}

type stubSession struct {
	agent  *stub
	events chan orch.ProviderEvent
	quit   chan struct{} // closed when the process dies
	once   sync.Once
	wg     sync.WaitGroup
}

func (s *stubSession) Events() <-chan orch.ProviderEvent { return s.events }

// emit sends an event; it reports false when the process is gone.
func (s *stubSession) emit(e orch.ProviderEvent) bool {
	select {
	case s.events <- e:
		return true
	case <-s.quit:
		return false
	}
}

// die ends the process.
func (s *stubSession) die(err error) {
	s.once.Do(func() {
		close(s.quit)
		go func() {
			s.wg.Wait()
			s.events <- orch.SessionEnded{Err: err}
			close(s.events)
		}()
	})
}

func (s *stubSession) Close(context.Context) error {
	s.agent.call("close")
	s.die(nil)
	return nil
}

func (s *stubSession) StartThread(context.Context, orch.ThreadOptions) (orch.NativeThread, error) {
	s.agent.call("thread/start")
	s.agent.mu.Lock()
	defer s.agent.mu.Unlock()
	s.agent.threads++
	return orch.NativeThread{ID: fmt.Sprintf("T%d", s.agent.threads)}, nil
}

func (s *stubSession) ResumeThread(_ context.Context, id string, _ orch.ThreadOptions) (orch.NativeThread, error) {
	s.agent.call("thread/resume %s", id)
	return orch.NativeThread{ID: id}, s.agent.resumeErr
}

func (s *stubSession) ForkThread(_ context.Context, id, through string, _ orch.ThreadOptions) (orch.NativeThread, error) {
	s.agent.call("thread/fork %s %s", id, through)
	s.agent.mu.Lock()
	defer s.agent.mu.Unlock()
	s.agent.threads++
	return orch.NativeThread{ID: fmt.Sprintf("T%d", s.agent.threads)}, s.agent.startErr
}

func (s *stubSession) Rollback(_ context.Context, id, keep string, dropped int) (orch.NativeThread, error) {
	s.agent.call("thread/rollback %s %q %d", id, keep, dropped)
	return orch.NativeThread{ID: cmp.Or(s.agent.rolledBack, id), Head: "head-" + keep}, s.agent.rollbackErr
}

func (s *stubSession) Steer(_ context.Context, _, turn string, in orch.TurnInput) error {
	s.agent.call("turn/steer %s %s", turn, in.Text)
	s.agent.last().steered <- in.Text
	return nil
}

// Interrupt is acknowledged at once; the turn sees it and ends when it wants.
func (s *stubSession) Interrupt(_ context.Context, _, turn string) error {
	s.agent.call("turn/interrupt %s", turn)
	close(s.agent.last().interrupted)
	return nil
}

func (s *stubSession) Respond(_ context.Context, id string, d orch.Decision) error {
	s.agent.call("respond %s %s%v", id, d.Kind, d.Answers)
	s.agent.last().answered <- d
	return nil
}

func (s *stubSession) StartTurn(ctx context.Context, in orch.TurnInput) error {
	s.agent.call("turn/start %s", in.Text)
	if s.agent.startErr != nil {
		return s.agent.startErr
	}
	s.agent.mu.Lock()
	s.agent.turns++
	t := &turn{s: s, thread: in.NativeThreadID, id: fmt.Sprintf("U%d", s.agent.turns), n: s.agent.turns, text: in.Text,
		steered: make(chan string, 8), interrupted: make(chan struct{}), answered: make(chan orch.Decision, 8)}
	s.agent.current = t
	s.agent.mu.Unlock()
	script := s.agent.turn
	if script == nil {
		script = echo
	}
	s.wg.Go(func() { script(t) })
	if s.agent.hold != nil {
		select {
		case <-s.agent.hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// turn is what a script emits through.
type turn struct {
	s          *stubSession
	thread, id string
	n          int // 1 for the stub's first turn
	text       string

	steered     chan string
	interrupted chan struct{} // closed by an interrupt
	answered    chan orch.Decision
}

// untilInterrupted starts a turn that an interrupt ends.
func untilInterrupted(t *turn) {
	t.started()
	select {
	case <-t.interrupted:
		t.ended("interrupted")
	case <-t.s.quit:
	}
}

func (t *turn) started() { t.s.emit(orch.TurnStarted{NativeThreadID: t.thread, NativeTurnID: t.id}) }

func (t *turn) ended(status string) {
	t.s.emit(orch.TurnEnded{NativeThreadID: t.thread, NativeTurnID: t.id, Status: status})
}

func (t *turn) item(i orch.ProviderItem) {
	t.s.emit(orch.ItemUpdated{NativeThreadID: t.thread, NativeTurnID: t.id, Item: i})
}

func (t *turn) say(id, text string) {
	t.item(orch.ProviderItem{NativeID: id, Type: "assistant_message", Status: "running", Text: text[:1], Streaming: true})
	t.item(orch.ProviderItem{NativeID: id, Type: "assistant_message", Status: "completed", Text: text})
}

func echo(t *turn) {
	t.started()
	t.say("m1", "you said: "+t.text)
	t.ended("completed")
}

// snapshots is a Checkpoints that records its requests.
type snapshots struct {
	mu       sync.Mutex
	requests []orch.CaptureRequest
	restored []string
	deleted  []string
	// before runs ahead of every capture; nil for nothing.
	before func(context.Context, orch.CaptureRequest)
	// fail returns the error of a capture; nil for none.
	fail func(orch.CaptureRequest) error
}

func (c *snapshots) Capture(ctx context.Context, r orch.CaptureRequest) (orch.Capture, error) {
	c.mu.Lock()
	c.requests = append(c.requests, r)
	c.mu.Unlock()
	if c.before != nil {
		c.before(ctx, r)
	}
	if c.fail != nil {
		if err := c.fail(r); err != nil {
			return orch.Capture{}, err
		}
	}
	if r.Cwd == "" {
		return orch.Capture{Status: "missing"}, nil
	}
	return orch.Capture{Status: "ready", Commit: "c0ffee", Files: []orch.CheckpointFile{{Path: "a.txt", Kind: "modified", Additions: 1}}}, nil
}
func (c *snapshots) Restore(_ context.Context, _, ref string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.restored = append(c.restored, ref)
	return nil
}
func (c *snapshots) Delete(_ context.Context, _ string, refs []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deleted = append(c.deleted, refs...)
	return nil
}

// rig is an orchestrator on a real database with a scripted provider.
type rig struct {
	t     *testing.T
	ctx   context.Context
	path  string
	agent *stub
	other *stub // instance "other"; nil for none
	snaps *snapshots
	clock *clockwork.FakeClock
	seed  uint64
	store *sqlite.Store
	fail  func(req orch.CommitRequest) error // of a planned commit; nil for none
	// heard hears of every settlement that was stored; nil does not.
	heard func(s orch.Settlement)
	// asked hears which thread's due effects were asked for; nil does not.
	asked func(threadID string)
	*orch.Orchestrator
}

// flaky is a store whose commits can fail after they were planned, and with
// them settlements.
type flaky struct {
	orch.Store
	fail func(req orch.CommitRequest) error
}

// asked tells whose due effects were asked for.
type asked struct {
	orch.Store
	asked func(threadID string)
}

func (a asked) DueEffects(ctx context.Context, threadID string, now time.Time) ([]orch.DueEffect, error) {
	due, err := a.Store.DueEffects(ctx, threadID, now)
	a.asked(threadID)
	return due, err
}

// heard tells of settlements.
type heard struct {
	orch.Store
	heard func(s orch.Settlement)
}

func (h heard) SettleEffect(ctx context.Context, s orch.Settlement) (bool, error) {
	held, err := h.Store.SettleEffect(ctx, s)
	if held {
		h.heard(s)
	}
	return held, err
}

func (f flaky) SettleEffect(ctx context.Context, s orch.Settlement) (bool, error) {
	if err := f.fail(orch.CommitRequest{CommandType: "settle"}); err != nil {
		return false, err
	}
	return f.Store.SettleEffect(ctx, s)
}

func (f flaky) Commit(ctx context.Context, req orch.CommitRequest, decide func() (orch.Batch, error)) (orch.CommitResult, error) {
	return f.Store.Commit(ctx, req, func() (orch.Batch, error) {
		b, err := decide()
		if err == nil && len(b.Events) > 0 {
			err = f.fail(req)
		}
		return b, err
	})
}

func newRig(t *testing.T, agent *stub) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	r := &rig{
		t: t, ctx: ctx, path: filepath.Join(t.TempDir(), "orch.db"), agent: agent, snaps: &snapshots{}, seed: 1,
		clock: clockwork.NewFakeClockAt(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
	}
	return r
}

// start brings the orchestrator up on the rig's database.
func (r *rig) start() *rig {
	r.t.Helper()
	var err error
	if r.store, err = sqlite.Open(r.ctx, r.path); err != nil {
		r.t.Fatal(err)
	}
	store := orch.Store(r.store)
	if r.fail != nil {
		store = flaky{store, r.fail}
	}
	if r.heard != nil {
		store = heard{store, r.heard}
	}
	if r.asked != nil {
		store = asked{store, r.asked}
	}
	var seed [32]byte
	seed[0] = byte(r.seed)
	agents := map[string]orch.Agent{"codex": r.agent}
	if r.other != nil {
		agents["other"] = r.other
	}
	r.Orchestrator, err = orch.Start(r.ctx, orch.Config{
		Store: store, Agents: agents, Checkpoints: r.snaps,
		Clock: r.clock, Random: rand.NewChaCha8(seed), Log: slog.New(slog.NewTextHandler(r.t.Output(), nil)),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(r.stop)
	return r
}

// stop tears the orchestrator down; it can be started again.
func (r *rig) stop() {
	r.t.Helper()
	if r.Orchestrator == nil {
		return
	}
	if err := r.Shutdown(r.ctx); err != nil {
		r.t.Errorf("shutdown: %v", err)
	}
	if err := r.store.Close(); err != nil {
		r.t.Errorf("close store: %v", err)
	}
	r.Orchestrator = nil
}

func (r *rig) create(thread string) orch.Receipt {
	r.t.Helper()
	return r.do(orch.CreateThread{
		CommandID: "create-" + thread, ThreadID: thread, ProjectID: "p", Title: thread, WorktreePath: "/repo",
		ModelSelection: orch.ModelSelection{InstanceID: "codex", Model: "m"},
	})
}

func say(thread, id, text string) orch.DispatchMessage {
	return orch.DispatchMessage{CommandID: id, ThreadID: thread, MessageID: "msg-" + id, Text: text}
}

func (r *rig) do(c orch.Command) orch.Receipt {
	r.t.Helper()
	receipt, err := r.Dispatch(r.ctx, c)
	if err != nil {
		r.t.Fatalf("dispatch %+v: %v", c, err)
	}
	return receipt
}

// await follows the event stream until a thread's projection satisfies cond.
func (r *rig) await(thread, what string, cond func(p *orch.Projection) bool) *orch.Projection {
	r.t.Helper()
	p := &orch.Projection{}
	for e, err := range r.Events(r.ctx, 0) {
		if err != nil {
			r.t.Fatal(err)
		}
		if e.Event.ThreadID != thread {
			continue
		}
		if err := p.Apply(e); err != nil {
			r.t.Fatal(err)
		}
		if cond(p) {
			return p
		}
	}
	r.t.Fatalf("%s did not happen; projection: %s", what, pretty(p))
	return nil
}

// awaitRun waits until run n of a thread has a status.
func (r *rig) awaitRun(thread string, n int, status string) *orch.Projection {
	r.t.Helper()
	return r.await(thread, fmt.Sprintf("run %d %s", n, status), func(p *orch.Projection) bool {
		return len(p.Runs) >= n && p.Runs[n-1].Status == status
	})
}

// log reads the whole event log.
func (r *rig) log() []orch.StoredEvent {
	r.t.Helper()
	events, err := r.store.Events(r.ctx, 0, 1<<20)
	if err != nil {
		r.t.Fatal(err)
	}
	return events
}

func (r *rig) snapshot(thread string) (*orch.Projection, int64) {
	r.t.Helper()
	p, sequence, err := r.Snapshot(r.ctx, thread)
	if err != nil {
		r.t.Fatal(err)
	}
	return p, sequence
}

func pretty(v any) string {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		panic(err)
	}
	return string(b)
}

// lines is one event per line.
func lines(events []orch.StoredEvent) string {
	var b bytes.Buffer
	for _, e := range events {
		raw, err := json.Marshal(e)
		if err != nil {
			panic(err)
		}
		b.Write(raw)
		b.WriteByte('\n')
	}
	return b.String()
}

func join[T any](list []T, f func(T) string) string {
	var parts []string
	for _, v := range list {
		parts = append(parts, f(v))
	}
	return strings.Join(parts, " ")
}
