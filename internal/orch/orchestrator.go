package orch

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jonboulle/clockwork"
)

// Config is what an orchestrator needs.
type Config struct {
	Store       Store            // required; the caller closes it after Shutdown
	Agents      map[string]Agent // by provider instance id: "codex"
	Checkpoints Checkpoints      // nil: every checkpoint is missing
	Clock       clockwork.Clock  // nil: the real one
	Random      io.Reader        // nil: crypto/rand; 32 bytes are read at start
	Log         *slog.Logger     // nil: discard
	// Diagnostics receives the raw frames of a provider instance for a rotating
	// log; nil drops them.
	Diagnostics func(instanceID string, outbound bool, wire []byte)
}

// Orchestrator carries out commands on threads and lets providers work for
// them. Safe for concurrent use.
//
// Order of facts (what makes a log repeatable). Per thread, exactly one of
// these writes at a time, under the thread's lane: a command, a step of an
// effect, or the ingestion of one provider event. And:
//
//  1. An effect that was committed before a provider event is ingested has
//     written its facts before it: ingestion of a thread's event waits while
//     the thread has a due effect that may still write. So checkpoints stand
//     before what the provider says next.
//  2. Effects of a thread run one at a time, in the order of their commits;
//     those that act on a turn (interrupt, restart, steer, respond) have an
//     order of their own, and run beside one of the others that waits for the
//     provider.
//  3. A turn's start writes its facts (baseline, session, provider thread)
//     before the provider is given the turn. From then on it writes nothing
//     unless it fails, so nothing waits for it but the end of the session: a
//     turn that could not be given fails before the provider's end is told,
//     and after all that the provider said before it died.
//  4. An effect that asks a turn to stop writes nothing at all, and nothing
//     waits for it: that the turn ended is the provider's to say. When it does
//     not, the clock ends the turn, interruptGrace after the effect.
//  5. Events of one session are ingested in the order of AgentSession.Events,
//     also where they concern different threads.
//  6. Time comes from Config.Clock, ids from the seed and the thread's version.
//
// What remains to chance is only what the world decides: whether a command
// comes before or after a provider event, how threads that use different
// sessions interleave in the log, and whether a refused start comes before
// what the provider said meanwhile of older turns.
type Orchestrator struct {
	store       Store
	agents      map[string]Agent
	facts       map[string]agentFacts
	checkpoints Checkpoints
	clock       clockwork.Clock
	seed        seed
	log         *slog.Logger
	diagnostics func(string, bool, []byte)

	lanes    lanes
	sessions sessions
	turns    givenTurns
	changed  signal // after every commit and settlement
	woken    signal // when an effect may have become due

	ctx    context.Context // ends at Shutdown
	stop   context.CancelFunc
	closed atomic.Bool
	wg     sync.WaitGroup // every goroutine but those of subscribers
}

// ErrShutdown is returned by Dispatch after Shutdown.
var ErrShutdown = errors.New("orchestrator is shut down")

// Start recovers what an earlier process left in the store, then runs workers
// until Shutdown. ctx bounds the recovery only.
func Start(ctx context.Context, cfg Config) (*Orchestrator, error) {
	if cfg.Store == nil {
		return nil, errors.New("start orchestrator: no store")
	}
	o := &Orchestrator{
		store: cfg.Store, agents: cfg.Agents, checkpoints: cfg.Checkpoints, clock: cfg.Clock,
		log: cfg.Log, diagnostics: cfg.Diagnostics, facts: map[string]agentFacts{},
	}
	if o.checkpoints == nil {
		o.checkpoints = noCheckpoints{}
	}
	if o.clock == nil {
		o.clock = clockwork.NewRealClock()
	}
	if o.log == nil {
		o.log = slog.New(slog.DiscardHandler)
	}
	random := cfg.Random
	if random == nil {
		random = rand.Reader
	}
	if _, err := io.ReadFull(random, o.seed[:]); err != nil {
		return nil, fmt.Errorf("start orchestrator: read seed: %w", err)
	}
	for id, agent := range cfg.Agents {
		o.facts[id] = agentFacts{driver: agent.Driver(), capabilities: agent.Capabilities()}
	}
	o.ctx, o.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := o.recover(ctx); err != nil {
		o.stop()
		return nil, fmt.Errorf("recover: %w", err)
	}
	for n := range effectWorkers {
		o.wg.Go(func() { o.work(n) })
	}
	// The clocks of both are set before anyone can let time pass.
	ticker, idle := o.clock.NewTicker(effectPoll), o.clock.NewTimer(idleRelease)
	o.wg.Go(func() { o.poll(ticker) })
	o.wg.Go(func() { o.reap(idle) })
	return o, nil
}

