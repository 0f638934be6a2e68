package orch

import "slices"

// ReorderQueuedRun moves the message of a queued run before that of another.
// The runs stay where they are, for they start in the order of their ordinals:
// what changes is which message each of them has.
type ReorderQueuedRun struct {
	CommandID   string `json:"commandId"`
	ThreadID    string `json:"threadId"`
	RunID       string `json:"runId"`
	BeforeRunID string `json:"beforeRunId,omitempty"` // "" is the end of the queue
}

// EditQueuedRun replaces the message of a run that has not started, and who
// answers it.
type EditQueuedRun struct {
	CommandID      string          `json:"commandId"`
	ThreadID       string          `json:"threadId"`
	RunID          string          `json:"runId"`
	Text           string          `json:"text"`
	Attachments    []Attachment    `json:"attachments,omitempty"`
	ModelSelection *ModelSelection `json:"modelSelection,omitempty"` // nil keeps the run's
}

// StartRun starts a run that was dispatched to start later.
type StartRun struct {
	CommandID string `json:"commandId"`
	ThreadID  string `json:"threadId"`
	RunID     string `json:"runId"`
}

func (c ReorderQueuedRun) about() about {
	return about{id: c.CommandID, kind: "queued-run.reorder", threadID: c.ThreadID}
}
func (c EditQueuedRun) about() about {
	return about{id: c.CommandID, kind: "queued-run.edit", threadID: c.ThreadID}
}
func (c StartRun) about() about {
	return about{id: c.CommandID, kind: "run.start", threadID: c.ThreadID}
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
	putRun(d, c, newRun{selection: selection, status: "queued", position: &position})
	return nil
}

// planDefer opens a run that StartRun starts. Until then it is the active one:
// messages queue up behind it.
func planDefer(d *draft, c DispatchMessage) error {
	selection, err := onIdle(d, c)
	if err != nil {
		return err
	}
	putRun(d, c, newRun{selection: selection, status: "preparing"})
	return nil
}

func planStartDeferred(d *draft, c StartRun) error {
	run, err := runIn(d, c.RunID, "preparing")
	if err != nil {
		return err
	}
	startWaiting(d, run, "turn_start")
	return nil
}

func planReorder(d *draft, c ReorderQueuedRun) error {
	run, err := runIn(d, c.RunID, "queued")
	if err != nil {
		return err
	}
	queue := slices.DeleteFunc(d.p.queue(), func(other Run) bool { return other.ID == run.ID })
	at := len(queue)
	if c.BeforeRunID != "" {
		if _, err := runIn(d, c.BeforeRunID, "queued"); err != nil {
			return err
		}
		at = slices.IndexFunc(queue, func(other Run) bool { return other.ID == c.BeforeRunID })
		if at < 0 {
			return reject(CodeInvalid, "run %s can't stand before itself", run.ID)
		}
	}
	wanted := slices.Insert(queue, at, run)
	for i, slot := range d.p.queue() {
		if from := wanted[i]; from.ID != slot.ID {
			giveMessage(d, slot, from)
		}
	}
	return nil
}

// giveMessage makes a queued run answer the message of another one.
func giveMessage(d *draft, run, from Run) {
	run.UserMessageID, run.SourcePlanRef = from.UserMessageID, from.SourcePlanRef
	setSelection(d, run, from.ModelSelection)
	message, _ := lookup(d.p, d.p.Messages, run.UserMessageID)
	message.RunID, message.NodeID, message.UpdatedAt = Ref(run.ID), Ref(run.RootNodeID), d.now
	d.put(message)
}

// setSelection changes who answers a run that has not started.
func setSelection(d *draft, run Run, selection ModelSelection) {
	run.ModelSelection, run.ProviderInstanceID = selection, selection.InstanceID
	d.put(run)
	attempt, _ := lookup(d.p, d.p.Attempts, string(run.ActiveAttemptID))
	if attempt.ProviderInstanceID != selection.InstanceID {
		attempt.ProviderInstanceID = selection.InstanceID
		d.put(attempt)
	}
}

func planEdit(d *draft, c EditQueuedRun) error {
	run, err := runIn(d, c.RunID, "queued", "preparing")
	if err != nil {
		return err
	}
	words := DispatchMessage{Text: c.Text, Attachments: c.Attachments, ModelSelection: c.ModelSelection}
	if err := checkMessage(d, words, false); err != nil {
		return err
	}
	if _, err := selectionOf(d, words); err != nil {
		return err
	}
	message, _ := lookup(d.p, d.p.Messages, run.UserMessageID)
	message.Text, message.UpdatedAt = c.Text, d.now
	if message.Attachments = c.Attachments; c.Attachments == nil {
		message.Attachments = []Attachment{}
	}
	d.put(message)
	if c.ModelSelection != nil {
		setSelection(d, run, *c.ModelSelection)
	}
	return nil
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
	startWaiting(d, next, "queued_turn")
}

// startWaiting starts a run that was opened before. Only now its message is
// part of the timeline.
func startWaiting(d *draft, run Run, intent string) {
	run.Status, run.QueuePosition = "starting", nil
	d.put(run)
	putUserItem(d, run.UserMessageID, run.ID, run.RootNodeID, intent)
	renumber(d)
	startRun(d, run)
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
	run, err := runIn(d, c.RunID, "queued", "preparing")
	if err != nil {
		return err
	}
	endQueued(d, run, "cancelled")
	return nil
}

// endQueued ends a run that never started.
func endQueued(d *draft, run Run, status string) {
	attempt, _ := lookup(d.p, d.p.Attempts, string(run.ActiveAttemptID))
	attempt.Status, attempt.CompletedAt = status, d.at()
	d.put(attempt)
	finishRun(d, run, status)
	renumber(d)
}

// runIn returns a run that must have one of the statuses.
func runIn(d *draft, id string, statuses ...string) (Run, error) {
	if err := needThread(d); err != nil {
		return Run{}, err
	}
	run, ok := lookup(d.p, d.p.Runs, id)
	switch {
	case !ok:
		return run, reject(CodeUnknownRun, "unknown run %q", id)
	case !slices.Contains(statuses, run.Status):
		return run, reject(CodeNotQueued, "run %s is %s, not %s", id, run.Status, statuses[0])
	}
	return run, nil
}
