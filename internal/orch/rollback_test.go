package orch_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// checkpointOf is a checkpoint of a run's own scope.
func checkpointOf(p *orch.Projection, run, ordinal int) orch.Checkpoint {
	for _, k := range p.Checkpoints {
		for _, s := range p.CheckpointScopes {
			if k.ScopeID == s.ID && s.AdvancesAppRunCount && s.OrdinalWithinParent == run && k.OrdinalWithinScope == ordinal {
				return k
			}
		}
	}
	return orch.Checkpoint{}
}

func rollback(p *orch.Projection, id string, k orch.Checkpoint) orch.RollbackCheckpoint {
	return orch.RollbackCheckpoint{CommandID: id, ThreadID: p.Thread.ID, ScopeID: k.ScopeID, CheckpointID: k.ID}
}

func rolling() *stub {
	agent := controllable()
	agent.turn = nil
	agent.capabilities.Rollback, agent.capabilities.RollbackReturnsHistory = true, true
	return agent
}

// A rollback takes the workspace and the provider's conversation back; later
// checkpoints are stale, later runs and their root nodes rolled back and out
// of sight, and the thread goes on.
func TestRollback(t *testing.T) {
	agent := rolling()
	r := newRig(t, agent).start()
	r.create("d")
	for i := range 3 {
		r.do(say("d", fmt.Sprint("c", i+1), fmt.Sprint("turn ", i+1)))
		r.awaitRun("d", i+1, "completed")
	}
	p, _ := r.snapshot("d")
	target := checkpointOf(p, 1, 1)
	r.do(rollback(p, "b1", target))
	p = r.await("d", "the rollback", func(p *orch.Projection) bool { return len(p.Runs) == 3 && p.Runs[2].Status == "rolled_back" })
	if got := join(p.Runs, func(run orch.Run) string { return run.Status }); got != "completed rolled_back rolled_back" {
		t.Errorf("runs %s", got)
	}
	if got := join(p.Checkpoints, func(k orch.Checkpoint) string { return k.Status }); got != "ready ready stale stale stale stale" {
		t.Errorf("checkpoints %s", got)
	}
	if got := join(p.VisibleTurnItems(), func(v orch.VisibleItem) string { return v.Item.Type }); got != "user_message assistant_message checkpoint" || len(p.TurnItems) != 9 {
		t.Errorf("visible: %s of %d", got, len(p.TurnItems))
	}
	thread := p.ProviderThreads[0]
	if *thread.LastRunOrdinal != 1 || thread.NativeConversationHeadRef.NativeID != "head-U1" {
		t.Errorf("provider thread: %s", pretty(thread))
	}
	r.settled("d")
	if diff := cmp.Diff([]string{target.Ref}, r.snaps.restored); diff != "" || len(r.snaps.deleted) != 4 {
		t.Errorf("restored %s, deleted %v", diff, r.snaps.deleted)
	}
	r.refused(rollback(p, "b2", checkpointOf(p, 2, 1)), orch.CodeCheckpointNotReady)
	r.do(say("d", "c4", "turn 4"))
	p = r.awaitRun("d", 4, "completed")
	// To the start: the turns that were dropped before are not dropped again.
	r.do(rollback(p, "b3", checkpointOf(p, 1, 0)))
	p = r.await("d", "the second rollback", func(p *orch.Projection) bool { return len(p.Runs) == 4 && p.Runs[3].Status == "rolled_back" })
	if p.Runs[0].Status != "rolled_back" || p.ProviderThreads[0].LastRunOrdinal != nil {
		t.Error(sketch(p))
	}
	if diff := cmp.Diff([]string{
		"open", "thread/start", "turn/start turn 1", "turn/start turn 2", "turn/start turn 3",
		`thread/rollback T1 "U1" 2`, "turn/start turn 4", `thread/rollback T1 "" 2`,
	}, agent.wire()); diff != "" {
		t.Error(diff)
	}
}

