package scenario

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// quiet is a feed that nothing reads into but the test.
func quiet() *feed {
	return &feed{runs: map[string]*runHistory{}, changed: make(chan struct{}), stop: func() {}}
}

func waiting(f *feed) *runner {
	return &runner{sc: &Scenario{Timeout: Duration(time.Hour)}, feed: f, thread: "thread:1"}
}

func TestAwaitRun(t *testing.T) {
	run := func(n int64, status string) orch.StoredEvent {
		return event(t, n, "run.updated", orch.Run{ID: "run:1", ThreadID: "thread:1", Ordinal: 1, Status: status})
	}
	f := quiet()
	r := waiting(f)
	var wg sync.WaitGroup
	reached := make(chan error, 1)
	wg.Go(func() { reached <- r.awaitRun(context.Background(), 0, "", 1, "completed") })
	f.add(run(1, "starting"), nil)
	f.add(run(2, "running"), nil)
	f.add(run(3, "completed"), nil)
	if err := <-reached; err != nil {
		t.Errorf("completed: %v", err)
	}
	wg.Wait()

	// What a run has been counts, however late the question comes.
	if err := r.awaitRun(context.Background(), 0, "", 1, "running"); err != nil {
		t.Errorf("running: %v", err)
	}
	err := r.awaitRun(context.Background(), 0, "", 1, "interrupted")
	check(t, err, "awaited run 1 interrupted, but it is completed\nlast events:\n     1 run.updated run:1 starting")
	check(t, r.awaitRun(context.Background(), Duration(time.Millisecond), "", 2, "completed"), "awaited run 2 completed, but there is no such run (timed out after 1ms)")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("stopped by a signal"))
	check(t, r.awaitRun(ctx, 0, "", 2, "completed"), "(stopped by a signal)")
}

func TestAwaitRunTellsWhy(t *testing.T) {
	f := quiet()
	f.add(event(t, 1, "provider-session.updated", orch.ProviderSession{ID: "s", Status: "error", LastError: "exit code 97"}), nil)
	f.add(event(t, 2, "run.updated", orch.Run{ID: "run:1", ThreadID: "thread:1", Ordinal: 1, Status: "failed"}), nil)
	check(t, waiting(f).awaitRun(context.Background(), 0, "", 1, "completed"), "awaited run 1 completed, but it is failed: provider session: exit code 97")
}

func TestAwaitIdle(t *testing.T) {
	f := quiet()
	r := waiting(f)
	r.commands = []dispatched{{sequence: 2}}
	f.add(event(t, 1, "thread.created", orch.AppThread{ID: "thread:1"}), nil)
	check(t, r.awaitIdle(context.Background(), Duration(time.Millisecond)), "awaited an idle thread")
	f.add(event(t, 2, "run.created", orch.Run{ID: "run:1", ThreadID: "thread:1", Ordinal: 1, Status: "running"}), nil)
	f.add(event(t, 3, "run.created", orch.Run{ID: "run:9", ThreadID: "thread:2", Ordinal: 1, Status: "running"}), nil)
	check(t, r.awaitIdle(context.Background(), Duration(time.Millisecond)), "awaited an idle thread, but run 1 is running (timed out after 1ms)")
	f.add(event(t, 4, "run.updated", orch.Run{ID: "run:1", ThreadID: "thread:1", Ordinal: 1, Status: "failed"}), nil)
	check(t, r.awaitIdle(context.Background(), 0), "")
}

func TestFeedError(t *testing.T) {
	f := quiet()
	f.add(orch.StoredEvent{}, errors.New("disk gone"))
	check(t, waiting(f).awaitIdle(context.Background(), 0), "event stream: disk gone")
}

func TestJudge(t *testing.T) {
	tests := []struct {
		name    string
		err     error
		started bool
		status  Status
		layer   Layer
	}{
		{"good", nil, true, Passed, ""},
		{"assertion", in(Projection, errors.New("x")), true, Failed, Projection},
		{"wrapped", errors.Join(in(Transport, errors.New("x"))), true, Failed, Transport},
		{"before the first step", errors.New("x"), false, NotReached, Setup},
		{"capability", in(Setup, &skip{"no"}), false, Skipped, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var r Result
			r.judge(tt.err, tt.started)
			if r.Status != tt.status || r.Layer != tt.layer || (r.Reason == "") != (tt.err == nil) {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestTotals(t *testing.T) {
	of := func(status ...Status) Totals {
		var rs []*Result
		for _, s := range status {
			rs = append(rs, &Result{Status: s})
		}
		return Count(rs)
	}
	for _, bad := range []Totals{of(), of(Skipped), of(Passed, NotReached), of(Passed, Failed), of(Passed, "")} {
		if bad.Good() {
			t.Errorf("%+v is good", bad)
		}
	}
	if !of(Passed, Skipped).Good() {
		t.Error("passed and skipped is bad")
	}
}

func TestRender(t *testing.T) {
	r := &runner{dir: "/tmp/run1", workspace: "/tmp/run1/workspace",
		instances: []*instance{{transcript: "/x/simple/codex.ndjson", shown: "transcripts/simple/codex.ndjson"}}}
	got := r.render("/tmp/run1/workspace/a /tmp/run1/bin/codex /x/simple/codex.ndjson:7")
	if want := "<workspace>/a <run>/bin/codex transcripts/simple/codex.ndjson:7"; got != want {
		t.Errorf("got %s", got)
	}
	if strings.Contains((&runner{}).render("as it is"), "<") {
		t.Error("a run without a folder has nothing to render")
	}
}
