package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// threadNamed returns the id of a thread that a scenario names: "" is its own,
// "child N" the Nth thread of a subagent, and others have the name that the
// step gave them which made them.
func (r *runner) threadNamed(name string) (string, error) {
	r.feed.mu.Lock()
	defer r.feed.mu.Unlock()
	if id := r.threadIn(r.feed, name); id != "" {
		return id, nil
	}
	return "", inf(Adapter, "there is no thread %q", name)
}

// threadIn is threadNamed for who holds the feed; "" when there is none.
func (r *runner) threadIn(f *feed, name string) string {
	if name == "" {
		return r.thread
	}
	n, err := strconv.Atoi(strings.TrimPrefix(name, "child "))
	if err != nil || !strings.HasPrefix(name, "child ") {
		return r.named[name]
	}
	for _, id := range f.order {
		if f.threads[id].Thread.Lineage.RelationshipToParent == "subagent" {
			if n--; n == 0 {
				return id
			}
		}
	}
	return ""
}

// awaitItem waits until a thread has a turn item.
func (r *runner) awaitItem(ctx context.Context, a *AwaitItem) error {
	count := max(a.Count, 1)
	what := strings.TrimSpace(fmt.Sprintf("%d %s %s", count, a.Type, a.Status))
	return r.awaitThread(ctx, a.Timeout, a.Thread, what, func(p *orch.Projection) bool {
		n := 0
		for _, item := range p.TurnItems {
			if item.Type == a.Type && (a.Status == "" || a.Status == item.Status) && (a.Run == 0 || ordinalOf(p, string(item.RunID)) == a.Run) {
				n++
			}
		}
		return n >= count
	})
}

func ordinalOf(p *orch.Projection, run string) int {
	for _, r := range p.Runs {
		if r.ID == run {
			return r.Ordinal
		}
	}
	return 0
}

// awaitRequest waits until a request can be answered. Its item is the last
// thing that is stored of it.
func (r *runner) awaitRequest(ctx context.Context, a *AwaitRequest) error {
	return r.awaitThread(ctx, a.Timeout, a.Thread, strings.TrimSpace("a pending request "+a.Kind), func(p *orch.Projection) bool {
		for _, request := range p.RuntimeRequests {
			if request.Status == "pending" && (a.Kind == "" || a.Kind == request.Kind) && hasItem(p, request.ID) {
				return true
			}
		}
		return false
	})
}

func hasItem(p *orch.Projection, request string) bool {
	for _, item := range p.TurnItems {
		if item.RequestID == request {
			return true
		}
	}
	return false
}

func (r *runner) awaitSession(ctx context.Context, a *AwaitSession) error {
	return r.awaitThread(ctx, a.Timeout, a.Thread, "a provider session "+a.Status, func(p *orch.Projection) bool {
		n := len(p.ProviderSessions)
		return n > 0 && p.ProviderSessions[n-1].Status == a.Status
	})
}

// awaitThread waits until a thread is as wanted.
func (r *runner) awaitThread(ctx context.Context, timeout Duration, name, what string, ok func(*orch.Projection) bool) error {
	ctx, cancel := r.deadline(ctx, timeout)
	defer cancel()
	err := r.feed.wait(ctx, func(f *feed) error {
		if p := f.threads[r.threadIn(f, name)]; p != nil && ok(p) {
			return nil
		}
		return errPending
	}, func(f *feed) string { return what })
	return r.waited(ctx, err)
}

// newCommand numbers the scenario's commands.
func (r *runner) newCommand(kind string) string {
	return fmt.Sprintf("command:%s:%d", kind, len(r.commands)+r.refusals)
}

// interrupt dispatches an interrupt and waits until the provider has
// acknowledged it.
func (r *runner) interrupt(ctx context.Context, i *Interrupt) error {
	if i.WaitForItem != "" {
		if err := r.awaitItem(ctx, &AwaitItem{Type: i.WaitForItem, Run: i.Run}); err != nil {
			return err
		}
	}
	run, err := r.targetRun(r.thread, i.Run)
	if err != nil {
		return in(Adapter, err)
	}
	id := r.newCommand("interrupt")
	_, err = r.dispatch(ctx, id, i.Refused, orch.InterruptRun{CommandID: id, ThreadID: r.thread, RunID: run, Reason: i.Reason})
	if err != nil || i.Refused != "" || i.Await == "requested" {
		return err
	}
	deadline, cancel := r.deadline(ctx, 0)
	defer cancel()
	return in(Adapter, r.watched.acknowledged(deadline, r.thread))
}

// respond answers the request that is pending, or the last one when a refusal
// is wanted.
func (r *runner) respond(ctx context.Context, a *Respond) error {
	thread, err := r.threadNamed(a.Thread)
	if err != nil {
		return err
	}
	request := ""
	r.feed.mu.Lock()
	for _, q := range r.feed.threads[thread].RuntimeRequests {
		if q.Status == "pending" && request == "" || a.Refused != "" {
			request = q.ID
		}
	}
	r.feed.mu.Unlock()
	if request == "" && a.Refused == "" {
		return inf(Adapter, "there is no request to answer")
	}
	id := r.newCommand("respond")
	_, err = r.dispatch(ctx, id, a.Refused, orch.RespondToRequest{
		CommandID: id, ThreadID: thread, RequestID: request, Decision: a.Decision, Answers: a.Answers,
	})
	return err
}

func (r *runner) cancelQueued(ctx context.Context, c *CancelQueuedRun) error {
	run, err := r.targetRun(r.thread, c.Run)
	if err != nil {
		return in(Adapter, err)
	}
	id := r.newCommand("cancel")
	_, err = r.dispatch(ctx, id, "", orch.CancelQueuedRun{CommandID: id, ThreadID: r.thread, RunID: run})
	return err
}

func (r *runner) reorderQueued(ctx context.Context, q *ReorderQueued) error {
	run, err := r.targetRun(r.thread, q.Run)
	if err != nil {
		return in(Adapter, err)
	}
	before := ""
	if q.Before > 0 {
		if before, err = r.targetRun(r.thread, q.Before); err != nil {
			return in(Adapter, err)
		}
	}
	id := r.newCommand("reorder")
	_, err = r.dispatch(ctx, id, q.Refused, orch.ReorderQueuedRun{CommandID: id, ThreadID: r.thread, RunID: run, BeforeRunID: before})
	return err
}

func (r *runner) editQueued(ctx context.Context, q *EditQueued) error {
	run, err := r.targetRun(r.thread, q.Run)
	if err != nil {
		return in(Adapter, err)
	}
	id := r.newCommand("edit")
	_, err = r.dispatch(ctx, id, q.Refused, orch.EditQueuedRun{CommandID: id, ThreadID: r.thread, RunID: run, Text: q.Text})
	return err
}

func (r *runner) promote(ctx context.Context, p *Promote) error {
	run, err := r.targetRun(r.thread, p.Run)
	if err != nil {
		return in(Adapter, err)
	}
	target, err := r.targetRun(r.thread, max(p.Target, 1))
	if err != nil {
		return in(Adapter, err)
	}
	id := r.newCommand("promote")
	_, err = r.dispatch(ctx, id, p.Refused, orch.PromoteQueuedRun{CommandID: id, ThreadID: r.thread, QueuedRunID: run, TargetRunID: target})
	return err
}

func (r *runner) writeFile(w *WriteFile) error {
	file := filepath.Join(r.workspace, filepath.FromSlash(w.Path))
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	return in(Setup, errors.Join(err, os.WriteFile(file, []byte(w.Content), 0o644)))
}
