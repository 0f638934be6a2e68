package orch

import (
	"context"
	"errors"
	"slices"
)

// pump queues the provider's events until it is gone.
func (ss *session) pump() {
	for event := range ss.agent.Events() {
		ss.mu.Lock()
		ss.queue = append(ss.queue, &queued{event})
		if _, ok := event.(SessionEnded); ok {
			ss.ended = true
		}
		ss.mu.Unlock()
		ss.arrived.broadcast()
	}
	ss.mu.Lock()
	if !ss.ended { // the adapter broke its contract; its thread must not hang
		ss.ended = true
		ss.queue = append(ss.queue, &queued{SessionEnded{Err: errors.New("provider session ended without a word")}})
	}
	ss.drained = true
	ss.mu.Unlock()
	ss.arrived.broadcast()
}

// awaitEnd waits until the session's end is queued, so that the thread's next
// effect finds it.
func (ss *session) awaitEnd(ctx context.Context) error {
	for {
		arrived := ss.arrived.wait()
		if ss.hasEnded() {
			return nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (ss *session) hasEnded() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.ended
}

// head is the oldest queued event, nil when there is none; done is true when
// none will come.
func (ss *session) head() (head *queued, done bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if len(ss.queue) > 0 {
		return ss.queue[0], false
	}
	return nil, ss.drained
}

// own says that a native thread belongs to an app thread.
func (ss *session) own(nativeThreadID, threadID string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.threads[nativeThreadID] = threadID
}

// adopt says that a native thread belongs to a subagent's app thread.
func (ss *session) adopt(nativeThreadID, threadID, parent string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.threads[nativeThreadID] = threadID
	ss.parents[threadID] = parent
	if !slices.Contains(ss.bound, threadID) {
		ss.bound = append(ss.bound, threadID)
	}
}

// parent is the thread that a subagent's thread is below, "" of another.
func (ss *session) parent(threadID string) string {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.parents[threadID]
}

// maxEarly bounds the events that wait for their thread to be named.
const maxEarly = 4096

// keepEarly holds an event back until its thread is named; false when it is of
// no thread, or too much is held.
func (ss *session) keepEarly(event ProviderEvent) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if nativeThreadOf(event) == "" || len(ss.early) == maxEarly {
		return false
	}
	ss.early = append(ss.early, event)
	return true
}

// nextEarly returns the first event held for a thread; dropEarly takes it out.
func (ss *session) nextEarly(nativeThreadID string) ProviderEvent {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, event := range ss.early {
		if nativeThreadOf(event) == nativeThreadID {
			return event
		}
	}
	return nil
}

func (ss *session) dropEarly(nativeThreadID string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for i, event := range ss.early {
		if nativeThreadOf(event) == nativeThreadID {
			ss.early = slices.Delete(ss.early, i, i+1)
			return
		}
	}
}

// owns reports whether a native thread is loaded in the session.
func (ss *session) owns(nativeThreadID string) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	_, ok := ss.threads[nativeThreadID]
	return ok
}

// concerned lists the app threads that an event is about: those that use the
// session for its end, none for a native thread that nobody knows.
func (ss *session) concerned(event ProviderEvent) []string {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if _, ok := event.(SessionEnded); ok {
		return slices.Clone(ss.bound)
	}
	if thread, ok := ss.threads[nativeThreadOf(event)]; ok {
		return []string{thread}
	}
	return nil
}

func nativeThreadOf(event ProviderEvent) string {
	switch e := event.(type) {
	case TurnStarted:
		return e.NativeThreadID
	case TurnEnded:
		return e.NativeThreadID
	case ItemUpdated:
		return e.NativeThreadID
	case RequestOpened:
		return e.NativeThreadID
	case RequestClosed:
		return e.NativeThreadID
	case SubagentUpdated:
		return e.NativeThreadID
	case HeadChanged:
		return e.NativeThreadID
	}
	return ""
}
