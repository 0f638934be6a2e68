package scenario

import (
	"slices"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"
)

// clockStep is how often a going clock moves.
const clockStep = 10 * time.Millisecond

// goingClock returns a clock that goes with the real one, and that steps can
// move on beyond it: a live provider needs its time, but nobody waits half an
// hour for a session to be idle.
func goingClock() (*clockwork.FakeClock, func()) {
	last := time.Now()
	clock := clockwork.NewFakeClockAt(last)
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		ticker := time.NewTicker(clockStep)
		defer ticker.Stop()
		for {
			select {
			case now := <-ticker.C:
				clock.Advance(now.Sub(last))
				last = now
			case <-over:
				return
			}
		}
	})
	return clock, func() {
		close(over)
		wg.Wait()
	}
}

// movesClock tells whether a step moves the clock.
func (s *Scenario) movesClock() bool {
	return slices.ContainsFunc(s.Steps, func(step Step) bool { return step.AdvanceClock != nil })
}
