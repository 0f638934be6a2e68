package orch

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// These tests stand inside the package: they fold pure functions without a
// store or a provider.

var testTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

var testAgents = map[string]agentFacts{"codex": {driver: "codex", capabilities: Capabilities{NativeTurnIDs: true}}}

// folder is a thread that is driven without an orchestrator.
type folder struct {
	t   *testing.T
	st  *threadState
	log []StoredEvent
}

func newFolder(t *testing.T) *folder {
	f := &folder{t: t, st: &threadState{p: newProjection("d")}}
	f.plan(CreateThread{CommandID: "c0", ThreadID: "d", ModelSelection: ModelSelection{InstanceID: "codex"}})
	return f
}

func (f *folder) draft(commandID string, do func(*draft) error) Batch {
	f.t.Helper()
	d := newDraft(f.st, testTime, testAgents, seed{1}, commandID)
	if err := do(d); err != nil {
		f.t.Fatal(err)
	}
	batch, err := d.finish()
	if err != nil {
		f.t.Fatal(err)
	}
	for _, e := range batch.Events {
		f.log = append(f.log, StoredEvent{Sequence: int64(len(f.log) + 1), CommandID: commandID, Event: e})
	}
	f.st.version += int64(len(batch.Events))
	return batch
}

func (f *folder) plan(c Command) Batch {
	f.t.Helper()
	return f.draft(c.about().id, func(d *draft) error { return plan(d, c) })
}

// opened writes what the start of run n's turn writes.
func (f *folder) opened() {
	f.t.Helper()
	f.draft("", func(d *draft) error {
		run, _ := d.p.liveRun()
		d.put(Checkpoint{ID: checkpointID(scopeID("d", rootScopeName(run.Ordinal)), 0), ThreadID: "d", Status: "ready", RunID: Ref(run.ID)})
		d.put(ProviderSession{ID: "s", Driver: "codex", ProviderInstanceID: "codex", Status: "ready"})
		putThreadOpened(d, testSource, run, ProviderThread{}, openedThread{native: NativeThread{ID: "T"}}, nil)
		return nil
	})
}

var testSource = source{
	sessionID: "s", instance: "codex", driver: "codex", capabilities: Capabilities{NativeTurnIDs: true},
	log: slog.New(slog.DiscardHandler),
}

func (f *folder) ingest(events ...ProviderEvent) (last Batch) {
	f.t.Helper()
	for _, e := range events {
		last = f.draft("", func(d *draft) error {
			if e, ok := e.(SubagentUpdated); ok {
				if child, ok := newChild(d.p, testSource, e); ok {
					putSubagent(d, testSource, child)
				}
				return nil
			}
			return ingest(d, testSource, e)
		})
	}
	return last
}

func running(t *testing.T) *folder {
	f := newFolder(t)
	f.plan(DispatchMessage{CommandID: "c1", ThreadID: "d", MessageID: "m1", Text: "hi"})
	f.opened()
	f.ingest(TurnStarted{"T", "U"})
	return f
}

func (f *folder) status() string {
	p := f.st.p
	turn := "-"
	if n := len(p.ProviderTurns); n > 0 {
		turn = p.ProviderTurns[n-1].Status
	}
	return fmt.Sprint(p.Runs[len(p.Runs)-1].Status, " ", p.Attempts[len(p.Attempts)-1].Status, " ", turn)
}

