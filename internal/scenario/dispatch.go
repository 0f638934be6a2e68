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
	title := c.Title
	if title == "" {
		title = r.sc.Name
	}
	mode := r.settings.RuntimeMode
	if mode == "" {
		mode = "full-access"
	}
	receipt, err := r.dispatch(ctx, "command:create-thread", orch.CreateThread{
		CommandID:      "command:create-thread",
		ProjectID:      "project:scenario",
		Title:          title,
		ModelSelection: r.selection(),
		RuntimeMode:    mode,
		WorktreePath:   r.workspace,
		CreatedBy:      "user",
		CreationSource: "server",
	})
	r.thread = receipt.ThreadID
	return err
}

func (r *runner) selection() orch.ModelSelection {
	return orch.ModelSelection{InstanceID: r.provider, Model: r.settings.Model}
}

func (r *runner) message(ctx context.Context, m *Message) error {
	id := fmt.Sprintf("command:message:%d", len(r.commands))
	command := orch.DispatchMessage{CommandID: id, ThreadID: r.thread, Text: m.Text, Mode: modes[m.Mode], CreatedBy: "user", CreationSource: "server"}
	if m.Mode == "steer" || m.Mode == "restart" {
		target, err := r.targetRun(m.TargetRun)
		if err != nil {
			return in(Adapter, err)
		}
		command.TargetRunID = target
	}
	receipt, err := r.dispatch(ctx, id, command)
	if err != nil || m.Await == "" {
		return err
	}
	ordinal, err := r.runOf(ctx, m.Timeout, receipt)
	if err != nil {
		return err
	}
	return r.awaitRun(ctx, m.Timeout, ordinal, m.Await)
}

// targetRun returns the id of the run with an ordinal, of the last for 0.
func (r *runner) targetRun(ordinal int) (string, error) {
	r.feed.mu.Lock()
	defer r.feed.mu.Unlock()
	if ordinal == 0 {
		for _, run := range r.feed.runs {
			if run.ThreadID == r.thread {
				ordinal = max(ordinal, run.Ordinal)
			}
		}
	}
	run := r.feed.run(r.thread, ordinal)
	switch {
	case ordinal == 0:
		return "", errors.New("there is no run to steer or restart")
	case run == nil:
		return "", fmt.Errorf("there is no run %d to steer or restart", ordinal)
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

// dispatch carries out a command, twice when that is probed.
func (r *runner) dispatch(ctx context.Context, id string, c orch.Command) (orch.Receipt, error) {
	ctx, cancel := r.deadline(ctx, 0)
	defer cancel()
	receipt, err := r.orc.Dispatch(ctx, c)
	if err != nil {
		layer := Persistence
		var rejected *orch.RejectedError
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
