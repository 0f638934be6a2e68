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
	case InterruptRun:
		return planInterrupt(d, c)
	case RespondToRequest:
		return planRespond(d, c)
	case CancelQueuedRun:
		return planCancelQueued(d, c)
	case PromoteQueuedRun:
		return planPromote(d, c)
	case ReorderQueuedRun:
		return planReorder(d, c)
	case EditQueuedRun:
		return planEdit(d, c)
	case StartRun:
		return planStartDeferred(d, c)
	case RollbackCheckpoint:
		return planRollback(d, c)
	case ForkThread:
		return planFork(d, c)
	case MergeBack:
		return planMergeBack(d, c)
	case SwitchProvider:
		return planSwitch(d, c)
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

// planDispatch plans a user message.
func planDispatch(d *draft, c DispatchMessage) error {
	if err := needThread(d); err != nil {
		return err
	}
	if d.p.Thread.Lineage.RelationshipToParent == "subagent" {
		return reject(CodeNotSupported, "thread %s is a subagent's: its parent talks to it", d.p.Thread.ID)
	}
	switch mode := or(c.Mode, ModeStart); mode {
	case ModeStart:
		return planStart(d, c)
	case ModeQueue:
		return planQueue(d, c)
	case ModeSteer:
		return planSteer(d, c)
	case ModeRestart:
		return planRestart(d, c)
	case ModeDefer:
		return planDefer(d, c)
	default:
		return reject(CodeInvalid, "unknown dispatch mode %q", mode)
	}
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
