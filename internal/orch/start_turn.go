package orch

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// startTurn brings an attempt to its provider: baseline checkpoint, session,
// provider thread, then the turn. Each step writes its facts only while the
// run still waits for its start. A step that fails ends the run, which then
// says why; the effect itself is not tried again.
func (o *Orchestrator) startTurn(ctx context.Context, effect Effect, args effectPayload) error {
	threadID := effect.ThreadID
	run, err := o.currentRun(ctx, threadID, args, "starting")
	if err != nil {
		return err
	}
	ctx, end := o.turns.begin(ctx, effect.ID, args.AttemptID)
	defer end()
	if err := o.baseline(ctx, threadID, args); err != nil {
		return err
	}
	err = o.giveTurn(ctx, effect, run, args)
	if err == nil || errors.Is(err, errNotCurrent) || ctx.Err() != nil {
		return err
	}
	failed := o.guarded(ctx, threadID, args, []string{"starting", "running"}, func(d *draft, run Run) error {
		endAttempt(d, run, "failed", err.Error())
		return nil
	})
	return errors.Join(err, failed)
}

// giveTurn opens the session and thread and starts the turn.
func (o *Orchestrator) giveTurn(ctx context.Context, effect Effect, run Run, args effectPayload) error {
	threadID := effect.ThreadID
	var options ThreadOptions
	var known ProviderThread
	var text string
	var transfers []ContextTransfer
	err := o.read(ctx, threadID, func(p *Projection) error {
		options, known = threadOptions(p.Thread, run), p.providerThreadOf(run.ProviderInstanceID)
		message, ok := lookup(p, p.Messages, or(args.MessageID, run.UserMessageID))
		if !ok {
			return fmt.Errorf("run %s has no user message", run.ID)
		}
		text, transfers = message.Text, slices.Clone(p.ContextTransfers)
		return nil
	})
	if err != nil {
		return err
	}
	merges, err := o.merges(ctx, transfers)
	if err != nil {
		return err
	}
	ss, err := o.openSession(ctx, threadID, run.ProviderInstanceID, SessionConfig{
		Cwd: options.Cwd, Model: options.Model, RuntimeMode: options.RuntimeMode,
		InteractionMode: options.InteractionMode,
	})
	if err != nil {
		return err
	}
	opened, err := o.openThread(ctx, ss, run, known, transfers, options)
	if err != nil {
		return err
	}
	native := opened.native
	ss.own(native.ID, threadID)
	interrupted := false
	err = o.guarded(ctx, threadID, args, []string{"starting"}, func(d *draft, run Run) error {
		if interrupted = d.p.interruptRequested(run); interrupted {
			endAttempt(d, run, "interrupted", "")
			return nil
		}
		handoffs := putThreadOpened(d, ss.source, run, known, opened, merges)
		text = withHandoffs(handoffs, text)
		return nil
	})
	if err != nil || interrupted {
		return err
	}
	o.turns.give(effect.ID)
	o.changed.broadcast()
	err = ss.agent.StartTurn(ctx, TurnInput{
		NativeThreadID: native.ID, AttemptID: args.AttemptID, MessageID: or(args.MessageID, run.UserMessageID),
		Text: text, Options: options,
	})
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrSessionEnded) {
		// What the provider said before it died comes before its death.
		if err := errors.Join(ss.awaitEnd(ctx), o.drain(ctx, ss, true)); err != nil {
			return err
		}
	}
	return fmt.Errorf("start turn: %w", err)
}

// openedThread is the provider's thread that a run goes to.
type openedThread struct {
	native NativeThread
	fresh  bool       // it is new
	forked bool       // it is a copy of another one, with its history
	source forkSource // of a copy
}

// openThread returns the provider's thread for an app thread: the one that is
// loaded, else the resumed one, else a copy of the one that the app thread was
// forked from, else a new one.
func (o *Orchestrator) openThread(ctx context.Context, ss *session, run Run, known ProviderThread, transfers []ContextTransfer, options ThreadOptions) (openedThread, error) {
	if ref := known.NativeThreadRef; ref != nil {
		if ss.owns(ref.NativeID) {
			return openedThread{native: NativeThread{ID: ref.NativeID}}, nil
		}
		if ss.source.capabilities.Resume {
			native, err := ss.agent.ResumeThread(ctx, ref.NativeID, known.resumeAt(options))
			if err == nil {
				return openedThread{native: native}, nil
			}
			if !errors.Is(err, ErrResume) {
				return openedThread{}, fmt.Errorf("resume thread: %w", err)
			}
			o.log.Warn("provider refused to resume a thread", "thread", ref.NativeID, "error", err)
		}
	}
	for _, fork := range transfers {
		if fork.Type != "fork" {
			continue
		}
		native, source, ok, err := o.forkNatively(ctx, ss, run, fork, options)
		if ok {
			return openedThread{native: native, fresh: true, forked: true, source: source}, nil
		}
		if errors.Is(err, ErrSessionEnded) || ctx.Err() != nil {
			return openedThread{}, err
		}
		if err != nil {
			o.log.Warn("provider refused to fork a thread", "thread", fork.SourceThreadID, "error", err)
		}
	}
	native, err := ss.agent.StartThread(ctx, options)
	if err != nil {
		return openedThread{}, fmt.Errorf("start thread: %w", err)
	}
	return openedThread{native: native, fresh: true}, nil
}

