package orch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/replaypeer/replaypeer/internal/orch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sketch is a thread in few lines.
func sketch(p *orch.Projection) string {
	var b strings.Builder
	for _, r := range p.Runs {
		fmt.Fprintf(&b, "run %d %s checkpoint=%t\n", r.Ordinal, r.Status, r.CheckpointID != "")
	}
	for _, a := range p.Attempts {
		fmt.Fprintf(&b, "attempt %s %s\n", a.Reason, a.Status)
	}
	for _, n := range p.Nodes {
		fmt.Fprintf(&b, "node %s %s counts=%t\n", n.Kind, n.Status, n.CountsForRun)
	}
	for _, s := range p.ProviderSessions {
		fmt.Fprintf(&b, "session %s\n", s.Status)
	}
	for _, t := range p.ProviderThreads {
		fmt.Fprintf(&b, "provider thread %s %s runs %v..%v\n", t.NativeThreadRef.NativeID, t.Status, deref(t.FirstRunOrdinal), deref(t.LastRunOrdinal))
	}
	for _, t := range p.ProviderTurns {
		fmt.Fprintf(&b, "provider turn %s %d %s\n", t.NativeTurnRef.NativeID, t.Ordinal, t.Status)
	}
	for _, m := range p.Messages {
		fmt.Fprintf(&b, "%s: %s\n", m.Role, m.Text)
	}
	for _, i := range p.TurnItems {
		fmt.Fprintf(&b, "item %d %s %s %s\n", i.Ordinal, i.Type, i.Status, i.InputIntent)
	}
	for _, c := range p.Checkpoints {
		fmt.Fprintf(&b, "checkpoint %d %s app=%v\n", c.OrdinalWithinScope, c.Status, deref(c.AppRunOrdinal))
	}
	return b.String()
}

func deref(n *int) any {
	if n == nil {
		return nil
	}
	return *n
}

func TestSimple(t *testing.T) {
	agent := newStub()
	r := newRig(t, agent)
	r.snaps.before = func(_ context.Context, req orch.CaptureRequest) { agent.call("capture %s", req.Ref[len(req.Ref)-1:]) }
	r.start()
	r.create("d")
	r.do(say("d", "c1", "hello"))
	got := r.awaitRun("d", 1, "completed")
	want := `run 1 completed checkpoint=true
attempt initial completed
node root_turn completed counts=true
node assistant_message completed counts=false
session ready
provider thread T1 idle runs 1..1
provider turn U1 1 completed
user: hello
assistant: you said: hello
item 1000000 user_message completed turn_start
item 1000001 assistant_message completed 
item 1000002 checkpoint completed 
checkpoint 0 ready app=<nil>
checkpoint 1 ready app=1
`
	if diff := cmp.Diff(want, sketch(got)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"capture 0", "open", "thread/start", "turn/start hello", "capture 1"}, agent.wire()); diff != "" {
		t.Error(diff)
	}
	if got.Runs[0].CheckpointID != orch.Ref(got.Checkpoints[1].ID) {
		t.Errorf("run has checkpoint %s, want %s", got.Runs[0].CheckpointID, got.Checkpoints[1].ID)
	}
	shell, err := r.Shell(r.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(shell.Threads) != 1 || shell.Threads[0].Status != "completed" || shell.Threads[0].RunCount != 1 {
		t.Errorf("shell: %s", pretty(shell))
	}
}

func TestMultiTurn(t *testing.T) {
	agent := newStub()
	r := newRig(t, agent).start()
	r.create("d")
	r.do(say("d", "c1", "one"))
	r.awaitRun("d", 1, "completed")
	r.do(say("d", "c2", "two"))
	p := r.awaitRun("d", 2, "completed")
	if diff := cmp.Diff([]string{"open", "thread/start", "turn/start one", "turn/start two"}, agent.wire()); diff != "" {
		t.Error(diff)
	}
	if got := join(p.Messages, func(m orch.Message) string { return m.Role }); got != "user assistant user assistant" {
		t.Errorf("roles: %s", got)
	}
	if got := join(p.ProviderThreads, func(pt orch.ProviderThread) string {
		return fmt.Sprint(pt.ID, *pt.FirstRunOrdinal, *pt.LastRunOrdinal)
	}); got != "provider-thread:codex:T11 2" {
		t.Errorf("provider threads: %s", got)
	}
	// The second run is measured from its own baseline, whose parent is the
	// first run's checkpoint.
	if got := join(p.Checkpoints, func(c orch.Checkpoint) string { return fmt.Sprint(c.OrdinalWithinScope) }); got != "0 1 0 1" {
		t.Errorf("checkpoints: %s", got)
	}
	if p.Checkpoints[2].ParentCheckpointID != orch.Ref(p.Checkpoints[1].ID) || r.snaps.requests[2].ParentRef != p.Checkpoints[1].Ref {
		t.Error("second baseline does not follow the first run's checkpoint")
	}
}

