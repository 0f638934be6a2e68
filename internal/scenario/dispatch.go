package scenario

import (
	"context"
	"errors"
	"fmt"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// dispatched is a command with the sequence it got.
type dispatched struct {
	id       string
	command  orch.Command
	sequence int64
}

// modes gives a message's mode its name in commands.
var modes = map[string]string{
	"": orch.ModeStart, "start": orch.ModeStart, "queue": orch.ModeQueue, "steer": orch.ModeSteer, "restart": orch.ModeRestart,
}

func (r *runner) createThread(ctx context.Context, c *CreateThread) error {
	r.selected = r.selection("")
	receipt, err := r.dispatch(ctx, "command:create-thread", "", orch.CreateThread{
		CommandID:       "command:create-thread",
		ProjectID:       "project:scenario",
		Title:           orElse(c.Title, r.sc.Name),
		ModelSelection:  r.selected,
		RuntimeMode:     orElse(r.settings.RuntimeMode, "full-access"),
		InteractionMode: r.settings.Mode,
		WorktreePath:    r.workspace,
		CreatedBy:       "user",
		CreationSource:  "server",
	})
	r.thread = receipt.ThreadID
	return err
}

// selection is what answers on an instance; "" is the main one.
func (r *runner) selection(name string) orch.ModelSelection {
	name = orElse(name, r.provider)
	for _, in := range r.instances {
		if in.name == name {
			return orch.ModelSelection{InstanceID: name, Model: in.model}
		}
	}
	return orch.ModelSelection{InstanceID: name}
}

func (r *runner) message(ctx context.Context, m *Message) error {
	thread, err := r.threadNamed(m.Thread)
	if err != nil {
		return err
	}
	id := r.newCommand("message")
	command := orch.DispatchMessage{CommandID: id, ThreadID: thread, Text: m.Text, Mode: modes[m.Mode], CreatedBy: "user", CreationSource: "server"}
	if m.Provider != "" {
		selection := r.selection(m.Provider)
		command.ModelSelection = &selection
	}
	if m.Mode == "steer" || m.Mode == "restart" {
		target, err := r.targetRun(thread, m.TargetRun)
		if err != nil {
			return in(Adapter, err)
		}
		command.TargetRunID = target
	}
	receipt, err := r.dispatch(ctx, id, m.Refused, command)
	if err != nil || m.Refused != "" {
		return err
	}
	if command.ModelSelection != nil && m.Thread == "" {
		r.selected = *command.ModelSelection
	}
	if m.Await == "" {
		return r.seen(ctx, receipt)
	}
	ordinal, err := r.runOf(ctx, m.Timeout, receipt)
	if err != nil {
		return err
	}
	return r.awaitRun(ctx, m.Timeout, m.Thread, ordinal, m.Await)
}

// seen waits until the feed has what a command stored, for the next step.
func (r *runner) seen(ctx context.Context, receipt orch.Receipt) error {
	ctx, cancel := r.deadline(ctx, 0)
	defer cancel()
	return in(Persistence, r.feed.reached(ctx, receipt.Sequence))
}

// targetRun returns the id of a thread's run with an ordinal, of the last for
// 0.
func (r *runner) targetRun(thread string, ordinal int) (string, error) {
	r.feed.mu.Lock()
	defer r.feed.mu.Unlock()
	if ordinal == 0 {
		for _, run := range r.feed.runs {
			if run.ThreadID == thread {
				ordinal = max(ordinal, run.Ordinal)
			}
		}
	}
	run := r.feed.run(thread, ordinal)
	switch {
	case ordinal == 0:
		return "", errors.New("there is no run to act on")
	case run == nil:
		return "", fmt.Errorf("there is no run %d to act on", ordinal)
	}
	return run.ID, nil
}

// runOf returns the ordinal of the run that a message went to.
func (r *runner) runOf(ctx context.Context, timeout Duration, receipt orch.Receipt) (ordinal int, err error) {
	ctx, cancel := r.deadline(ctx, timeout)
	defer cancel()
	if err := r.feed.reached(ctx, receipt.Sequence); err != nil {
		return 0, in(Persistence, err)
	}
	for _, e := range r.feed.all() {
		if e.CommandID != receipt.CommandID || e.Event.Type != orch.EventMessageUpdated {
			continue
		}
		p, err := alone(e)
		if err != nil {
			return 0, in(Persistence, err)
		}
		r.feed.mu.Lock()
		for _, m := range p.Messages {
			if run := r.feed.runs[string(m.RunID)]; run != nil {
				ordinal = run.Ordinal
			}
		}
		r.feed.mu.Unlock()
	}
	if ordinal == 0 {
		return 0, inf(Persistence, "no event of %s says which run the message went to", receipt.CommandID)
	}
	return ordinal, nil
}

// dispatch carries out a command, twice when that is probed. With refused, it
// must be rejected with that code.
func (r *runner) dispatch(ctx context.Context, id, refused string, c orch.Command) (orch.Receipt, error) {
	ctx, cancel := r.deadline(ctx, 0)
	defer cancel()
	receipt, err := r.orc.Dispatch(ctx, c)
	var rejected *orch.RejectedError
	if refused != "" && (err == nil || errors.As(err, &rejected)) {
		r.refusals++
		if rejected == nil || rejected.Code != refused {
			return receipt, inf(Adapter, "dispatch %s: %v: want it refused as %s", id, err, refused)
		}
		return receipt, nil
	}
	if err != nil {
		layer := Persistence
		if errors.As(err, &rejected) {
			layer = Adapter
		}
		return receipt, inf(layer, "dispatch %s: %w", id, err)
	}
	d := dispatched{id, c, receipt.Sequence}
	r.commands = append(r.commands, d)
	if r.wants(ProbeDuplicates) {
		err = r.again(ctx, d)
	}
	return receipt, err
}

// again dispatches a command that was carried out and wants the first
// receipt's sequence. That it added no event is seen in the log at the end,
// and that it sent nothing by the peer.
func (r *runner) again(ctx context.Context, d dispatched) error {
	ctx, cancel := r.deadline(ctx, 0)
	defer cancel()
	receipt, err := r.orc.Dispatch(ctx, d.command)
	switch {
	case err != nil:
		return inf(Persistence, "dispatch %s again: %w", d.id, err)
	case receipt.Sequence != d.sequence || !receipt.Duplicate:
		return inf(Persistence, "dispatch %s again: sequence %d, duplicate %t: want the first receipt's sequence %d", d.id, receipt.Sequence, receipt.Duplicate, d.sequence)
	}
	return nil
}
