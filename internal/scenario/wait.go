package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// deadline bounds a step. A live provider gets more time.
func (r *runner) deadline(ctx context.Context, timeout Duration) (context.Context, context.CancelFunc) {
	d := timeout.or(r.sc.Timeout.or(DefaultTimeout))
	if r.cfg.Live != nil {
		d = max(d, liveTimeout)
	}
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("timed out after %s", d))
}

// awaitRun waits until a run has had a status. It fails at once when the run
// ended otherwise.
func (r *runner) awaitRun(ctx context.Context, timeout Duration, name string, ordinal int, status string) error {
	ctx, cancel := r.deadline(ctx, timeout)
	defer cancel()
	err := r.feed.wait(ctx, func(f *feed) error {
		run := f.run(r.threadIn(f, name), ordinal)
		switch {
		case run != nil && run.seen[status]:
			return nil
		case run != nil && terminal(run.Status) && status != "rolled_back":
			return fmt.Errorf("run %d %s, but it is %s%s", ordinal, status, run.Status, sessionErrors(f.events))
		}
		return errPending
	}, func(f *feed) string {
		is := "there is no such run"
		if run := f.run(r.threadIn(f, name), ordinal); run != nil {
			is = "it is " + run.Status
		}
		return fmt.Sprintf("run %d %s, but %s", ordinal, status, is)
	})
	return r.waited(ctx, err)
}

// awaitIdle waits until every run of the thread is terminal, those of
// commands dispatched so far included.
func (r *runner) awaitIdle(ctx context.Context, timeout Duration) error {
	ctx, cancel := r.deadline(ctx, timeout)
	defer cancel()
	var least int64
	for _, d := range r.commands {
		least = max(least, d.sequence)
	}
	err := r.feed.wait(ctx, func(f *feed) error {
		if f.last() < least || len(f.active(r.thread)) > 0 {
			return errPending
		}
		return nil
	}, func(f *feed) string {
		return "an idle thread, but " + strings.Join(f.active(r.thread), ", ")
	})
	return r.waited(ctx, err)
}

// idle tells whether no run is known that is not terminal.
func (r *runner) idle() bool {
	r.feed.mu.Lock()
	defer r.feed.mu.Unlock()
	return len(r.feed.active(r.thread)) == 0
}

// waited gives a failed wait its layer, the cause of its end and the events
// before it.
func (r *runner) waited(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%v (%w)", strings.TrimSuffix(err.Error(), ": "+ctx.Err().Error()), cause)
	}
	return &failure{Adapter, fmt.Errorf("%w %w\n%s", errAwaited, err, lastEvents(r.feed.all(), 6))}
}

// errAwaited marks what did not come, whosever fault it is.
var errAwaited = errors.New("awaited")

// sessionErrors tells what provider sessions died of.
func sessionErrors(events []orch.StoredEvent) string {
	last := ""
	for _, e := range events {
		if !strings.HasPrefix(e.Event.Type, "provider-session.") {
			continue
		}
		if p, err := alone(e); err == nil && len(p.ProviderSessions) > 0 && p.ProviderSessions[0].LastError != "" {
			last = ": provider session: " + string(p.ProviderSessions[0].LastError)
		}
	}
	return last
}
