package scenario

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// sound is a small projection that keeps every shared assertion, with its log.
func sound(t *testing.T) ([]orch.StoredEvent, *orch.Projection) {
	t.Helper()
	one := 1
	p := &orch.Projection{
		Thread: orch.AppThread{ID: "thread:1", ProviderInstanceID: "codex", ActiveProviderThreadID: "pt:1"},
		Runs: []orch.Run{{
			ID: "run:1", ThreadID: "thread:1", Ordinal: 1, Status: "completed", UserMessageID: "message:1", RootNodeID: "node:1",
			ActiveAttemptID: "attempt:1", CheckpointID: "checkpoint:1", ModelSelection: orch.ModelSelection{InstanceID: "codex", Model: "m"},
		}},
		Attempts: []orch.RunAttempt{{ID: "attempt:1", RunID: "run:1", Status: "completed"}},
		Nodes: []orch.ExecutionNode{
			{ID: "node:1", RunID: "run:1", Kind: "root_turn", Status: "completed", CountsForRun: true},
			{ID: "node:2", RunID: "run:1", Kind: "approval_request", ParentNodeID: "node:1", Status: "completed"},
		},
		ProviderThreads: []orch.ProviderThread{{ID: "pt:1"}},
		ProviderTurns:   []orch.ProviderTurn{{ID: "turn:1", ProviderThreadID: "pt:1", NodeID: "node:1"}},
		RuntimeRequests: []orch.RuntimeRequest{{ID: "request:1", NodeID: "node:2", Kind: "command", ProviderTurnID: "turn:1"}},
		Messages:        []orch.Message{{ID: "message:1", RunID: "run:1", NodeID: "node:1", Role: "user"}},
		TurnItems: []orch.TurnItem{
			{ID: "item:1", RunID: "run:1", NodeID: "node:1", Ordinal: 1, MessageID: "message:1", ProviderThreadID: "pt:1"},
			{ID: "item:2", RunID: "run:1", NodeID: "node:2", Ordinal: 2, ParentItemID: "item:1"},
		},
		CheckpointScopes: []orch.CheckpointScope{{ID: "scope:1"}},
		Checkpoints: []orch.Checkpoint{
			{ID: "checkpoint:0", ScopeID: "scope:1", Status: "ready"},
			{ID: "checkpoint:1", ScopeID: "scope:1", Status: "ready", OrdinalWithinScope: 1, AppRunOrdinal: &one},
		},
	}
	return []orch.StoredEvent{
		event(t, 1, "thread.created", orch.AppThread{ID: "thread:1"}),
		event(t, 2, "message.updated", orch.Message{ID: "message:2", Role: "assistant"}),
	}, p
}

func event(t *testing.T, sequence int64, kind string, payload any) orch.StoredEvent {
	t.Helper()
	data, err := json.Marshal(map[string]any{"version": 1, "entity": payload})
	if err != nil {
		t.Fatal(err)
	}
	return orch.StoredEvent{Sequence: sequence, Event: orch.Event{Type: kind, Payload: data}}
}

