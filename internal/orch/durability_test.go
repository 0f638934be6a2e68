package orch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// Invariant 9: same commands, same provider events, same seed: the same bytes.
// The script has what could race: a long tail of events behind a checkpoint,
// a death, a session's start, two attempts to send during a run.
func TestSameSeedSameLog(t *testing.T) {
	play := func(seed uint64) string {
		agent := newStub()
		agent.turn = func(t *turn) {
			t.started()
			for i := range 5 {
				t.item(orch.ProviderItem{NativeID: fmt.Sprint("c", i), Type: "command_execution", Status: "running", Title: "make"})
				t.item(orch.ProviderItem{NativeID: fmt.Sprint("c", i), Type: "command_execution", Status: "completed", Title: "make", Text: "ok"})
			}
			t.s.emit(orch.RequestOpened{NativeThreadID: t.thread, NativeTurnID: t.id, NativeRequestID: "0", Kind: "command"})
			t.s.emit(orch.RequestClosed{NativeThreadID: t.thread, NativeRequestID: "0"})
			t.say("m", "done: "+t.text)
			t.ended("completed")
			for i := range 5 {
				t.s.emit(orch.HeadChanged{NativeThreadID: t.thread, Head: fmt.Sprintf("h%d.%d", t.n, i)})
			}
			if t.n == 2 {
				go t.s.die(errors.New("signal: killed"))
			}
		}
		r := newRig(t, agent)
		r.seed = seed
		r.start()
		defer r.stop()
		r.create("d")
		headIs := func(head string) func(p *orch.Projection) bool {
			return func(p *orch.Projection) bool {
				return len(p.ProviderThreads) > 0 && p.ProviderThreads[0].NativeConversationHeadRef != nil &&
					p.ProviderThreads[0].NativeConversationHeadRef.NativeID == head
			}
		}
		r.do(say("d", "c1", "one"))
		r.await("d", "head", headIs("h1.4"))
		r.do(say("d", "c2", "two"))
		r.await("d", "death", func(p *orch.Projection) bool {
			return len(p.ProviderSessions) == 1 && p.ProviderSessions[0].Status == "error"
		})
		r.do(say("d", "c3", "three"))
		r.await("d", "head", headIs("h3.4"))
		r.stop()
		r.start() // recovery is part of the log
		return lines(r.log())
	}
	want := play(1)
	for range 3 {
		if diff := cmp.Diff(want, play(1)); diff != "" {
			t.Fatalf("logs differ:\n%s", diff)
		}
	}
	if other := play(2); other == want {
		t.Error("another seed gives the same ids")
	}
}

// Invariant 8: sequences are 1..N; a snapshot at S plus the stream after S is
// the final state, at whatever moment it is taken.
func TestSnapshotPlusStream(t *testing.T) {
	agent := newStub()
	agent.turn = func(t *turn) {
		t.started()
		for i := range 6 {
			t.item(orch.ProviderItem{NativeID: fmt.Sprint("c", i), Type: "command_execution", Status: "completed", Title: "x < y"})
		}
		t.say("m", "hi")
		t.ended("completed")
	}
	r := newRig(t, agent).start()
	threads := []string{"d1", "d2", "d3"}
	type moment struct {
		p  *orch.Projection
		at int64
	}
	moments := map[string][]moment{}
	for _, thread := range threads {
		r.create(thread)
	}
	for _, thread := range threads {
		r.do(say(thread, thread+"-1", "go"))
	}
	live, completed := int64(0), map[string]int{}
	for e, err := range r.Events(r.ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if live++; e.Sequence != live {
			t.Fatalf("live event %d has sequence %d", live, e.Sequence)
		}
		if live%25 == 0 {
			for _, thread := range threads {
				p, at := r.snapshot(thread)
				moments[thread] = append(moments[thread], moment{p, at})
			}
		}
		thread := e.Event.ThreadID
		if e.Event.Type == orch.EventRunUpdated && strings.Contains(string(e.Event.Payload), `"status":"completed"`) {
			if completed[thread]++; completed[thread] < 3 {
				r.do(say(thread, fmt.Sprint(thread, "-", completed[thread]+1), "go"))
			}
		}
		if completed["d1"]+completed["d2"]+completed["d3"] == 9 {
			break
		}
	}
	log := r.log()
	for i, e := range log {
		if e.Sequence != int64(i+1) {
			t.Fatalf("event %d has sequence %d", i+1, e.Sequence)
		}
	}
	for _, thread := range threads {
		final, _ := r.snapshot(thread)
		want := pretty(final)
		if diff := cmp.Diff(want, pretty(orch.Fold(log, thread))); diff != "" {
			t.Fatalf("fold differs from snapshot:\n%s", diff)
		}
		for _, m := range moments[thread] {
			for _, e := range log[m.at:] {
				if err := m.p.Apply(e); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, pretty(m.p)); diff != "" {
				t.Fatalf("snapshot at %d plus stream differs:\n%s", m.at, diff)
			}
		}
	}
}

