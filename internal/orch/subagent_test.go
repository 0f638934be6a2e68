package orch_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// spawn says that a turn has a child.
func (t *turn) spawn(task, child, status, result string) {
	t.s.emit(orch.SubagentUpdated{
		NativeThreadID: t.thread, NativeTurnID: t.id, NativeTaskID: task, ChildNativeThreadID: child,
		Prompt: "do " + task, Title: task, Status: status, Result: result,
	})
}

// A child's work goes to a thread of its own; in the parent are its node, the
// subagent, one item and a scope below the run's, whose checkpoints do not
// count as runs.
func TestSubagents(t *testing.T) {
	agent := newStub()
	agent.capabilities.Subagents, agent.capabilities.ChildThreadIDs, agent.capabilities.ThreadsPerSession = true, true, true
	agent.turn = func(u *turn) {
		c1, c2 := &turn{s: u.s, thread: "C1", id: "V1"}, &turn{s: u.s, thread: "C2", id: "V2"}
		u.started()
		c1.started() // before anybody named it
		c1.say("m", "first child speaks")
		u.spawn("k1", "C1", "running", "")
		u.spawn("k2", "C2", "running", "")
		c2.started()
		c2.item(orch.ProviderItem{NativeID: "cmd", Type: "command_execution", Status: "completed", Title: "ls"})
		c1.ended("completed")
		u.spawn("k1", "C1", "completed", "one")
		c2.ended("completed")
		u.spawn("k2", "C2", "completed", "two")
		u.spawn("k2", "C2", "completed", "two and more")
		u.say("m", "done")
		u.ended("completed")
	}
	r := newRig(t, agent).start()
	r.create("d")
	r.do(say("d", "c1", "go"))
	p := r.awaitRun("d", 1, "completed")
	if len(p.Runs) != 1 || len(p.ProviderTurns) != 1 || len(p.ProviderThreads) != 1 || p.Thread.ActiveProviderThreadID != orch.Ref(p.ProviderThreads[0].ID) {
		t.Errorf("parent: %s", sketch(p))
	}
	if got := items(p); got != "user_message/completed subagent/completed subagent/completed assistant_message/completed checkpoint/completed" {
		t.Errorf("parent's items: %s", got)
	}
	if p.Subagents[1].Result != "two and more" || p.TurnItems[2].Result != "two and more" {
		t.Errorf("result: %+v", p.Subagents[1])
	}
	if got := join(p.CheckpointScopes, func(s orch.CheckpointScope) string {
		return fmt.Sprint(s.Kind, s.AdvancesAppRunCount, s.ParentScopeID != "", s.OrdinalWithinParent)
	}); got != "root_runtrue false 1 subagentfalse true 1 subagentfalse true 2" {
		t.Errorf("scopes: %s", got)
	}
	if got := join(p.Checkpoints, func(k orch.Checkpoint) string {
		return fmt.Sprint(strings.Contains(k.ScopeID, "."), k.OrdinalWithinScope, deref(k.AppRunOrdinal))
	}); got != "false 0 <nil> true 1 <nil> true 1 <nil> false 1 1" {
		t.Errorf("checkpoints: %s", got)
	}
	if k := p.Checkpoints[1]; k.ParentCheckpointID != orch.Ref(p.Checkpoints[0].ID) || p.Runs[0].CheckpointID != orch.Ref(p.Checkpoints[3].ID) {
		t.Error("child checkpoints stand in the run's way")
	}
	for i, said := range []string{"user_message/completed assistant_message/completed", "user_message/completed command_execution/completed"} {
		child, _ := r.snapshot(string(p.Subagents[i].ChildThreadID))
		if got := items(child); got != said {
			t.Errorf("child %d said %s", i, got)
		}
		thread := child.Thread
		if len(child.Runs) != 0 || len(child.ProviderThreads) != 1 || len(child.ProviderTurns) != 1 || child.ProviderTurns[0].Status != "completed" ||
			child.ProviderTurns[0].RunAttemptID != "" || child.Nodes[0].Status != "completed" || child.ProviderThreads[0].Status != "idle" {
			t.Errorf("child %d: %s", i, pretty(child))
		}
		if thread.Lineage != (orch.Lineage{ParentThreadID: "d", RelationshipToParent: "subagent", RootThreadID: "d"}) ||
			child.ProviderThreads[0].ForkedFrom.ProviderTurnID != orch.Ref(p.ProviderTurns[0].ID) ||
			child.ProviderThreads[0].OwnerNodeID != orch.Ref(p.Subagents[i].ID) {
			t.Errorf("child %d: lineage %+v", i, thread.Lineage)
		}
	}
	shell, err := r.Shell(r.ctx)
	if err != nil || len(shell.Threads) != 3 {
		t.Errorf("shell: %v, %s", err, pretty(shell))
	}
}

