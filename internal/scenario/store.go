package scenario

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// eventPage is how many events are read at once.
const eventPage = 256

// Stored reads every event of a store after a sequence.
func Stored(ctx context.Context, store orch.Store, after int64) ([]orch.StoredEvent, error) {
	var all []orch.StoredEvent
	for {
		page, err := store.Events(ctx, after, eventPage)
		if err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		if len(page) == 0 {
			return all, nil
		}
		all = append(all, page...)
		after = page[len(page)-1].Sequence
	}
}

// effectTypes are all effects that an orchestrator may leave in its store.
var effectTypes = []string{
	orch.EffectStartTurn, orch.EffectInterruptTurn, orch.EffectSteerTurn, orch.EffectRestartTurn,
	orch.EffectRespond, orch.EffectRollback, orch.EffectDetach, orch.EffectCapture,
}

// unsettled lists the effects of a thread that are pending or running.
func unsettled(ctx context.Context, store orch.Store, thread string, types []string) ([]string, error) {
	var all []string
	for _, kind := range types {
		ids, err := store.UnsettledEffects(ctx, thread, kind)
		if err != nil {
			return nil, fmt.Errorf("read effects: %w", err)
		}
		all = append(all, ids...)
	}
	return all, nil
}

// watchedStore tells when an effect was settled: an effect writes its facts
// first and is settled after, so the event stream does not tell.
type watchedStore struct {
	orch.Store

	mu      sync.Mutex
	settled chan struct{} // closed and replaced by every settlement
}

func watch(store orch.Store) *watchedStore {
	return &watchedStore{Store: store, settled: make(chan struct{})}
}

// SettleEffect implements orch.Store.
func (w *watchedStore) SettleEffect(ctx context.Context, s orch.Settlement) (bool, error) {
	held, err := w.Store.SettleEffect(ctx, s)
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.settled)
	w.settled = make(chan struct{})
	return held, err
}

func (w *watchedStore) next() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.settled
}

// acknowledged waits until no effect that stops a turn is pending or running.
func (w *watchedStore) acknowledged(ctx context.Context, thread string) error {
	return w.without(ctx, thread, []string{orch.EffectInterruptTurn, orch.EffectRestartTurn})
}

// quiet waits until no effect of a thread is pending or running. The error
// names those that still are when ctx ends.
func (w *watchedStore) quiet(ctx context.Context, thread string) error {
	return w.without(ctx, thread, effectTypes)
}

func (w *watchedStore) without(ctx context.Context, thread string, types []string) error {
	for {
		next := w.next()
		effects, err := unsettled(context.WithoutCancel(ctx), w.Store, thread, types)
		if err != nil || len(effects) == 0 {
			return err
		}
		select {
		case <-next:
		case <-ctx.Done():
			return fmt.Errorf("not settled: %s (%w)", strings.Join(effects, ", "), context.Cause(ctx))
		}
	}
}
