package orch

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
)

// Ingestion turns one provider event into facts. It decides by ownership: the
// native turn names a provider turn, that one names an attempt, and only the
// active attempt of a live run moves the run.

// source is where a provider event came from.
type source struct {
	sessionID    string
	instance     string
	driver       string
	capabilities Capabilities
	log          *slog.Logger
}

// ingest puts what an event means for the draft's thread.
func ingest(d *draft, s source, event ProviderEvent) error {
	switch e := event.(type) {
	case TurnStarted:
		ingestTurnStarted(d, s, e)
		settleSession(d, s.sessionID)
	case TurnEnded:
		ingestTurnEnded(d, s, e)
		settleSession(d, s.sessionID)
	case ItemUpdated:
		ingestItem(d, s, e)
	case RequestOpened:
		ingestRequestOpened(d, s, e)
		settleSession(d, s.sessionID)
	case RequestClosed:
		ingestRequestClosed(d, s, e)
		settleSession(d, s.sessionID)
	case HeadChanged:
		ingestHead(d, s, e)
	case SubagentUpdated:
		return errors.New("subagent outside of ingestSubagent") // unreachable unless ingestEvent changed
	case SessionEnded:
		ingestSessionEnded(d, s, e)
	default:
		return fmt.Errorf("unknown provider event %T", event)
	}
	return nil
}

// owner is what a native turn belongs to. Run and attempt are zero for a turn
// outside of any run.
type owner struct {
	thread  ProviderThread
	turn    ProviderTurn
	attempt RunAttempt
	run     Run
}

// current reports whether the owner is the active attempt of a run that still
// waits for its provider.
func (o owner) current() bool {
	return o.attempt.ID != "" && string(o.run.ActiveAttemptID) == o.attempt.ID &&
		(o.run.Status == "starting" || o.run.Status == "running")
}

// findTurn returns the owner of a native turn that is known already.
func findTurn(p *Projection, s source, nativeTurn string) (owner, bool) {
	var o owner
	var ok bool
	if o.turn, ok = lookup(p, p.ProviderTurns, providerTurnID(s.driver, nativeTurn)); !ok {
		return o, false
	}
	o.thread, _ = lookup(p, p.ProviderThreads, o.turn.ProviderThreadID)
	o.attempt, _ = lookup(p, p.Attempts, string(o.turn.RunAttemptID))
	o.run, _ = lookup(p, p.Runs, o.attempt.RunID)
	return o, true
}

// threadOfNative returns the thread that a provider knows by a native id, which
// may be another one than it had at first.
func (p *Projection) threadOfNative(driver, native string) (ProviderThread, bool) {
	for _, t := range p.ProviderThreads {
		if t.NativeThreadRef != nil && t.NativeThreadRef.Driver == driver && t.NativeThreadRef.NativeID == native {
			return t, true
		}
	}
	return ProviderThread{}, false
}

// adoptTurn makes a native turn the turn of the run that waits for one on the
// provider thread. There is none when the provider started a turn on its own.
func adoptTurn(d *draft, s source, nativeThread, nativeTurn string) (owner, bool) {
	var o owner
	var ok bool
	if o.thread, ok = d.p.threadOfNative(s.driver, nativeThread); !ok {
		return o, false
	}
	if o.run, ok = d.p.activeRun(); !ok {
		return o, false
	}
	o.attempt, ok = lookup(d.p, d.p.Attempts, string(o.run.ActiveAttemptID))
	if !ok || !o.current() || o.attempt.ProviderTurnID != "" || string(o.attempt.ProviderThreadID) != o.thread.ID {
		return o, false
	}
	strength := "weak"
	if s.capabilities.NativeTurnIDs {
		strength = "strong"
	}
	ordinal := 1
	for _, turn := range d.p.ProviderTurns {
		if turn.ProviderThreadID == o.thread.ID {
			ordinal = turn.Ordinal + 1
		}
	}
	o.turn = ProviderTurn{
		ID: providerTurnID(s.driver, nativeTurn), ProviderThreadID: o.thread.ID, NodeID: o.attempt.RootNodeID,
		RunAttemptID: Ref(o.attempt.ID), NativeTurnRef: &NativeRef{s.driver, nativeTurn, strength},
		Ordinal: ordinal, Status: "running", StartedAt: d.at(),
	}
	o.attempt.ProviderTurnID, o.attempt.Status, o.attempt.StartedAt = Ref(o.turn.ID), "running", d.at()
	o.run.Status = "running"
	if o.run.StartedAt == nil {
		o.run.StartedAt = d.at()
	}
	root, _ := lookup(d.p, d.p.Nodes, o.attempt.RootNodeID)
	root.ProviderTurnID, root.Status, root.StartedAt = Ref(o.turn.ID), "running", d.at()
	if o.thread.FirstRunOrdinal == nil {
		o.thread.FirstRunOrdinal = &o.run.Ordinal
	}
	o.thread.LastRunOrdinal, o.thread.UpdatedAt = &o.run.Ordinal, d.now
	d.put(o.turn)
	d.put(o.thread)
	d.put(o.attempt)
	d.put(root)
	d.put(o.run)
	if d.p.interruptRequested(o.run) { // before there was a turn to interrupt
		d.effect(EffectInterruptTurn, o.attempt.ID, effectPayload{RunID: o.run.ID, AttemptID: o.attempt.ID})
	}
	return o, true
}

