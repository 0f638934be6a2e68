package orch

import (
	"fmt"
	"slices"
)

// plan routes a command to its planner. A planner validates first and puts
// afterwards; it fails with a *RejectedError.
func plan(d *draft, c Command) error {
	switch c := c.(type) {
	case CreateThread:
		return planCreateThread(d, c)
	case DispatchMessage:
		return planDispatch(d, c)
	case DetachSession:
		return planDetach(d, c)
	default:
		return fmt.Errorf("unknown command %T", c)
	}
}

func planCreateThread(d *draft, c CreateThread) error {
	if d.version > 0 {
		return reject(CodeThreadExists, "thread %q exists", d.p.Thread.ID)
	}
	if _, ok := d.agents[c.ModelSelection.InstanceID]; !ok {
		return reject(CodeUnknownProvider, "unknown provider instance %q", c.ModelSelection.InstanceID)
	}
	mode := or(c.RuntimeMode, "approval-required")
	if !slices.Contains([]string{"approval-required", "auto-accept-edits", "auto", "full-access"}, mode) {
		return reject(CodeInvalid, "unknown runtime mode %q", mode)
	}
	interaction := or(c.InteractionMode, "default")
	if !slices.Contains([]string{"default", "plan"}, interaction) {
		return reject(CodeInvalid, "unknown interaction mode %q", interaction)
	}
	d.put(AppThread{
		ID: d.p.Thread.ID, ProjectID: c.ProjectID, Title: c.Title,
		CreatedBy: or(c.CreatedBy, "user"), CreationSource: or(c.CreationSource, "server"),
		ProviderInstanceID: c.ModelSelection.InstanceID, ModelSelection: c.ModelSelection,
		RuntimeMode: mode, InteractionMode: interaction,
		Branch: Ref(c.Branch), WorktreePath: Ref(c.WorktreePath),
		Lineage:   Lineage{RootThreadID: d.p.Thread.ID},
		CreatedAt: d.now, UpdatedAt: d.now,
	})
	return nil
}

// planDispatch plans a user message. Modes other than start are refused until
// their planners exist.
func planDispatch(d *draft, c DispatchMessage) error {
	if err := needThread(d); err != nil {
		return err
	}
	switch mode := or(c.Mode, ModeStart); mode {
	case ModeStart:
		return planStart(d, c)
	case ModeQueue, ModeSteer, ModeRestart, ModeDefer:
		return reject(CodeNotSupported, "dispatch mode %s is not supported yet", mode)
	default:
		return reject(CodeInvalid, "unknown dispatch mode %q", mode)
	}
}

// planStart opens a run for the message: everything but the provider's part,
// which the effect brings.
func planStart(d *draft, c DispatchMessage) error {
	if c.Text == "" && len(c.Attachments) == 0 {
		return reject(CodeInvalid, "message is empty")
	}
	if c.TargetRunID != "" {
		return reject(CodeInvalid, "%s takes no target run", ModeStart)
	}
	if live, ok := d.p.liveRun(); ok {
		return reject(CodeRunActive, "run %s is %s", live.ID, live.Status)
	}
	selection := d.p.Thread.ModelSelection
	if c.ModelSelection != nil {
		selection = *c.ModelSelection
	}
	if _, ok := d.agents[selection.InstanceID]; !ok {
		return reject(CodeUnknownProvider, "unknown provider instance %q", selection.InstanceID)
	}
	if selection.InstanceID != d.p.Thread.ProviderInstanceID {
		return reject(CodeNotSupported, "switching the provider instance is not supported yet")
	}
	messageID := c.MessageID
	if messageID == "" {
		messageID = d.newID("message")
	}
	if _, ok := lookup(d.p, d.p.Messages, messageID); ok {
		return reject(CodeDuplicateID, "message %q exists", messageID)
	}

	ordinal := len(d.p.Runs) + 1
	run := runID(d.p.Thread.ID, ordinal)
	attempt, root := attemptID(run, 1), rootNodeID(run, 1)
	scope := scopeID(d.p.Thread.ID, rootScopeName(ordinal))
	d.put(Run{
		ID: run, ThreadID: d.p.Thread.ID, Ordinal: ordinal, ProviderInstanceID: selection.InstanceID,
		ModelSelection: selection, UserMessageID: messageID, RootNodeID: root, ActiveAttemptID: Ref(attempt),
		Status: "starting", RequestedAt: d.now, SourcePlanRef: Ref(c.SourcePlanRef),
	})
	d.put(RunAttempt{
		ID: attempt, RunID: run, AttemptOrdinal: 1, RootNodeID: root,
		ProviderInstanceID: selection.InstanceID, Reason: "initial", Status: "pending",
	})
	d.put(ExecutionNode{
		ID: root, ThreadID: d.p.Thread.ID, RunID: Ref(run), RootNodeID: root, Kind: "root_turn",
		Status: "pending", CountsForRun: true, CheckpointScopeID: Ref(scope),
	})
	d.put(CheckpointScope{
		ID: scope, ThreadID: d.p.Thread.ID, RunID: Ref(run), NodeID: Ref(root), Kind: "root_run",
		OrdinalWithinParent: ordinal, AdvancesAppRunCount: true,
		Cwd: string(d.p.Thread.WorktreePath), CreatedAt: d.now,
	})
	putUserMessage(d, c, messageID, run, root, "turn_start")
	d.effect(EffectStartTurn, attempt, effectPayload{RunID: run, AttemptID: attempt})
	return nil
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

// planDetach ends a thread's use of a session. What becomes of it is told by
// the session's end; a session that other threads use goes on without this one.
func planDetach(d *draft, c DetachSession) error {
	if err := needThread(d); err != nil {
		return err
	}
	if live, ok := d.p.liveRun(); ok {
		return reject(CodeRunActive, "run %s is %s", live.ID, live.Status)
	}
	id := c.ProviderSessionID
	if id == "" {
		active, _ := lookup(d.p, d.p.ProviderThreads, string(d.p.Thread.ActiveProviderThreadID))
		id = string(active.ProviderSessionID)
	}
	session, ok := lookup(d.p, d.p.ProviderSessions, id)
	if !ok || session.Status == "stopped" || session.Status == "error" {
		return reject(CodeNoSession, "thread has no open provider session")
	}
	session.UpdatedAt = d.now
	d.putAs(EventSessionDetached, session)
	d.effect(EffectDetach, id, effectPayload{SessionID: id})
	return nil
}

func needThread(d *draft) error {
	if d.version == 0 || d.p.Thread.DeletedAt != nil {
		return reject(CodeUnknownThread, "unknown thread %q", d.p.Thread.ID)
	}
	return nil
}

// liveRun is the run that is not over, if any.
func (p *Projection) liveRun() (Run, bool) {
	for _, run := range slices.Backward(p.Runs) {
		if slices.Contains(liveRun, run.Status) {
			return run, true
		}
	}
	return Run{}, false
}

// bandWidth is how many items a run may have.
const bandWidth = 1_000_000

// nextItemOrdinal is the next free place in the band of a run; items without
// a run have band 0.
func (p *Projection) nextItemOrdinal(runID string) int64 {
	run, _ := lookup(p, p.Runs, runID)
	first := int64(run.Ordinal) * bandWidth
	end, _ := slices.BinarySearchFunc(p.TurnItems, first+bandWidth, func(item TurnItem, ordinal int64) int {
		return int(item.Ordinal - ordinal)
	})
	if end > 0 && p.TurnItems[end-1].Ordinal >= first {
		return p.TurnItems[end-1].Ordinal + 1
	}
	return first
}

func or(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}
