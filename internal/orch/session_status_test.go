package orch_test

import (
	"strings"
	"testing"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// A session says whether it runs a turn, waits for the user, or is ready for a
// turn, however the last one ended.
func TestSessionStatus(t *testing.T) {
	agent := controllable()
	agent.turn = func(u *turn) {
		u.started()
		u.s.emit(orch.RequestOpened{NativeThreadID: u.thread, NativeTurnID: u.id, NativeRequestID: "q", Kind: "command"})
		<-u.answered
		u.s.emit(orch.RequestOpened{NativeThreadID: u.thread, NativeTurnID: u.id, NativeRequestID: "r", Kind: "command"})
		u.s.emit(orch.RequestClosed{NativeThreadID: u.thread, NativeRequestID: "r"})
		if u.n > 1 {
			<-u.s.quit
		}
		u.ended("completed")
	}
	r := newRig(t, agent).start()
	r.create("d")
	for i, command := range []string{"c1", "c2"} {
		r.do(say("d", command, "go"))
		p := r.await("d", "a request", func(p *orch.Projection) bool { return len(p.RuntimeRequests) == 2*i+1 })
		r.do(orch.RespondToRequest{CommandID: "r" + command, ThreadID: "d", RequestID: p.RuntimeRequests[2*i].ID, Decision: "accept"})
		p = r.await("d", "the other", func(p *orch.Projection) bool {
			return len(p.RuntimeRequests) == 2*i+2 && p.RuntimeRequests[2*i+1].Status == "cancelled"
		})
		if i == 1 { // nobody ends this one but the clock
			r.do(orch.InterruptRun{CommandID: "k", ThreadID: "d", RunID: p.Runs[1].ID})
			r.settled("d")
			r.clock.Advance(10e9)
			r.awaitRun("d", 2, "interrupted")
		} else {
			r.awaitRun("d", 1, "completed")
		}
	}
	r.settled("d")
	var statuses []string
	for _, e := range r.log() {
		if strings.HasPrefix(e.Event.Type, "provider-session.") {
			p := orch.Fold([]orch.StoredEvent{e}, "d")
			statuses = append(statuses, p.ProviderSessions[0].Status)
		}
	}
	const turn = "running waiting running waiting running ready"
	if got := strings.Join(statuses, " "); got != "starting ready "+turn+" "+turn {
		t.Errorf("the session was %s", got)
	}
}