// turnOf finds the owner of a native turn that started earlier. Only its start
// makes a turn a run's: what a turn says that nobody saw start is not for the
// run that happens to wait.
func turnOf(d *draft, s source, nativeThread, nativeTurn string) (owner, bool) {
	o, ok := findTurn(d.p, s, nativeTurn)
	if !ok {
		s.log.Debug("provider event of a turn that no run owns", "driver", s.driver, "thread", nativeThread, "turn", nativeTurn)
	}
	return o, ok
}

func ingestTurnStarted(d *draft, s source, e TurnStarted) {
	if _, known := findTurn(d.p, s, e.NativeTurnID); known {
		return
	}
	if adoptChildTurn(d, s, e.NativeThreadID, e.NativeTurnID) {
		return
	}
	if _, ok := adoptTurn(d, s, e.NativeThreadID, e.NativeTurnID); !ok {
		s.log.Debug("provider turn that no run asked for", "driver", s.driver, "thread", e.NativeThreadID, "turn", e.NativeTurnID)
	}
}

// ingestTurnEnded ends a provider turn, and its run if the turn is the root
// turn of the run's active attempt. Nothing else ends a run that a provider
// works on, except the end of the provider itself.
func ingestTurnEnded(d *draft, s source, e TurnEnded) {
	o, ok := turnOf(d, s, e.NativeThreadID, e.NativeTurnID)
	if !ok || isTerminal(KindProviderTurn, o.turn.Status) {
		return
	}
	status := e.Status
	if !isTerminal(KindProviderTurn, status) {
		s.log.Warn("provider turn ended with an unknown status", "driver", s.driver, "status", status)
		status = "failed"
	}
	if o.current() {
		endAttempt(d, o.run, status, e.Error)
		return
	}
	if o.attempt.Status == "superseded" {
		endSuperseded(d, o.attempt, status)
		return
	}
	if o.attempt.ID == "" {
		endTurnAlone(d, o.turn, status)
		return
	}
	o.turn.Status, o.turn.CompletedAt = status, d.at()
	d.put(o.turn)
}

// endAttempt ends the active attempt of a run, with its turn and everything
// that is open below. The run and its root node then wait for the checkpoint;
// where no baseline was taken there is nothing to wait for.
func endAttempt(d *draft, run Run, status, reason string) {
	attempt, _ := lookup(d.p, d.p.Attempts, string(run.ActiveAttemptID))
	if reason != "" {
		putSignal(d, run, "error", TurnItem{
			Type: "error", Status: "failed", NodeID: Ref(attempt.RootNodeID), Title: "error", Text: reason,
			ProviderThreadID: attempt.ProviderThreadID, ProviderTurnID: attempt.ProviderTurnID,
		})
	}
	closeOpenWork(d, attempt.RootNodeID, status)
	if turn, ok := lookup(d.p, d.p.ProviderTurns, string(attempt.ProviderTurnID)); ok {
		turn.Status, turn.CompletedAt = status, d.at()
		d.put(turn)
	}
	attempt.Status, attempt.CompletedAt = status, d.at()
	d.put(attempt)
	putInterruptResult(d, run, attempt, status)
	if thread, ok := lookup(d.p, d.p.ProviderThreads, string(attempt.ProviderThreadID)); ok && thread.Status == "active" {
		thread.Status, thread.UpdatedAt = "idle", d.now
		d.put(thread)
	}
	scope := scopeID(d.p.Thread.ID, rootScopeName(run.Ordinal))
	if _, ok := lookup(d.p, d.p.Checkpoints, checkpointID(scope, 0)); !ok {
		finishRun(d, run, status)
		return
	}
	if root, ok := lookup(d.p, d.p.Nodes, attempt.RootNodeID); ok {
		root.Status, root.CompletedAt = "waiting", d.at()
		d.put(root)
	}
	run.Status = "waiting"
	d.put(run)
	checkpoint := checkpointID(scope, 1)
	d.effect(EffectCapture, checkpoint, effectPayload{
		RunID: run.ID, AttemptID: attempt.ID, ScopeID: scope, CheckpointID: checkpoint,
	})
}

