package orch

import (
	"context"
	"reflect"
	"strconv"
)

// A subagent is seen from two sides. The parent's thread has its node, the
// subagent, an item and a checkpoint scope. The child has an app thread of its
// own, without runs, where its turns and what it says go. A child never ends
// its parent's run, and its checkpoints never count as a run's.

// childThread is what the child's thread is made of.
type childThread struct {
	id             string
	parent         AppThread
	parentTurn     ProviderTurn
	nodeID         string // of the subagent, in the parent
	scopeID        string
	providerThread string // app id
	native         *NativeRef
	said           SubagentUpdated
}

func childThreadID(driver, native string) string { return makeID("thread", driver, native) }

// childRootID names the root node of a child's nth turn.
func childRootID(thread string, n int) string {
	return makeID("node", "root", thread, strconv.Itoa(n))
}

// newChild tells which thread an update is about; false when the parent's turn
// is not known.
func newChild(p *Projection, s source, e SubagentUpdated) (childThread, bool) {
	o, ok := findTurn(p, s, e.NativeTurnID)
	if !ok {
		return childThread{}, false
	}
	c := childThread{
		parent: p.Thread, parentTurn: o.turn, said: e,
		nodeID: providerItemID("node", s.driver, e.NativeTurnID, e.NativeTaskID),
	}
	for _, known := range p.Subagents {
		ref := known.NativeTaskRef
		if ref != nil && ref.NativeID == e.NativeTaskID && ref.Driver == s.driver && known.ProviderInstanceID == s.instance {
			// Also where it goes on in a later turn of the parent.
			c.nodeID, c.id, c.providerThread = known.ID, string(known.ChildThreadID), string(known.ProviderThreadID)
		}
	}
	c.native = &NativeRef{s.driver, e.ChildNativeThreadID, "strong"}
	if e.ChildNativeThreadID == "" { // the provider names none: the task stands for it
		c.native = &NativeRef{s.driver, "task:" + e.NativeTaskID, "none"}
	}
	if c.id == "" {
		c.id, c.providerThread = childThreadID(s.driver, c.native.NativeID), providerThreadID(s.driver, c.native.NativeID)
	}
	c.scopeID = childScopeID(p, o, c.nodeID)
	return c, true
}

// childScopeID is the scope of a subagent's checkpoints: "run-1.2" is that of
// the second child of run 1.
func childScopeID(p *Projection, o owner, node string) string {
	if known, ok := lookup(p, p.Nodes, node); ok {
		return string(known.CheckpointScopeID)
	}
	name, n := "child", 1
	if o.run.ID != "" {
		name = rootScopeName(o.run.Ordinal)
	}
	for _, scope := range p.CheckpointScopes {
		if scope.Kind == "subagent" && string(scope.RunID) == o.run.ID {
			n++
		}
	}
	return scopeID(p.Thread.ID, name+"."+strconv.Itoa(n))
}

// ingestSubagent brings both sides up to date: first the child's thread, which
// the parent refers to. Called again with the same event it changes nothing.
func (o *Orchestrator) ingestSubagent(ctx context.Context, ss *session, parent string, e SubagentUpdated, whenIdle bool) error {
	var child childThread
	known := false
	err := o.read(ctx, parent, func(p *Projection) error {
		child, known = newChild(p, ss.source, e)
		return nil
	})
	if err != nil || !known {
		return err
	}
	if whenIdle {
		for _, thread := range []string{parent, child.id} {
			if err := o.idle(ctx, thread, false); err != nil {
				return err
			}
		}
	}
	err = o.fact(ctx, child.id, func(d *draft) error {
		putChildThread(d, ss.source, child)
		return nil
	})
	if err != nil {
		return err
	}
	err = o.fact(ctx, parent, func(d *draft) error {
		putSubagent(d, ss.source, child)
		return nil
	})
	if err != nil {
		return err
	}
	ss.adopt(child.native.NativeID, child.id, parent)
	return o.ingestEarly(ctx, ss, child.native.NativeID, whenIdle)
}