// Where a turn ends in the provider's conversation is stored with it, and so is
// the name that a thread gets by a rollback: a later process of the
// orchestrator rolls back and goes on as the first one would.
func TestRollbackAfterRestart(t *testing.T) {
	agent := rolling()
	agent.rolledBack = "T9"
	agent.turn = func(t *turn) {
		t.started()
		t.s.emit(orch.HeadChanged{NativeThreadID: t.thread, NativeTurnID: t.id, Head: fmt.Sprint("h", t.n)})
		t.ended("completed")
	}
	r := newRig(t, agent).start()
	r.create("d")
	for i := range 2 {
		r.do(say("d", fmt.Sprint("c", i+1), "x"))
		r.awaitRun("d", i+1, "completed")
	}
	r.settled("d")
	r.stop()
	r.start()
	p, _ := r.snapshot("d")
	r.do(rollback(p, "b1", checkpointOf(p, 1, 1)))
	r.await("d", "the rollback", func(p *orch.Projection) bool { return len(p.Runs) == 2 && p.Runs[1].Status == "rolled_back" })
	r.settled("d")
	r.stop()
	r.start()
	r.do(say("d", "c3", "y"))
	p = r.awaitRun("d", 3, "completed")
	if len(p.ProviderThreads) != 1 || p.ProviderThreads[0].NativeThreadRef.NativeID != "T9" || *p.ProviderThreads[0].LastRunOrdinal != 3 {
		t.Errorf("provider threads: %s", pretty(p.ProviderThreads))
	}
	if diff := cmp.Diff([]string{
		"open", "thread/start", "turn/start x", "turn/start x", "close",
		"open", "thread/resume T1", `thread/rollback T1 "h1" 1`, "close",
		"open", "thread/resume T9", "turn/start y",
	}, agent.wire()); diff != "" {
		t.Error(diff)
	}
}

// What can't be rolled back is refused before anything happens; what fails is
// told and undoes nothing.
func TestRollbackRefused(t *testing.T) {
	agent := rolling()
	agent.capabilities.Rollback = false
	agent.rollbackErr = errors.New("no")
	r := newRig(t, agent).start()
	r.create("d")
	for i := range 2 {
		r.do(say("d", fmt.Sprint("c", i+1), "x"))
		r.awaitRun("d", i+1, "completed")
	}
	p, _ := r.snapshot("d")
	r.refused(rollback(p, "b1", checkpointOf(p, 1, 1)), orch.CodeNotSupported)
	r.refused(orch.RollbackCheckpoint{CommandID: "b2", ThreadID: "d", CheckpointID: "x"}, orch.CodeUnknownCheckpoint)
	agent.capabilities.Rollback = true
	r.stop()
	r.start()
	agent.turn = untilInterrupted
	r.do(say("d", "c3", "x"))
	p = r.awaitRun("d", 3, "running")
	r.refused(rollback(p, "b3", checkpointOf(p, 1, 1)), orch.CodeRunActive)
	r.do(orch.InterruptRun{CommandID: "c4", ThreadID: "d", RunID: p.Runs[2].ID})
	p = r.awaitRun("d", 3, "interrupted")
	r.do(rollback(p, "b4", checkpointOf(p, 1, 1)))
	p = r.await("d", "the failure", func(p *orch.Projection) bool {
		return len(p.TurnItems) > 3 && p.TurnItems[3].Type == "error"
	})
	if p.Runs[1].Status != "completed" || p.TurnItems[3].Text != "rollback: roll back thread: no" {
		t.Error(sketch(p))
	}
}

// A rollback to a child's checkpoint makes what came after it in its scope and
// below stale, and keeps the parent's history.
func TestNestedRollback(t *testing.T) {
	agent := rolling()
	agent.capabilities.ThreadsPerSession = true
	agent.turn = func(u *turn) {
		u.started()
		for _, status := range []string{"running", "completed", "running", "completed"} {
			u.spawn("k1", "C1", status, "")
		}
		u.ended("completed")
	}
	r := newRig(t, agent).start()
	r.create("d")
	r.do(say("d", "c1", "go"))
	p := r.awaitRun("d", 1, "completed")
	if got := join(p.Checkpoints, func(k orch.Checkpoint) string { return fmt.Sprint(k.OrdinalWithinScope) }); got != "0 1 2 1" {
		t.Fatalf("checkpoints %s", got)
	}
	r.do(rollback(p, "b1", p.Checkpoints[1]))
	p = r.await("d", "the rollback", func(p *orch.Projection) bool { return len(p.Checkpoints) == 4 && p.Checkpoints[2].Status == "stale" })
	if p.Runs[0].Status != "completed" || p.Checkpoints[3].Status != "ready" || r.snaps.restored[0] != p.Checkpoints[1].Ref {
		t.Error(sketch(p))
	}
	r.do(rollback(p, "b2", checkpointOf(p, 1, 0)))
	p = r.await("d", "the outer rollback", func(p *orch.Projection) bool { return len(p.Runs) > 0 && p.Runs[0].Status == "rolled_back" })
	if got := join(p.Checkpoints, func(k orch.Checkpoint) string { return k.Status }); got != "ready stale stale stale" {
		t.Errorf("checkpoints %s", got)
	}
}
