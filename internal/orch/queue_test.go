package orch_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// A deferred run starts when it is told to. Messages queue up behind it; they
// change places and words until they start, and are in the timeline only then.
func TestDeferredAndReordered(t *testing.T) {
	agent := newStub()
	r := newRig(t, agent).start()
	r.create("d")
	first := say("d", "c1", "one")
	first.Mode = orch.ModeDefer
	r.do(first)
	r.refused(say("d", "x1", "no"), orch.CodeRunActive)
	for _, text := range []string{"two", "three", "four"} {
		m := say("d", text, text)
		m.Mode = orch.ModeQueue
		r.do(m)
	}
	p, _ := r.snapshot("d")
	run := func(ordinal int) string { return p.Runs[ordinal-1].ID }
	r.refused(orch.ReorderQueuedRun{CommandID: "x2", ThreadID: "d", RunID: run(3), BeforeRunID: run(3)}, orch.CodeInvalid)
	r.refused(orch.ReorderQueuedRun{CommandID: "x3", ThreadID: "d", RunID: run(3), BeforeRunID: run(1)}, orch.CodeNotQueued)
	r.refused(orch.ReorderQueuedRun{CommandID: "x4", ThreadID: "d", RunID: run(4)}, orch.CodeNothingToDo)
	r.refused(orch.EditQueuedRun{CommandID: "x5", ThreadID: "d", RunID: run(2)}, orch.CodeInvalid)
	r.refused(orch.StartRun{CommandID: "x6", ThreadID: "d", RunID: run(2)}, orch.CodeNotQueued)
	r.do(orch.ReorderQueuedRun{CommandID: "k1", ThreadID: "d", RunID: run(4), BeforeRunID: run(2)}) // four two three
	r.do(orch.ReorderQueuedRun{CommandID: "k2", ThreadID: "d", RunID: run(3)})                      // four three two
	r.do(orch.EditQueuedRun{CommandID: "k3", ThreadID: "d", RunID: run(3), Text: "drei", ModelSelection: &orch.ModelSelection{InstanceID: "codex", Model: "large"}})
	r.do(orch.EditQueuedRun{CommandID: "k4", ThreadID: "d", RunID: run(1), Text: "eins"})
	p, _ = r.snapshot("d")
	if got := join(p.Runs, func(run orch.Run) string {
		return fmt.Sprint(run.Status, deref(run.QueuePosition), run.ModelSelection.Model)
	}); got != "preparing<nil>m queued1m queued2large queued3m" {
		t.Errorf("runs: %s", got)
	}
	if len(p.TurnItems) != 0 || len(p.Messages) != 4 {
		t.Errorf("%d items, %d messages", len(p.TurnItems), len(p.Messages))
	}
	r.do(orch.StartRun{CommandID: "k5", ThreadID: "d", RunID: run(1)})
	p = r.awaitRun("d", 4, "completed")
	if diff := cmp.Diff([]string{"open", "thread/start", "turn/start eins", "turn/start four", "turn/start drei", "turn/start two"}, agent.wire()); diff != "" {
		t.Error(diff)
	}
	var shown []string
	for _, item := range p.TurnItems {
		if item.Type == "user_message" {
			shown = append(shown, fmt.Sprint(item.Ordinal/1_000_000, " ", item.InputIntent, " ", item.Text))
		}
	}
	if diff := cmp.Diff([]string{"1 turn_start eins", "2 queued_turn four", "3 queued_turn drei", "4 queued_turn two"}, shown); diff != "" {
		t.Error(diff)
	}
	for _, m := range p.Messages {
		if m.Role == "user" && p.Runs[indexOf(p, string(m.RunID))].UserMessageID != m.ID {
			t.Errorf("message %q is not its run's", m.Text)
		}
	}
}

func indexOf(p *orch.Projection, run string) int {
	for i, r := range p.Runs {
		if r.ID == run {
			return i
		}
	}
	return -1
}

// A run that was deferred is interrupted, or taken back, without a provider.
func TestDeferredEnds(t *testing.T) {
	agent := newStub()
	r := newRig(t, agent).start()
	r.create("d")
	for i, end := range []func(run string) orch.Command{
		func(run string) orch.Command { return orch.InterruptRun{CommandID: "k1", ThreadID: "d", RunID: run} },
		func(run string) orch.Command { return orch.CancelQueuedRun{CommandID: "k2", ThreadID: "d", RunID: run} },
	} {
		m := say("d", fmt.Sprint("c", i), "x")
		m.Mode = orch.ModeDefer
		r.do(m)
		p, _ := r.snapshot("d")
		r.do(end(p.Runs[i].ID))
	}
	p, _ := r.snapshot("d")
	if got := join(p.Runs, func(run orch.Run) string { return run.Status }); got != "interrupted cancelled" || len(agent.wire()) != 0 {
		t.Errorf("runs %s, wire %v", got, agent.wire())
	}
}
