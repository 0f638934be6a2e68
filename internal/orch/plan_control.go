package orch

import "slices"

// interruptRequest names the item that says that a run is to stop.
const interruptRequest = "interrupt-request"

// planInterrupt asks for the end of a run's turn, and says so. It does not end
// the run: the provider does, or the time that it is given.
func planInterrupt(d *draft, c InterruptRun) error {
	if err := needThread(d); err != nil {
		return err
	}
	run, ok := lookup(d.p, d.p.Runs, c.RunID)
	switch {
	case !ok:
		return reject(CodeUnknownRun, "unknown run %q", c.RunID)
	case run.Status == "preparing":
		endQueued(d, run, "interrupted")
		return nil
	case run.Status != "starting" && run.Status != "running":
		return reject(CodeRunNotActive, "run %s is %s", run.ID, run.Status)
	case d.p.interruptRequested(run):
		return reject(CodeNothingToDo, "run %s is being interrupted", run.ID)
	case !d.agents[run.ProviderInstanceID].capabilities.Interrupt:
		return reject(CodeNotSupported, "provider instance %q can't be interrupted", run.ProviderInstanceID)
	}
	putSignal(d, run, interruptRequest, TurnItem{
		Type: "run_interrupt_request", Status: "completed", NodeID: Ref(d.activeRoot(run)),
		Title: "Interrupt requested", Text: c.Reason, ProviderThreadID: run.ProviderThreadID,
	})
	d.effect(EffectInterruptTurn, string(run.ActiveAttemptID), effectPayload{
		RunID: run.ID, AttemptID: string(run.ActiveAttemptID),
	})
	return nil
}

// interruptRequested reports whether a run was asked to stop.
func (p *Projection) interruptRequested(run Run) bool {
	_, ok := lookup(p, p.TurnItems, signalItemID(run.ID, interruptRequest))
	return ok
}

// putInterruptResult says what came of an interrupt.
func putInterruptResult(d *draft, run Run, attempt RunAttempt, status string) {
	if !d.p.interruptRequested(run) {
		return
	}
	putSignal(d, run, "interrupt-result", TurnItem{
		Type: "run_interrupt_result", Status: status, NodeID: Ref(attempt.RootNodeID), Title: "Interrupted",
		ParentItemID:     Ref(signalItemID(run.ID, interruptRequest)),
		ProviderThreadID: attempt.ProviderThreadID, ProviderTurnID: attempt.ProviderTurnID,
	})
}

var (
	decisions = []string{"accept", "acceptForSession", "decline", "cancel"}
	refusals  = []string{"decline", "cancel"}
)

// planRespond answers a question of the provider.
func planRespond(d *draft, c RespondToRequest) error {
	if err := needThread(d); err != nil {
		return err
	}
	request, ok := lookup(d.p, d.p.RuntimeRequests, c.RequestID)
	if instance := d.p.Thread.ProviderInstanceID; c.Answers != nil && request.Kind != "user_input" && !d.agents[instance].capabilities.Questions {
		return reject(CodeNotSupported, "provider instance %q asks nothing that is answered with more than a decision", instance)
	}
	switch {
	case !ok:
		return reject(CodeUnknownRequest, "unknown request %q", c.RequestID)
	case request.Status != "pending" || request.ResponseCapability.Type != "live":
		return reject(CodeRequestClosed, "request %s is %s and can't be answered: %s", request.ID, request.Status,
			or(request.ResponseCapability.Reason, "it was answered"))
	case c.Decision != "" && !slices.Contains(decisions, c.Decision):
		return reject(CodeInvalid, "unknown decision %q", c.Decision)
	case c.Decision != "" && c.Answers != nil:
		return reject(CodeInvalid, "a decision and answers: want one of them")
	case request.Kind == "user_input" && c.Answers == nil && c.Decision == "":
		return reject(CodeInvalid, "request %s wants answers", request.ID)
	case request.Kind != "user_input" && c.Decision == "":
		return reject(CodeInvalid, "request %s wants a decision", request.ID)
	}
	session := request.ResponseCapability.ProviderSessionID
	status := "completed"
	if slices.Contains(refusals, c.Decision) {
		status = "cancelled"
	}
	request.Status, request.ResolvedAt, request.Decision = "resolved", d.at(), Ref(or(c.Decision, "answered"))
	d.put(request)
	if node, ok := lookup(d.p, d.p.Nodes, request.NodeID); ok {
		node.Status, node.CompletedAt = status, d.at()
		d.put(node)
	}
	if item, ok := lookup(d.p, d.p.TurnItems, requestItemID(request.ID)); ok {
		item.Status, item.CompletedAt, item.Answers = status, d.at(), c.Answers
		d.put(item)
	}
	settleSession(d, session)
	d.effect(EffectRespond, request.ID, effectPayload{
		RequestID: request.ID, SessionID: session, Decision: c.Decision, Answers: c.Answers,
	})
	return nil
}
