package orch

import "slices"

// planSteer gives a message to the turn that runs. A provider that takes no
// more input into a turn is interrupted and given a new turn of the same run,
// where it can be.
func planSteer(d *draft, c DispatchMessage) error {
	if err := checkMessage(d, c, true); err != nil {
		return err
	}
	run, attempt, err := steerable(d, c)
	if err != nil {
		return err
	}
	switch caps := d.agents[run.ProviderInstanceID].capabilities; {
	case caps.ActiveSteering:
		messageID := putSteer(d, c, run, attempt.RootNodeID, "steer")
		steer(d, run, messageID)
		return nil
	case caps.SteeringByRestart && caps.Interrupt:
		restart(d, c, run, attempt)
		return nil
	default:
		return reject(CodeNotSupported, "provider instance %q can't be steered", run.ProviderInstanceID)
	}
}

// planRestart interrupts the turn that runs and gives the message to a new
// one of the same run.
func planRestart(d *draft, c DispatchMessage) error {
	if err := checkMessage(d, c, true); err != nil {
		return err
	}
	run, attempt, err := steerable(d, c)
	if err != nil {
		return err
	}
	if caps := d.agents[run.ProviderInstanceID].capabilities; !caps.SteeringByRestart || !caps.Interrupt {
		return reject(CodeNotSupported, "provider instance %q can't restart a turn", run.ProviderInstanceID)
	}
	restart(d, c, run, attempt)
	return nil
}

// steerable returns the target run of a message, whose turn must run.
func steerable(d *draft, c DispatchMessage) (Run, RunAttempt, error) {
	run, ok := lookup(d.p, d.p.Runs, c.TargetRunID)
	if !ok {
		return run, RunAttempt{}, reject(CodeUnknownRun, "unknown run %q", c.TargetRunID)
	}
	attempt, _ := lookup(d.p, d.p.Attempts, string(run.ActiveAttemptID))
	turn, _ := lookup(d.p, d.p.ProviderTurns, string(attempt.ProviderTurnID))
	switch {
	case run.Status != "running" || turn.Status != "running":
		return run, attempt, reject(CodeNotSteerable, "run %s is %s and has no turn to steer", run.ID, run.Status)
	case d.p.interruptRequested(run):
		return run, attempt, reject(CodeNotSteerable, "run %s is being interrupted", run.ID)
	case c.ModelSelection != nil && c.ModelSelection.InstanceID != run.ProviderInstanceID:
		return run, attempt, reject(CodeInvalid, "run %s is answered by %q", run.ID, run.ProviderInstanceID)
	}
	return run, attempt, nil
}

// putSteer stores a message that goes to a run that has started.
func putSteer(d *draft, c DispatchMessage, run Run, root, intent string) string {
	messageID := c.MessageID
	if messageID == "" {
		messageID = d.newID("message")
	}
	putUserMessage(d, c, messageID, run.ID, root, intent)
	return messageID
}

func steer(d *draft, run Run, messageID string) {
	d.effect(EffectSteerTurn, messageID, effectPayload{
		RunID: run.ID, AttemptID: string(run.ActiveAttemptID), MessageID: messageID,
	})
}

// restart supersedes the active attempt. The new one starts when the provider
// has ended the old one's turn.
func restart(d *draft, c DispatchMessage, run Run, old RunAttempt) {
	ordinal := 1
	for _, a := range d.p.Attempts {
		if a.RunID == run.ID {
			ordinal = a.AttemptOrdinal + 1
		}
	}
	before, _ := lookup(d.p, d.p.Nodes, old.RootNodeID)
	attempt, root := attemptID(run.ID, ordinal), rootNodeID(run.ID, ordinal)
	old.Status, old.CompletedAt = "superseded", d.at()
	d.put(old)
	d.put(RunAttempt{
		ID: attempt, RunID: run.ID, AttemptOrdinal: ordinal, RootNodeID: root,
		ProviderInstanceID: run.ProviderInstanceID, ProviderThreadID: old.ProviderThreadID,
		Reason: "steering_restart", Status: "pending",
	})
	d.put(ExecutionNode{
		ID: root, ThreadID: d.p.Thread.ID, RunID: Ref(run.ID), RootNodeID: root, Kind: "root_turn",
		Status: "pending", CountsForRun: true, CheckpointScopeID: before.CheckpointScopeID,
		ProviderThreadID: old.ProviderThreadID,
	})
	run.ActiveAttemptID, run.RootNodeID, run.Status = Ref(attempt), root, "starting"
	d.put(run)
	putSteer(d, c, run, root, "steer")
	d.effect(EffectRestartTurn, old.ID, effectPayload{RunID: run.ID, AttemptID: old.ID})
}

// endSuperseded is the end of the turn of a superseded attempt. It ends no
// run: it lets the attempt that took its place start.
func endSuperseded(d *draft, attempt RunAttempt, status string) {
	closeOpenWork(d, attempt.RootNodeID, "interrupted")
	if turn, ok := lookup(d.p, d.p.ProviderTurns, string(attempt.ProviderTurnID)); ok {
		turn.Status, turn.CompletedAt = status, d.at()
		d.put(turn)
	}
	if root, ok := lookup(d.p, d.p.Nodes, attempt.RootNodeID); ok {
		root.Status, root.CompletedAt = "interrupted", d.at()
		d.put(root)
	}
	run := d.run(attempt.RunID)
	next, _ := lookup(d.p, d.p.Attempts, string(run.ActiveAttemptID))
	if run.Status != "starting" || next.Status != "pending" || next.AttemptOrdinal != attempt.AttemptOrdinal+1 {
		return
	}
	for _, item := range slices.Backward(d.p.TurnItems) {
		if string(item.NodeID) == next.RootNodeID && item.Type == "user_message" {
			d.effect(EffectStartTurn, next.ID, effectPayload{RunID: run.ID, AttemptID: next.ID, MessageID: item.MessageID})
			return
		}
	}
}

// planPromote gives a queued message to the active run.
func planPromote(d *draft, c PromoteQueuedRun) error {
	queued, err := runIn(d, c.QueuedRunID, "queued")
	if err != nil {
		return err
	}
	run, attempt, err := steerable(d, DispatchMessage{TargetRunID: c.TargetRunID})
	if err != nil {
		return err
	}
	if !d.agents[run.ProviderInstanceID].capabilities.ActiveSteering {
		return reject(CodeNotSupported, "provider instance %q can't be steered", run.ProviderInstanceID)
	}
	endQueued(d, queued, "cancelled")
	message, _ := lookup(d.p, d.p.Messages, queued.UserMessageID)
	message.RunID, message.NodeID, message.UpdatedAt = Ref(run.ID), Ref(attempt.RootNodeID), d.now
	d.put(message)
	putUserItem(d, message.ID, run.ID, attempt.RootNodeID, "promoted_queued_to_steer")
	steer(d, run, message.ID)
	return nil
}