// Invariant 7: a repeated command returns the first sequence and does nothing.
func TestRepeatedCommandDoesNothing(t *testing.T) {
	agent := newStub()
	r := newRig(t, agent).start()
	created := r.create("d")
	first := r.do(say("d", "c1", "hello"))
	r.awaitRun("d", 1, "completed")
	before, wire := lines(r.log()), agent.wire()

	again := r.do(say("d", "c1", "hello"))
	if !again.Duplicate || again.Sequence != first.Sequence || again.Status != "accepted" {
		t.Errorf("second receipt %+v, first %+v", again, first)
	}
	if again := r.create("d"); !again.Duplicate || again.Sequence != created.Sequence {
		t.Errorf("second create %+v, first %+v", again, created)
	}
	if diff := cmp.Diff(before, lines(r.log())); diff != "" {
		t.Errorf("log changed:\n%s", diff)
	}
	// A turn that was started wrongly would stand on the wire before this one.
	r.do(say("d", "c2", "next"))
	r.awaitRun("d", 2, "completed")
	if diff := cmp.Diff(append(wire, "turn/start next"), agent.wire()); diff != "" {
		t.Errorf("provider was touched:\n%s", diff)
	}
}

func TestRejected(t *testing.T) {
	agent := newStub()
	hold := make(chan struct{})
	agent.turn = func(t *turn) {
		t.started()
		select {
		case <-hold:
			t.ended("completed")
		case <-t.s.quit:
		}
	}
	r := newRig(t, agent).start()
	r.create("d")
	for name, test := range map[string]struct {
		command orch.Command
		code    string
	}{
		"unknown thread": {say("nope", "r1", "x"), orch.CodeUnknownThread},
		"thread exists":  {orch.CreateThread{CommandID: "r2", ThreadID: "d", ModelSelection: orch.ModelSelection{InstanceID: "codex"}}, orch.CodeThreadExists},
		"unknown agent":  {orch.CreateThread{CommandID: "r3", ThreadID: "e", ModelSelection: orch.ModelSelection{InstanceID: "x"}}, orch.CodeUnknownProvider},
		"empty message":  {say("d", "r4", ""), orch.CodeInvalid},
		"steer":          {orch.DispatchMessage{CommandID: "r5", ThreadID: "d", Text: "x", Mode: orch.ModeSteer, TargetRunID: "r"}, orch.CodeUnknownRun},
		"start":          {orch.StartRun{CommandID: "r6", ThreadID: "d", RunID: "r"}, orch.CodeUnknownRun},
		"reorder":        {orch.ReorderQueuedRun{CommandID: "r14", ThreadID: "d", RunID: "r"}, orch.CodeUnknownRun},
		"edit":           {orch.EditQueuedRun{CommandID: "r15", ThreadID: "d", RunID: "r", Text: "x"}, orch.CodeUnknownRun},
		"interrupt":      {orch.InterruptRun{CommandID: "r10", ThreadID: "d", RunID: "r"}, orch.CodeUnknownRun},
		"answer":         {orch.RespondToRequest{CommandID: "r11", ThreadID: "d", RequestID: "r", Decision: "accept"}, orch.CodeUnknownRequest},
		"cancel":         {orch.CancelQueuedRun{CommandID: "r12", ThreadID: "d", RunID: "r"}, orch.CodeUnknownRun},
		"promote":        {orch.PromoteQueuedRun{CommandID: "r13", ThreadID: "d", QueuedRunID: "r"}, orch.CodeUnknownRun},
		"unknown mode":   {orch.DispatchMessage{CommandID: "r7", ThreadID: "d", Text: "x", Mode: "shout"}, orch.CodeInvalid},
		"nothing open":   {orch.DetachSession{CommandID: "r8", ThreadID: "d"}, orch.CodeNoSession},
		"other instance": {orch.DispatchMessage{CommandID: "r9", ThreadID: "d", Text: "x", ModelSelection: &orch.ModelSelection{InstanceID: "y"}}, orch.CodeUnknownProvider},
	} {
		t.Run(name, func(t *testing.T) {
			receipt, err := r.Dispatch(r.ctx, test.command)
			var rejected *orch.RejectedError
			if !errors.As(err, &rejected) || rejected.Code != test.code || errors.Is(err, orch.ErrPreviouslyRejected) {
				t.Fatalf("got %v, want code %s", err, test.code)
			}
			if receipt.Status != "rejected" || receipt.Sequence != 0 {
				t.Errorf("receipt %+v", receipt)
			}
			receipt, err = r.Dispatch(r.ctx, test.command)
			if !errors.As(err, &rejected) || rejected.Code != test.code || !errors.Is(err, orch.ErrPreviouslyRejected) || !receipt.Duplicate {
				t.Errorf("again: %v, %+v", err, receipt)
			}
		})
	}
	if n := len(r.log()); n != 1 {
		t.Errorf("log has %d events, want that of the created thread", n)
	}

	// A refusal leaves no trace in memory either.
	r.do(say("d", "c1", "go"))
	r.awaitRun("d", 1, "running")
	if _, err := r.Dispatch(r.ctx, say("d", "c2", "me too")); err == nil {
		t.Error("second message during a run was accepted")
	}
	close(hold)
	r.awaitRun("d", 1, "completed")
	r.do(say("d", "c3", "now"))
	r.awaitRun("d", 2, "completed")
}

