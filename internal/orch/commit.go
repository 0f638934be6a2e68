package orch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// commit plans on a thread and stores the outcome, in one transaction, under
// the thread's lane. With about.id it is a command and has a receipt. A plan
// without events is rejected for a command, and nothing for facts.
//
// The caller's cancellation does not reach the transaction: once planned, it
// is stored or it fails.
func (o *Orchestrator) commit(ctx context.Context, about about, planner func(*draft) error) (CommitResult, error) {
	ctx = context.WithoutCancel(ctx)
	lane := o.lanes.lock(about.threadID)
	defer o.lanes.unlock(lane)
	if about.whenIdle {
		if err := o.idle(ctx, about.threadID, about.end); err != nil {
			return CommitResult{}, err
		}
	}
	st, err := lane.load(ctx, o.store)
	if err != nil {
		return CommitResult{}, storeError{err}
	}
	req := CommitRequest{CommandID: about.id, CommandType: about.kind, ThreadID: about.threadID, Now: o.now()}
	effects := 0
	var refused error
	result, err := o.store.Commit(ctx, req, func() (batch Batch, err error) {
		defer func() { refused = err }()
		d := newDraft(st, req.Now, o.facts, o.seed, about.id)
		if err := planner(d); err != nil {
			return Batch{}, err
		}
		batch, err = d.finish()
		if err == nil && len(batch.Events) == 0 && about.id != "" {
			err = reject(CodeNothingToDo, "command changes nothing")
		}
		effects = len(batch.Effects)
		return batch, err
	})
	if err != nil {
		lane.state = nil // the draft may have changed it
		if refused == nil && !errors.Is(err, ErrConflict) {
			err = storeError{err}
		}
		return result, err
	}
	if result.Receipt.Duplicate || len(result.Events) == 0 {
		return result, nil
	}
	st.version += int64(len(result.Events))
	if effects > 0 {
		o.woken.broadcast()
	}
	o.changed.broadcast()
	return result, nil
}

// fact commits facts on a thread: what a provider said, or what an effect did.
// A fact is not lost to a full disk: it is stored when that is over.
func (o *Orchestrator) fact(ctx context.Context, threadID string, planner func(*draft) error) error {
	return o.insist(ctx, threadID, func() error {
		_, err := o.commit(ctx, about{threadID: threadID}, planner)
		return err
	})
}

// read calls f with a thread's projection, which f must neither keep nor
// change.
func (o *Orchestrator) read(ctx context.Context, threadID string, f func(p *Projection) error) error {
	return o.insist(ctx, threadID, func() error {
		lane := o.lanes.lock(threadID)
		defer o.lanes.unlock(lane)
		st, err := lane.load(ctx, o.store)
		if err != nil {
			return storeError{err}
		}
		return f(st.p)
	})
}

// storeError is the store's failure to do what it was asked, which says
// nothing about what that was.
type storeError struct{ error }

func (e storeError) Unwrap() error { return e.error }

// insist repeats what the store failed to do, ever more seldom, until it can
// or ctx ends.
func (o *Orchestrator) insist(ctx context.Context, threadID string, do func() error) error {
	for failures := 1; ; failures++ {
		err := do()
		if !errors.As(err, new(storeError)) || ctx.Err() != nil {
			return err
		}
		wait := backoff(failures)
		o.log.Error("the store fails", "thread", threadID, "retry", wait, "error", err)
		select {
		case <-o.clock.After(wait):
		case <-ctx.Done():
			return err
		}
	}
}

// lanes are the keyed locks of threads, each with the thread's state in
// memory, so that a commit need not read the thread again. The zero value
// works.
type lanes struct {
	mu    sync.Mutex
	lanes map[string]*lane
	clock int64 // counts uses
}

// lane is one thread's. Its state is owned by who holds mu; users and used
// belong to lanes.
type lane struct {
	threadID string
	mu       sync.Mutex
	state    *threadState // nil when not loaded
	users    int          // who holds or waits for mu
	used     int64
}

// maxIdleLanes is how many threads stay in memory without being in use.
const maxIdleLanes = 64

func (l *lanes) lock(threadID string) *lane {
	l.mu.Lock()
	if l.lanes == nil {
		l.lanes = map[string]*lane{}
	}
	ln := l.lanes[threadID]
	if ln == nil {
		ln = &lane{threadID: threadID}
		l.lanes[threadID] = ln
	}
	ln.users++
	l.mu.Unlock()
	ln.mu.Lock()
	return ln
}

func (l *lanes) unlock(ln *lane) {
	ln.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	ln.users--
	l.clock++
	ln.used = l.clock
	for len(l.lanes) > maxIdleLanes {
		var oldest *lane
		for _, other := range l.lanes {
			if other.users == 0 && (oldest == nil || other.used < oldest.used) {
				oldest = other
			}
		}
		if oldest == nil {
			return
		}
		delete(l.lanes, oldest.threadID)
	}
}

func (ln *lane) load(ctx context.Context, store Store) (*threadState, error) {
	if ln.state != nil {
		return ln.state, nil
	}
	p, stored, err := loadProjection(ctx, store, ln.threadID)
	if err != nil {
		return nil, fmt.Errorf("load thread %s: %w", ln.threadID, err)
	}
	ln.state = &threadState{p: p, version: stored.Version}
	return ln.state, nil
}

// errBusy says that a thread has a due effect, which goes first.
var errBusy = errors.New("thread has a due effect")

// idle fails with errBusy when a thread has a due effect that may still write
// facts before what its provider says next. end asks for the end of a session,
// which also waits for effects that only fail with it.
func (o *Orchestrator) idle(ctx context.Context, threadID string, end bool) error {
	due, err := o.store.DueEffects(ctx, threadID, o.now())
	if err != nil {
		return err
	}
	for _, e := range due {
		if !slices.Contains(silent, e.Type) && (end || !o.turns.given(e.ID)) {
			return errBusy
		}
	}
	return nil
}
