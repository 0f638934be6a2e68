package orch

import (
	"context"
	"fmt"
	"slices"
)

// Types of a source point.
const (
	PointLatest     = "latest_stable" // the last run that is over
	PointRun        = "run"
	PointCheckpoint = "checkpoint"
)

// SourcePoint is where a fork or a merge ends in its source.
type SourcePoint struct {
	Type string `json:"type"`         // "" is latest_stable
	ID   string `json:"id,omitempty"` // of a run or checkpoint
}

// ForkThread makes a thread that begins with the history of another one. What
// its provider knows of it is settled by its first message.
type ForkThread struct {
	CommandID      string      `json:"commandId"`
	ThreadID       string      `json:"threadId,omitempty"` // of the fork; "" draws one
	SourceThreadID string      `json:"sourceThreadId"`
	SourcePoint    SourcePoint `json:"sourcePoint"`
	Title          string      `json:"title,omitempty"`          // "" is the source's
	CreatedBy      string      `json:"createdBy,omitempty"`      // "" is user
	CreationSource string      `json:"creationSource,omitempty"` // "" is server

	source history
}

// MergeBack tells a thread what a fork of it did. The thread's next run takes
// it along.
type MergeBack struct {
	CommandID      string      `json:"commandId"`
	ThreadID       string      `json:"targetThreadId"`
	SourceThreadID string      `json:"sourceThreadId"` // the fork
	SourcePoint    SourcePoint `json:"sourcePoint"`

	source history
}

// SwitchProvider makes another provider instance answer a thread from now on.
type SwitchProvider struct {
	CommandID      string         `json:"commandId"`
	ThreadID       string         `json:"threadId"`
	ModelSelection ModelSelection `json:"modelSelection"`
}

func (c ForkThread) about() about {
	return about{id: c.CommandID, kind: "thread.fork", threadID: c.ThreadID}
}
func (c MergeBack) about() about {
	return about{id: c.CommandID, kind: "thread.merge_back", threadID: c.ThreadID}
}
func (c SwitchProvider) about() about {
	return about{id: c.CommandID, kind: "provider.switch", threadID: c.ThreadID}
}

// history is another thread's, up to a point, as a planner sees it.
type history struct {
	thread AppThread
	run    Run // the last one; zero when there is none
	items  []VisibleItem
}

// withSource reads the thread that a command takes from. Its history only
// grows, so it need not be locked while the command is carried out.
func (o *Orchestrator) withSource(ctx context.Context, c Command) (Command, error) {
	var err error
	switch c := c.(type) {
	case ForkThread:
		c.source, err = o.history(ctx, c.SourceThreadID, c.SourcePoint)
		return c, err
	case MergeBack:
		c.source, err = o.history(ctx, c.SourceThreadID, c.SourcePoint)
		return c, err
	}
	return c, nil
}

func (o *Orchestrator) history(ctx context.Context, threadID string, point SourcePoint) (history, error) {
	var h history
	err := o.read(ctx, threadID, func(p *Projection) error {
		h.thread = p.Thread
		wanted := point.ID
		if point.Type == PointCheckpoint {
			k, _ := lookup(p, p.Checkpoints, point.ID)
			wanted = string(k.RunID)
		}
		for _, run := range p.Runs {
			over := isTerminal(KindRun, run.Status) && !p.rolledBack(run) && run.ProviderThreadID != ""
			if over && (or(point.Type, PointLatest) == PointLatest || run.ID == wanted) {
				h.run = run
			}
		}
		for _, v := range p.VisibleTurnItems() {
			run, ok := lookup(p, p.Runs, string(v.Item.RunID))
			if v.Visibility == "inherited" || v.Visibility == "local" && ok && run.Ordinal <= h.run.Ordinal {
				v.Position, v.Visibility = len(h.items), "inherited"
				h.items = append(h.items, v)
			}
		}
		return nil
	})
	return h, err
}

