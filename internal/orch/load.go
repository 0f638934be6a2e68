package orch

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
)

// load takes in all stored rows of a kind. Turn items are left to be sorted.
func (p *Projection) load(kind Kind, rows []Row) error {
	switch kind {
	case KindThread:
		return decodeInto(rows[0].Payload, &p.Thread) // there is one
	case KindRun:
		return loadRows(&p.Runs, rows)
	case KindAttempt:
		return loadRows(&p.Attempts, rows)
	case KindNode:
		return loadRows(&p.Nodes, rows)
	case KindSubagent:
		return loadRows(&p.Subagents, rows)
	case KindProviderSession:
		return loadRows(&p.ProviderSessions, rows)
	case KindProviderThread:
		return loadRows(&p.ProviderThreads, rows)
	case KindProviderTurn:
		return loadRows(&p.ProviderTurns, rows)
	case KindRuntimeRequest:
		return loadRows(&p.RuntimeRequests, rows)
	case KindMessage:
		return loadRows(&p.Messages, rows)
	case KindTurnItem:
		return loadRows(&p.TurnItems, rows)
	case KindPlan:
		return loadRows(&p.Plans, rows)
	case KindCheckpointScope:
		return loadRows(&p.CheckpointScopes, rows)
	case KindCheckpoint:
		return loadRows(&p.Checkpoints, rows)
	case KindTransfer:
		return loadRows(&p.ContextTransfers, rows)
	case KindHandoff:
		return loadRows(&p.ContextHandoffs, rows)
	default:
		return fmt.Errorf("unknown kind of entity %q", kind)
	}
}

// loadRows decodes rows into a list, a part of them on each processor.
func loadRows[T entity](list *[]T, rows []Row) error {
	const least = 512 // rows are worth a goroutine
	all := make([]T, len(rows))
	*list = all
	parts := min(runtime.GOMAXPROCS(0), len(rows)/least+1)
	errs := make([]error, parts)
	var wg sync.WaitGroup
	for part := range parts {
		wg.Go(func() {
			for i := len(rows) * part / parts; i < len(rows)*(part+1)/parts; i++ {
				if err := decodeInto(rows[i].Payload, &all[i]); err != nil {
					errs[part] = err
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