func TestRestartResumes(t *testing.T) {
	agent := newStub()
	r := newRig(t, agent).start()
	r.create("d")
	r.do(say("d", "c1", "one"))
	r.awaitRun("d", 1, "completed")
	r.stop()
	r.start()
	p, _ := r.snapshot("d")
	if p.ProviderSessions[0].Status != "stopped" || p.ProviderThreads[0].Status != "not_loaded" {
		t.Errorf("after restart: session %s, provider thread %s", p.ProviderSessions[0].Status, p.ProviderThreads[0].Status)
	}
	r.do(say("d", "c2", "two"))
	p = r.awaitRun("d", 2, "completed")
	want := []string{"open", "thread/start", "turn/start one", "close", "open", "thread/resume T1", "turn/start two"}
	if diff := cmp.Diff(want, agent.wire()); diff != "" {
		t.Error(diff)
	}
	if len(p.ProviderThreads) != 1 || *p.ProviderThreads[0].LastRunOrdinal != 2 {
		t.Errorf("provider threads: %s", pretty(p.ProviderThreads))
	}
}

// A restart in the middle of a turn cancels the run and expires its request;
// the turn is not sent again.
func TestRestartMidTurn(t *testing.T) {
	agent := newStub()
	agent.turn = func(t *turn) {
		if t.n > 1 {
			echo(t)
			return
		}
		t.started()
		t.s.emit(orch.RequestOpened{NativeThreadID: t.thread, NativeTurnID: t.id, NativeRequestID: "0", Kind: "command"})
		<-t.s.quit
	}
	r := newRig(t, agent).start()
	r.create("d")
	r.do(say("d", "c1", "one"))
	r.await("d", "request", func(p *orch.Projection) bool { return len(p.RuntimeRequests) == 1 })
	r.stop()
	r.start()
	p, _ := r.snapshot("d")
	got := fmt.Sprint(p.Runs[0].Status, " ", p.Attempts[0].Status, " ", p.Nodes[0].Status, " ", p.ProviderTurns[0].Status, " ",
		p.RuntimeRequests[0].Status, " ", p.RuntimeRequests[0].ResponseCapability.Type)
	if got != "cancelled cancelled cancelled cancelled expired not_resumable" {
		t.Error(got)
	}
	r.do(say("d", "c2", "two"))
	r.awaitRun("d", 2, "completed")
	want := []string{"open", "thread/start", "turn/start one", "close", "open", "thread/resume T1", "turn/start two"}
	if diff := cmp.Diff(want, agent.wire()); diff != "" {
		t.Error(diff)
	}
}

// A restart while a run only waits for its checkpoint completes it.
func TestRestartWhileCapturing(t *testing.T) {
	r := newRig(t, newStub())
	capturing := make(chan struct{})
	r.snaps.before = func(ctx context.Context, req orch.CaptureRequest) {
		if strings.HasSuffix(req.Ref, "/1") {
			close(capturing)
			<-ctx.Done()
		}
	}
	r.start()
	r.create("d")
	r.do(say("d", "c1", "one"))
	<-capturing
	r.stop()
	r.snaps.before = nil
	r.start()
	p := r.awaitRun("d", 1, "completed")
	if p.Checkpoints[1].Status != "ready" || p.Runs[0].CheckpointID == "" {
		t.Errorf("checkpoints: %s", pretty(p.Checkpoints))
	}
}

