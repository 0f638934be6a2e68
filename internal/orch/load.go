package orch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// loadProjection reads a thread; its Version is 0 when there is none.
func loadProjection(ctx context.Context, store Store, threadID string) (*Projection, StoredThread, error) {
	l := newLoader(threadID)
	stored, err := store.Thread(ctx, threadID, l.take)
	if err := errors.Join(err, l.finish()); err != nil {
		return nil, StoredThread{}, err
	}
	l.p.UpdatedAt = stored.UpdatedAt
	return l.p, stored, nil
}

// loader builds a projection of stored rows, which it decodes on other
// processors while the next are being read.
type loader struct {
	p     *Projection
	parts map[Kind][]*part
	count map[Kind]int // rows so far
	err   error
	wg    sync.WaitGroup
}

func newLoader(threadID string) *loader {
	return &loader{p: newProjection(threadID), parts: map[Kind][]*part{}, count: map[Kind]int{}}
}

// part is some rows of a kind.
type part struct {
	join func() // adds what was decoded to the projection
	err  error
}

// take decodes some rows of a kind, from now on.
func (l *loader) take(kind Kind, rows []string) {
	l.count[kind] += len(rows)
	switch kind {
	case KindThread:
		l.decode(kind, func() error { return decodeInto(&decoder{}, rows[0], &l.p.Thread) }, func() {}) // there is one
	case KindRun:
		decodeRows(l, kind, &l.p.Runs, rows)
	case KindAttempt:
		decodeRows(l, kind, &l.p.Attempts, rows)
	case KindNode:
		decodeRows(l, kind, &l.p.Nodes, rows)
	case KindSubagent:
		decodeRows(l, kind, &l.p.Subagents, rows)
	case KindProviderSession:
		decodeRows(l, kind, &l.p.ProviderSessions, rows)
	case KindProviderThread:
		decodeRows(l, kind, &l.p.ProviderThreads, rows)
	case KindProviderTurn:
		decodeRows(l, kind, &l.p.ProviderTurns, rows)
	case KindRuntimeRequest:
		decodeRows(l, kind, &l.p.RuntimeRequests, rows)
	case KindMessage:
		decodeRows(l, kind, &l.p.Messages, rows)
	case KindTurnItem:
		decodeRows(l, kind, &l.p.TurnItems, rows)
	case KindPlan:
		decodeRows(l, kind, &l.p.Plans, rows)
	case KindCheckpointScope:
		decodeRows(l, kind, &l.p.CheckpointScopes, rows)
	case KindCheckpoint:
		decodeRows(l, kind, &l.p.Checkpoints, rows)
	case KindTransfer:
		decodeRows(l, kind, &l.p.ContextTransfers, rows)
	case KindHandoff:
		decodeRows(l, kind, &l.p.ContextHandoffs, rows)
	default:
		l.err = fmt.Errorf("unknown kind of entity %q", kind)
	}
}

// decodeRows adds rows to a list of entities.
func decodeRows[T entity](l *loader, kind Kind, list *[]T, rows []string) {
	decoded := make([]T, len(rows))
	l.decode(kind, func() error {
		var d decoder
		for i, row := range rows {
			if err := decodeInto(&d, row, &decoded[i]); err != nil {
				return err
			}
		}
		return nil
	}, func() { *list = append(slices.Grow(*list, l.count[kind]-len(*list)), decoded...) })
}

func (l *loader) decode(kind Kind, rows func() error, join func()) {
	p := &part{join: join}
	l.parts[kind] = append(l.parts[kind], p)
	l.wg.Go(func() { p.err = rows() })
}

// finish waits for all parts and puts them together.
func (l *loader) finish() error {
	l.wg.Wait()
	for _, kind := range Kinds {
		for _, p := range l.parts[kind] {
			l.err = cmp.Or(l.err, p.err)
		}
	}
	if l.err != nil {
		return l.err
	}
	for _, parts := range l.parts {
		l.wg.Go(func() {
			for _, p := range parts {
				p.join()
			}
		})
	}
	l.wg.Wait()
	if !slices.IsSortedFunc(l.p.TurnItems, compareItems) {
		slices.SortStableFunc(l.p.TurnItems, compareItems)
	}
	return nil
}
