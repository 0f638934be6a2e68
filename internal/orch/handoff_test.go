package orch_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/internal/orch"
)

func to(instance, id, text string) orch.DispatchMessage {
	m := say("d", id, text)
	m.ModelSelection = &orch.ModelSelection{InstanceID: instance, Model: "m"}
	return m
}

func twoProviders(t *testing.T) *rig {
	r := newRig(t, newStub())
	r.other = newStub()
	r.other.driver = "other"
	return r
}

// A provider that comes in is told all of the conversation, one that returns
// only what it missed, and neither what it said itself. What the user wrote
// stays as it was.
func TestProviderSwitchAndReturn(t *testing.T) {
	r := twoProviders(t).start()
	r.create("d")
	r.do(say("d", "c1", "one"))
	r.awaitRun("d", 1, "completed")
	r.do(to("other", "c2", "two"))
	r.awaitRun("d", 2, "completed")
	r.refused(orch.SwitchProvider{CommandID: "s0", ThreadID: "d", ModelSelection: orch.ModelSelection{InstanceID: "none"}}, orch.CodeUnknownProvider)
	r.do(orch.SwitchProvider{CommandID: "s1", ThreadID: "d", ModelSelection: orch.ModelSelection{InstanceID: "codex", Model: "m"}})
	r.refused(orch.SwitchProvider{CommandID: "s2", ThreadID: "d", ModelSelection: orch.ModelSelection{InstanceID: "codex", Model: "m"}}, orch.CodeNothingToDo)
	r.do(say("d", "c3", "three"))
	p := r.awaitRun("d", 3, "completed")
	if diff := cmp.Diff([]string{
		"open", "thread/start", "turn/start one",
		"turn/start Context handoff (delta_since_target_last_seen):\nUser: two\nAssistant: you said: Context handoff (full_thread_summary):\nUser: one\nAssistant: you said: one\n\nUser message:\ntwo\n\nUser message:\nthree",
	}, r.agent.wire()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{
		"open", "thread/start",
		"turn/start Context handoff (full_thread_summary):\nUser: one\nAssistant: you said: one\n\nUser message:\ntwo",
	}, r.other.wire()); diff != "" {
		t.Error(diff)
	}
	if got := join(p.Runs, func(run orch.Run) string { return run.ProviderInstanceID }); got != "codex other codex" {
		t.Errorf("runs by %s", got)
	}
	if len(p.ProviderThreads) != 2 || p.Runs[0].ProviderThreadID != p.Runs[2].ProviderThreadID || p.Thread.ActiveProviderThreadID != p.Runs[2].ProviderThreadID {
		t.Errorf("provider threads: %s", pretty(p.ProviderThreads))
	}
	if got := join(p.ContextHandoffs, func(h orch.ContextHandoff) string {
		return fmt.Sprint(h.Strategy, h.Status, h.CoveredRunOrdinals)
	}); got != "full_thread_summaryready{1 1} delta_since_target_last_seenready{2 2}" {
		t.Errorf("handoffs: %s", got)
	}
	if got := join(p.ContextTransfers, func(c orch.ContextTransfer) string {
		return fmt.Sprint(c.Type, c.Status, c.Resolution.Strategy, c.SourceInstanceID, c.TargetInstanceID)
	}); got != "provider_handoffconsumedportable_contextcodexother provider_handoffconsumeddelta_contextothercodex" {
		t.Errorf("transfers: %s", got)
	}
	if p.Messages[2].Text != "two" || p.Messages[4].Text != "three" {
		t.Errorf("stored texts: %q, %q", p.Messages[2].Text, p.Messages[4].Text)
	}
	// Nothing is told again to one that has seen all.
	r.do(say("d", "c4", "four"))
	r.awaitRun("d", 4, "completed")
	if wire := r.agent.wire(); wire[len(wire)-1] != "turn/start four" {
		t.Errorf("last: %s", wire[len(wire)-1])
	}
}

