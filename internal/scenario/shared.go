package scenario

import (
	"errors"
	"fmt"
	"slices"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// checkSequences wants stored sequences 1..N without a gap.
func checkSequences(events []orch.StoredEvent) error {
	for i, e := range events {
		if e.Sequence != int64(i+1) {
			return inf(Persistence, "stored event %d has sequence %d: want 1..N without a gap", i+1, e.Sequence)
		}
	}
	return nil
}

// sharedCheck holds what every scenario must keep, whatever its steps.
type sharedCheck struct {
	p        *orch.Projection
	problems []error
}

func (c *sharedCheck) want(ok bool, format string, args ...any) {
	if !ok {
		c.problems = append(c.problems, fmt.Errorf(format, args...))
	}
}

// checkShared returns all that is wrong with a final projection and its log.
func checkShared(events []orch.StoredEvent, p *orch.Projection, selection orch.ModelSelection) error {
	c := &sharedCheck{p: p}
	c.events(events)
	c.thread(selection.InstanceID)
	c.order(events)
	c.runs(selection)
	c.turns()
	c.items()
	c.requests()
	c.checkpoints()
	return in(Projection, errors.Join(c.problems...))
}

func (c *sharedCheck) events(events []orch.StoredEvent) {
	roots := 0
	root := map[string]string{} // by thread
	for _, e := range events {
		p, err := alone(e)
		if err != nil {
			c.want(false, "%v", err)
			continue
		}
		if e.Event.Type == orch.EventThreadCreated && p.Thread.Lineage.ParentThreadID == "" {
			roots++
		}
		if t := p.Thread; e.Event.Type == orch.EventThreadCreated {
			parent := string(t.Lineage.ParentThreadID)
			c.want(parent == "" || root[parent] != "" && root[parent] == string(t.Lineage.RootThreadID),
				"event %d: thread %s has the parent %q and the root %q", e.Sequence, t.ID, parent, t.Lineage.RootThreadID)
			if root[t.ID] = t.ID; parent != "" {
				root[t.ID] = root[parent]
			}
		}
		for _, m := range p.Messages {
			c.want(m.Role != "assistant" || !m.Streaming, "event %d is a streaming assistant message: delivery is buffered", e.Sequence)
		}
	}
	c.want(roots == 1, "%d root threads were created: want 1", roots)
}

func (c *sharedCheck) thread(provider string) {
	t := c.p.Thread
	c.want(t.ProviderInstanceID == provider, "thread.providerInstanceId is %q: want the provider %q that was selected last", t.ProviderInstanceID, provider)
	c.want(len(c.p.ProviderThreads) > 0, "no provider thread")
	c.want(t.ActiveProviderThreadID == "" || c.hasProviderThread(string(t.ActiveProviderThreadID)), "thread.activeProviderThreadId %q does not exist", t.ActiveProviderThreadID)
}

func (c *sharedCheck) runs(selection orch.ModelSelection) {
	runs := c.p.Runs
	c.want(len(runs) > 0, "no run")
	played := 0
	for i, r := range runs {
		c.want(r.Ordinal == i+1, "run %d has ordinal %d", i+1, r.Ordinal)
		c.want(c.hasMessage(r.UserMessageID), "run %d: user message %q does not exist", r.Ordinal, r.UserMessageID)
		if r.Status == "queued" || r.Status == "cancelled" && r.StartedAt == nil {
			continue
		}
		played++
		root := c.node(r.RootNodeID)
		c.want(root != nil && root.Kind == "root_turn", "run %d: root node %q is no root_turn", r.Ordinal, r.RootNodeID)
		if root != nil {
			c.want(string(root.RunID) == r.ID && root.CountsForRun, "run %d: its root node must belong to it and count for it", r.Ordinal)
			c.want(r.Status != "completed" || root.Status == "completed", "run %d is completed but its root node %s", r.Ordinal, root.Status)
		}
		c.want(slices.ContainsFunc(c.p.Attempts, func(a orch.RunAttempt) bool { return a.ID == string(r.ActiveAttemptID) && a.RunID == r.ID }),
			"run %d: active attempt %q does not exist", r.Ordinal, r.ActiveAttemptID)
		c.want(r.Status != "completed" || r.CheckpointID != "", "run %d is completed without a checkpoint", r.Ordinal)
	}
	c.want(len(c.p.ProviderTurns) >= played, "%d provider turns for %d runs", len(c.p.ProviderTurns), played)
	if len(runs) > 0 {
		last := runs[len(runs)-1].ModelSelection
		c.want(last.InstanceID == selection.InstanceID && last.Model == selection.Model,
			"last run selects %s/%s: want %s/%s", last.InstanceID, last.Model, selection.InstanceID, selection.Model)
	}
}

func (c *sharedCheck) turns() {
	for _, n := range c.p.Nodes {
		c.want(n.Kind != "root_turn" || n.RunID == "" || n.CountsForRun, "node %s is a run's root and does not count for it", n.ID)
		c.want(n.ParentNodeID == "" || c.node(string(n.ParentNodeID)) != nil, "node %s: parent %q does not exist", n.ID, n.ParentNodeID)
		c.want(n.RunID == "" || c.hasRun(string(n.RunID)), "node %s: run %q does not exist", n.ID, n.RunID)
	}
	for _, t := range c.p.ProviderTurns {
		c.want(c.node(t.NodeID) != nil, "provider turn %s: node %q does not exist", t.ID, t.NodeID)
		c.want(c.hasProviderThread(t.ProviderThreadID), "provider turn %s: provider thread %q does not exist", t.ID, t.ProviderThreadID)
	}
}

func (c *sharedCheck) items() {
	var before int64 = -1
	for _, it := range c.p.TurnItems {
		c.want(it.Ordinal > before, "turn item %s: ordinal %d after %d", it.ID, it.Ordinal, before)
		before = it.Ordinal
		c.want(it.RunID == "" || c.hasRun(string(it.RunID)), "turn item %s: run %q does not exist", it.ID, it.RunID)
		c.want(it.NodeID == "" || c.node(string(it.NodeID)) != nil, "turn item %s: node %q does not exist", it.ID, it.NodeID)
		c.want(it.MessageID == "" || c.hasMessage(it.MessageID), "turn item %s: message %q does not exist", it.ID, it.MessageID)
		c.want(it.ProviderThreadID == "" || c.hasProviderThread(string(it.ProviderThreadID)), "turn item %s: provider thread %q does not exist", it.ID, it.ProviderThreadID)
		c.want(it.ParentItemID == "" || slices.ContainsFunc(c.p.TurnItems, func(o orch.TurnItem) bool { return o.ID == string(it.ParentItemID) }),
			"turn item %s: parent %q does not exist", it.ID, it.ParentItemID)
	}
	for i, v := range c.p.VisibleTurnItems() {
		c.want(v.Position == i, "visible item %d has position %d", i, v.Position)
		c.want(v.Visibility != "local" || slices.ContainsFunc(c.p.TurnItems, func(o orch.TurnItem) bool { return o.ID == v.SourceItemID && o.ID == v.Item.ID }),
			"visible item %s is local and no turn item", v.SourceItemID)
	}
	for _, m := range c.p.Messages {
		c.want(m.RunID == "" || c.hasRun(string(m.RunID)), "message %s: run %q does not exist", m.ID, m.RunID)
		c.want(m.NodeID == "" || c.node(string(m.NodeID)) != nil, "message %s: node %q does not exist", m.ID, m.NodeID)
	}
}

func (c *sharedCheck) requests() {
	for _, r := range c.p.RuntimeRequests {
		n := c.node(r.NodeID)
		c.want(n != nil, "request %s: node %q does not exist", r.ID, r.NodeID)
		switch r.Kind {
		case "command", "file-read", "file-change":
			c.want(n == nil || n.Kind == "approval_request", "request %s of kind %s does not sit on an approval_request node", r.ID, r.Kind)
		}
		c.want(r.ProviderTurnID == "" || slices.ContainsFunc(c.p.ProviderTurns, func(t orch.ProviderTurn) bool { return t.ID == string(r.ProviderTurnID) }),
			"request %s: provider turn %q does not exist", r.ID, r.ProviderTurnID)
	}
}

func (c *sharedCheck) checkpoints() {
	completed := slices.ContainsFunc(c.p.Runs, func(r orch.Run) bool { return r.Status == "completed" })
	baseline := slices.ContainsFunc(c.p.Checkpoints, func(k orch.Checkpoint) bool {
		return k.OrdinalWithinScope == 0 && k.AppRunOrdinal == nil && k.Status == "ready"
	})
	c.want(!completed || baseline, "no ready baseline checkpoint (ordinalWithinScope 0, appRunOrdinal null)")
	for _, k := range c.p.Checkpoints {
		c.want(slices.ContainsFunc(c.p.CheckpointScopes, func(s orch.CheckpointScope) bool { return s.ID == k.ScopeID }),
			"checkpoint %s: scope %q does not exist", k.ID, k.ScopeID)
	}
	for _, r := range c.p.Runs {
		c.want(r.CheckpointID == "" || slices.ContainsFunc(c.p.Checkpoints, func(k orch.Checkpoint) bool { return k.ID == string(r.CheckpointID) }),
			"run %d: checkpoint %q does not exist", r.Ordinal, r.CheckpointID)
	}
}

// order follows every run and scope through the log: a run is waiting before
// it has its checkpoint, the checkpoint stands before the run ends, and no
// checkpoint of a child scope counts as a run's.
func (c *sharedCheck) order(events []orch.StoredEvent) {
	status := map[string]string{}
	turnsOf := map[string]string{} // provider turn status by attempt
	active := map[string]string{}  // active attempt by run
	child := map[string]bool{}
	for _, e := range events {
		p, err := alone(e)
		if err != nil {
			return
		}
		for _, t := range p.ProviderTurns {
			turnsOf[string(t.RunAttemptID)] = t.Status
		}
		for _, m := range p.Messages {
			c.want(m.Role != "assistant" || m.RunID == "" || status[string(m.RunID)] == "running" || status[string(m.RunID)] == "starting" || status[string(m.RunID)] == "",
				"event %d: message %s comes when its run is %s", e.Sequence, m.ID, status[string(m.RunID)])
		}
		for _, s := range p.CheckpointScopes {
			child[s.ID] = !s.AdvancesAppRunCount
		}
		for _, k := range p.Checkpoints {
			c.want(!child[k.ScopeID] || k.AppRunOrdinal == nil, "event %d: checkpoint %s of a child scope advances the run count", e.Sequence, k.ID)
			c.want(k.AppRunOrdinal == nil || k.Status == "stale" || e.Event.Type != orch.EventCheckpointCaptured || terminal(turnsOf[active[string(k.RunID)]]),
				"event %d: checkpoint %s is captured before the provider turn has ended", e.Sequence, k.ID)
		}
		for _, r := range p.Runs {
			active[r.ID] = string(r.ActiveAttemptID)
			c.want(!terminal(r.Status) || r.CheckpointID == "" || r.Status == "rolled_back" || status[r.ID] == "waiting" || terminal(status[r.ID]),
				"event %d: run %d is %s without having waited for its checkpoint", e.Sequence, r.Ordinal, r.Status)
			status[r.ID] = r.Status
		}
	}
}

func (c *sharedCheck) node(id string) *orch.ExecutionNode {
	for i := range c.p.Nodes {
		if c.p.Nodes[i].ID == id {
			return &c.p.Nodes[i]
		}
	}
	return nil
}

func (c *sharedCheck) hasRun(id string) bool {
	return slices.ContainsFunc(c.p.Runs, func(r orch.Run) bool { return r.ID == id })
}

func (c *sharedCheck) hasMessage(id string) bool {
	return slices.ContainsFunc(c.p.Messages, func(m orch.Message) bool { return m.ID == id })
}

func (c *sharedCheck) hasProviderThread(id string) bool {
	return slices.ContainsFunc(c.p.ProviderThreads, func(t orch.ProviderThread) bool { return t.ID == id })
}