// Dispatch carries out a command, at most once per command id. A repeated id
// returns the first receipt with Duplicate set. A refused command returns its
// rejected receipt and a *RejectedError, which matches ErrPreviouslyRejected
// when it was refused before.
func (o *Orchestrator) Dispatch(ctx context.Context, c Command) (Receipt, error) {
	if o.closed.Load() {
		return Receipt{}, ErrShutdown
	}
	if err := ctx.Err(); err != nil {
		return Receipt{}, err
	}
	about := c.about()
	if about.id == "" {
		return Receipt{}, reject(CodeInvalid, "command has no id")
	}
	if about.threadID == "" {
		switch c.(type) {
		case CreateThread, ForkThread:
			about.threadID = o.seed.id("thread", about.id)
		default:
			return Receipt{}, reject(CodeInvalid, "command has no thread id")
		}
	}
	c, err := o.withSource(ctx, c)
	if err != nil {
		return Receipt{}, err
	}
	result, err := o.commit(ctx, about, func(d *draft) error { return plan(d, c) })
	if err != nil {
		return result.Receipt, err
	}
	if r := result.Receipt; r.Duplicate && r.Status == "rejected" {
		return r, &RejectedError{Code: r.Code, Message: r.Error, Previous: true}
	}
	return result.Receipt, nil
}

// ErrUnknownThread is returned by Snapshot.
var ErrUnknownThread = errors.New("unknown thread")

// Snapshot returns a thread and the sequence of the log it stands at: the
// thread's events after it, folded in, give every later state.
func (o *Orchestrator) Snapshot(ctx context.Context, threadID string) (*Projection, int64, error) {
	p, stored, err := loadProjection(ctx, o.store, threadID)
	if err != nil {
		return nil, 0, fmt.Errorf("snapshot of %s: %w", threadID, err)
	}
	if stored.Version == 0 {
		return nil, stored.Sequence, fmt.Errorf("snapshot: %w %q", ErrUnknownThread, threadID)
	}
	return p, stored.Sequence, nil
}

// Shell lists all threads.
func (o *Orchestrator) Shell(ctx context.Context) (*ShellSnapshot, error) {
	rows, err := o.store.Shell(ctx)
	if err != nil {
		return nil, fmt.Errorf("shell: %w", err)
	}
	return newShell(rows)
}

// Shutdown stops the workers, closes the provider sessions and waits for all
// goroutines, until ctx ends. It writes nothing: what it interrupts is settled
// by the recovery of the next Start, as after a crash.
func (o *Orchestrator) Shutdown(ctx context.Context) error {
	o.closed.Store(true)
	o.stop()
	err := o.sessions.closeAll(ctx)
	done := make(chan struct{})
	go func() {
		o.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		// A worker may have opened a session while the others were closed.
		return errors.Join(err, o.sessions.closeAll(ctx))
	case <-ctx.Done():
		return errors.Join(err, ctx.Err())
	}
}

// now is the time of facts: UTC, whole milliseconds, so that it survives JSON.
func (o *Orchestrator) now() time.Time { return o.clock.Now().UTC().Truncate(time.Millisecond) }

// signal wakes everyone who waits. The zero value works.
type signal struct {
	mu sync.Mutex
	ch chan struct{}
}

// wait returns a channel that the next broadcast closes. Take it before the
// condition is read, or a broadcast in between is missed.
func (s *signal) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) broadcast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}
