package agent

import (
	"sync"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// eventQueue hands provider events to one reader. It is unbounded: push never
// blocks and never drops, so a slow reader holds up neither the answers to
// pending calls nor the provider itself. The reader drains out to its end,
// which follows close; only then the pump's goroutine is gone.
type eventQueue struct {
	out  chan orch.ProviderEvent
	wake chan struct{} // holds a token when the pump has something to see
	done chan struct{} // closed when the pump is gone

	mu     sync.Mutex
	events []orch.ProviderEvent
	closed bool
}

func newEventQueue() *eventQueue {
	q := &eventQueue{
		out:  make(chan orch.ProviderEvent),
		wake: make(chan struct{}, 1),
		done: make(chan struct{}),
	}
	go q.pump()
	return q
}

// push queues e. Events after close are lost.
func (q *eventQueue) push(e orch.ProviderEvent) {
	q.update(func() {
		if !q.closed {
			q.events = append(q.events, e)
		}
	})
}

// close ends out once the queued events are read. Idempotent.
func (q *eventQueue) close() { q.update(func() { q.closed = true }) }

// end tells that the session is over and closes.
func (q *eventQueue) end(err error) {
	q.push(orch.SessionEnded{Err: err})
	q.close()
}

func (q *eventQueue) update(f func()) {
	q.mu.Lock()
	f()
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default: // a token is there already
	}
}

func (q *eventQueue) pump() {
	defer close(q.done)
	defer close(q.out)
	for range q.wake {
		q.mu.Lock()
		batch, closed := q.events, q.closed
		q.events = nil
		q.mu.Unlock()
		for _, e := range batch {
			q.out <- e
		}
		if closed {
			return
		}
	}
}

// discard reads and drops everything to the end; for a session that nobody
// was given.
func (q *eventQueue) discard() {
	for range q.out {
	}
	<-q.done
}
