package orch

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// RollbackCheckpoint takes a thread back to one of its checkpoints: the
// workspace, and, for a checkpoint of a run, the conversation of the provider.
type RollbackCheckpoint struct {
	CommandID    string `json:"commandId"`
	ThreadID     string `json:"threadId"`
	ScopeID      string `json:"scopeId"`
	CheckpointID string `json:"checkpointId"`
}

func (c RollbackCheckpoint) about() about {
	return about{id: c.CommandID, kind: "checkpoint.rollback", threadID: c.ThreadID}
}

// rollback is what a rollback to a checkpoint would do.
type rollback struct {
	checkpoint Checkpoint
	scope      CheckpointScope
	runs       []Run          // that are undone
	turns      []ProviderTurn // of the thread's active provider thread that are undone
	keep       ProviderTurn   // the last of them that stays; zero for none
	stale      []Checkpoint
	thread     ProviderThread // the active one
}

// planRollback asks for a rollback. What it undoes is marked when it is done.
func planRollback(d *draft, c RollbackCheckpoint) error {
	if err := needThread(d); err != nil {
		return err
	}
	if live, ok := d.p.liveRun(); ok {
		return reject(CodeRunActive, "run %s is %s", live.ID, live.Status)
	}
	checkpoint, ok := lookup(d.p, d.p.Checkpoints, c.CheckpointID)
	switch {
	case !ok || c.ScopeID != "" && checkpoint.ScopeID != c.ScopeID:
		return reject(CodeUnknownCheckpoint, "unknown checkpoint %q of scope %q", c.CheckpointID, c.ScopeID)
	case checkpoint.Status != "ready":
		return reject(CodeCheckpointNotReady, "checkpoint %s is %s", checkpoint.ID, checkpoint.Status)
	}
	r, err := newRollback(d.p, checkpoint)
	if err != nil {
		return err
	}
	caps := d.agents[r.thread.ProviderInstanceID].capabilities
	if len(r.turns) > 0 && (!caps.Rollback || !caps.RollbackReturnsHistory) {
		return reject(CodeNotSupported, "provider instance %q can't roll a conversation back", r.thread.ProviderInstanceID)
	}
	d.putAs(EventRollbackRequested, checkpoint)
	d.effect(EffectRollback, checkpoint.ID, effectPayload{ScopeID: checkpoint.ScopeID, CheckpointID: checkpoint.ID})
	return nil
}

// newRollback works out what a rollback undoes. A checkpoint of a child scope
// undoes no run: the parent's history stays, and what came after the
// checkpoint in that scope and below it is stale.
func newRollback(p *Projection, checkpoint Checkpoint) (rollback, error) {
	r := rollback{checkpoint: checkpoint}
	r.scope, _ = lookup(p, p.CheckpointScopes, checkpoint.ScopeID)
	if !r.scope.AdvancesAppRunCount {
		for _, k := range p.Checkpoints {
			later := k.ScopeID == r.scope.ID && k.OrdinalWithinScope > checkpoint.OrdinalWithinScope
			if later || p.below(k.ScopeID, r.scope.ID) {
				r.stale = append(r.stale, k)
			}
		}
		return r, nil
	}
	var ok bool
	if r.thread, ok = lookup(p, p.ProviderThreads, string(p.Thread.ActiveProviderThreadID)); !ok {
		return r, reject(CodeNoSession, "thread has no provider thread")
	}
	target, _ := lookup(p, p.Runs, string(checkpoint.RunID))
	last := target.Ordinal // the last run that stays
	if checkpoint.OrdinalWithinScope == 0 {
		last--
	}
	for _, run := range p.Runs {
		if run.Ordinal > last && isTerminal(KindRun, run.Status) && run.Status != "rolled_back" {
			r.runs = append(r.runs, run)
		}
	}
	for _, turn := range p.ProviderTurns {
		attempt, _ := lookup(p, p.Attempts, string(turn.RunAttemptID))
		run, _ := lookup(p, p.Runs, attempt.RunID)
		node, _ := lookup(p, p.Nodes, turn.NodeID)
		switch {
		case run.ID == "" || node.Status == "rolled_back":
		case run.Ordinal > last && turn.ProviderThreadID != r.thread.ID:
			// Another provider answered in between: it can't be taken back here.
			return r, reject(CodeNotSupported, "run %s was answered on another provider thread than the active one", run.ID)
		case turn.ProviderThreadID != r.thread.ID:
		case run.Ordinal > last:
			r.turns = append(r.turns, turn)
		default:
			r.keep = turn
		}
	}
	for _, k := range p.Checkpoints {
		run, _ := lookup(p, p.Runs, string(k.RunID))
		inRun := k.ScopeID == r.scope.ID && k.OrdinalWithinScope > checkpoint.OrdinalWithinScope
		if run.Ordinal > target.Ordinal || inRun || checkpoint.OrdinalWithinScope == 0 && p.below(k.ScopeID, r.scope.ID) {
			r.stale = append(r.stale, k)
		}
	}
	r.stale = slices.DeleteFunc(r.stale, func(k Checkpoint) bool { return k.Status == "stale" })
	return r, nil
}