// closeOpenWork ends what is still open below a root node. Work that was
// open when its turn completed has failed to tell its end. Subagents may
// outlive the turn, unless it did not complete.
func closeOpenWork(d *draft, root, status string) {
	completed := status == "completed" // then what is open has not told its end
	if completed {
		status = "failed"
	}
	for _, node := range slices.Clone(d.p.Nodes) {
		if node.RootNodeID != root || node.ID == root || isTerminal(KindNode, node.Status) {
			continue
		}
		if node.Kind == "subagent" && completed {
			continue
		}
		if request, ok := lookup(d.p, d.p.RuntimeRequests, string(node.RuntimeRequestID)); ok && request.Status == "pending" {
			closeRequest(d, request, "cancelled", "turn_ended")
			continue
		}
		node.Status, node.CompletedAt = status, d.at()
		d.put(node)
		if child, ok := lookup(d.p, d.p.Subagents, node.ID); ok {
			child.Status, child.CompletedAt = status, d.at()
			d.put(child)
		}
		for _, item := range slices.Clone(d.p.TurnItems) {
			if string(item.NodeID) == node.ID && !isTerminal(KindTurnItem, item.Status) {
				item.Status, item.CompletedAt = status, d.at()
				d.put(item)
			}
		}
	}
}

// putSignal adds an item of the orchestrator's own to a run.
func putSignal(d *draft, run Run, signal string, item TurnItem) {
	item.ID, item.ThreadID, item.RunID = signalItemID(run.ID, signal), d.p.Thread.ID, Ref(run.ID)
	item.Ordinal = d.p.nextItemOrdinal(run.ID)
	item.StartedAt, item.CompletedAt = d.at(), d.at()
	d.put(item)
}

func ingestHead(d *draft, s source, e HeadChanged) {
	var head *NativeRef
	if e.Head != "" {
		head = &NativeRef{s.driver, e.Head, "strong"}
	}
	if e.NativeTurnID != "" {
		if o, ok := turnOf(d, s, e.NativeThreadID, e.NativeTurnID); ok {
			o.turn.NativeHeadRef = head
			d.put(o.turn)
		}
		return
	}
	thread, ok := d.p.threadOfNative(s.driver, e.NativeThreadID)
	if !ok {
		return
	}
	thread.NativeConversationHeadRef = head
	thread.UpdatedAt = d.now
	d.put(thread)
}

// ingestSessionEnded stops the session, unloads its threads, and fails the
// run that the provider left behind.
func ingestSessionEnded(d *draft, s source, e SessionEnded) {
	session, ok := lookup(d.p, d.p.ProviderSessions, s.sessionID)
	if !ok || session.Status == "stopped" || session.Status == "error" {
		return
	}
	reason := "provider session was closed"
	if e.Err != nil {
		reason = "provider process ended: " + e.Err.Error()
	}
	stopSession(d, session, "failed", reason, e.Err != nil)
}

// stopSession is the end of a session by whatever cause: a live run that used
// it ends with the status, its threads are unloaded, its requests expire.
func stopSession(d *draft, session ProviderSession, runStatus, reason string, broken bool) {
	for _, request := range slices.Clone(d.p.RuntimeRequests) {
		if request.Status == "pending" && request.ResponseCapability.ProviderSessionID == session.ID {
			closeRequest(d, request, "expired", "session_ended")
		}
	}
	if run, ok := d.p.activeRun(); ok && (run.Status == "starting" || run.Status == "running") {
		attempt, _ := lookup(d.p, d.p.Attempts, string(run.ActiveAttemptID))
		thread, _ := lookup(d.p, d.p.ProviderThreads, string(attempt.ProviderThreadID))
		if string(thread.ProviderSessionID) == session.ID {
			endAttempt(d, run, runStatus, reason)
		}
	}
	for _, child := range slices.Clone(d.p.Subagents) { // that outlived their turn
		node, _ := lookup(d.p, d.p.Nodes, child.ID)
		thread, _ := lookup(d.p, d.p.ProviderThreads, string(node.ProviderThreadID))
		if string(thread.ProviderSessionID) == session.ID && !isTerminal(KindSubagent, child.Status) {
			closeOpenWork(d, node.RootNodeID, "failed")
		}
	}
	for _, turn := range slices.Clone(d.p.ProviderTurns) { // of children, and superseded ones
		thread, _ := lookup(d.p, d.p.ProviderThreads, turn.ProviderThreadID)
		if string(thread.ProviderSessionID) == session.ID && !isTerminal(KindProviderTurn, turn.Status) {
			endTurnAlone(d, turn, runStatus)
		}
	}
	for _, thread := range slices.Clone(d.p.ProviderThreads) {
		if string(thread.ProviderSessionID) == session.ID && thread.Status != "not_loaded" && thread.Status != "closed" {
			thread.Status, thread.UpdatedAt = "not_loaded", d.now
			d.put(thread)
		}
	}
	session.Status, session.UpdatedAt = "stopped", d.now
	if broken {
		session.Status, session.LastError = "error", Ref(reason)
	}
	d.put(session)
}

// validDetail drops details that are not JSON, which could not be stored.
func validDetail(raw json.RawMessage) json.RawMessage {
	if !json.Valid(raw) {
		return nil
	}
	return raw
}
