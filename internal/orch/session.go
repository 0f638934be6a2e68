package orch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// sessions are the live provider sessions of this process. The zero value
// works.
type sessions struct {
	mu     sync.Mutex
	live   map[string]*session // by session id
	closed bool                // no more sessions are taken
	// opening serializes Open per session id, so that two threads that share a
	// session start one process.
	opening map[string]*sync.Mutex
}

// session is one live provider session. A pump moves the provider's events
// into a queue without bound, so that the provider is never held up by what
// its events wait for; an ingester takes them from there.
type session struct {
	id       string
	instance string
	source   source
	agent    AgentSession
	arrived  signal // something was queued, or the pump ended
	ingest   sync.Mutex

	mu       sync.Mutex
	queue    []*queued
	drained  bool              // no more events will be queued
	used     time.Time         // when it was last used
	released string            // why it is being closed; "" while it is not
	ended    bool              // SessionEnded was queued
	threads  map[string]string // native thread id to app thread id
	bound    []string          // app threads that use the session, in order of arrival
	parents  map[string]string // of the bound threads that are subagents', the parent
	early    []ProviderEvent   // of native threads that nobody has named yet
}

// queued is one event in a session's queue; its address tells it from others.
type queued struct{ event ProviderEvent }

func (s *sessions) get(id string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live[id]
}

// lockOpening serializes the opening of one session id.
func (s *sessions) lockOpening(id string) *sync.Mutex {
	s.mu.Lock()
	if s.opening == nil {
		s.opening = map[string]*sync.Mutex{}
	}
	mu := s.opening[id]
	if mu == nil {
		mu = &sync.Mutex{}
		s.opening[id] = mu
	}
	s.mu.Unlock()
	mu.Lock()
	return mu
}

// add takes a session in; after closeAll it reports false, and the caller
// closes the session.
func (s *sessions) add(ss *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if s.live == nil {
		s.live = map[string]*session{}
	}
	s.live[ss.id] = ss
	return true
}

// remove forgets a session that ended, unless its id was taken over.
func (s *sessions) remove(ss *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live[ss.id] == ss {
		delete(s.live, ss.id)
	}
}

