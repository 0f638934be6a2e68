package orch

import "slices"

// newRun says how a message opens a run.
type newRun struct {
	selection ModelSelection
	status    string // starting or queued
	intent    string // of the user item
	position  *int   // in the queue
}

// planStart opens a run for the message: everything but the provider's part,
// which the effect brings.
func planStart(d *draft, c DispatchMessage) error {
	if err := checkMessage(d, c, false); err != nil {
		return err
	}
	if live, ok := d.p.liveRun(); ok {
		return reject(CodeRunActive, "run %s is %s", live.ID, live.Status)
	}
	selection, err := selectionOf(d, c)
	if err != nil {
		return err
	}
	run := putRun(d, c, newRun{selection: selection, status: "starting", intent: "turn_start"})
	startRun(d, run)
	return nil
}

// planQueue puts a message behind the active run; it starts when that run and
// those queued before it are over. On an idle thread it starts at once.
func planQueue(d *draft, c DispatchMessage) error {
	if _, ok := d.p.liveRun(); !ok {
		return planStart(d, c)
	}
	if err := checkMessage(d, c, false); err != nil {
		return err
	}
	selection, err := selectionOf(d, c)
	if err != nil {
		return err
	}
	position := len(d.p.queue()) + 1
	putRun(d, c, newRun{selection: selection, status: "queued", intent: "queued_turn", position: &position})
	return nil
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
	if selection.InstanceID != d.p.Thread.ProviderInstanceID {
		return selection, reject(CodeNotSupported, "switching the provider instance is not supported yet")
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
	putUserMessage(d, c, messageID, id, root, n.intent)
	return run
}

// putUserMessage stores the user's words as they are, and their item.
func putUserMessage(d *draft, c DispatchMessage, messageID, run, root, intent string) {
	attachments := c.Attachments
	if attachments == nil {
		attachments = []Attachment{}
	}
	d.put(Message{
		ID: messageID, ThreadID: d.p.Thread.ID, RunID: Ref(run), NodeID: Ref(root), Role: "user",
		Text: c.Text, Attachments: attachments, CreatedAt: d.now, UpdatedAt: d.now,
	})
	d.put(TurnItem{
		ID: userItemID(messageID), ThreadID: d.p.Thread.ID, RunID: Ref(run), NodeID: Ref(root),
		Ordinal: d.p.nextItemOrdinal(run), Type: "user_message", Status: "completed",
		StartedAt: d.at(), CompletedAt: d.at(), InputIntent: intent, MessageID: messageID, Text: c.Text,
	})
}

// startRun asks for the start of a run's active attempt.
func startRun(d *draft, run Run) {
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

// startNext starts the first queued run when none is active.
func startNext(d *draft) {
	if _, ok := d.p.activeRun(); ok {
		return
	}
	queue := d.p.queue()
	if len(queue) == 0 {
		return
	}
	next := queue[0]
	next.Status, next.QueuePosition = "starting", nil
	d.put(next)
	renumber(d)
	startRun(d, next)
}

// queue lists the queued runs in the order of their start.
func (p *Projection) queue() []Run {
	var queue []Run
	for _, run := range p.Runs {
		if run.Status == "queued" {
			queue = append(queue, run)
		}
	}
	slices.SortStableFunc(queue, func(a, b Run) int { return position(a) - position(b) })
	return queue
}

func position(run Run) int {
	if run.QueuePosition == nil {
		return 0
	}
	return *run.QueuePosition
}

// renumber closes the gap that a run leaves in the queue.
func renumber(d *draft) {
	for i, run := range d.p.queue() {
		if n := i + 1; position(run) != n {
			run.QueuePosition = &n
			d.put(run)
		}
	}
}

// planCancelQueued takes a queued run back.
func planCancelQueued(d *draft, c CancelQueuedRun) error {
	run, err := queuedRun(d, c.RunID)
	if err != nil {
		return err
	}
	endQueued(d, run)
	if item, ok := lookup(d.p, d.p.TurnItems, userItemID(run.UserMessageID)); ok {
		item.Title = "cancelled"
		d.put(item)
	}
	return nil
}

// endQueued ends a run that never started.
func endQueued(d *draft, run Run) {
	attempt, _ := lookup(d.p, d.p.Attempts, string(run.ActiveAttemptID))
	attempt.Status, attempt.CompletedAt = "cancelled", d.at()
	d.put(attempt)
	finishRun(d, run, "cancelled")
	renumber(d)
}

func queuedRun(d *draft, id string) (Run, error) {
	if err := needThread(d); err != nil {
		return Run{}, err
	}
	run, ok := lookup(d.p, d.p.Runs, id)
	switch {
	case !ok:
		return run, reject(CodeUnknownRun, "unknown run %q", id)
	case run.Status != "queued":
		return run, reject(CodeNotQueued, "run %s is %s, not queued", id, run.Status)
	}
	return run, nil
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
