package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/replaypeer/replaypeer/internal/orch"
)

func TestDuplicateProbe(t *testing.T) {
	r := &runner{commands: []dispatched{{id: "command:1", sequence: 2}}}
	events := []orch.StoredEvent{{Sequence: 1}, {Sequence: 2, CommandID: "command:1"}, {Sequence: 3}}
	check(t, r.checkDuplicates(events), "")
	events[2].CommandID = "command:1"
	check(t, r.checkDuplicates(events), "event 3  belongs to command:1, whose receipt ends at 2")
}

func TestStreamProbe(t *testing.T) {
	run := func(n int64, status string) orch.StoredEvent {
		e := event(t, n, orch.EventRunUpdated, orch.Run{ID: "run:1", ThreadID: "thread:1", Status: status})
		e.Event.ThreadID = "thread:1"
		return e
	}
	stored := []orch.StoredEvent{run(1, "starting"), run(2, "running"), run(3, "completed")}
	final, err := json.Marshal(orch.Fold(stored, "thread:1"))
	if err != nil {
		t.Fatal(err)
	}
	at := func(n int, after ...orch.StoredEvent) *runner {
		return &runner{streams: []*stream{{sequence: int64(n), snapshot: orch.Fold(stored[:n], "thread:1"), events: after}}}
	}
	check(t, at(1, stored[1:]...).checkStreams(stored, final), "")
	check(t, at(1, stored[1]).checkStreams(stored, final), "") // the rest came after a restart
	check(t, at(1, stored[2]).checkStreams(stored, final), "stream after snapshot 1: sequence 3, wanted 2")
	check(t, at(1, run(2, "running"), run(3, "failed")).checkStreams(stored, final), "snapshot 1 and the stream after it are not the final projection")
}

// outbox is a store of one effect, which is settled when it says so.
type outbox struct {
	orch.Store
	mu      sync.Mutex
	pending []string
	err     error
}

func (o *outbox) UnsettledEffects(_ context.Context, _, kind string) ([]string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if kind != orch.EffectCapture {
		return nil, o.err
	}
	return o.pending, o.err
}

func (o *outbox) SettleEffect(context.Context, orch.Settlement) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pending = nil
	return true, nil
}

func TestQuiet(t *testing.T) {
	w := watch(&outbox{pending: []string{"effect:1"}})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("too long"))
	check(t, w.quiet(ctx, "thread:1"), "not settled: effect:1 (too long)")

	done := make(chan error)
	go func() { done <- w.quiet(t.Context(), "thread:1") }()
	if held, err := w.SettleEffect(t.Context(), orch.Settlement{}); !held || err != nil {
		t.Fatal(held, err)
	}
	check(t, <-done, "")
	check(t, watch(&outbox{err: errors.New("disk gone")}).quiet(t.Context(), "thread:1"), "read effects: disk gone")
}

func TestLeftover(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("looks at /proc")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	mark := "ORCH_RUN_DIR=" + dir
	hold := func(cmd *exec.Cmd) (end func()) {
		t.Helper()
		in, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		return func() {
			in.Close()
			cmd.Wait()
		}
	}
	if got := leftover(dir, mark); len(got) > 0 {
		t.Errorf("before anything ran: %v", got)
	}
	here := exec.Command("cat")
	here.Dir = dir
	end := hold(here)
	if got := leftover(dir, mark); len(got) != 1 || !strings.HasSuffix(got[0], ": cat") {
		t.Errorf("a process in the folder: %v", got)
	}
	end()
	elsewhere := exec.Command("cat", "-")
	elsewhere.Env = []string{mark}
	end = hold(elsewhere)
	if got := leftover(dir, mark); len(got) != 1 || !strings.HasSuffix(got[0], ": cat -") {
		t.Errorf("a process with the mark: %v", got)
	}
	if got := leftover(dir+"x", mark+"x"); len(got) > 0 {
		t.Errorf("another run's: %v", got)
	}
	end()
	if got := leftover(dir, mark); len(got) > 0 {
		t.Errorf("after all ended: %v", got)
	}
}