func planFork(d *draft, c ForkThread) error {
	if d.version > 0 {
		return reject(CodeThreadExists, "thread %q exists", d.p.Thread.ID)
	}
	if err := checkSource(c.source, c.SourceThreadID); err != nil {
		return err
	}
	from := c.source.thread
	d.put(AppThread{
		ID: d.p.Thread.ID, ProjectID: from.ProjectID, Title: or(c.Title, from.Title), CreatedBy: or(c.CreatedBy, "user"),
		CreationSource: or(c.CreationSource, "server"), ProviderInstanceID: from.ProviderInstanceID,
		ModelSelection: from.ModelSelection, RuntimeMode: from.RuntimeMode, InteractionMode: from.InteractionMode,
		Branch: from.Branch, WorktreePath: from.WorktreePath,
		Lineage: Lineage{
			ParentThreadID: Ref(from.ID), RelationshipToParent: "fork", RootThreadID: from.Lineage.RootThreadID,
		},
		ForkedFrom: &ForkPoint{Type: "run", ThreadID: from.ID, ID: c.source.run.ID}, CreatedAt: d.now, UpdatedAt: d.now,
	})
	d.put(ContextTransfer{
		ID: d.newID("context-transfer"), Type: "fork", SourceThreadID: from.ID, TargetThreadID: d.p.Thread.ID,
		SourcePoint: &TransferPoint{Type: "run", ID: c.source.run.ID}, SourceInstanceID: Ref(c.source.run.ProviderInstanceID),
		Status: "pending", CreatedBy: or(c.CreatedBy, "user"), CreatedAt: d.now,
		SourceOrdinal: c.source.run.Ordinal, Inherited: c.source.items,
	})
	return nil
}

func planMergeBack(d *draft, c MergeBack) error {
	if err := needThread(d); err != nil {
		return err
	}
	if err := checkSource(c.source, c.SourceThreadID); err != nil {
		return err
	}
	fork := c.source.thread
	if fork.Lineage.RelationshipToParent != "fork" || string(fork.Lineage.ParentThreadID) != d.p.Thread.ID {
		return reject(CodeInvalid, "thread %s is no fork of %s", fork.ID, d.p.Thread.ID)
	}
	for _, older := range slices.Clone(d.p.ContextTransfers) {
		if older.Type == "merge_back" && older.Status == "pending" && older.SourceThreadID == fork.ID {
			older.Status = "superseded"
			d.put(older)
		}
	}
	d.put(ContextTransfer{
		ID: d.newID("context-transfer"), Type: "merge_back", SourceThreadID: fork.ID, TargetThreadID: d.p.Thread.ID,
		SourcePoint: &TransferPoint{Type: "run", ID: c.source.run.ID}, SourceInstanceID: Ref(c.source.run.ProviderInstanceID),
		BasePoint: &TransferPoint{Type: "run", ID: fork.ForkedFrom.ID}, Status: "pending", CreatedBy: "user",
		CreatedAt: d.now, SourceOrdinal: c.source.run.Ordinal,
	})
	return nil
}

func checkSource(h history, id string) error {
	switch {
	case h.thread.CreatedAt.IsZero():
		return reject(CodeUnknownThread, "unknown thread %q", id)
	case h.run.ID == "":
		return reject(CodeUnknownRun, "thread %s has no such run that is over", id)
	}
	return nil
}

// planSwitch changes who answers. What the new provider must be told is
// settled by the next message.
func planSwitch(d *draft, c SwitchProvider) error {
	if err := needThread(d); err != nil {
		return err
	}
	if live, ok := d.p.liveRun(); ok {
		return reject(CodeRunActive, "run %s is %s", live.ID, live.Status)
	}
	if _, ok := d.agents[c.ModelSelection.InstanceID]; !ok {
		return reject(CodeUnknownProvider, "unknown provider instance %q", c.ModelSelection.InstanceID)
	}
	switchTo(d, c.ModelSelection)
	return nil
}

// switchTo makes an instance the thread's, if it is another one.
func switchTo(d *draft, selection ModelSelection) {
	thread := d.p.Thread
	if thread.ProviderInstanceID == selection.InstanceID {
		return
	}
	thread.ProviderInstanceID, thread.ModelSelection, thread.UpdatedAt = selection.InstanceID, selection, d.now
	d.putAs(EventThreadProviderSwitched, thread)
}

