package orch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"
)

// idleRelease is how long a provider session is kept that nobody uses. The
// next message opens a new one and resumes the thread in it.
const idleRelease = 30 * time.Minute

// Why a session ended, as its entity tells.
const (
	releaseIdle     = "idle_timeout"    // nobody used it for idleRelease
	releaseError    = "runtime_error"   // the provider ended by itself
	releaseManual   = "manual_shutdown" // it was detached
	releaseShutdown = "server_shutdown" // the orchestrator ended
)

// reap releases idle sessions, each when its time has come, until Shutdown.
// timer ends when the first session can be idle.
func (o *Orchestrator) reap(timer clockwork.Timer) {
	defer timer.Stop()
	for {
		select {
		case <-timer.Chan():
		case <-o.ctx.Done():
			return
		}
		next := o.releaseIdle(o.clock.Now())
		timer.Reset(next.Sub(o.clock.Now()))
		if !o.clock.Now().Before(next) {
			timer.Reset(0) // time passed before the timer was set
		}
	}
}

// releaseIdle releases the sessions that are idle at now and returns when the
// next one can be. Use only puts that off, and a session that is opened
// meanwhile comes later.
func (o *Orchestrator) releaseIdle(now time.Time) time.Time {
	next := now.Add(idleRelease)
	var wg sync.WaitGroup
	for _, ss := range o.sessions.all() {
		if due := ss.lastUse().Add(idleRelease); due.After(now) {
			if due.Before(next) {
				next = due
			}
			continue
		}
		wg.Go(func() {
			if err := o.release(o.ctx, ss, now); err != nil && o.ctx.Err() == nil {
				o.log.Error("release an idle session", "session", ss.id, "error", err)
			}
		})
	}
	wg.Wait()
	return next
}

// release closes a session, unless it is in use. Whoever comes for it
// meanwhile waits until it is gone, and opens another.
func (o *Orchestrator) release(ctx context.Context, ss *session, now time.Time) error {
	opening := o.sessions.lockOpening(ss.id)
	defer opening.Unlock()
	if ss.hasEnded() || ss.lastUse().Add(idleRelease).After(now) {
		return nil
	}
	if busy, err := o.inUse(ctx, ss); busy || err != nil {
		return err
	}
	ss.releaseFor(releaseIdle)
	return errors.Join(ss.agent.Close(ctx), ss.awaitEnd(ctx))
}

// inUse reports whether a thread has work on a session, or is about to.
func (o *Orchestrator) inUse(ctx context.Context, ss *session) (bool, error) {
	ss.mu.Lock()
	bound := slices.Clone(ss.bound)
	ss.mu.Unlock()
	for _, thread := range bound {
		busy := false
		err := o.read(ctx, thread, func(p *Projection) error {
			busy = p.works(ss.id)
			return nil
		})
		if busy || err != nil {
			return busy, err
		}
		due, err := o.store.DueEffects(ctx, thread, o.now())
		if err != nil {
			return false, err
		}
		// The replay-safe ones need no provider.
		if slices.ContainsFunc(due, func(e DueEffect) bool { return !slices.Contains(replaySafe, e.Type) }) {
			return true, nil
		}
	}
	return false, nil
}

// works reports whether something of a thread is not over that needs a
// session: a run, a question to the user, or a turn of a child that outlived
// its parent's.
func (p *Projection) works(session string) bool {
	if _, live := p.liveRun(); live {
		return true
	}
	for _, request := range p.RuntimeRequests {
		if request.Status == "pending" && request.ResponseCapability.ProviderSessionID == session {
			return true
		}
	}
	for _, child := range p.Subagents {
		if !isTerminal(KindSubagent, child.Status) {
			return true
		}
	}
	return slices.ContainsFunc(p.ProviderTurns, func(turn ProviderTurn) bool {
		thread, _ := lookup(p, p.ProviderThreads, turn.ProviderThreadID)
		return string(thread.ProviderSessionID) == session && !isTerminal(KindProviderTurn, turn.Status)
	})
}

// all lists the live sessions.
func (s *sessions) all() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*session
	for _, ss := range s.live {
		all = append(all, ss)
	}
	return all
}

// use says that the session is used now.
func (ss *session) use(now time.Time) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.used = now
}

func (ss *session) lastUse() time.Time {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.used
}

// releaseFor says why the session is about to be closed.
func (ss *session) releaseFor(reason string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.released = reason
}

// ending is the source of the session's end, with the reason for it.
func (ss *session) ending() source {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s := ss.source
	s.released = or(ss.released, releaseShutdown)
	return s
}