// closeAll closes every session at once and takes no more.
func (s *sessions) closeAll(ctx context.Context) error {
	s.mu.Lock()
	var all []*session
	for _, ss := range s.live {
		all = append(all, ss)
	}
	s.live, s.closed = nil, true
	s.mu.Unlock()
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, ss := range all {
		wg.Go(func() {
			if err := ss.agent.Close(ctx); err != nil {
				errs[i] = fmt.Errorf("close session %s: %w", ss.id, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// openSession returns the live session that a thread's turn goes to, opening
// it if need be, and writes what that means for the thread.
func (o *Orchestrator) openSession(ctx context.Context, threadID, instance string, cfg SessionConfig) (*session, error) {
	for {
		id, err := o.sessionFor(ctx, threadID, instance)
		if err != nil {
			return nil, err
		}
		opening := o.sessions.lockOpening(id)
		ss := o.sessions.get(id)
		if ss == nil || !ss.hasEnded() {
			defer opening.Unlock()
			if ss != nil {
				ss.use(o.clock.Now())
				return ss, o.bind(ctx, ss, threadID, cfg)
			}
			return o.startSession(ctx, threadID, id, instance, cfg)
		}
		// The provider is gone but its last words are not ingested yet. They
		// come before what happens now.
		err = o.drain(ctx, ss, false)
		opening.Unlock()
		if err != nil {
			return nil, err
		}
	}
}

// startSession opens a provider session.
func (o *Orchestrator) startSession(ctx context.Context, threadID, id, instance string, cfg SessionConfig) (*session, error) {
	facts := o.facts[instance]
	entity := ProviderSession{
		ID: id, Driver: facts.driver, ProviderInstanceID: instance, Cwd: cfg.Cwd, Model: cfg.Model,
		Capabilities: facts.capabilities,
	}
	update := func(eventType, status, lastError string) error {
		return o.fact(ctx, threadID, func(d *draft) error {
			entity.Status, entity.LastError, entity.UpdatedAt = status, Ref(lastError), d.now
			if status == "error" {
				entity.ReleaseReason = releaseError
			}
			if entity.CreatedAt.IsZero() {
				entity.CreatedAt = d.now
			}
			d.putAs(eventType, entity)
			return nil
		})
	}
	if err := update(EventSessionAttached, "starting", ""); err != nil {
		return nil, err
	}
	if o.diagnostics != nil {
		cfg.Diagnostics = func(outbound bool, wire []byte) { o.diagnostics(instance, outbound, wire) }
	}
	opening, cancel := o.timeout(ctx, openTimeout)
	defer cancel()
	agent, err := o.agents[instance].Open(opening, cfg)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		err = fmt.Errorf("open provider session: %w", err)
		return nil, errors.Join(err, update(EventSessionUpdated, "error", err.Error()))
	}
	ss := &session{
		id: id, instance: instance, agent: agent,
		source: source{
			sessionID: id, instance: instance, driver: facts.driver,
			capabilities: facts.capabilities, log: o.log,
		},
		threads: map[string]string{}, bound: []string{threadID}, parents: map[string]string{}, used: o.clock.Now(),
	}
	o.wg.Go(ss.pump)
	if !o.sessions.add(ss) {
		return nil, errors.Join(ErrShutdown, agent.Close(ctx))
	}
	// From here on the provider's events are ingested, but none of this thread
	// before the effect that opened the session is done.
	o.wg.Go(func() { o.ingestAll(ss) })
	return ss, update(EventSessionUpdated, "ready", "")
}

// openTimeout bounds a provider's start.
const openTimeout = 2 * time.Minute

// timeout is context.WithTimeout on the orchestrator's clock.
func (o *Orchestrator) timeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := o.clock.AfterFunc(d, func() { cancel(context.DeadlineExceeded) })
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}

// sessionFor is the id of the session that a thread's next turn goes to: the
// instance's own where one session holds many threads, else the one the
// thread has open, else a new one.
func (o *Orchestrator) sessionFor(ctx context.Context, threadID, instance string) (string, error) {
	if o.facts[instance].capabilities.ThreadsPerSession {
		return sharedSessionID(instance), nil
	}
	id := ""
	err := o.fact(ctx, threadID, func(d *draft) error {
		for _, s := range slices.Backward(d.p.ProviderSessions) {
			if s.ProviderInstanceID == instance && s.Status != "stopped" && s.Status != "error" && o.sessions.get(s.ID) != nil {
				id = s.ID
				return nil
			}
		}
		id = d.newID("provider-session")
		return nil
	})
	return id, err
}

// bind lets one more thread use a live session.
func (o *Orchestrator) bind(ctx context.Context, ss *session, threadID string, cfg SessionConfig) error {
	ss.mu.Lock()
	known := slices.Contains(ss.bound, threadID)
	if !known {
		ss.bound = append(ss.bound, threadID)
	}
	ss.mu.Unlock()
	if known {
		return nil
	}
	return o.fact(ctx, threadID, func(d *draft) error {
		d.putAs(EventSessionAttached, ProviderSession{
			ID: ss.id, Driver: ss.source.driver, ProviderInstanceID: ss.instance, Status: "ready",
			Cwd: cfg.Cwd, Model: cfg.Model, Capabilities: ss.source.capabilities, CreatedAt: d.now, UpdatedAt: d.now,
		})
		return nil
	})
}

// detach ends a thread's use of a session, and the session with its last
// thread.
func (o *Orchestrator) detach(ctx context.Context, threadID, sessionID string) error {
	ss := o.sessions.get(sessionID)
	if ss == nil {
		return nil
	}
	ss.mu.Lock()
	own := func(id string) bool { // the thread's subagents go with it
		for id != threadID && ss.parents[id] != "" {
			id = ss.parents[id]
		}
		return id == threadID
	}
	last := !slices.ContainsFunc(ss.bound, func(id string) bool { return !own(id) })
	var leaving []string
	if !last {
		leaving = slices.DeleteFunc(slices.Clone(ss.bound), func(id string) bool { return !own(id) })
		ss.bound = slices.DeleteFunc(ss.bound, own)
	}
	ss.mu.Unlock()
	if last {
		ss.releaseFor(releaseManual)
		if err := ss.agent.Close(ctx); err != nil {
			return err
		}
		return ss.awaitEnd(ctx)
	}
	for _, id := range leaving {
		err := o.fact(ctx, id, func(d *draft) error {
			if session, ok := lookup(d.p, d.p.ProviderSessions, sessionID); ok {
				stopSession(d, session, "failed", "provider session was detached", releaseManual)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