func TestLifecycleGuard(t *testing.T) {
	for _, test := range []struct {
		before, after entity
		absorbed      bool
	}{
		{Run{Status: "running"}, Run{Status: "completed"}, false},
		{Run{Status: "completed"}, Run{Status: "running"}, true},
		{Run{Status: "completed"}, Run{Status: "rolled_back"}, false},
		{Run{Status: "failed"}, Run{Status: "rolled_back"}, true},
		{Run{Status: "rolled_back"}, Run{Status: "completed"}, true},
		{Run{Status: "completed"}, Run{Status: "completed", CheckpointID: "x"}, false},
		{RunAttempt{Status: "superseded"}, RunAttempt{Status: "completed"}, true},
		{ExecutionNode{Kind: "tool_call", Status: "failed"}, ExecutionNode{Kind: "tool_call", Status: "running"}, true},
		{ExecutionNode{Kind: "tool_call", Status: "failed"}, ExecutionNode{Kind: "tool_call", Status: "rolled_back"}, false},
		{ExecutionNode{Kind: "subagent", Status: "completed"}, ExecutionNode{Kind: "subagent", Status: "running"}, false},
		{ExecutionNode{Kind: "root_turn", Status: "completed"}, ExecutionNode{Kind: "root_turn", Status: "running"}, false},
		{ExecutionNode{Kind: "root_turn", Status: "completed"}, ExecutionNode{Kind: "root_turn", Status: "failed"}, true},
		{ExecutionNode{Kind: "root_turn", Status: "rolled_back"}, ExecutionNode{Kind: "root_turn", Status: "running"}, true},
		{Subagent{Status: "completed"}, Subagent{Status: "running"}, false},
		{Subagent{Status: "completed"}, Subagent{Status: "failed"}, true},
		{ProviderTurn{Status: "interrupted"}, ProviderTurn{Status: "completed"}, true},
		{RuntimeRequest{Status: "expired"}, RuntimeRequest{Status: "resolved"}, true},
		{TurnItem{Status: "completed"}, TurnItem{Status: "running"}, true},
		{ProviderSession{Status: "stopped"}, ProviderSession{Status: "starting"}, false},
	} {
		if got := absorbed(test.before, test.after); got != test.absorbed {
			t.Errorf("%T %s to %s: absorbed is %t", test.before, test.before.facts().status, test.after.facts().status, got)
		}
	}
}

// The guard is folded through the batch: a later event of one batch meets the
// earlier ones.
func TestGuardFoldsThroughBatch(t *testing.T) {
	f := running(t)
	run := f.st.p.Runs[0]
	batch := f.draft("", func(d *draft) error {
		run.Status = "failed"
		d.put(run)
		run.Status = "completed"
		d.put(run)
		return nil
	})
	if len(batch.Events) != 1 || f.st.p.Runs[0].Status != "failed" {
		t.Errorf("%d events, run is %s", len(batch.Events), f.st.p.Runs[0].Status)
	}
}

// Invariant 2, by ownership.
func TestTurnOwnership(t *testing.T) {
	f := running(t)
	for _, stray := range []ProviderEvent{
		TurnStarted{"T", "other"},                    // a turn nobody asked for
		TurnEnded{"T", "other", "completed", ""},     // and its end
		TurnEnded{"C", "child", "completed", ""},     // a child's
		TurnEnded{"T", "unknown", "interrupted", ""}, // never seen
		SubagentUpdated{"T", "U", "k", "C", "", "", "", "completed", ""},
	} {
		if f.ingest(stray); f.status() != "running running running" {
			t.Fatalf("after %+v: %s", stray, f.status())
		}
	}
	batch := f.ingest(TurnEnded{"T", "U", "interrupted", ""})
	if f.status() != "waiting interrupted interrupted" {
		t.Error(f.status())
	}
	if len(batch.Effects) != 1 || batch.Effects[0].Type != EffectCapture {
		t.Errorf("effects: %+v", batch.Effects)
	}
	if batch := f.ingest(TurnEnded{"T", "U", "completed", ""}); len(batch.Events) != 0 {
		t.Errorf("second end wrote %d events", len(batch.Events))
	}
}

// Only a start makes a turn the run's: the end of one that nobody saw start
// does not end a run that is about to start.
func TestUnseenTurnIsNotAdopted(t *testing.T) {
	f := newFolder(t)
	f.plan(DispatchMessage{CommandID: "c1", ThreadID: "d", MessageID: "m1", Text: "hi"})
	f.opened()
	f.ingest(TurnEnded{"T", "ghost", "completed", ""})
	if f.status() != "starting pending -" {
		t.Error(f.status())
	}
}