// putChildThread stores the child's side.
func putChildThread(d *draft, s source, c childThread) {
	e, ended := c.said, isTerminal(KindSubagent, c.said.Status)
	root := childRootID(c.id, 1)
	if d.version == 0 {
		selection := ModelSelection{InstanceID: s.instance, Model: or(e.Model, c.parent.ModelSelection.Model)}
		d.put(AppThread{
			ID: c.id, ProjectID: c.parent.ProjectID, Title: or(e.Title, "Subagent"), CreatedBy: "agent", CreationSource: "provider",
			ProviderInstanceID: s.instance, ModelSelection: selection, RuntimeMode: c.parent.RuntimeMode,
			InteractionMode: c.parent.InteractionMode, Branch: c.parent.Branch, WorktreePath: c.parent.WorktreePath,
			Lineage: Lineage{
				ParentThreadID: Ref(c.parent.ID), RelationshipToParent: "subagent", RootThreadID: c.parent.Lineage.RootThreadID,
			},
			ForkedFrom: &ForkPoint{Type: "node", ThreadID: c.parent.ID, ID: c.nodeID}, CreatedAt: d.now, UpdatedAt: d.now,
		})
		d.putAs(EventSessionAttached, ProviderSession{
			ID: s.sessionID, Driver: s.driver, ProviderInstanceID: s.instance, Status: "ready",
			Cwd: string(c.parent.WorktreePath), Model: selection.Model, Capabilities: s.capabilities,
			CreatedAt: d.now, UpdatedAt: d.now,
		})
		d.put(ProviderThread{
			ID: c.providerThread, Driver: s.driver, ProviderInstanceID: s.instance, ProviderSessionID: Ref(s.sessionID),
			AppThreadID: c.id, OwnerNodeID: Ref(c.nodeID), NativeThreadRef: c.native, Status: "active", HandoffIDs: []string{},
			ForkedFrom: &ProviderForkSource{ProviderThreadID: c.parentTurn.ProviderThreadID, ProviderTurnID: Ref(c.parentTurn.ID)},
			CreatedAt:  d.now, UpdatedAt: d.now,
		})
		d.put(ExecutionNode{
			ID: root, ThreadID: c.id, RootNodeID: root, Kind: "root_turn", Status: "pending",
			ProviderThreadID: Ref(c.providerThread), CheckpointScopeID: Ref(c.scopeID), StartedAt: d.at(),
		})
	}
	if e.Title != "" && d.p.Thread.Title != e.Title {
		thread := d.p.Thread
		thread.Title, thread.UpdatedAt = e.Title, d.now
		d.put(thread)
	}
	prompt := makeID("message", "prompt", c.id)
	if _, told := lookup(d.p, d.p.Messages, prompt); !told && e.Prompt != "" {
		putUserMessage(d, DispatchMessage{Text: e.Prompt}, prompt, "", root, "turn_start")
	}
	// Where the provider tells nothing of the child's turns, the child's end is
	// all there is.
	thread, _ := lookup(d.p, d.p.ProviderThreads, c.providerThread)
	if node, _ := lookup(d.p, d.p.Nodes, root); ended && thread.NativeThreadRef != nil && thread.NativeThreadRef.Strength == "none" && !isTerminal(KindNode, node.Status) {
		node.Status, node.CompletedAt = e.Status, d.at()
		d.put(node)
		setThreadStatus(d, c.providerThread, "active", "idle")
	}
}

// putSubagent stores the parent's side. When the child ends, its scope gets a
// checkpoint.
func putSubagent(d *draft, s source, c childThread) {
	e := c.said
	o, ok := findTurn(d.p, s, e.NativeTurnID)
	if !ok {
		return // unless the event was read on another projection: impossible under ss.ingest
	}
	ref := &NativeRef{s.driver, e.NativeTaskID, "strong"}
	node, known := lookup(d.p, d.p.Nodes, c.nodeID)
	if !known {
		parentNode, _ := lookup(d.p, d.p.Nodes, o.turn.NodeID)
		node = ExecutionNode{
			ID: c.nodeID, ThreadID: d.p.Thread.ID, RunID: Ref(o.run.ID), ParentNodeID: Ref(o.turn.NodeID),
			RootNodeID: o.turn.NodeID, Kind: "subagent", ProviderThreadID: Ref(o.thread.ID), CheckpointScopeID: Ref(c.scopeID),
			ProviderTurnID: Ref(o.turn.ID), NativeItemRef: ref, StartedAt: d.at(),
		}
		d.put(CheckpointScope{
			ID: c.scopeID, ThreadID: d.p.Thread.ID, RunID: Ref(o.run.ID), NodeID: Ref(c.nodeID),
			ParentScopeID: parentNode.CheckpointScopeID, ProviderThreadID: Ref(c.providerThread), Kind: "subagent",
			OrdinalWithinParent: d.p.scopesBelow(parentNode.CheckpointScopeID) + 1,
			Cwd:                 string(d.p.Thread.WorktreePath), CreatedAt: d.now,
		})
	}
	child, ok := lookup(d.p, d.p.Subagents, c.nodeID)
	if !ok {
		child = Subagent{
			ID: c.nodeID, ThreadID: d.p.Thread.ID, RunID: Ref(o.run.ID), ParentNodeID: o.turn.NodeID,
			Origin: "provider_native", CreatedBy: "agent", Driver: s.driver, ProviderInstanceID: s.instance,
			ProviderThreadID: Ref(c.providerThread), ChildThreadID: Ref(c.id), NativeTaskRef: ref, StartedAt: d.at(),
		}
	}
	itemID := makeID("turn-item", "subagent", c.nodeID)
	item, ok := lookup(d.p, d.p.TurnItems, itemID)
	if !ok {
		item = TurnItem{
			ID: itemID, ThreadID: d.p.Thread.ID, RunID: Ref(o.run.ID), NodeID: Ref(c.nodeID),
			ProviderThreadID: Ref(o.thread.ID), ProviderTurnID: Ref(o.turn.ID), NativeItemRef: ref,
			Ordinal: d.p.nextItemOrdinal(o.run.ID), Type: "subagent", StartedAt: d.at(), SubagentID: c.nodeID,
		}
	}
	was := child.Status
	child.Prompt, child.Title = or(e.Prompt, child.Prompt), or(e.Title, child.Title)
	child.Model, child.Result = Ref(or(e.Model, string(child.Model))), Ref(or(e.Result, string(child.Result)))
	node.Status, child.Status, item.Status = e.Status, e.Status, e.Status
	ended := isTerminal(KindSubagent, e.Status)
	if ended && !isTerminal(KindSubagent, was) {
		node.CompletedAt, child.CompletedAt, item.CompletedAt = d.at(), d.at(), d.at()
	}
	item.Title, item.Prompt, item.Result = child.Title, child.Prompt, string(child.Result)
	d.putChanged(node)
	d.putChanged(child)
	d.putChanged(item)
	if ended && known && !isTerminal(KindSubagent, was) {
		captureChildScope(d, o.run.ID, c.scopeID)
	}
}

