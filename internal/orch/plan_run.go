package orch

import "slices"

// newRun says how a message opens a run.
type newRun struct {
	selection ModelSelection
	status    string // starting, queued or preparing
	position  *int   // in the queue
}

// planStart opens a run for the message: everything but the provider's part,
// which the effect brings.
func planStart(d *draft, c DispatchMessage) error {
	selection, err := onIdle(d, c)
	if err != nil {
		return err
	}
	run := putRun(d, c, newRun{selection: selection, status: "starting"})
	putUserItem(d, run.UserMessageID, run.ID, run.RootNodeID, "turn_start")
	startRun(d, run)
	return nil
}

// onIdle is what the message of a run selects that nothing may run before.
func onIdle(d *draft, c DispatchMessage) (ModelSelection, error) {
	if err := checkMessage(d, c, false); err != nil {
		return ModelSelection{}, err
	}
	if live, ok := d.p.liveRun(); ok {
		return ModelSelection{}, reject(CodeRunActive, "run %s is %s", live.ID, live.Status)
	}
	return selectionOf(d, c)
}

// checkMessage refuses what no dispatch mode takes.
func checkMessage(d *draft, c DispatchMessage, targeted bool) error {
	switch {
	case c.Text == "" && len(c.Attachments) == 0:
		return reject(CodeInvalid, "message is empty")
	case targeted && c.TargetRunID == "":
		return reject(CodeInvalid, "%s needs a target run", c.Mode)
	case !targeted && c.TargetRunID != "":
		return reject(CodeInvalid, "%s takes no target run", or(c.Mode, ModeStart))
	}
	if _, ok := lookup(d.p, d.p.Messages, c.MessageID); ok {
		return reject(CodeDuplicateID, "message %q exists", c.MessageID)
	}
	return nil
}

// selectionOf is who answers a message.
func selectionOf(d *draft, c DispatchMessage) (ModelSelection, error) {
	selection := d.p.Thread.ModelSelection
	if c.ModelSelection != nil {
		selection = *c.ModelSelection
	}
	if _, ok := d.agents[selection.InstanceID]; !ok {
		return selection, reject(CodeUnknownProvider, "unknown provider instance %q", selection.InstanceID)
	}
	return selection, nil
}

// putRun stores a run with its first attempt, root node, scope and message.
func putRun(d *draft, c DispatchMessage, n newRun) Run {
	messageID := c.MessageID
	if messageID == "" {
		messageID = d.newID("message")
	}
	ordinal := len(d.p.Runs) + 1
	id := runID(d.p.Thread.ID, ordinal)
	attempt, root := attemptID(id, 1), rootNodeID(id, 1)
	scope := scopeID(d.p.Thread.ID, rootScopeName(ordinal))
	run := Run{
		ID: id, ThreadID: d.p.Thread.ID, Ordinal: ordinal, ProviderInstanceID: n.selection.InstanceID,
		ModelSelection: n.selection, UserMessageID: messageID, RootNodeID: root, ActiveAttemptID: Ref(attempt),
		Status: n.status, QueuePosition: n.position, RequestedAt: d.now, SourcePlanRef: Ref(c.SourcePlanRef),
	}
	d.put(run)
	d.put(RunAttempt{
		ID: attempt, RunID: id, AttemptOrdinal: 1, RootNodeID: root,
		ProviderInstanceID: n.selection.InstanceID, Reason: "initial", Status: "pending",
	})
	d.put(ExecutionNode{
		ID: root, ThreadID: d.p.Thread.ID, RunID: Ref(id), RootNodeID: root, Kind: "root_turn",
		Status: "pending", CountsForRun: true, CheckpointScopeID: Ref(scope),
	})
	d.put(CheckpointScope{
		ID: scope, ThreadID: d.p.Thread.ID, RunID: Ref(id), NodeID: Ref(root), Kind: "root_run",
		OrdinalWithinParent: ordinal, AdvancesAppRunCount: true,
		Cwd: string(d.p.Thread.WorktreePath), CreatedAt: d.now,
	})
	putMessage(d, c, messageID, id, root)
	return run
}

// putUserMessage stores the user's words as they are, and their item.
func putUserMessage(d *draft, c DispatchMessage, messageID, run, root, intent string) {
	putMessage(d, c, messageID, run, root)
	putUserItem(d, messageID, run, root, intent)
}

func putMessage(d *draft, c DispatchMessage, messageID, run, root string) {
	attachments := c.Attachments
	if attachments == nil {
		attachments = []Attachment{}
	}
	d.put(Message{
		ID: messageID, ThreadID: d.p.Thread.ID, RunID: Ref(run), NodeID: Ref(root), Role: "user",
		Text: c.Text, Attachments: attachments, CreatedAt: d.now, UpdatedAt: d.now,
	})
}

// putUserItem shows a message in the timeline, once it is on its way.
func putUserItem(d *draft, messageID, run, root, intent string) {
	message, _ := lookup(d.p, d.p.Messages, messageID)
	d.put(TurnItem{
		ID: userItemID(messageID), ThreadID: d.p.Thread.ID, RunID: Ref(run), NodeID: Ref(root),
		Ordinal: d.p.nextItemOrdinal(run), Type: "user_message", Status: "completed",
		StartedAt: d.at(), CompletedAt: d.at(), InputIntent: intent, MessageID: messageID, Text: message.Text,
	})
}

// startRun asks for the start of a run's active attempt; the thread goes on
// with its provider instance.
func startRun(d *draft, run Run) {
	switchTo(d, run.ModelSelection)
	d.effect(EffectStartTurn, string(run.ActiveAttemptID), effectPayload{
		RunID: run.ID, AttemptID: string(run.ActiveAttemptID), MessageID: run.UserMessageID,
	})
}

// finishRun is the end of a run, with its root node: the only way out of a
// run's life. The next queued run starts.
func finishRun(d *draft, run Run, status string) {
	if root, ok := lookup(d.p, d.p.Nodes, d.activeRoot(run)); ok {
		root.Status = status
		if root.CompletedAt == nil {
			root.CompletedAt = d.at()
		}
		d.put(root)
	}
	run.Status, run.QueuePosition, run.CompletedAt = status, nil, d.at()
	d.put(run)
	startNext(d)
}

// liveRun is the run that is not over, if any; queued ones count.
func (p *Projection) liveRun() (Run, bool) {
	if run, ok := p.activeRun(); ok {
		return run, true
	}
	for _, run := range slices.Backward(p.Runs) {
		if run.Status == "queued" {
			return run, true
		}
	}
	return Run{}, false
}

// activeRun is the run that its provider or its checkpoint works on.
func (p *Projection) activeRun() (Run, bool) {
	for _, run := range slices.Backward(p.Runs) {
		if run.Status != "queued" && slices.Contains(liveRun, run.Status) {
			return run, true
		}
	}
	return Run{}, false
}
