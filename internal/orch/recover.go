package orch

import (
	"context"
	"slices"
)

// recover settles what the process before left open. Nothing of it can go on:
// its providers are gone. Effects bound to them are cancelled, sessions are
// stopped, requests expire, and runs are cancelled, except those that only
// wait for a checkpoint, which the requeued capture completes.
func (o *Orchestrator) recover(ctx context.Context) error {
	if err := o.store.RecoverEffects(ctx, replaySafe, o.now()); err != nil {
		return err
	}
	threads, err := o.store.Unsettled(ctx)
	if err != nil {
		return err
	}
	for _, thread := range threads {
		captures, err := o.store.UnsettledEffects(ctx, thread, EffectCapture)
		if err != nil {
			return err
		}
		// Not a fact, which would wait for the store to work: who starts the
		// orchestrator is told at once.
		_, err = o.commit(ctx, about{threadID: thread}, func(d *draft) error {
			recoverThread(d, len(captures) > 0)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// recoverThread settles one thread. capturing tells that a capture is queued.
func recoverThread(d *draft, capturing bool) {
	const reason = "the orchestrator was restarted"
	for _, request := range slices.Clone(d.p.RuntimeRequests) {
		if request.Status == "pending" {
			closeRequest(d, request, "expired", "orchestrator_restarted")
		}
	}
	for _, run := range slices.Backward(slices.Clone(d.p.Runs)) { // queued ones first, or they would start
		if !slices.Contains(liveRun, run.Status) || run.Status == "waiting" && capturing {
			continue
		}
		cancelRun(d, run, reason)
	}
	for _, session := range slices.Clone(d.p.ProviderSessions) {
		if session.Status != "stopped" && session.Status != "error" {
			stopSession(d, session, "cancelled", reason, releaseShutdown)
		}
	}
}

// cancelRun ends a run without its provider and without a checkpoint.
func cancelRun(d *draft, run Run, reason string) {
	attempt, ok := lookup(d.p, d.p.Attempts, string(run.ActiveAttemptID))
	if ok && !isTerminal(KindAttempt, attempt.Status) {
		putSignal(d, run, "error", TurnItem{
			Type: "error", Status: "cancelled", NodeID: Ref(attempt.RootNodeID), Title: "error", Text: reason,
			ProviderThreadID: attempt.ProviderThreadID, ProviderTurnID: attempt.ProviderTurnID,
		})
		closeOpenWork(d, attempt.RootNodeID, "cancelled")
		if turn, ok := lookup(d.p, d.p.ProviderTurns, string(attempt.ProviderTurnID)); ok {
			turn.Status, turn.CompletedAt = "cancelled", d.at()
			d.put(turn)
		}
		attempt.Status, attempt.CompletedAt = "cancelled", d.at()
		d.put(attempt)
	}
	finishRun(d, run, "cancelled")
}
