package orch_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// sessionIs waits until a thread's last session has a status and a reason.
func (r *rig) sessionIs(thread, want string) *orch.Projection {
	r.t.Helper()
	return r.await(thread, "session "+want, func(p *orch.Projection) bool {
		n := len(p.ProviderSessions)
		return n > 0 && fmt.Sprint(p.ProviderSessions[n-1].Status, " ", p.ProviderSessions[n-1].ReleaseReason) == want
	})
}

// A session that nobody used for half an hour is closed, and the next message
// resumes its thread in a new one. Use puts it off.
func TestIdleSessionIsReleased(t *testing.T) {
	agent := newStub()
	r := newRig(t, agent).start()
	r.create("d")
	r.do(say("d", "c1", "one"))
	r.awaitRun("d", 1, "completed")
	r.clock.Advance(20 * time.Minute)
	r.do(say("d", "c2", "two"))
	r.awaitRun("d", 2, "completed")
	r.clock.Advance(20 * time.Minute) // forty since the session was opened, twenty since it was used
	r.do(say("d", "c3", "three"))
	r.awaitRun("d", 3, "completed")
	if got := len(agent.sessions); got != 1 {
		t.Fatalf("%d sessions while it was in use", got)
	}
	r.clock.Advance(30 * time.Minute)
	p := r.sessionIs("d", "stopped idle_timeout")
	if p.ProviderThreads[0].Status != "not_loaded" || p.Runs[2].Status != "completed" {
		t.Errorf("provider thread %s, run %s", p.ProviderThreads[0].Status, p.Runs[2].Status)
	}
	r.do(say("d", "c4", "four"))
	r.awaitRun("d", 4, "completed")
	want := []string{"open", "thread/start", "turn/start one", "turn/start two", "turn/start three", "close", "open", "thread/resume T1", "turn/start four"}
	if diff := cmp.Diff(want, agent.wire()); diff != "" {
		t.Error(diff)
	}
	r.clock.Advance(time.Hour)
	r.sessionIs("d", "stopped idle_timeout") // the second one too
}

// A session with a turn that takes its time, or with a question that nobody
// has answered, is not idle, however long; it is half an hour after.
func TestBusySessionIsKept(t *testing.T) {
	agent := newStub()
	agent.turn = func(t *turn) {
		t.started()
		t.s.emit(orch.RequestOpened{NativeThreadID: t.thread, NativeTurnID: t.id, NativeRequestID: "0", Kind: "command"})
		<-t.answered
		t.ended("completed")
	}
	r := newRig(t, agent).start()
	r.create("d")
	r.do(say("d", "c1", "one"))
	p := r.await("d", "request", func(p *orch.Projection) bool { return len(p.RuntimeRequests) == 1 })
	for range 10 {
		r.clock.Advance(time.Hour)
		if err := r.clock.BlockUntilContext(r.ctx, 2); err != nil { // ticker and reaper wait again
			t.Fatal(err)
		}
	}
	r.do(orch.RespondToRequest{CommandID: "yes", ThreadID: "d", RequestID: p.RuntimeRequests[0].ID, Decision: "accept"})
	r.awaitRun("d", 1, "completed")
	if diff := cmp.Diff([]string{"open", "thread/start", "turn/start one", "respond 0 acceptmap[]"}, agent.wire()); diff != "" {
		t.Error(diff)
	}
	r.clock.Advance(30 * time.Minute)
	r.sessionIs("d", "stopped idle_timeout")
}

// A session that many threads share is idle when all of them are, and then
// every one of them is told.
func TestSharedSessionIsReleasedOnce(t *testing.T) {
	agent := newStub()
	agent.capabilities.ThreadsPerSession = true
	release := make(chan struct{})
	agent.turn = func(t *turn) {
		if t.n == 2 {
			t.started()
			<-release
			t.ended("completed")
			return
		}
		echo(t)
	}
	r := newRig(t, agent).start()
	for i, thread := range []string{"d1", "d2"} {
		r.create(thread)
		r.do(say(thread, thread, "hi"))
		r.awaitRun(thread, 1, []string{"completed", "running"}[i])
	}
	r.clock.Advance(time.Hour)
	if err := r.clock.BlockUntilContext(r.ctx, 2); err != nil {
		t.Fatal(err)
	}
	close(release)
	r.awaitRun("d2", 1, "completed")
	r.clock.Advance(30 * time.Minute)
	r.sessionIs("d1", "stopped idle_timeout")
	r.sessionIs("d2", "stopped idle_timeout")
	want := []string{"open", "thread/start", "turn/start hi", "thread/start", "turn/start hi", "close"}
	if diff := cmp.Diff(want, agent.wire()); diff != "" {
		t.Error(diff)
	}
}

// Every way a session can end says which it was.
func TestReleaseReasons(t *testing.T) {
	agent := newStub()
	r := newRig(t, agent).start()
	r.create("d")
	r.do(say("d", "c1", "one"))
	r.awaitRun("d", 1, "completed")
	r.do(orch.DetachSession{CommandID: "x", ThreadID: "d"})
	r.sessionIs("d", "stopped manual_shutdown")
	r.do(say("d", "c2", "two"))
	r.awaitRun("d", 2, "completed")
	agent.sessions[1].die(fmt.Errorf("exit status 2"))
	r.sessionIs("d", "error runtime_error")
	r.do(say("d", "c3", "three"))
	r.awaitRun("d", 3, "completed")
	before := len(r.log())
	r.stop()
	r.start()
	r.sessionIs("d", "stopped server_shutdown")
	for _, e := range r.log()[before:] {
		if e.Event.Type != orch.EventSessionUpdated && e.Event.Type != orch.EventProviderThreadUpdated {
			t.Errorf("the restart of an idle thread stored %s", e.Event.Type)
		}
	}
}

// A child that has told no turn yet ends with the session that it is on.
func TestSessionEndsBeforeAChildBegins(t *testing.T) {
	agent := newStub()
	agent.capabilities.Subagents, agent.capabilities.ChildThreadIDs = true, true
	agent.turn = func(t *turn) {
		t.started()
		t.s.emit(orch.SubagentUpdated{
			NativeThreadID: t.thread, NativeTurnID: t.id, NativeTaskID: "k", ChildNativeThreadID: "C", Prompt: "do it", Status: "running",
		})
		<-t.s.quit
	}
	r := newRig(t, agent).start()
	r.create("d")
	r.do(say("d", "c1", "one"))
	p := r.await("d", "child", func(p *orch.Projection) bool { return len(p.Subagents) == 1 })
	child := string(p.Subagents[0].ChildThreadID)
	agent.sessions[0].die(fmt.Errorf("exit status 2"))
	p = r.await(child, "its end", func(p *orch.Projection) bool {
		return len(p.ProviderSessions) == 1 && p.ProviderSessions[0].Status == "error"
	})
	if p.Nodes[0].Kind != "root_turn" || p.Nodes[0].Status != "failed" {
		t.Errorf("root node is %s", p.Nodes[0].Status)
	}
	r.awaitRun("d", 1, "failed")
}