// A superseded attempt's turn ends without touching the run.
func TestSupersededAttemptEndsAlone(t *testing.T) {
	f := running(t)
	f.draft("", func(d *draft) error {
		run, old := d.p.Runs[0], d.p.Attempts[0]
		old.Status = "superseded"
		d.put(old)
		next := RunAttempt{ID: "a2", RunID: run.ID, AttemptOrdinal: 2, RootNodeID: "n2", ProviderThreadID: old.ProviderThreadID, Status: "pending"}
		d.put(next)
		run.ActiveAttemptID = "a2"
		d.put(run)
		return nil
	})
	f.ingest(TurnEnded{"T", "U", "interrupted", ""})
	if p := f.st.p; p.Runs[0].Status != "running" || p.Attempts[1].Status != "pending" || p.ProviderTurns[0].Status != "interrupted" {
		t.Errorf("run %s, attempt %s, turn %s", p.Runs[0].Status, p.Attempts[1].Status, p.ProviderTurns[0].Status)
	}
}

// What a turn left open is closed by its end: work that did not tell its end
// has failed, questions are taken back, subagents live on.
func TestOpenWorkAtTurnEnd(t *testing.T) {
	f := running(t)
	f.ingest(
		ItemUpdated{"T", "U", ProviderItem{NativeID: "c", Type: "command_execution", Status: "running"}},
		RequestOpened{"T", "U", "0", "c", "command", "run it?", nil},
		SubagentUpdated{"T", "U", "k", "C", "p", "t", "", "running", ""},
		TurnEnded{"T", "U", "completed", ""},
	)
	var got []string
	for _, n := range f.st.p.Nodes {
		got = append(got, n.Kind+" "+n.Status)
	}
	want := []string{"root_turn waiting", "tool_call failed", "approval_request cancelled", "subagent running"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if r := f.st.p.RuntimeRequests[0]; r.Status != "cancelled" || r.NodeID != f.st.p.Nodes[2].ID {
		t.Errorf("request: %+v", r)
	}
}

// The rows of a batch are the fold of its events, so what a store projects is
// what Fold gives.
func TestRowsAreTheFold(t *testing.T) {
	f := running(t)
	f.ingest(
		ItemUpdated{"T", "U", ProviderItem{NativeID: "p", Type: "proposed_plan", Status: "completed", Text: "# plan"}},
		ItemUpdated{"T", "U", ProviderItem{NativeID: "t", Type: "todo_list", Status: "running", Detail: []byte(`[{"step": "a<b"}]`)}},
		ItemUpdated{"T", "U", ProviderItem{NativeID: "x", Type: "dynamic_tool", Status: "completed", Detail: []byte(`not json`)}},
		TurnEnded{"T", "U", "failed", "boom"},
	)
	want, err := f.st.p.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Fold(f.log, "d").MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestIDs(t *testing.T) {
	for got, want := range map[string]string{
		runID("thread:d 1", 2):                   "run:thread%3Ad%201:2",
		attemptID(runID("d", 1), 2):              "run-attempt:run%3Ad%3A1:2",
		rootNodeID("r", 1):                       "node:root:r",
		rootNodeID("r", 2):                       "node:root:r:2",
		providerThreadID("codex", "ä/%"):         "provider-thread:codex:%C3%A4%2F%25",
		effectID("c1", EffectCapture, "x"):       "effect:c1:checkpoint.capture:x",
		CheckpointRef("checkpoint-scope:d:x", 3): "refs/replaypeer/checkpoints/0a6d585c1dc0d850ad73c8bd23ce3d88/3",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	a, b := seed{1}, seed{2}
	first, again := a.id("event", "d", "1"), a.id("event", "d", "1")
	if first != again || a.id("event", "d", "1") == a.id("event", "d", "2") || a.id("event", "d", "1") == b.id("event", "d", "1") {
		t.Error("seeded ids")
	}
}
