package orch

import (
	"context"
	"iter"
)

// pageSize is how many events are read at once.
const pageSize = 256

// Events yields every stored event after a sequence, then live ones, in order,
// without gap or repeat, until ctx ends or the loop breaks. When ctx or the
// orchestrator ends, so does the sequence, without an error.
//
// A subscriber is woken by commits but always reads the store, from the last
// event it yielded. Commits are serial and a sequence becomes visible with its
// transaction, so there is no seam between catching up and live.
func (o *Orchestrator) Events(ctx context.Context, after int64) iter.Seq2[StoredEvent, error] {
	return func(yield func(StoredEvent, error) bool) {
		for {
			changed := o.changed.wait()
			page, err := o.store.Events(ctx, after, pageSize)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				yield(StoredEvent{}, err)
				return
			}
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
				after = e.Sequence
			}
			if len(page) == pageSize {
				continue
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			case <-o.ctx.Done():
				return
			}
		}
	}
}
