//go:build !unix

package peer

import (
	"context"
	"os"
	"os/signal"

	"github.com/replaypeer/replaypeer/internal/replay"
)

func startProcess() {}

// watchProcess takes interrupts from now on. What it returns closes the launch
// on one. The parent's death shows as the end of input here.
func (s *session) watchProcess(ctx context.Context) func() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	return func() {
		defer signal.Stop(signals)
		select {
		case <-ctx.Done():
		case <-signals:
			s.step(func() { s.player.Close(replay.Terminated) })
		}
	}
}

// dieBy returns an exit code: there are no signals to die by.
func dieBy(string, bool) int { return 1 }