// Invariant 2: only the terminal event of the active attempt's root turn ends
// a run. Terminals of other turns and ends of subagents come and go.
func TestOnlyRootTurnEndsRun(t *testing.T) {
	agent := newStub()
	reached, goOn := make(chan struct{}), make(chan struct{})
	agent.turn = func(t *turn) {
		t.started()
		t.s.emit(orch.SubagentUpdated{NativeThreadID: t.thread, NativeTurnID: t.id, NativeTaskID: "k1", ChildNativeThreadID: "C1", Prompt: "p", Status: "running"})
		t.s.emit(orch.TurnStarted{NativeThreadID: "C1", NativeTurnID: "CU1"})
		t.s.emit(orch.TurnEnded{NativeThreadID: "C1", NativeTurnID: "CU1", Status: "completed"})
		t.s.emit(orch.TurnEnded{NativeThreadID: t.thread, NativeTurnID: "stray", Status: "completed"})
		t.s.emit(orch.SubagentUpdated{NativeThreadID: t.thread, NativeTurnID: t.id, NativeTaskID: "k1", Status: "completed", Result: "done"})
		t.item(orch.ProviderItem{NativeID: "cmd", Type: "command_execution", Status: "completed", Title: "ls"})
		close(reached)
		<-goOn
		t.ended("completed")
		t.ended("failed") // absorbed
	}
	r := newRig(t, agent).start()
	r.create("d")
	r.do(say("d", "c1", "go"))
	<-reached
	p := r.await("d", "the command", func(p *orch.Projection) bool {
		return strings.Contains(join(p.TurnItems, func(i orch.TurnItem) string { return i.Type }), "command_execution")
	})
	if p.Runs[0].Status != "running" || p.Attempts[0].Status != "running" {
		t.Errorf("run is %s before its root turn ended", p.Runs[0].Status)
	}
	if p.Subagents[0].Status != "completed" || p.Subagents[0].Result != "done" {
		t.Errorf("subagent: %s", pretty(p.Subagents))
	}
	close(goOn)
	p = r.awaitRun("d", 1, "completed")
	if len(p.ProviderTurns) != 1 || p.ProviderTurns[0].Status != "completed" {
		t.Errorf("turns: %s", pretty(p.ProviderTurns))
	}
}

// Invariant 3, and rule 1 of the order of facts: the run waits while its
// checkpoint is taken, and what the provider says meanwhile is stored after.
func TestCheckpointBeforeTerminal(t *testing.T) {
	agent := newStub()
	late := make(chan struct{})
	agent.turn = func(t *turn) {
		t.started()
		t.ended("completed")
		t.s.emit(orch.HeadChanged{NativeThreadID: t.thread, Head: "h1"})
		close(late)
	}
	r := newRig(t, agent)
	capturing, goOn := make(chan struct{}), make(chan struct{})
	r.snaps.before = func(_ context.Context, req orch.CaptureRequest) {
		if strings.HasSuffix(req.Ref, "/1") {
			close(capturing)
			<-goOn
		}
	}
	r.start()
	r.create("d")
	r.do(say("d", "c1", "go"))
	<-capturing
	<-late // the late event was taken from the provider already
	p, _ := r.snapshot("d")
	if p.Runs[0].Status != "waiting" || p.Attempts[0].Status != "completed" || p.Runs[0].CompletedAt != nil {
		t.Errorf("while capturing: run %s, attempt %s", p.Runs[0].Status, p.Attempts[0].Status)
	}
	close(goOn)
	p = r.await("d", "the late event", func(p *orch.Projection) bool {
		return len(p.ProviderThreads) > 0 && p.ProviderThreads[0].NativeConversationHeadRef != nil
	})
	if p.Runs[0].Status != "completed" {
		t.Errorf("late event was stored before the checkpoint: run is %s", p.Runs[0].Status)
	}
}