// Where the provider names no child threads, the task stands for one, and the
// child's end is told by the parent.
func TestSubagentWithoutThread(t *testing.T) {
	agent := newStub()
	agent.turn = func(u *turn) {
		u.started()
		u.spawn("k1", "", "running", "")
		u.spawn("k1", "", "completed", "one")
		u.ended("completed")
	}
	r := newRig(t, agent).start()
	r.create("d")
	r.do(say("d", "c1", "go"))
	p := r.awaitRun("d", 1, "completed")
	child, _ := r.snapshot(string(p.Subagents[0].ChildThreadID))
	if len(child.ProviderTurns) != 0 || len(child.ProviderThreads) != 1 || child.Nodes[0].Status != "completed" || child.Messages[0].Text != "do k1" {
		t.Errorf("child: %s", pretty(child))
	}
}

// The end of the session ends what a child left open, on both sides, also
// after the run that started it.
func TestSessionEndEndsChildren(t *testing.T) {
	agent := newStub()
	agent.capabilities.ThreadsPerSession = true
	agent.turn = func(u *turn) {
		u.started()
		u.spawn("k1", "C1", "running", "")
		(&turn{s: u.s, thread: "C1", id: "V1"}).started()
		u.s.emit(orch.RequestOpened{NativeThreadID: "C1", NativeTurnID: "V1", NativeRequestID: "0", Kind: "command"})
		u.ended("completed")
	}
	r := newRig(t, agent).start()
	r.create("d")
	r.do(say("d", "c1", "go"))
	p := r.awaitRun("d", 1, "completed")
	if p.Subagents[0].Status != "running" {
		t.Errorf("child is %s after its parent's turn", p.Subagents[0].Status)
	}
	r.do(orch.DetachSession{CommandID: "c2", ThreadID: "d"})
	p = r.await("d", "the child's end", func(p *orch.Projection) bool { return len(p.Subagents) > 0 && p.Subagents[0].Status == "failed" })
	child := r.await(string(p.Subagents[0].ChildThreadID), "the child's session's end", func(p *orch.Projection) bool {
		return len(p.ProviderSessions) > 0 && p.ProviderSessions[0].Status == "stopped"
	})
	if child.ProviderTurns[0].Status != "failed" || child.Nodes[0].Status != "failed" || child.RuntimeRequests[0].Status != "expired" {
		t.Errorf("child: %s", pretty(child))
	}
}

// What one child says waits for the checkpoint that its parent takes of
// another: the log does not depend on how long that takes.
func TestChildWaitsForParentsEffects(t *testing.T) {
	agent := newStub()
	agent.capabilities.Subagents, agent.capabilities.ChildThreadIDs, agent.capabilities.ThreadsPerSession = true, true, true
	agent.turn = func(u *turn) {
		c2 := &turn{s: u.s, thread: "C2", id: "V2"}
		u.started()
		u.spawn("k1", "C1", "running", "")
		u.spawn("k2", "C2", "running", "")
		c2.started()
		u.spawn("k1", "C1", "completed", "one")
		c2.say("m", "second child speaks")
		c2.ended("completed")
		u.ended("completed")
	}
	r := newRig(t, agent)
	// What ingestion did since the parent's last facts: a thread whose due
	// effects it asked for, or facts of a child.
	steps := make(chan string, 1024)
	r.asked = func(thread string) { steps <- thread }
	r.fail = func(req orch.CommitRequest) error {
		switch {
		case req.ThreadID == "d":
			for len(steps) > 0 {
				<-steps
			}
		case req.CommandType != "settle":
			steps <- "facts"
		}
		return nil
	}
	captures := 0
	r.snaps.before = func(ctx context.Context, _ orch.CaptureRequest) {
		if captures++; captures != 2 { // the first is the run's baseline
			return
		}
		for {
			select {
			case step := <-steps:
				if step == "d" || step == "facts" {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
	r.start()
	r.create("d")
	r.do(say("d", "c1", "go"))
	r.awaitRun("d", 1, "completed")
	taken, said := -1, -1
	for i, e := range r.log() {
		switch payload := string(e.Event.Payload); {
		case said < 0 && strings.Contains(payload, "second child speaks"):
			said = i
		case taken < 0 && e.Event.Type == orch.EventCheckpointCaptured && strings.Contains(payload, ".1"):
			taken = i
		}
	}
	if taken < 0 || said < taken {
		t.Errorf("the child spoke at event %d, the checkpoint of the other was taken at %d", said, taken)
	}
}
