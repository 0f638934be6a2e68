package orch

import (
	"context"
)

// noCheckpoints stands in where no Checkpoints were given.
type noCheckpoints struct{}

func (noCheckpoints) Capture(context.Context, CaptureRequest) (Capture, error) {
	return Capture{Status: "missing"}, nil
}
func (noCheckpoints) Restore(context.Context, string, string) error  { return nil }
func (noCheckpoints) Delete(context.Context, string, []string) error { return nil }

// baseline takes checkpoint 0 of a run's scope before the provider may touch
// the workspace: what the run will be measured against. Its parent is the last
// run's checkpoint, so that it also tells what changed between the two. A
// workspace that cannot be captured does not keep the user from working; the
// checkpoint then says so.
func (o *Orchestrator) baseline(ctx context.Context, threadID string, args effectPayload) error {
	var scope CheckpointScope
	var parent Checkpoint
	var taken bool
	err := o.read(ctx, threadID, func(p *Projection) error {
		run, ok := p.current(args, []string{"starting"})
		if !ok {
			return errNotCurrent
		}
		scope, _ = lookup(p, p.CheckpointScopes, scopeID(threadID, rootScopeName(run.Ordinal)))
		_, taken = lookup(p, p.Checkpoints, checkpointID(scope.ID, 0))
		for _, before := range p.Runs {
			if c, ok := lookup(p, p.Checkpoints, string(before.CheckpointID)); ok && c.Status != "stale" {
				parent = c
			}
		}
		return nil
	})
	if err != nil || taken { // by an attempt before this one
		return err
	}
	checkpoint, err := o.take(ctx, scope, 0, parent)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		o.log.Warn("baseline checkpoint", "thread", threadID, "error", err)
	}
	return o.guarded(ctx, threadID, args, []string{"starting"}, func(d *draft, _ Run) error {
		checkpoint.CapturedAt = d.now
		d.put(checkpoint)
		return nil
	})
}

// capture takes checkpoint 1 of a run's scope after its provider is done, and
// ends the run with the status of its attempt. last is true when a failure
// will not be tried again: then the checkpoint stands as an error and the run
// ends all the same.
func (o *Orchestrator) capture(ctx context.Context, threadID string, args effectPayload, last bool) error {
	var scope CheckpointScope
	var parent Checkpoint
	err := o.read(ctx, threadID, func(p *Projection) error {
		if _, ok := p.current(args, []string{"waiting"}); !ok {
			return errNotCurrent
		}
		scope, _ = lookup(p, p.CheckpointScopes, args.ScopeID)
		parent, _ = lookup(p, p.Checkpoints, checkpointID(args.ScopeID, 0))
		return nil
	})
	if err != nil {
		return err
	}
	checkpoint, failure := o.take(ctx, scope, 1, parent)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if failure != nil && !last {
		return failure
	}
	return o.guarded(ctx, threadID, args, []string{"waiting"}, func(d *draft, run Run) error {
		checkpoint.CapturedAt, checkpoint.AppRunOrdinal = d.now, &run.Ordinal
		d.put(checkpoint)
		status := "completed"
		if checkpoint.Status == "error" {
			status = "failed"
		}
		putSignal(d, run, "checkpoint", TurnItem{
			Type: "checkpoint", Status: status, NodeID: Ref(d.activeRoot(run)), Title: "Checkpoint",
			ProviderThreadID: run.ProviderThreadID, CheckpointID: checkpoint.ID, Text: string(checkpoint.Error),
		})
		attempt, _ := lookup(d.p, d.p.Attempts, args.AttemptID)
		run.CheckpointID = Ref(checkpoint.ID)
		finishRun(d, run, attempt.Status)
		return nil
	})
}

// activeRoot is the root node of a run's active attempt.
func (d *draft) activeRoot(run Run) string {
	attempt, _ := lookup(d.p, d.p.Attempts, string(run.ActiveAttemptID))
	return attempt.RootNodeID
}

// take captures one checkpoint of a scope. It returns the entity in any case;
// with an error its status is error.
func (o *Orchestrator) take(ctx context.Context, scope CheckpointScope, ordinal int, parent Checkpoint) (Checkpoint, error) {
	c := Checkpoint{
		ID: checkpointID(scope.ID, ordinal), ThreadID: scope.ThreadID, ScopeID: scope.ID, RunID: scope.RunID,
		NodeID: scope.NodeID, ParentCheckpointID: Ref(parent.ID), OrdinalWithinScope: ordinal,
		Ref: CheckpointRef(scope.ID, ordinal), Files: []CheckpointFile{},
	}
	req := CaptureRequest{Cwd: scope.Cwd, Ref: c.Ref}
	if parent.Status == "ready" {
		req.ParentRef = parent.Ref
	}
	taken, err := o.checkpoints.Capture(ctx, req)
	if err != nil {
		c.Status, c.Error = "error", Ref(err.Error())
		return c, err
	}
	c.Status = taken.Status
	c.Files = append(c.Files, taken.Files...)
	return c, nil
}
