package orch_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/internal/orch"
)

func controllable() *stub {
	agent := newStub()
	agent.capabilities.ActiveSteering, agent.capabilities.SteeringByRestart = true, true
	agent.capabilities.Approvals = true
	agent.turn = untilInterrupted
	return agent
}

func (r *rig) running(thread string) *orch.Projection {
	r.t.Helper()
	return r.await(thread, "a running turn", func(p *orch.Projection) bool {
		for _, run := range p.Runs {
			if run.Status == "running" {
				return true
			}
		}
		return false
	})
}

func (r *rig) refused(c orch.Command, code string) {
	r.t.Helper()
	_, err := r.Dispatch(r.ctx, c)
	var rejected *orch.RejectedError
	if !errors.As(err, &rejected) || rejected.Code != code {
		r.t.Errorf("%T: got %v, want code %s", c, err, code)
	}
}

// settled waits until a thread has no effect.
func (r *rig) settled(thread string) {
	r.t.Helper()
	for {
		due, err := r.store.DueEffects(r.ctx, thread, r.clock.Now())
		if err != nil {
			r.t.Fatal(err)
		}
		if len(due) == 0 {
			return
		}
	}
}

func items(p *orch.Projection, kinds ...string) string {
	return join(p.TurnItems, func(i orch.TurnItem) string { return i.Type + "/" + i.Status })
}

// Invariant 2: the acknowledgement of an interrupt ends nothing.
func TestInterruptAcknowledgementLeavesTheRunRunning(t *testing.T) {
	agent := controllable()
	end := make(chan struct{})
	agent.turn = func(u *turn) {
		u.started()
		<-u.interrupted
		<-end
		u.ended("interrupted")
	}
	r := newRig(t, agent).start()
	r.create("d")
	r.do(say("d", "c1", "go"))
	p := r.running("d")
	r.do(orch.InterruptRun{CommandID: "c2", ThreadID: "d", RunID: p.Runs[0].ID, Reason: "enough"})
	r.settled("d")
	p, _ = r.snapshot("d")
	if p.Runs[0].Status != "running" || p.Attempts[0].Status != "running" || p.Nodes[0].Status != "running" {
		t.Errorf("after the acknowledgement: %s", sketch(p))
	}
	r.refused(orch.InterruptRun{CommandID: "c3", ThreadID: "d", RunID: p.Runs[0].ID}, orch.CodeNothingToDo)
	close(end)
	p = r.awaitRun("d", 1, "interrupted")
	if got, want := items(p), "user_message/completed run_interrupt_request/completed run_interrupt_result/interrupted checkpoint/completed"; got != want {
		t.Errorf("items %s, want %s", got, want)
	}
	if p.TurnItems[2].ParentItemID != orch.Ref(p.TurnItems[1].ID) || p.Nodes[0].Status != "interrupted" || p.ProviderThreads[0].Status != "idle" {
		t.Error(pretty(p))
	}
	agent.turn = nil
	r.do(say("d", "c4", "next"))
	r.awaitRun("d", 2, "completed")
}

// A provider that never ends the turn loses it after ten seconds; what it
// says later changes nothing.
func TestInterruptIsForcedAfterTenSeconds(t *testing.T) {
	agent := controllable()
	late := make(chan struct{})
	agent.turn = func(u *turn) {
		u.started()
		select {
		case <-late:
			u.ended("completed")
		case <-u.s.quit:
		}
	}
	r := newRig(t, agent).start()
	r.create("d")
	r.do(say("d", "c1", "go"))
	p := r.running("d")
	r.do(orch.InterruptRun{CommandID: "c2", ThreadID: "d", RunID: p.Runs[0].ID})
	r.settled("d")
	r.clock.Advance(9_999e6)
	if p, _ := r.snapshot("d"); p.Runs[0].Status != "running" {
		t.Errorf("run is %s before its time", p.Runs[0].Status)
	}
	r.clock.Advance(1e6)
	r.awaitRun("d", 1, "interrupted")
	r.settled("d")
	close(late)
	agent.turn = nil
	r.do(say("d", "c3", "next"))
	p = r.awaitRun("d", 2, "completed")
	if p.Runs[0].Status != "interrupted" || p.ProviderTurns[0].Status != "interrupted" {
		t.Error(sketch(p))
	}
}