// A provider that lost its thread gets a new one and the full summary.
func TestReturnToALostThread(t *testing.T) {
	r := twoProviders(t).start()
	r.create("d")
	r.do(say("d", "c1", "one"))
	r.awaitRun("d", 1, "completed")
	r.do(to("other", "c2", "two"))
	r.awaitRun("d", 2, "completed")
	r.stop()
	r.agent.resumeErr = fmt.Errorf("gone: %w", orch.ErrResume)
	r.start()
	r.do(to("codex", "c3", "three"))
	p := r.awaitRun("d", 3, "completed")
	if len(p.ProviderThreads) != 3 || p.ProviderThreads[0].Status != "closed" {
		t.Errorf("provider threads: %s", pretty(p.ProviderThreads))
	}
	if h := p.ContextHandoffs[1]; h.Strategy != "full_thread_summary" || h.CoveredRunOrdinals != (orch.OrdinalRange{From: 1, To: 2}) || len(h.FromProviderThreadIDs) != 2 {
		t.Errorf("handoff: %s", pretty(h))
	}
}

func forking(t *testing.T) *rig {
	r := twoProviders(t)
	r.agent.capabilities.Fork, r.agent.capabilities.ForkAtTurn, r.agent.capabilities.ThreadsPerSession = true, true, true
	r.start()
	r.create("d")
	for i := range 2 {
		r.do(say("d", fmt.Sprint("c", i+1), fmt.Sprint("turn ", i+1)))
		r.awaitRun("d", i+1, "completed")
	}
	return r
}

func (r *rig) fork(id string, point orch.SourcePoint) string {
	r.t.Helper()
	return r.do(orch.ForkThread{CommandID: id, SourceThreadID: "d", SourcePoint: point}).ThreadID
}

// A fork is made without a word to the provider, shows what it inherited, and
// its first message copies the provider's thread, up to the fork's point.
func TestNativeFork(t *testing.T) {
	r := forking(t)
	p, _ := r.snapshot("d")
	wire := r.agent.wire()
	latest := r.fork("f1", orch.SourcePoint{})
	early := r.fork("f2", orch.SourcePoint{Type: orch.PointRun, ID: p.Runs[0].ID})
	if again := r.fork("f2", orch.SourcePoint{Type: orch.PointRun, ID: p.Runs[0].ID}); again != early {
		t.Errorf("the same command made %s and %s", early, again)
	}
	r.refused(orch.ForkThread{CommandID: "f3", SourceThreadID: "none"}, orch.CodeUnknownThread)
	r.refused(orch.ForkThread{CommandID: "f4", SourceThreadID: "d", SourcePoint: orch.SourcePoint{Type: orch.PointRun, ID: "x"}}, orch.CodeUnknownRun)
	if diff := cmp.Diff(wire, r.agent.wire()); diff != "" {
		t.Errorf("a fork touched the provider: %s", diff)
	}
	f, _ := r.snapshot(early)
	if got := join(f.VisibleTurnItems(), func(v orch.VisibleItem) string { return v.Visibility + "/" + v.Item.Type }); got != "inherited/user_message inherited/assistant_message inherited/checkpoint synthetic/fork" {
		t.Errorf("visible: %s", got)
	}
	if f.ContextTransfers[0].Status != "pending" || f.Thread.Lineage != (orch.Lineage{ParentThreadID: "d", RelationshipToParent: "fork", RootThreadID: "d"}) {
		t.Error(pretty(f.Thread))
	}
	r.do(say(early, "e1", "early"))
	f = r.awaitRun(early, 1, "completed")
	r.do(say(latest, "l1", "latest"))
	r.awaitRun(latest, 1, "completed")
	if diff := cmp.Diff(append(wire, "thread/fork T1 U1", "turn/start early", "thread/fork T1 ", "turn/start latest"), r.agent.wire()); diff != "" {
		t.Error(diff)
	}
	if tr := f.ContextTransfers[0]; tr.Status != "consumed" || tr.Resolution.Strategy != "native_fork" || len(f.ContextHandoffs) != 0 {
		t.Errorf("transfer: %s", pretty(tr))
	}
	if from := f.ProviderThreads[0].ForkedFrom; from == nil || from.ProviderTurnID != orch.Ref(p.ProviderTurns[0].ID) {
		t.Errorf("forked from %+v", from)
	}
	if got := join(f.VisibleTurnItems(), func(v orch.VisibleItem) string { return v.Visibility }); got != "inherited inherited inherited synthetic local local local" {
		t.Errorf("visible: %s", got)
	}
}

