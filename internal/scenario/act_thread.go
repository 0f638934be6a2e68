package scenario

import (
	"context"
	"slices"
	"strings"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// This file has the steps that act on whole threads.

// rollback dispatches a rollback and waits until its effect is settled.
func (r *runner) rollback(ctx context.Context, b *Rollback) error {
	deadline, cancel := r.deadline(ctx, 0)
	defer cancel()
	p, _, err := r.orc.Snapshot(deadline, r.thread)
	if err != nil {
		return inf(Persistence, "snapshot: %w", err)
	}
	id := r.newCommand("rollback")
	command := orch.RollbackCheckpoint{CommandID: id, ThreadID: r.thread}
	for _, k := range p.Checkpoints {
		if strings.HasSuffix(k.ScopeID, ":"+b.Scope) && k.OrdinalWithinScope == b.Checkpoint {
			command.ScopeID, command.CheckpointID = k.ScopeID, k.ID
		}
	}
	if command.CheckpointID == "" {
		return inf(Adapter, "there is no checkpoint %d in scope %s", b.Checkpoint, b.Scope)
	}
	return r.settled(ctx, id, b.Refused, r.thread, command)
}

// settled dispatches a command on a thread and waits until no effect of the
// thread is left.
func (r *runner) settled(ctx context.Context, id, refused, thread string, c orch.Command) error {
	receipt, err := r.dispatch(ctx, id, refused, c)
	if err != nil || refused != "" {
		return err
	}
	deadline, cancel := r.deadline(ctx, 0)
	defer cancel()
	if err := r.watched.quiet(deadline, thread); err != nil {
		return in(Adapter, err)
	}
	return r.seen(ctx, receipt)
}

func (r *runner) switchProvider(ctx context.Context, s *SwitchProvider) error {
	id := r.newCommand("switch")
	selection := r.selection(s.Provider)
	_, err := r.dispatch(ctx, id, s.Refused, orch.SwitchProvider{CommandID: id, ThreadID: r.thread, ModelSelection: selection})
	if err == nil && s.Refused == "" {
		r.selected = selection
	}
	return err
}

func (r *runner) fork(ctx context.Context, f *Fork) error {
	source, err := r.threadNamed(f.Thread)
	if err != nil {
		return err
	}
	id := r.newCommand("fork")
	command := orch.ForkThread{CommandID: id, SourceThreadID: source, Title: f.As}
	if f.Run > 0 {
		run, err := r.targetRun(source, f.Run)
		if err != nil {
			return in(Adapter, err)
		}
		command.SourcePoint = orch.SourcePoint{Type: orch.PointRun, ID: run}
	}
	receipt, err := r.dispatch(ctx, id, f.Refused, command)
	if err != nil || f.Refused != "" {
		return err
	}
	r.named[f.As] = receipt.ThreadID
	return r.seen(ctx, receipt)
}

func (r *runner) mergeBack(ctx context.Context, m *MergeBack) error {
	source, err := r.threadNamed(m.From)
	if err != nil {
		return err
	}
	id := r.newCommand("merge")
	_, err = r.dispatch(ctx, id, m.Refused, orch.MergeBack{CommandID: id, ThreadID: r.thread, SourceThreadID: source})
	return err
}

func (r *runner) detach(ctx context.Context, d *Detach) error {
	thread, err := r.threadNamed(d.Thread)
	if err != nil {
		return err
	}
	id := r.newCommand("detach")
	if err := r.settled(ctx, id, "", thread, orch.DetachSession{CommandID: id, ThreadID: thread}); err != nil {
		return err
	}
	// What the session has to say of its end comes after the effect.
	return r.awaitThread(ctx, 0, d.Thread, "the end of its provider session", func(p *orch.Projection) bool {
		return !slices.ContainsFunc(p.ProviderSessions, func(s orch.ProviderSession) bool { return s.Status != "stopped" && s.Status != "error" })
	})
}
