package orch

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// ingestAll ingests a session's events, one after the other, each when its
// threads have no due effect, until the session's end or Shutdown.
func (o *Orchestrator) ingestAll(ss *session) {
	failures := 0
	for {
		arrived, changed := ss.arrived.wait(), o.changed.wait()
		head, done := ss.head()
		if head == nil && done {
			return
		}
		var err error
		if head != nil {
			err = o.ingestHead(ss, head)
		}
		switch {
		case o.ctx.Err() != nil:
			return
		case head == nil:
			select {
			case <-arrived:
			case <-o.ctx.Done():
				return
			}
		case err == nil:
			failures = 0
		case errors.Is(err, errBusy):
			select {
			case <-changed:
			case <-o.ctx.Done():
				return
			}
		default:
			// The event stays where it is: a fact of the provider is not lost
			// to a full disk. Later events queue up behind it.
			failures++
			o.log.Error("ingest provider event", "session", ss.id, "error", err)
			select {
			case <-o.clock.After(backoff(failures)):
			case <-o.ctx.Done():
				return
			}
		}
	}
}

// ingestHead ingests an event if it is still the oldest; errBusy when one of
// its threads has a due effect.
func (o *Orchestrator) ingestHead(ss *session, event *queued) error {
	ss.ingest.Lock()
	defer ss.ingest.Unlock()
	if err := o.ctx.Err(); err != nil {
		return err // what Shutdown closes is for the next recovery to tell
	}
	if head, _ := ss.head(); head != event {
		return nil // an effect drained the queue
	}
	return o.ingestOne(o.ctx, ss, event.event, true)
}

// drain ingests all that is queued without waiting for effects; with short all
// but the session's end. An effect calls it that found its session ended.
func (o *Orchestrator) drain(ctx context.Context, ss *session, short bool) error {
	ss.ingest.Lock()
	defer ss.ingest.Unlock()
	for {
		head, _ := ss.head()
		if head == nil {
			return nil
		}
		if _, end := head.event.(SessionEnded); end && short {
			return nil
		}
		if err := o.ingestOne(ctx, ss, head.event, false); err != nil {
			return err
		}
	}
}

// ingestOne stores what the oldest event means and takes it from the queue.
// The caller holds ss.ingest. After an error it can be called again.
func (o *Orchestrator) ingestOne(ctx context.Context, ss *session, event ProviderEvent, whenIdle bool) error {
	if err := o.ingestEvent(ctx, ss, event, whenIdle); err != nil {
		return err
	}
	if _, end := event.(SessionEnded); end {
		o.sessions.remove(ss)
	}
	ss.mu.Lock()
	ss.used = o.clock.Now()
	ss.queue[0] = nil
	ss.queue = ss.queue[1:]
	ss.mu.Unlock()
	return nil
}

// ingestEvent stores what an event means for the threads it concerns.
func (o *Orchestrator) ingestEvent(ctx context.Context, ss *session, event ProviderEvent, whenIdle bool) error {
	threads := ss.concerned(event)
	from := ss.source
	_, end := event.(SessionEnded)
	if end {
		from = ss.ending()
	}
	if len(threads) == 0 && whenIdle {
		// Perhaps a thread that a running effect is about to own.
		ss.mu.Lock()
		bound := slices.Clone(ss.bound)
		ss.mu.Unlock()
		for _, thread := range bound {
			if err := o.idle(ctx, thread, false); err != nil {
				return err
			}
		}
		threads = ss.concerned(event)
	}
	if len(threads) == 0 && !ss.keepEarly(event) {
		o.log.Warn("provider event of an unknown thread", "session", ss.id, "event", fmt.Sprintf("%T", event))
	}
	for _, thread := range threads {
		if whenIdle {
			// What a child says may come before or after an effect of the thread
			// above it, a checkpoint say. The log must not depend on which was
			// faster.
			for above := ss.parent(thread); above != ""; above = ss.parent(above) {
				if err := o.idle(ctx, above, end); err != nil {
					return err
				}
			}
		}
		var err error
		if e, ok := event.(SubagentUpdated); ok {
			err = o.ingestSubagent(ctx, ss, thread, e, whenIdle)
		} else {
			_, err = o.commit(ctx, about{threadID: thread, whenIdle: whenIdle, end: end}, func(d *draft) error {
				return ingest(d, from, event)
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ingestEarly ingests what a thread said before it was named.
func (o *Orchestrator) ingestEarly(ctx context.Context, ss *session, nativeThreadID string, whenIdle bool) error {
	for {
		event := ss.nextEarly(nativeThreadID)
		if event == nil {
			return nil
		}
		if err := o.ingestEvent(ctx, ss, event, whenIdle); err != nil {
			return err
		}
		ss.dropEarly(nativeThreadID)
	}
}