// An effect that acts on a turn is not held up by the start that still waits
// for the provider, nor is what the provider says meanwhile.
func TestControlActsWhileATurnIsBeingGiven(t *testing.T) {
	agent := controllable()
	agent.hold = make(chan struct{})
	agent.turn = func(u *turn) {
		u.started()
		u.s.emit(orch.RequestOpened{NativeThreadID: u.thread, NativeTurnID: u.id, NativeRequestID: "7", Kind: "command", Title: "run it?"})
		<-u.answered
		<-u.interrupted
		close(agent.hold)
		u.ended("interrupted")
	}
	r := newRig(t, agent).start()
	r.create("d")
	r.do(say("d", "c1", "go"))
	p := r.await("d", "a request", func(p *orch.Projection) bool { return len(p.TurnItems) == 2 })
	request := p.RuntimeRequests[0]
	r.refused(orch.RespondToRequest{CommandID: "r1", ThreadID: "d", RequestID: request.ID}, orch.CodeInvalid)
	r.refused(orch.RespondToRequest{CommandID: "r2", ThreadID: "d", RequestID: request.ID, Decision: "perhaps"}, orch.CodeInvalid)
	r.do(orch.RespondToRequest{CommandID: "c2", ThreadID: "d", RequestID: request.ID, Decision: "accept"})
	r.refused(orch.RespondToRequest{CommandID: "r3", ThreadID: "d", RequestID: request.ID, Decision: "accept"}, orch.CodeRequestClosed)
	r.do(orch.InterruptRun{CommandID: "c3", ThreadID: "d", RunID: p.Runs[0].ID})
	p = r.awaitRun("d", 1, "interrupted")
	if got := p.RuntimeRequests[0]; got.Status != "resolved" || got.Decision != "accept" {
		t.Errorf("request: %+v", got)
	}
	if diff := cmp.Diff([]string{"open", "thread/start", "turn/start go", "respond 7 acceptmap[]", "turn/interrupt U1"}, agent.wire()); diff != "" {
		t.Error(diff)
	}
}

// A run that was asked to stop before it had a turn never gets one to an end:
// the turn is interrupted as soon as it starts.
func TestInterruptBeforeTheTurnStarts(t *testing.T) {
	agent := controllable()
	begin := make(chan struct{})
	agent.turn = func(u *turn) {
		<-begin
		untilInterrupted(u)
	}
	r := newRig(t, agent).start()
	r.create("d")
	r.do(say("d", "c1", "go"))
	r.settled("d")
	p, _ := r.snapshot("d")
	r.do(orch.InterruptRun{CommandID: "c2", ThreadID: "d", RunID: p.Runs[0].ID})
	r.settled("d")
	close(begin)
	r.awaitRun("d", 1, "interrupted")
	if diff := cmp.Diff([]string{"open", "thread/start", "turn/start go", "turn/interrupt U1"}, agent.wire()); diff != "" {
		t.Error(diff)
	}
}

func steerMessage(id, mode, run string) orch.DispatchMessage {
	m := say("d", id, "rather "+id)
	m.Mode, m.TargetRunID = mode, run
	return m
}

// Policy reads capabilities: a provider that takes input into a turn gets it,
// one that does not is restarted, one that can't be is refused.
func TestSteeringFollowsCapabilities(t *testing.T) {
	for name, test := range map[string]struct {
		active, restart bool
		mode, code      string
		wire            []string
		attempts        string
	}{
		"active":     {true, true, orch.ModeSteer, "", []string{"turn/steer U1 rather s"}, "initial/completed"},
		"fallback":   {false, true, orch.ModeSteer, "", []string{"turn/interrupt U1", "turn/start rather s"}, "initial/superseded steering_restart/completed"},
		"forced":     {true, true, orch.ModeRestart, "", []string{"turn/interrupt U1", "turn/start rather s"}, "initial/superseded steering_restart/completed"},
		"neither":    {false, false, orch.ModeSteer, orch.CodeNotSupported, nil, ""},
		"no restart": {true, false, orch.ModeRestart, orch.CodeNotSupported, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			agent := controllable()
			agent.capabilities.ActiveSteering, agent.capabilities.SteeringByRestart = test.active, test.restart
			agent.turn = func(u *turn) {
				if u.n > 1 {
					echo(u)
					return
				}
				u.started()
				select {
				case text := <-u.steered:
					u.say("m", text)
					u.ended("completed")
				case <-u.interrupted:
					u.item(orch.ProviderItem{NativeID: "x", Type: "command_execution", Status: "running"})
					u.ended("interrupted")
				case <-u.s.quit:
				}
			}
			r := newRig(t, agent).start()
			r.create("d")
			r.do(say("d", "c1", "go"))
			p := r.running("d")
			if test.code != "" {
				r.refused(steerMessage("s", test.mode, p.Runs[0].ID), test.code)
				return
			}
			r.do(steerMessage("s", test.mode, p.Runs[0].ID))
			p = r.awaitRun("d", 1, "completed")
			if diff := cmp.Diff(append([]string{"open", "thread/start", "turn/start go"}, test.wire...), agent.wire()); diff != "" {
				t.Error(diff)
			}
			if got := join(p.Attempts, func(a orch.RunAttempt) string { return a.Reason + "/" + a.Status }); got != test.attempts {
				t.Errorf("attempts %s", got)
			}
			last := p.Attempts[len(p.Attempts)-1]
			if p.Runs[0].ActiveAttemptID != orch.Ref(last.ID) || p.Runs[0].RootNodeID != last.RootNodeID {
				t.Error("run does not point at its last attempt")
			}
			if len(p.Attempts) == 2 && (p.Nodes[0].Status != "interrupted" || p.ProviderTurns[0].Status != "interrupted") {
				t.Errorf("superseded: %s", sketch(p))
			}
			for _, m := range p.Messages {
				if m.RunID != orch.Ref(p.Runs[0].ID) {
					t.Errorf("message %q is of run %q", m.Text, m.RunID)
				}
			}
		})
	}
}

