package orch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// interruptGrace is how long a provider may take to end a turn that it was
// asked to end. Then the turn is over without it.
const interruptGrace = 10 * time.Second

// liveTurn is a turn of a provider that runs, with what is needed to reach it.
type liveTurn struct {
	session      *session
	thread, turn string // native ids
	text         string // of the message, if one was asked for
	options      ThreadOptions
}

// liveTurn finds the turn of an attempt; ErrTurnNotActive when there is none.
func (o *Orchestrator) liveTurn(ctx context.Context, threadID string, args effectPayload) (liveTurn, error) {
	var t liveTurn
	session := ""
	err := o.read(ctx, threadID, func(p *Projection) error {
		attempt, _ := lookup(p, p.Attempts, args.AttemptID)
		turn, ok := lookup(p, p.ProviderTurns, string(attempt.ProviderTurnID))
		if !ok || turn.Status != "running" {
			return ErrTurnNotActive
		}
		thread, _ := lookup(p, p.ProviderThreads, turn.ProviderThreadID)
		run, _ := lookup(p, p.Runs, args.RunID)
		message, _ := lookup(p, p.Messages, args.MessageID)
		session = string(thread.ProviderSessionID)
		t.thread, t.turn, t.text = thread.NativeThreadRef.NativeID, turn.NativeTurnRef.NativeID, message.Text
		t.options = threadOptions(p.Thread, run)
		return nil
	})
	if err != nil {
		return t, err
	}
	if t.session = o.sessions.get(session); t.session == nil {
		return t, ErrTurnNotActive
	}
	return t, nil
}

// interruptTurn asks the provider to end the turn of an attempt, and sees to
// it that the run does not wait for the answer for ever. A turn that has not
// started yet is interrupted when it does. It writes nothing.
func (o *Orchestrator) interruptTurn(ctx context.Context, threadID string, args effectPayload) error {
	o.afterGrace(threadID, func(d *draft) {
		if run, ok := d.p.current(args, []string{"starting", "running"}); ok {
			o.log.Warn("provider did not end an interrupted turn", "run", run.ID)
			endAttempt(d, run, "interrupted", "")
			o.turns.abandon(args.AttemptID)
		}
	})
	return o.askToStop(ctx, threadID, args)
}

// restartTurn asks the provider to end the turn of a superseded attempt. The
// next attempt starts at the turn's end, which is forced like an interrupt's.
func (o *Orchestrator) restartTurn(ctx context.Context, threadID string, args effectPayload) error {
	o.afterGrace(threadID, func(d *draft) {
		attempt, _ := lookup(d.p, d.p.Attempts, args.AttemptID)
		turn, ok := lookup(d.p, d.p.ProviderTurns, string(attempt.ProviderTurnID))
		if ok && !isTerminal(KindProviderTurn, turn.Status) {
			o.log.Warn("provider did not end a superseded turn", "run", args.RunID)
			endSuperseded(d, attempt, "interrupted")
		}
	})
	return o.askToStop(ctx, threadID, args)
}

func (o *Orchestrator) askToStop(ctx context.Context, threadID string, args effectPayload) error {
	t, err := o.liveTurn(ctx, threadID, args)
	if err == nil {
		ctx, cancel := o.timeout(ctx, interruptGrace)
		defer cancel()
		err = t.session.agent.Interrupt(ctx, t.thread, t.turn)
	}
	if errors.Is(err, ErrTurnNotActive) {
		return nil
	}
	return err
}

// afterGrace commits facts when the grace of an interrupt is over.
func (o *Orchestrator) afterGrace(threadID string, write func(*draft)) {
	grace := o.clock.After(interruptGrace)
	o.wg.Go(func() {
		select {
		case <-grace:
		case <-o.ctx.Done():
			return
		}
		err := o.fact(o.ctx, threadID, func(d *draft) error {
			write(d)
			for _, session := range slices.Clone(d.p.ProviderSessions) {
				settleSession(d, session.ID)
			}
			return nil
		})
		if err != nil && o.ctx.Err() == nil {
			o.log.Error("end an interrupted turn", "thread", threadID, "error", err)
		}
	})
}

// steerTurn gives the active turn a message. What can't be delivered is told
// in the run.
func (o *Orchestrator) steerTurn(ctx context.Context, threadID string, args effectPayload) error {
	t, err := o.liveTurn(ctx, threadID, args)
	if err == nil {
		err = t.session.agent.Steer(ctx, t.thread, t.turn, TurnInput{
			NativeThreadID: t.thread, AttemptID: args.AttemptID, MessageID: args.MessageID,
			Text: t.text, Options: t.options,
		})
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	return errors.Join(err, o.fact(ctx, threadID, func(d *draft) error {
		run := d.run(args.RunID)
		putSignal(d, run, "steer-error:"+args.MessageID, TurnItem{
			Type: "error", Status: "failed", NodeID: Ref(d.activeRoot(run)), Title: "error",
			ParentItemID: Ref(userItemID(args.MessageID)),
			Text:         fmt.Sprintf("the message did not reach the provider: %v", err),
		})
		return nil
	}))
}

// respond delivers the user's answer to a question of the provider.
func (o *Orchestrator) respond(ctx context.Context, threadID string, args effectPayload) error {
	native := ""
	err := o.read(ctx, threadID, func(p *Projection) error {
		request, _ := lookup(p, p.RuntimeRequests, args.RequestID)
		if request.NativeRequestRef == nil {
			return errNotCurrent
		}
		native = request.NativeRequestRef.NativeID
		return nil
	})
	if err != nil {
		return err
	}
	ss := o.sessions.get(args.SessionID)
	if ss == nil {
		return errNotCurrent // its end is being told
	}
	err = ss.agent.Respond(ctx, native, Decision{Kind: args.Decision, Answers: args.Answers})
	if err == nil || ctx.Err() != nil {
		return err
	}
	return errors.Join(err, o.fact(ctx, threadID, func(d *draft) error {
		request, _ := lookup(d.p, d.p.RuntimeRequests, args.RequestID)
		node, _ := lookup(d.p, d.p.Nodes, request.NodeID)
		d.put(TurnItem{
			ID: makeID("turn-item", "respond-error", request.ID), ThreadID: d.p.Thread.ID, RunID: node.RunID,
			NodeID: Ref(request.NodeID), Ordinal: d.p.nextItemOrdinal(string(node.RunID)), Type: "error",
			Status: "failed", Title: "error", Text: fmt.Sprintf("the answer did not reach the provider: %v", err),
			StartedAt: d.at(), CompletedAt: d.at(),
		})
		return nil
	}))
}

// threadOptions are the settings of a thread for a run.
func threadOptions(thread AppThread, run Run) ThreadOptions {
	return ThreadOptions{
		Cwd: string(thread.WorktreePath), Model: run.ModelSelection.Model, Options: run.ModelSelection.Options,
		RuntimeMode: thread.RuntimeMode, InteractionMode: thread.InteractionMode, AttemptID: string(run.ActiveAttemptID),
	}
}
