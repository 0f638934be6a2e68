package orch

import (
	"slices"
	"strings"
)

// liveRun are the statuses of a run that is not over.
var liveRun = []string{"preparing", "queued", "starting", "running", "waiting"}

// VisibleTurnItems is the timeline without what was taken back: items of
// rolled-back runs, and the interrupt signals of attempts that were superseded
// by a steering restart. A fork begins with what it inherited.
func (p *Projection) VisibleTurnItems() []VisibleItem {
	visible := append(make([]VisibleItem, 0, len(p.TurnItems)), p.inheritedItems()...)
	for i := range visible {
		visible[i].Position = i
	}
	for _, item := range p.TurnItems {
		if p.hidden(item) {
			continue
		}
		visible = append(visible, VisibleItem{
			Position: len(visible), Visibility: "local",
			SourceThreadID: item.ThreadID, SourceItemID: item.ID, Item: item,
		})
	}
	return visible
}

func (p *Projection) hidden(item TurnItem) bool {
	if run, ok := lookup(p, p.Runs, string(item.RunID)); ok {
		if p.rolledBack(run) {
			return true
		}
	}
	if !strings.HasPrefix(item.Type, "run_interrupt_") {
		return false
	}
	return slices.ContainsFunc(p.Attempts, func(a RunAttempt) bool {
		return a.RootNodeID == string(item.NodeID) && a.Status == "superseded"
	})
}

// ShellSnapshot lists all threads.
type ShellSnapshot struct {
	SchemaVersion    int           `json:"schemaVersion"` // 3
	SnapshotSequence int64         `json:"snapshotSequence"`
	Threads          []ThreadShell `json:"threads"`
	ArchivedThreads  []ThreadShell `json:"archivedThreads"`
}

// ThreadShell is one line of a list of threads. Its run is the lowest-ordinal
// live one, else the last.
type ThreadShell struct {
	AppThread
	RunCount int `json:"runCount"`
	RunID    Ref `json:"runId"`
	Status   Ref `json:"status"` // of that run; none without runs
}

func newShell(rows ShellRows) (*ShellSnapshot, error) {
	shell := &ShellSnapshot{
		SchemaVersion: 3, SnapshotSequence: rows.Sequence,
		Threads: []ThreadShell{}, ArchivedThreads: []ThreadShell{},
	}
	for _, row := range rows.Threads {
		decoded, err := decodeEntity(KindThread, row.Payload)
		if err != nil {
			return nil, err
		}
		line := ThreadShell{AppThread: decoded.(AppThread), RunCount: row.RunCount, RunID: Ref(row.RunID), Status: Ref(row.RunStatus)}
		switch {
		case line.DeletedAt != nil:
		case line.ArchivedAt != nil:
			shell.ArchivedThreads = append(shell.ArchivedThreads, line)
		default:
			shell.Threads = append(shell.Threads, line)
		}
	}
	return shell, nil
}

// rolledBack reports whether a run was undone. One that was interrupted or
// failed keeps its status; its root node tells.
func (p *Projection) rolledBack(run Run) bool {
	root, _ := lookup(p, p.Nodes, run.RootNodeID)
	return run.Status == "rolled_back" || root.Status == "rolled_back"
}
