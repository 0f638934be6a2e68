package orch

import (
	"context"
	"sync"
)

// givenTurns are the start effects of this process that run. One whose turn
// was given to the provider has written its facts and only waits for the
// acknowledgement; nothing need wait for it. The zero value works.
type givenTurns struct {
	mu      sync.Mutex
	running map[string]*startingTurn // by effect id
}

type startingTurn struct {
	attemptID string
	given     bool
	cancel    context.CancelFunc
}

// begin takes a start effect in; end takes it out again.
func (g *givenTurns) begin(ctx context.Context, effectID, attemptID string) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running == nil {
		g.running = map[string]*startingTurn{}
	}
	g.running[effectID] = &startingTurn{attemptID: attemptID, cancel: cancel}
	return ctx, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.running, effectID)
		cancel()
	}
}

// give says that an effect has written all it writes unless it fails.
func (g *givenTurns) give(effectID string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t := g.running[effectID]; t != nil {
		t.given = true
	}
}

func (g *givenTurns) given(effectID string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.running[effectID]
	return t != nil && t.given
}

// abandon stops waiting for the start of an attempt.
func (g *givenTurns) abandon(attemptID string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range g.running {
		if t.attemptID == attemptID {
			t.cancel()
		}
	}
}
