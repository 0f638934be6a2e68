//go:build unix

package peer

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/replaypeer/replaypeer/internal/replay"
)

// parentPoll is how often the parent is looked for.
const parentPoll = 250 * time.Millisecond

// startProcess makes the process independent of its client's accidents: its
// own process group, so that an interrupt typed at the client's terminal does
// not reach it before the client has closed it, and no death by SIGPIPE, so
// that a client which stops reading ends in a report.
func startProcess() {
	signal.Ignore(syscall.SIGPIPE)
	_ = syscall.Setpgid(0, 0) // refused for a session leader, which needs none
}

// watchProcess takes signals from now on. What it returns closes the launch on
// them and when the parent is gone.
func (s *session) watchProcess(ctx context.Context) func() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	parent := os.Getppid()
	return func() {
		defer signal.Stop(signals)
		tick := time.NewTicker(parentPoll)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-signals:
				s.step(func() { s.player.Close(replay.Terminated) })
			case <-tick.C:
				if os.Getppid() != parent {
					s.step(func() { s.player.Close(replay.ParentGone) })
					return
				}
			}
		}
	}
}

// dieBy ends the process by the recorded signal. In a test's process, and for
// a signal that is not known or does not end it, it returns the exit code a
// shell would show.
func dieBy(name string, process bool) int {
	sig := unix.SignalNum(name)
	if sig == 0 {
		return 1
	}
	code := 128 + int(sig)
	if !process {
		return code
	}
	switch sig {
	case syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP:
		signal.Reset(sig)
		if syscall.Kill(os.Getpid(), sig) == nil {
			time.Sleep(100 * time.Millisecond) // the signal is on its way
		}
		// Still here: it is ignored, as SIGHUP is below nohup.
	}
	// Go takes most of the others for a crash of its own and prints stacks.
	// Another program in this process has no such handler; it ignores what was
	// ignored, and nothing that was caught.
	signal.Notify(make(chan os.Signal, 1), sig)
	script := fmt.Sprintf("ulimit -c 0; kill -s %s $$; exit %d", strings.TrimPrefix(name, "SIG"), code)
	_ = syscall.Exec("/bin/sh", []string{"sh", "-c", script}, os.Environ())
	return code
}