// A failing capture is tried again after a backoff, and ends the run anyway.
func TestCheckpointFails(t *testing.T) {
	r := newRig(t, newStub())
	r.snaps.fail = func(req orch.CaptureRequest) error {
		if strings.HasSuffix(req.Ref, "/1") {
			return errors.New("git is broken")
		}
		return nil
	}
	r.start()
	r.create("d")
	r.do(say("d", "c1", "go"))
	r.awaitRun("d", 1, "waiting")
	for range 4 {
		// The poll's ticker and the backoff's timer.
		if err := r.clock.BlockUntilContext(r.ctx, 2); err != nil {
			t.Fatal(err)
		}
		r.clock.Advance(1e9)
	}
	p := r.awaitRun("d", 1, "completed")
	last := p.Checkpoints[len(p.Checkpoints)-1]
	if last.Status != "error" || last.Error != "git is broken" || len(r.snaps.requests) != 6 {
		t.Errorf("checkpoint %+v after %d captures", last, len(r.snaps.requests))
	}
}

// A provider that dies in the middle of a turn fails the run, says why, and
// the next message works on the same provider thread.
func TestProviderDiesMidTurn(t *testing.T) {
	agent := newStub()
	agent.turn = func(t *turn) {
		if t.n > 1 {
			echo(t)
			return
		}
		t.started()
		t.item(orch.ProviderItem{NativeID: "cmd", Type: "command_execution", Status: "running", Title: "make"})
		t.s.emit(orch.RequestOpened{NativeThreadID: t.thread, NativeTurnID: t.id, NativeRequestID: "0", Kind: "command", NativeItemID: "cmd"})
		go t.s.die(errors.New("exit status 1"))
	}
	r := newRig(t, agent).start()
	r.create("d")
	r.do(say("d", "c1", "one"))
	p := r.awaitRun("d", 1, "failed")
	var said string
	for _, i := range p.TurnItems {
		if i.Type == "error" {
			said = i.Text
		}
		if i.Status == "running" || i.Status == "waiting" {
			t.Errorf("item %s is still %s", i.ID, i.Status)
		}
	}
	if said != "provider process ended: exit status 1" {
		t.Errorf("error item says %q", said)
	}
	if p.RuntimeRequests[0].Status != "expired" || p.RuntimeRequests[0].ResponseCapability.Type != "not_resumable" {
		t.Errorf("request: %s", pretty(p.RuntimeRequests))
	}
	p = r.await("d", "session end", func(p *orch.Projection) bool {
		return len(p.ProviderSessions) == 1 && p.ProviderSessions[0].Status == "error"
	})
	if p.ProviderThreads[0].Status != "not_loaded" {
		t.Errorf("provider thread is %s", p.ProviderThreads[0].Status)
	}
	r.do(say("d", "c2", "two"))
	p = r.awaitRun("d", 2, "completed")
	if len(p.ProviderThreads) != 1 || len(p.ProviderSessions) != 2 {
		t.Errorf("%d provider threads, %d sessions", len(p.ProviderThreads), len(p.ProviderSessions))
	}
	want := []string{"open", "thread/start", "turn/start one", "open", "thread/resume T1", "turn/start two"}
	if diff := cmp.Diff(want, agent.wire()); diff != "" {
		t.Error(diff)
	}
}

func TestStartFails(t *testing.T) {
	for name, test := range map[string]struct {
		breakIt func(*stub)
		want    string
	}{
		"open":       {func(a *stub) { a.openErr = errors.New("no such file") }, "open provider session: no such file"},
		"start turn": {func(a *stub) { a.startErr = errors.New("bad request") }, "start turn: bad request"},
	} {
		t.Run(name, func(t *testing.T) {
			agent := newStub()
			test.breakIt(agent)
			r := newRig(t, agent).start()
			r.create("d")
			r.do(say("d", "c1", "one"))
			p := r.awaitRun("d", 1, "failed")
			if got := p.TurnItems[1].Text; p.TurnItems[1].Type != "error" || got != test.want {
				t.Errorf("error item says %q, want %q", got, test.want)
			}
			agent.openErr, agent.startErr = nil, nil
			r.do(say("d", "c2", "two"))
			r.awaitRun("d", 2, "completed")
		})
	}
}

// A session is closed by detach; the next message opens one and resumes.
func TestDetach(t *testing.T) {
	agent := newStub()
	r := newRig(t, agent).start()
	r.create("d")
	r.do(say("d", "c1", "one"))
	r.awaitRun("d", 1, "completed")
	r.do(orch.DetachSession{CommandID: "x1", ThreadID: "d"})
	r.do(say("d", "c2", "two")) // at once: the effects follow each other
	p := r.awaitRun("d", 2, "completed")
	if got := join(p.ProviderSessions, func(s orch.ProviderSession) string { return s.Status }); got != "stopped ready" {
		t.Errorf("sessions: %s", got)
	}
	want := []string{"open", "thread/start", "turn/start one", "close", "open", "thread/resume T1", "turn/start two"}
	if diff := cmp.Diff(want, agent.wire()); diff != "" {
		t.Error(diff)
	}
}