// below reports whether a scope lies below another one.
func (p *Projection) below(scopeID, outer string) bool {
	for {
		scope, ok := lookup(p, p.CheckpointScopes, scopeID)
		if !ok || scope.ParentScopeID == "" {
			return false
		}
		if scopeID = string(scope.ParentScopeID); scopeID == outer {
			return true
		}
	}
}

// rollBack restores the workspace, takes the provider's conversation back and
// then says so. A failure is told in the timeline and leaves the history as it
// is.
func (o *Orchestrator) rollBack(ctx context.Context, threadID string, args effectPayload) error {
	var r rollback
	var options ThreadOptions
	err := o.read(ctx, threadID, func(p *Projection) error {
		checkpoint, _ := lookup(p, p.Checkpoints, args.CheckpointID)
		var err error
		r, err = newRollback(p, checkpoint)
		run := Run{ModelSelection: p.Thread.ModelSelection}
		options = threadOptions(p.Thread, run)
		return err
	})
	if err != nil {
		return err
	}
	native, err := o.takeBack(ctx, threadID, r, options)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return errors.Join(err, o.fact(ctx, threadID, func(d *draft) error {
			node, _ := lookup(d.p, d.p.Nodes, string(r.checkpoint.NodeID))
			d.put(TurnItem{
				ID: d.newID("turn-item"), ThreadID: threadID, RunID: node.RunID, NodeID: r.checkpoint.NodeID,
				Ordinal: d.p.nextItemOrdinal(string(node.RunID)), Type: "error", Status: "failed", Title: "error",
				Text: "rollback: " + err.Error(), CheckpointID: r.checkpoint.ID, StartedAt: d.at(), CompletedAt: d.at(),
			})
			return nil
		}))
	}
	err = o.fact(ctx, threadID, func(d *draft) error {
		putRolledBack(d, r, native)
		return nil
	})
	if err != nil {
		return err
	}
	var refs []string
	for _, k := range r.stale {
		refs = append(refs, k.Ref)
	}
	if err := o.checkpoints.Delete(ctx, r.scope.Cwd, refs); err != nil {
		o.log.Warn("delete stale checkpoints", "thread", threadID, "error", err) // they only cost space
	}
	return nil
}

// takeBack is the part of a rollback that is outside of the store.
func (o *Orchestrator) takeBack(ctx context.Context, threadID string, r rollback, options ThreadOptions) (NativeThread, error) {
	var native NativeThread
	if err := o.checkpoints.Restore(ctx, r.scope.Cwd, r.checkpoint.Ref); err != nil {
		return native, fmt.Errorf("restore checkpoint: %w", err)
	}
	if len(r.turns) == 0 {
		return native, nil
	}
	ss, err := o.openSession(ctx, threadID, r.thread.ProviderInstanceID, SessionConfig{
		Cwd: options.Cwd, Model: options.Model, RuntimeMode: options.RuntimeMode, InteractionMode: options.InteractionMode,
	})
	if err != nil {
		return native, err
	}
	id := r.thread.NativeThreadRef.NativeID
	if !ss.owns(id) {
		if _, err := ss.agent.ResumeThread(ctx, id, r.thread.resumeAt(options)); err != nil {
			return native, fmt.Errorf("resume thread: %w", err)
		}
		ss.own(id, threadID)
	}
	native, err = ss.agent.Rollback(ctx, id, r.keep.point(), len(r.turns))
	if err != nil {
		return native, fmt.Errorf("roll back thread: %w", err)
	}
	if native.ID != id {
		ss.own(native.ID, threadID)
	}
	return native, nil
}

// putRolledBack marks what was undone.
func putRolledBack(d *draft, r rollback, native NativeThread) {
	if thread, ok := lookup(d.p, d.p.ProviderThreads, r.thread.ID); ok && len(r.turns) > 0 {
		thread.LastRunOrdinal = nil
		if attempt, ok := lookup(d.p, d.p.Attempts, string(r.keep.RunAttemptID)); ok {
			ordinal := d.run(attempt.RunID).Ordinal
			thread.LastRunOrdinal = &ordinal
		} else {
			thread.FirstRunOrdinal = nil
		}
		if ref := thread.NativeThreadRef; native.ID != "" && native.ID != ref.NativeID {
			thread.NativeThreadRef = &NativeRef{ref.Driver, native.ID, ref.Strength}
		}
		if native.Head != "" {
			thread.NativeConversationHeadRef = &NativeRef{thread.Driver, native.Head, "strong"}
		}
		thread.UpdatedAt = d.now
		d.put(thread)
	}
	for _, k := range r.stale {
		k.Status = "stale"
		d.put(k)
	}
	for _, run := range r.runs {
		for _, attempt := range slices.Clone(d.p.Attempts) {
			if root, ok := lookup(d.p, d.p.Nodes, attempt.RootNodeID); ok && attempt.RunID == run.ID {
				root.Status = "rolled_back"
				d.put(root)
			}
		}
		if run.Status == "completed" { // how others ended stays told
			run.Status = "rolled_back"
			d.put(run)
		}
	}
}
