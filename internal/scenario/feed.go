package scenario

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// feed reads the event stream and lets steps wait on it. One goroutine reads;
// it owns nothing but the state behind mu, and stop waits for it.
type feed struct {
	stop func()
	done chan struct{} // closed when the reader has ended

	mu      sync.Mutex
	events  []orch.StoredEvent
	runs    map[string]*runHistory      // by run id
	threads map[string]*orch.Projection // by thread id
	order   []string                    // thread ids, in order of creation
	err     error
	changed chan struct{} // closed and replaced at every change
}

// runHistory is what a run is and has been.
type runHistory struct {
	orch.Run
	seen map[string]bool
}

// follow starts a feed of the events after a sequence, beginning with the
// history of those before.
func follow(ctx context.Context, o *orch.Orchestrator, before []orch.StoredEvent) *feed {
	ctx, cancel := context.WithCancel(ctx)
	f := &feed{done: make(chan struct{}), runs: map[string]*runHistory{}, changed: make(chan struct{})}
	var after int64
	for _, e := range before {
		f.add(e, nil)
		after = e.Sequence
	}
	f.stop = func() { cancel(); <-f.done }
	go func() {
		defer close(f.done)
		f.read(o.Events(ctx, after))
	}()
	return f
}

func (f *feed) read(stream iter.Seq2[orch.StoredEvent, error]) {
	for e, err := range stream {
		if err != nil && errors.Is(err, context.Canceled) {
			return
		}
		f.add(e, err)
	}
}

// add is the only place where the state changes.
func (f *feed) add(e orch.StoredEvent, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		f.events = append(f.events, e)
		err = f.track(e)
	}
	if err != nil && f.err == nil {
		f.err = fmt.Errorf("event stream: %w", err)
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *feed) track(e orch.StoredEvent) error {
	if e.Event.Type == "" {
		return nil // stands for what a snapshot holds
	}
	if err := f.fold(e); err != nil {
		return err
	}
	if !strings.HasPrefix(e.Event.Type, "run.") {
		return nil
	}
	p, err := alone(e)
	if err != nil {
		return err
	}
	for _, run := range p.Runs {
		h := f.runs[run.ID]
		if h == nil {
			h = &runHistory{seen: map[string]bool{}}
			f.runs[run.ID] = h
		}
		h.Run = run
		h.seen[run.Status] = true
	}
	return nil
}

// fold adds an event to its thread.
func (f *feed) fold(e orch.StoredEvent) error {
	p := f.threads[e.Event.ThreadID]
	if p == nil {
		if f.threads == nil {
			f.threads = map[string]*orch.Projection{}
		}
		p = &orch.Projection{Thread: orch.AppThread{ID: e.Event.ThreadID}}
		f.threads[e.Event.ThreadID] = p
		f.order = append(f.order, e.Event.ThreadID)
	}
	if err := p.Apply(e); err != nil {
		return fmt.Errorf("event %d: %w", e.Sequence, err)
	}
	return nil
}

// alone returns a projection that holds nothing but what one event carries.
func alone(e orch.StoredEvent) (*orch.Projection, error) {
	var p orch.Projection
	if err := p.Apply(e); err != nil {
		return nil, fmt.Errorf("event %d: %w", e.Sequence, err)
	}
	return &p, nil
}

// errPending is what a condition returns while it may still come true.
var errPending = errors.New("pending")

// wait returns when cond does not return errPending any more, with what it
// returns. cond is called under the lock, once at the start and after every
// event. When ctx ends first the error says what pending says.
func (f *feed) wait(ctx context.Context, cond func(*feed) error, pending func(*feed) string) error {
	for {
		f.mu.Lock()
		err, changed := f.err, f.changed
		if err == nil {
			err = cond(f)
		}
		f.mu.Unlock()
		if err != errPending {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			f.mu.Lock()
			defer f.mu.Unlock()
			return fmt.Errorf("%s: %w", pending(f), ctx.Err())
		}
	}
}

// reached waits until the feed holds a sequence.
func (f *feed) reached(ctx context.Context, sequence int64) error {
	return f.wait(ctx, func(f *feed) error {
		if f.last() < sequence {
			return errPending
		}
		return nil
	}, func(f *feed) string {
		return fmt.Sprintf("event stream stands at sequence %d, wanted %d", f.last(), sequence)
	})
}

// last returns the last sequence, 0 before the first. The caller holds mu.
func (f *feed) last() int64 {
	if len(f.events) == 0 {
		return 0
	}
	return f.events[len(f.events)-1].Sequence
}

// all returns a copy of the events so far.
func (f *feed) all() []orch.StoredEvent {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]orch.StoredEvent(nil), f.events...)
}

// run returns the run of a thread with an ordinal; nil when there is none. The
// caller holds mu.
func (f *feed) run(thread string, ordinal int) *runHistory {
	for _, r := range f.runs {
		if r.ThreadID == thread && r.Ordinal == ordinal {
			return r
		}
	}
	return nil
}

// active describes the runs of a thread that are not terminal, sorted. The
// caller holds mu.
func (f *feed) active(thread string) []string {
	var runs []string
	for _, run := range f.runs {
		if run.ThreadID == thread && !terminal(run.Status) {
			runs = append(runs, fmt.Sprintf("run %d is %s", run.Ordinal, run.Status))
		}
	}
	slices.Sort(runs)
	return runs
}

func terminal(runStatus string) bool {
	switch runStatus {
	case "completed", "interrupted", "failed", "cancelled", "rolled_back":
		return true
	}
	return false
}

// lastEvents describes the end of a log, for failures.
func lastEvents(events []orch.StoredEvent, most int) string {
	if len(events) == 0 {
		return "no events"
	}
	var b strings.Builder
	b.WriteString("last events:")
	for _, e := range events[max(0, len(events)-most):] {
		fmt.Fprintf(&b, "\n  %s", Describe(e))
	}
	return b.String()
}

// Describe returns one event in one line: sequence, type, and what its entity
// is.
func Describe(e orch.StoredEvent) string {
	text := fmt.Sprintf("%4d %s", e.Sequence, e.Event.Type)
	entity := gjson.GetBytes(e.Event.Payload, "entity")
	for _, key := range []string{"type", "kind", "id", "status"} {
		if v := entity.Get(key).String(); v != "" {
			text += " " + v
		}
	}
	if v := entity.Get("lastError").String(); v != "" {
		text += ": " + shorten(strings.ReplaceAll(v, "\n", " "), 200)
	}
	return text
}