// A provider that refuses to resume gets a new thread and is told what was
// said; the stored text stays the user's.
func TestResumeRefused(t *testing.T) {
	agent := newStub()
	r := newRig(t, agent).start()
	r.create("d")
	r.do(say("d", "c1", "one"))
	r.awaitRun("d", 1, "completed")
	r.stop()
	agent.resumeErr = orch.ErrResume
	r.start()
	r.do(say("d", "c2", "two"))
	p := r.awaitRun("d", 2, "completed")
	want := []string{
		"open", "thread/start", "turn/start one", "close", "open", "thread/resume T1", "thread/start",
		"turn/start Context handoff (full_thread_summary):\nUser: one\nAssistant: you said: one\n\nUser message:\ntwo",
	}
	if diff := cmp.Diff(want, agent.wire()); diff != "" {
		t.Error(diff)
	}
	h := p.ContextHandoffs[0]
	got := fmt.Sprint(h.Strategy, h.Status, h.CoveredRunOrdinals, p.ContextTransfers[0].Status, p.ContextTransfers[0].Resolution.Strategy,
		p.Runs[1].ContextHandoffID == orch.Ref(h.ID), p.ProviderThreads[0].Status, p.ProviderThreads[1].Status, p.Messages[2].Text)
	if want := "full_thread_summaryready{1 1}consumedportable_contexttrueclosedidletwo"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// An item of an earlier turn that comes late stays before the next run.
func TestLateItemKeepsItsBand(t *testing.T) {
	agent := newStub()
	agent.turn = func(t *turn) {
		t.started()
		if t.n == 2 {
			t.s.emit(orch.ItemUpdated{NativeThreadID: t.thread, NativeTurnID: "U1", Item: orch.ProviderItem{
				NativeID: "bg", Type: "command_execution", Status: "completed", Title: "late",
			}})
		}
		t.say("m", "hi")
		t.ended("completed")
	}
	r := newRig(t, agent).start()
	r.create("d")
	r.do(say("d", "c1", "one"))
	r.awaitRun("d", 1, "completed")
	r.do(say("d", "c2", "two"))
	p := r.awaitRun("d", 2, "completed")
	got := join(p.TurnItems, func(i orch.TurnItem) string { return fmt.Sprint(i.Ordinal, ":", i.Type) })
	want := "1000000:user_message 1000001:assistant_message 1000002:checkpoint 1000003:command_execution " +
		"2000000:user_message 2000001:assistant_message 2000002:checkpoint"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if visible := p.VisibleTurnItems(); len(visible) != 7 || visible[3].Position != 3 || visible[3].Item.Title != "late" {
		t.Errorf("visible: %s", pretty(visible))
	}
}

// Buffered delivery: of a streamed message the log has its end only.
func TestNoStreamingArtefacts(t *testing.T) {
	agent := newStub()
	agent.turn = func(t *turn) {
		t.started()
		for n := range 50 {
			t.item(orch.ProviderItem{NativeID: "m", Type: "assistant_message", Status: "running", Text: strings.Repeat("x", n+1), Streaming: true})
			t.item(orch.ProviderItem{NativeID: "c", Type: "command_execution", Status: "running", Text: strings.Repeat("x", n+1), Streaming: true})
		}
		t.item(orch.ProviderItem{NativeID: "m", Type: "assistant_message", Status: "completed", Text: "full"})
		t.item(orch.ProviderItem{NativeID: "c", Type: "command_execution", Status: "completed", Text: "full"})
		t.ended("completed")
	}
	r := newRig(t, agent).start()
	r.create("d")
	r.do(say("d", "c1", "one"))
	r.awaitRun("d", 1, "completed")
	counts := map[string]int{}
	for _, e := range r.log() {
		counts[e.Event.Type]++
	}
	// user, assistant; user, command twice, assistant, checkpoint.
	if counts[orch.EventMessageUpdated] != 2 || counts[orch.EventTurnItemUpdated] != 5 {
		t.Errorf("events: %v", counts)
	}
}

// Threads of an instance whose sessions hold many share one process, and its
// death fails every run on it.
func TestSharedSession(t *testing.T) {
	agent := newStub()
	agent.capabilities.ThreadsPerSession = true
	both := make(chan struct{})
	agent.turn = func(t *turn) {
		if t.n > 2 {
			echo(t)
			return
		}
		t.started()
		if t.n == 2 {
			close(both)
		}
		<-t.s.quit
	}
	r := newRig(t, agent).start()
	r.create("d1")
	r.create("d2")
	r.do(say("d1", "c1", "one"))
	r.awaitRun("d1", 1, "running")
	r.do(say("d2", "c2", "two"))
	<-both
	r.awaitRun("d2", 1, "running")
	agent.sessions[0].die(errors.New("exit status 2"))
	for _, thread := range []string{"d1", "d2"} {
		p := r.awaitRun(thread, 1, "failed")
		if len(p.ProviderSessions) != 1 || p.ProviderSessions[0].ID != "provider-session:codex" {
			t.Errorf("%s: %s", thread, pretty(p.ProviderSessions))
		}
	}
	r.do(say("d2", "c3", "again"))
	r.awaitRun("d2", 2, "completed")
	want := []string{"open", "thread/start", "turn/start one", "thread/start", "turn/start two", "open", "thread/resume T2", "turn/start again"}
	if diff := cmp.Diff(want, agent.wire()); diff != "" {
		t.Error(diff)
	}
}

// Detaching from a shared session leaves it to the others; coming back needs
// neither a process nor a resume.
func TestDetachFromSharedSession(t *testing.T) {
	agent := newStub()
	agent.capabilities.ThreadsPerSession = true
	r := newRig(t, agent).start()
	for _, thread := range []string{"d1", "d2"} {
		r.create(thread)
		r.do(say(thread, thread, "hi"))
		r.awaitRun(thread, 1, "completed")
	}
	r.do(orch.DetachSession{CommandID: "x", ThreadID: "d1"})
	p := r.await("d1", "detach", func(p *orch.Projection) bool {
		return len(p.ProviderSessions) == 1 && p.ProviderSessions[0].Status == "stopped"
	})
	if p.ProviderThreads[0].Status != "not_loaded" {
		t.Errorf("provider thread is %s", p.ProviderThreads[0].Status)
	}
	if p, _ := r.snapshot("d2"); p.ProviderSessions[0].Status != "ready" {
		t.Errorf("the other thread's session is %s", p.ProviderSessions[0].Status)
	}
	r.do(say("d1", "back", "again"))
	if p := r.awaitRun("d1", 2, "completed"); p.ProviderSessions[0].Status != "ready" {
		t.Errorf("session is %s", p.ProviderSessions[0].Status)
	}
	want := []string{"open", "thread/start", "turn/start hi", "thread/start", "turn/start hi", "turn/start again"}
	if diff := cmp.Diff(want, agent.wire()); diff != "" {
		t.Error(diff)
	}
}

// A commit that fails leaves no trace in memory: the command can be sent
// again, a provider's event is kept until it is stored, and an effect waits
// until its facts and its end are. The log is the one of a store that never
// failed.
func TestStoreFailsNowAndThen(t *testing.T) {
	play := func(fail bool) string {
		r := newRig(t, newStub())
		if fail {
			var writes atomic.Int64
			r.fail = func(req orch.CommitRequest) error {
				if writes.Add(1)%2 == 1 {
					return errors.New("disk full")
				}
				return nil
			}
		}
		r.start()
		defer r.stop()
		for _, c := range []orch.Command{
			orch.CreateThread{CommandID: "c0", ThreadID: "d", ModelSelection: orch.ModelSelection{InstanceID: "codex"}},
			say("d", "c1", "one"),
		} {
			if _, err := r.Dispatch(r.ctx, c); err != nil {
				r.do(c)
			}
		}
		ctx, done := context.WithCancel(r.ctx)
		var wg sync.WaitGroup
		wg.Go(func() { // time passes, for the retries
			for r.clock.BlockUntilContext(ctx, 3) == nil {
				r.clock.Advance(100 * time.Millisecond)
			}
		})
		p := r.awaitRun("d", 1, "completed")
		done()
		wg.Wait()
		return sketch(p)
	}
	if diff := cmp.Diff(play(false), play(true)); diff != "" {
		t.Error(diff)
	}
}