// captureChildScope asks for the next checkpoint of a child scope.
func captureChildScope(d *draft, run, scope string) {
	n := 1
	for _, k := range d.p.Checkpoints {
		if k.ScopeID == scope {
			n = max(n, k.OrdinalWithinScope+1)
		}
	}
	checkpoint := checkpointID(scope, n)
	d.effect(EffectCapture, checkpoint, effectPayload{RunID: run, ScopeID: scope, CheckpointID: checkpoint})
}

func (p *Projection) scopesBelow(parent Ref) int {
	n := 0
	for _, scope := range p.CheckpointScopes {
		if scope.ParentScopeID == parent && parent != "" {
			n++
		}
	}
	return n
}

// putChanged stores an entity that differs from what is stored of it.
func (d *draft) putChanged(e entity) {
	f := e.facts()
	if before := d.p.get(entityKey{f.kind, f.id}); before == nil || !reflect.DeepEqual(before, e) {
		d.put(e)
	}
}

func setThreadStatus(d *draft, id, from, to string) {
	if thread, ok := lookup(d.p, d.p.ProviderThreads, id); ok && thread.Status == from {
		thread.Status, thread.UpdatedAt = to, d.now
		d.put(thread)
	}
}

// adoptChildTurn makes a native turn the next turn of a child's thread; false
// when the thread is no child's.
func adoptChildTurn(d *draft, s source, nativeThread, nativeTurn string) bool {
	thread, ok := d.p.threadOfNative(s.driver, nativeThread)
	if !ok || thread.OwnerNodeID == "" {
		return false
	}
	ordinal := 1
	for _, turn := range d.p.ProviderTurns {
		if turn.ProviderThreadID == thread.ID {
			ordinal = turn.Ordinal + 1
		}
	}
	first, _ := lookup(d.p, d.p.Nodes, childRootID(d.p.Thread.ID, 1))
	root := first
	if ordinal > 1 {
		root = ExecutionNode{
			ID: childRootID(d.p.Thread.ID, ordinal), ThreadID: d.p.Thread.ID, RootNodeID: childRootID(d.p.Thread.ID, ordinal),
			Kind: "root_turn", ProviderThreadID: Ref(thread.ID), CheckpointScopeID: first.CheckpointScopeID,
		}
	}
	strength := "weak"
	if s.capabilities.NativeTurnIDs {
		strength = "strong"
	}
	turn := ProviderTurn{
		ID: providerTurnID(s.driver, nativeTurn), ProviderThreadID: thread.ID, NodeID: root.ID,
		NativeTurnRef: &NativeRef{s.driver, nativeTurn, strength}, Ordinal: ordinal, Status: "running", StartedAt: d.at(),
	}
	root.Status, root.ProviderTurnID, root.StartedAt = "running", Ref(turn.ID), d.at()
	d.put(turn)
	d.put(root)
	if thread.Status != "active" {
		thread.Status, thread.UpdatedAt = "active", d.now
		d.put(thread)
	}
	return true
}

// endTurnAlone ends a turn that belongs to no run, with its root node.
func endTurnAlone(d *draft, turn ProviderTurn, status string) {
	closeOpenWork(d, turn.NodeID, status)
	turn.Status, turn.CompletedAt = status, d.at()
	d.put(turn)
	if root, ok := lookup(d.p, d.p.Nodes, turn.NodeID); ok {
		root.Status, root.CompletedAt = status, d.at()
		d.put(root)
	}
	setThreadStatus(d, turn.ProviderThreadID, "active", "idle")
}