// sharedTests spoil a sound projection, each in one way.
var sharedTests = []struct {
	name  string
	spoil func(*orch.Projection)
	want  string
}{
	{"sound", func(*orch.Projection) {}, ""},
	{"provider", func(p *orch.Projection) { p.Thread.ProviderInstanceID = "claude" }, `thread.providerInstanceId is "claude": want the provider "codex" that was selected last`},
	{"active provider thread", func(p *orch.Projection) { p.Thread.ActiveProviderThreadID = "pt:2" }, `thread.activeProviderThreadId "pt:2" does not exist`},
	{"no provider thread", func(p *orch.Projection) { p.ProviderThreads = nil }, "no provider thread"},
	{"no run", func(p *orch.Projection) { p.Runs = nil }, "no run"},
	{"ordinal", func(p *orch.Projection) { p.Runs[0].Ordinal = 2 }, "run 1 has ordinal 2"},
	{"user message", func(p *orch.Projection) { p.Runs[0].UserMessageID = "x" }, `user message "x" does not exist`},
	{"root node", func(p *orch.Projection) { p.Nodes[0].Kind = "tool_call" }, "is no root_turn"},
	{"root node counts", func(p *orch.Projection) { p.Nodes[0].CountsForRun = false }, "must belong to it and count for it"},
	{"root node status", func(p *orch.Projection) { p.Nodes[0].Status = "running" }, "run 1 is completed but its root node running"},
	{"attempt", func(p *orch.Projection) { p.Attempts[0].RunID = "run:2" }, `active attempt "attempt:1" does not exist`},
	{"run checkpoint", func(p *orch.Projection) { p.Runs[0].CheckpointID = "" }, "run 1 is completed without a checkpoint"},
	{"run checkpoint exists", func(p *orch.Projection) { p.Runs[0].CheckpointID = "x" }, `run 1: checkpoint "x" does not exist`},
	{"turns", func(p *orch.Projection) { p.ProviderTurns = nil }, "0 provider turns for 1 runs"},
	{"model", func(p *orch.Projection) { p.Runs[0].ModelSelection.Model = "n" }, "last run selects codex/n: want codex/m"},
	{"node parent", func(p *orch.Projection) { p.Nodes[1].ParentNodeID = "x" }, `parent "x" does not exist`},
	{"node run", func(p *orch.Projection) { p.Nodes[1].RunID = "x" }, `node node:2: run "x" does not exist`},
	{"turn node", func(p *orch.Projection) { p.ProviderTurns[0].NodeID = "x" }, `provider turn turn:1: node "x" does not exist`},
	{"turn thread", func(p *orch.Projection) { p.ProviderTurns[0].ProviderThreadID = "x" }, `provider thread "x" does not exist`},
	{"item order", func(p *orch.Projection) { p.TurnItems[1].Ordinal = 1 }, "ordinal 1 after 1"},
	{"item run", func(p *orch.Projection) { p.TurnItems[0].RunID = "x" }, `turn item item:1: run "x"`},
	{"item node", func(p *orch.Projection) { p.TurnItems[0].NodeID = "x" }, `turn item item:1: node "x"`},
	{"item message", func(p *orch.Projection) { p.TurnItems[0].MessageID = "x" }, `turn item item:1: message "x"`},
	{"item provider thread", func(p *orch.Projection) { p.TurnItems[0].ProviderThreadID = "x" }, `turn item item:1: provider thread "x"`},
	{"item parent", func(p *orch.Projection) { p.TurnItems[1].ParentItemID = "x" }, `turn item item:2: parent "x"`},
	{"message run", func(p *orch.Projection) { p.Messages[0].RunID = "x" }, `message message:1: run "x"`},
	{"message node", func(p *orch.Projection) { p.Messages[0].NodeID = "x" }, `message message:1: node "x"`},
	{"request node", func(p *orch.Projection) { p.RuntimeRequests[0].NodeID = "node:1" }, "does not sit on an approval_request node"},
	{"request turn", func(p *orch.Projection) { p.RuntimeRequests[0].ProviderTurnID = "x" }, `request request:1: provider turn "x"`},
	{"baseline", func(p *orch.Projection) { p.Checkpoints[0].Status = "missing" }, "no ready baseline checkpoint"},
	{"scope", func(p *orch.Projection) { p.CheckpointScopes = nil }, `checkpoint checkpoint:0: scope "scope:1" does not exist`},
}

func TestShared(t *testing.T) {
	for _, tt := range sharedTests {
		t.Run(tt.name, func(t *testing.T) {
			events, p := sound(t)
			tt.spoil(p)
			check(t, checkShared(events, p, orch.ModelSelection{InstanceID: "codex", Model: "m"}), tt.want)
		})
	}
}

// sharedEventTests add an event to a sound log.
var sharedEventTests = []struct {
	name, kind string
	payload    any
	want       string
}{
	{"second root", "thread.created", orch.AppThread{ID: "thread:2"}, "2 root threads were created: want 1"},
	{"child", "thread.created", orch.AppThread{ID: "thread:2", Lineage: orch.Lineage{ParentThreadID: "thread:1", RootThreadID: "thread:1"}}, ""},
	{"child of nobody", "thread.created", orch.AppThread{ID: "thread:2", Lineage: orch.Lineage{ParentThreadID: "thread:7", RootThreadID: "thread:1"}}, `event 3: thread thread:2 has the parent "thread:7" and the root "thread:1"`},
	{"child of another root", "thread.created", orch.AppThread{ID: "thread:2", Lineage: orch.Lineage{ParentThreadID: "thread:1", RootThreadID: "thread:2"}}, `event 3: thread thread:2 has the parent "thread:1" and the root "thread:2"`},
	{"streaming", "message.updated", orch.Message{Role: "assistant", Streaming: true}, "event 3 is a streaming assistant message"},
}

func TestSharedEvents(t *testing.T) {
	for _, tt := range sharedEventTests {
		t.Run(tt.name, func(t *testing.T) {
			events, p := sound(t)
			events = append(events, event(t, 3, tt.kind, tt.payload))
			check(t, checkShared(events, p, orch.ModelSelection{InstanceID: "codex", Model: "m"}), tt.want)
		})
	}
}

func TestSequences(t *testing.T) {
	check(t, checkSequences([]orch.StoredEvent{{Sequence: 1}, {Sequence: 2}}), "")
	check(t, checkSequences([]orch.StoredEvent{{Sequence: 1}, {Sequence: 3}}), "stored event 2 has sequence 3")
	check(t, checkSequences([]orch.StoredEvent{{Sequence: 2}}), "stored event 1 has sequence 2")
}

func check(t *testing.T, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}