// Where another instance answers, the fork's history is told in words.
func TestPortableFork(t *testing.T) {
	r := forking(t)
	fork := r.fork("f1", orch.SourcePoint{})
	m := say(fork, "e1", "hello")
	m.ModelSelection = &orch.ModelSelection{InstanceID: "other", Model: "m"}
	r.do(m)
	f := r.awaitRun(fork, 1, "completed")
	if tr, h := f.ContextTransfers[0], f.ContextHandoffs[0]; tr.Status != "consumed" || tr.Resolution.Strategy != "portable_context" ||
		h.TransferID != tr.ID || h.CoveredRunOrdinals != (orch.OrdinalRange{From: 1, To: 2}) {
		t.Errorf("transfer: %s", pretty(f.ContextTransfers))
	}
	want := "turn/start Context handoff (full_thread_summary):\nUser: turn 1\nAssistant: you said: turn 1\nUser: turn 2\nAssistant: you said: turn 2\n\nUser message:\nhello"
	if diff := cmp.Diff([]string{"open", "thread/start", want}, r.other.wire()); diff != "" {
		t.Error(diff)
	}
}

// What a fork did comes back with the next run of its source, once; a newer
// merge supersedes an older one.
func TestMergeBack(t *testing.T) {
	r := forking(t)
	fork := r.fork("f1", orch.SourcePoint{})
	merge := func(id string) orch.MergeBack {
		return orch.MergeBack{CommandID: id, ThreadID: "d", SourceThreadID: fork}
	}
	r.refused(merge("m0"), orch.CodeUnknownRun)
	r.refused(orch.MergeBack{CommandID: "m9", ThreadID: "d", SourceThreadID: "d"}, orch.CodeInvalid)
	r.do(say(fork, "e1", "in the fork"))
	r.awaitRun(fork, 1, "completed")
	r.do(merge("m1"))
	r.do(merge("m2"))
	wire := r.agent.wire()
	r.do(say("d", "c3", "what did it do?"))
	p := r.awaitRun("d", 3, "completed")
	r.do(say("d", "c4", "fine"))
	r.awaitRun("d", 4, "completed")
	if diff := cmp.Diff(append(wire,
		"turn/start Context handoff (fork_delta_summary):\nUser: in the fork\nAssistant: you said: in the fork\n\nUser message:\nwhat did it do?",
		"turn/start fine"), r.agent.wire()); diff != "" {
		t.Error(diff)
	}
	if got := join(p.ContextTransfers, func(c orch.ContextTransfer) string { return c.Type + "/" + c.Status }); got != "merge_back/superseded merge_back/consumed" {
		t.Errorf("transfers: %s", got)
	}
	if p.Messages[4].Text != "what did it do?" {
		t.Errorf("stored text %q", p.Messages[4].Text)
	}
}

// What was undone is not told to anybody.
func TestHandoffLeavesOutWhatWasRolledBack(t *testing.T) {
	r := twoProviders(t)
	r.agent.capabilities.Rollback, r.agent.capabilities.RollbackReturnsHistory = true, true
	r.start()
	r.create("d")
	for i := range 2 {
		r.do(say("d", fmt.Sprint("c", i+1), fmt.Sprint("turn ", i+1)))
		r.awaitRun("d", i+1, "completed")
	}
	p, _ := r.snapshot("d")
	r.do(rollback(p, "b1", checkpointOf(p, 1, 1)))
	r.awaitRun("d", 2, "rolled_back")
	r.do(to("other", "c3", "three"))
	r.awaitRun("d", 3, "completed")
	want := "turn/start Context handoff (full_thread_summary):\nUser: turn 1\nAssistant: you said: turn 1\n\nUser message:\nthree"
	if diff := cmp.Diff([]string{"open", "thread/start", want}, r.other.wire()); diff != "" {
		t.Error(diff)
	}
}