// A provider that does not end a superseded turn does not keep the next
// attempt from starting.
func TestRestartIsForcedAfterTenSeconds(t *testing.T) {
	agent := controllable()
	agent.turn = func(u *turn) {
		if u.n > 1 {
			echo(u)
			return
		}
		u.started()
		<-u.s.quit
	}
	r := newRig(t, agent).start()
	r.create("d")
	r.do(say("d", "c1", "go"))
	p := r.running("d")
	r.do(steerMessage("s", orch.ModeRestart, p.Runs[0].ID))
	r.settled("d")
	r.clock.Advance(10e9)
	p = r.awaitRun("d", 1, "completed")
	if got := join(p.ProviderTurns, func(u orch.ProviderTurn) string { return u.Status }); got != "interrupted completed" {
		t.Errorf("turns %s", got)
	}
}

// Queued runs start one after the other, each when the one before is over;
// one can be taken back, or given to the active run.
func TestQueue(t *testing.T) {
	agent := controllable()
	first := make(chan struct{})
	agent.turn = func(u *turn) {
		if u.n > 1 {
			echo(u)
			return
		}
		u.started()
		<-first
		u.say("m", "steered: "+<-u.steered)
		u.ended("completed")
	}
	r := newRig(t, agent).start()
	r.create("d")
	r.do(say("d", "c1", "one"))
	r.running("d")
	for _, text := range []string{"two", "three", "four", "five"} {
		m := say("d", text, text)
		m.Mode = orch.ModeQueue
		r.do(m)
	}
	p, _ := r.snapshot("d")
	r.do(orch.CancelQueuedRun{CommandID: "k1", ThreadID: "d", RunID: p.Runs[1].ID})
	r.refused(orch.CancelQueuedRun{CommandID: "k2", ThreadID: "d", RunID: p.Runs[0].ID}, orch.CodeNotQueued)
	r.do(orch.PromoteQueuedRun{CommandID: "k3", ThreadID: "d", QueuedRunID: p.Runs[3].ID, TargetRunID: p.Runs[0].ID})
	p, _ = r.snapshot("d")
	if got := join(p.Runs, func(run orch.Run) string { return fmt.Sprint(run.Status, deref(run.QueuePosition)) }); got != "running<nil> cancelled<nil> queued1 cancelled<nil> queued2" {
		t.Errorf("runs: %s", got)
	}
	close(first)
	p = r.awaitRun("d", 5, "completed")
	if diff := cmp.Diff([]string{"open", "thread/start", "turn/start one", "turn/steer U1 four", "turn/start three", "turn/start five"}, agent.wire()); diff != "" {
		t.Error(diff)
	}
	if got := join(p.TurnItems, func(i orch.TurnItem) string { return i.InputIntent }); got != "turn_start promoted_queued_to_steer   queued_turn   queued_turn  " {
		t.Errorf("intents %q", got)
	}
	for _, run := range []int{2, 4} {
		if p.Runs[run].Status != "completed" || p.Runs[run].CheckpointID == "" {
			t.Errorf("run %d: %+v", run, p.Runs[run])
		}
	}
}

// Questions are answered with answers, and end with the session.
func TestQuestions(t *testing.T) {
	agent := controllable()
	agent.turn = func(u *turn) {
		u.started()
		u.s.emit(orch.RequestOpened{NativeThreadID: u.thread, NativeTurnID: u.id, NativeRequestID: "q", Kind: "user_input", Title: "which?"})
		<-u.answered
		u.s.emit(orch.RequestOpened{NativeThreadID: u.thread, NativeTurnID: u.id, NativeRequestID: "q", Kind: "user_input", Title: "really?"})
		<-u.s.quit
	}
	r := newRig(t, agent).start()
	r.create("d")
	r.do(say("d", "c1", "go"))
	pending := func(n int) *orch.Projection {
		return r.await("d", "a request", func(p *orch.Projection) bool {
			return len(p.RuntimeRequests) == n && p.TurnItems[len(p.TurnItems)-1].Status == "waiting"
		})
	}
	p := pending(1)
	r.refused(orch.RespondToRequest{CommandID: "r1", ThreadID: "d", RequestID: p.RuntimeRequests[0].ID}, orch.CodeInvalid)
	r.do(orch.RespondToRequest{CommandID: "c2", ThreadID: "d", RequestID: p.RuntimeRequests[0].ID, Answers: map[string][]string{"a": {"b"}}})
	p = pending(2)
	if got := p.TurnItems[1]; got.Status != "completed" || got.Answers["a"][0] != "b" {
		t.Errorf("item %+v", got)
	}
	r.stop()
	r.start()
	p, _ = r.snapshot("d")
	if got := p.RuntimeRequests[1]; got.Status != "expired" || got.ResponseCapability.Type != "not_resumable" {
		t.Errorf("request after a restart: %+v", got)
	}
	r.refused(orch.RespondToRequest{CommandID: "r2", ThreadID: "d", RequestID: p.RuntimeRequests[1].ID, Answers: map[string][]string{"a": {"b"}}}, orch.CodeRequestClosed)
}