// resumeAt adds the head that a thread is resumed at.
func (t ProviderThread) resumeAt(options ThreadOptions) ThreadOptions {
	if t.NativeConversationHeadRef != nil {
		options.Head = t.NativeConversationHeadRef.NativeID
	}
	return options
}

// putThreadOpened stores the provider thread that a run goes to, and what it
// must be told of the conversation. A thread that the provider lost is closed.
func putThreadOpened(d *draft, s source, run Run, known ProviderThread, opened openedThread, merges map[string]mergeSource) []ContextHandoff {
	native := opened.native
	thread, ok := d.p.threadOfNative(s.driver, native.ID)
	if !ok {
		thread = ProviderThread{
			ID: providerThreadID(s.driver, native.ID), Driver: s.driver, ProviderInstanceID: s.instance, AppThreadID: d.p.Thread.ID,
			NativeThreadRef: &NativeRef{s.driver, native.ID, "strong"}, HandoffIDs: []string{}, CreatedAt: d.now,
		}
	}
	id := thread.ID
	if opened.fresh && known.ID != "" && known.ID != id {
		known.Status, known.UpdatedAt = "closed", d.now
		d.put(known)
	}
	if opened.forked {
		putForked(d, run, opened.source)
		thread.ForkedFrom = &ProviderForkSource{ProviderThreadID: opened.source.thread.ID, ProviderTurnID: Ref(opened.source.turn.ID)}
	}
	thread.ProviderSessionID, thread.Status, thread.UpdatedAt = Ref(s.sessionID), "active", d.now
	if native.Head != "" {
		thread.NativeConversationHeadRef = &NativeRef{s.driver, native.Head, "strong"}
	}
	var handoffs []ContextHandoff
	for _, spec := range neededHandoffs(d.p, run, known, opened.fresh, opened.forked, merges) {
		var handoff ContextHandoff
		run, thread, handoff = putHandoff(d, run, thread, spec)
		handoffs = append(handoffs, handoff)
	}
	d.put(thread)
	attempt, _ := lookup(d.p, d.p.Attempts, string(run.ActiveAttemptID))
	attempt.ProviderThreadID = Ref(id)
	d.put(attempt)
	root, _ := lookup(d.p, d.p.Nodes, attempt.RootNodeID)
	root.ProviderThreadID = Ref(id)
	d.put(root)
	run.ProviderThreadID = Ref(id)
	d.put(run)
	return handoffs
}

// putForked says that a provider copied the history of a fork.
func putForked(d *draft, run Run, source forkSource) {
	fork, ok := d.p.forkTransfer()
	if !ok {
		return
	}
	fork.TargetInstanceID, fork.TargetRunID = Ref(run.ProviderInstanceID), Ref(run.ID)
	fork.Resolution = &TransferResolution{Strategy: "native_fork"}
	fork.Status = "resolved_native"
	d.put(fork)
	fork.Status, fork.ConsumedAt = "consumed", d.at()
	d.put(fork)
}

// providerThreadOf is the provider thread that an instance continues: the last
// one of the app thread's own that is not closed. Zero when there is none.
func (p *Projection) providerThreadOf(instance string) ProviderThread {
	for _, thread := range slices.Backward(p.ProviderThreads) {
		if thread.ProviderInstanceID == instance && thread.OwnerNodeID == "" && thread.Status != "closed" {
			return thread
		}
	}
	return ProviderThread{}
}

// currentRun returns the run of an effect, or errNotCurrent.
func (o *Orchestrator) currentRun(ctx context.Context, threadID string, args effectPayload, statuses ...string) (Run, error) {
	var run Run
	err := o.read(ctx, threadID, func(p *Projection) error {
		var ok bool
		if run, ok = p.current(args, statuses); !ok {
			return errNotCurrent
		}
		return nil
	})
	return run, err
}

// guarded commits facts of an effect, if its run is still current.
func (o *Orchestrator) guarded(ctx context.Context, threadID string, args effectPayload, statuses []string, write func(*draft, Run) error) error {
	return o.fact(ctx, threadID, func(d *draft) error {
		run, ok := d.p.current(args, statuses)
		if !ok {
			return errNotCurrent
		}
		return write(d, run)
	})
}

// current returns the run of an effect if it has one of the statuses and its
// attempt is the active one.
func (p *Projection) current(args effectPayload, statuses []string) (Run, bool) {
	run, ok := lookup(p, p.Runs, args.RunID)
	return run, ok && string(run.ActiveAttemptID) == args.AttemptID && slices.Contains(statuses, run.Status)
}

// run is a run as the draft has it now.
func (d *draft) run(id string) Run {
	run, _ := lookup(d.p, d.p.Runs, id)
	return run
}
