package orch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// foreign stores an effect as another process on the same file does: nobody
// wakes the workers for it.
func (r *rig) foreign(id string) {
	r.t.Helper()
	_, err := r.store.Commit(r.ctx, orch.CommitRequest{ThreadID: id, Now: r.clock.Now()}, func() (orch.Batch, error) {
		return orch.Batch{
			Threads: []orch.ThreadHead{{ThreadID: id}},
			Events:  []orch.Event{{ID: id, Type: orch.EventRunUpdated, ThreadID: id, OccurredAt: r.clock.Now(), Payload: []byte(`{"version":1,"entity":{"id":"r"}}`)}},
			Effects: []orch.EffectRequest{{ID: id, ThreadID: id, Type: orch.EffectCapture, Payload: []byte(`{}`)}},
		}, nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// receive takes the next of a channel, unless it does not come.
func receive[T any](r *rig, from <-chan T) T {
	r.t.Helper()
	select {
	case v := <-from:
		return v
	case <-r.ctx.Done():
		r.t.Fatal(r.ctx.Err())
		panic("unreachable")
	}
}

// asleep waits until everything that waits for the clock does.
func (r *rig) asleep() {
	r.t.Helper()
	if err := r.clock.BlockUntilContext(r.ctx, 2); err != nil { // the poll's ticker and the reaper's timer
		r.t.Fatal(err)
	}
}

// An effect that nobody announced is found by the poll, within 30 seconds; one
// that another process has leased is left to it for 120, and then taken over.
func TestPollAndLeases(t *testing.T) {
	r := newRig(t, newStub())
	settled := make(chan orch.Settlement, 8)
	r.heard = func(s orch.Settlement) { settled <- s }
	r.start()
	r.asleep()
	r.foreign("found")
	r.clock.Advance(30 * time.Second)
	if s := receive(r, settled); s.EffectID != "found" || s.Status != "cancelled" {
		t.Errorf("settled %+v", s)
	}

	leased := r.clock.Now()
	var theirs *orch.Effect
	for n := 1; theirs == nil; n++ {
		r.foreign(fmt.Sprint("leased", n))
		var err error
		theirs, err = r.store.ClaimEffect(r.ctx, orch.Claim{Owner: "other", Token: "0", Now: leased, Until: leased.Add(120 * time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		if theirs == nil { // a worker was still looking
			receive(r, settled)
		}
	}
	for range 3 { // 90 seconds
		r.clock.Advance(30 * time.Second)
		r.asleep()
	}
	r.foreign("witness") // the workers look, and take what they may
	r.clock.Advance(29 * time.Second)
	r.asleep()
	select {
	case s := <-settled:
		t.Fatalf("settled %+v at 119 seconds", s)
	default:
	}
	r.clock.Advance(time.Second)
	got := map[string]string{}
	for range 2 {
		s := receive(r, settled)
		got[s.EffectID] = s.Lease[strings.LastIndexByte(s.Lease, '#'):]
	}
	if diff := cmp.Diff(map[string]string{theirs.ID: "#2", "witness": "#1"}, got); diff != "" {
		t.Error(diff)
	}
	late, err := r.store.SettleEffect(r.ctx, orch.Settlement{EffectID: theirs.ID, Lease: theirs.Lease, Status: "succeeded", Now: r.clock.Now()})
	if err != nil || late {
		t.Errorf("who lost the lease settled: %t, %v", late, err)
	}
}

// A capture is tried five times, 100, 200, 400 and 800 milliseconds after the
// one before, to the millisecond.
func TestBackoff(t *testing.T) {
	r := newRig(t, newStub())
	tries := make(chan time.Duration, 8)
	var begin time.Time
	r.snaps.fail = func(req orch.CaptureRequest) error {
		if !strings.HasSuffix(req.Ref, "/1") {
			begin = r.clock.Now()
			return nil
		}
		tries <- r.clock.Now().Sub(begin)
		return errors.New("git is broken")
	}
	r.start()
	r.create("d")
	r.do(say("d", "c1", "go"))
	want := time.Duration(0)
	for _, wait := range []time.Duration{0, 100, 200, 400, 800} {
		if wait > 0 {
			if err := r.clock.BlockUntilContext(r.ctx, 3); err != nil { // the backoff's timer too
				t.Fatal(err)
			}
			r.clock.Advance(wait*time.Millisecond - 1)
			r.clock.Advance(1)
		}
		want += wait * time.Millisecond
		if got := receive(r, tries); got != want {
			t.Errorf("tried after %s, want %s", got, want)
		}
	}
	r.awaitRun("d", 1, "completed")
	if len(tries) > 0 {
		t.Error("tried a sixth time")
	}
}

// Four effects run at once, on four threads; the fifth waits for a worker.
func TestFourWorkers(t *testing.T) {
	r := newRig(t, newStub())
	begun, release := make(chan string), make(chan struct{})
	r.snaps.before = func(ctx context.Context, req orch.CaptureRequest) {
		select {
		case begun <- req.Ref:
		case <-ctx.Done():
		}
		select {
		case <-release:
		case <-ctx.Done():
		}
	}
	r.start()
	const threads = 6
	for i := range threads {
		r.create(fmt.Sprint("d", i))
	}
	for i := range threads {
		r.do(say(fmt.Sprint("d", i), fmt.Sprint("c", i), "go"))
	}
	for range 4 {
		receive(r, begun)
	}
	due := 0
	for i := range threads {
		effects, err := r.store.DueEffects(r.ctx, fmt.Sprint("d", i), r.clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		due += len(effects)
	}
	select {
	case ref := <-begun:
		t.Errorf("a fifth began: %s", ref)
	default:
	}
	if due != threads {
		t.Errorf("%d effects are due, want %d", due, threads)
	}
	release <- struct{}{}
	receive(r, begun) // the fifth
	go func() {
		for range begun {
		}
	}()
	close(release)
	for i := range threads {
		r.awaitRun(fmt.Sprint("d", i), 1, "completed")
	}
	r.stop()
	close(begun)
}