// forkTransfer is how a thread came to its inherited history; false when it
// is no fork.
func (p *Projection) forkTransfer() (ContextTransfer, bool) {
	for _, t := range p.ContextTransfers {
		if t.Type == "fork" && t.TargetThreadID == p.Thread.ID {
			return t, true
		}
	}
	return ContextTransfer{}, false
}

// mergeSource is what a fork did, in words.
type mergeSource struct {
	summary  string
	from     []string // provider threads
	instance string
	last     int // ordinal of the last run
}

// merges reads what the pending merges of a thread bring.
func (o *Orchestrator) merges(ctx context.Context, transfers []ContextTransfer) (map[string]mergeSource, error) {
	merges := map[string]mergeSource{}
	for _, t := range transfers {
		if t.Type != "merge_back" || t.Status != "pending" {
			continue
		}
		m := mergeSource{last: t.SourceOrdinal}
		err := o.read(ctx, t.SourceThreadID, func(p *Projection) error {
			for _, run := range p.Runs {
				if run.Ordinal > t.SourceOrdinal || p.rolledBack(run) || run.ProviderThreadID == "" {
					continue
				}
				m.summary += summarize(p, run)
				m.instance = run.ProviderInstanceID
				if !slices.Contains(m.from, string(run.ProviderThreadID)) {
					m.from = append(m.from, string(run.ProviderThreadID))
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		merges[t.ID] = m
	}
	return merges, nil
}

// forkSource is the provider's side of where a fork leaves its source.
type forkSource struct {
	thread ProviderThread
	turn   ProviderTurn
	last   bool // nothing came after the turn
}

// forkNatively copies the provider's thread of a pending fork, where the same
// instance answers and can do it. ok is false where the history must be told
// in words.
func (o *Orchestrator) forkNatively(ctx context.Context, ss *session, run Run, fork ContextTransfer, options ThreadOptions) (native NativeThread, source forkSource, ok bool, err error) {
	caps := ss.source.capabilities
	if fork.Status != "pending" || string(fork.SourceInstanceID) != run.ProviderInstanceID || !caps.Fork {
		return native, source, false, nil
	}
	err = o.read(ctx, fork.SourceThreadID, func(p *Projection) error {
		run, _ := lookup(p, p.Runs, fork.SourcePoint.ID)
		attempt, _ := lookup(p, p.Attempts, string(run.ActiveAttemptID))
		source.turn, _ = lookup(p, p.ProviderTurns, string(attempt.ProviderTurnID))
		source.thread, _ = lookup(p, p.ProviderThreads, source.turn.ProviderThreadID)
		source.last = true
		for _, turn := range p.ProviderTurns {
			node, _ := lookup(p, p.Nodes, turn.NodeID)
			if turn.ProviderThreadID == source.thread.ID && turn.Ordinal > source.turn.Ordinal && node.Status != "rolled_back" {
				source.last = false
			}
		}
		return nil
	})
	ref := source.thread.NativeThreadRef
	if err != nil || ref == nil || ref.Strength != "strong" || !source.last && !caps.ForkAtTurn {
		return native, source, false, err
	}
	through := ""
	if !source.last {
		through = source.turn.point()
	}
	native, err = ss.agent.ForkThread(ctx, ref.NativeID, through, options)
	if err != nil {
		return native, source, false, fmt.Errorf("fork thread: %w", err)
	}
	return native, source, true, nil
}

// inheritedItems are what a fork shows of its source, and the mark where it
// left it.
func (p *Projection) inheritedItems() []VisibleItem {
	fork, ok := p.forkTransfer()
	if !ok {
		return nil
	}
	at := fork.CreatedAt
	mark := TurnItem{
		ID: makeID("turn-item", "fork", fork.ID), ThreadID: p.Thread.ID, Type: "fork", Status: "completed",
		Title: "Fork", StartedAt: &at, CompletedAt: &at,
	}
	return append(slices.Clone(fork.Inherited), VisibleItem{
		Visibility: "synthetic", SourceThreadID: fork.SourceThreadID, SourceItemID: mark.ID, Item: mark,
	})
}
