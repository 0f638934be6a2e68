package peer

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/replaypeer/replaypeer/internal/replay"
)

// write writes b in pieces, each of which counts as progress.
func (s *session) write(w io.Writer, b []byte) error {
	s.writing.begin(s.player, len(b))
	defer s.writing.end()
	most := s.cfg.Split
	if most <= 0 || w == s.stderr {
		most = batch
	}
	for len(b) > 0 {
		n := min(most, len(b))
		if _, err := w.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
		s.progress.Add(1)
	}
	return nil
}

// say writes a message to stderr, and gives up when nobody reads it.
func (s *session) say(text string) {
	said := make(chan struct{})
	go func() {
		io.WriteString(s.stderr, text)
		close(said)
	}()
	select {
	case <-said:
	case <-time.After(s.cfg.IdleTimeout):
	}
}

// snapshot is how things stood before a write that may never return.
type snapshot struct {
	mu     sync.Mutex
	busy   bool // the write has not returned
	report replay.Report
	next   []replay.Place // what was to come
	bytes  int
}

func (w *snapshot) begin(p *replay.Player, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy, w.report, w.next, w.bytes = true, *p.Report(), p.Awaiting(), n
}

func (w *snapshot) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy = false
}

// watchdog ends a launch in which nothing happens for the idle timeout.
func (s *session) watchdog(ctx context.Context) {
	tick := time.NewTicker(max(s.cfg.IdleTimeout/20, time.Millisecond))
	defer tick.Stop()
	last, since := s.progress.Load(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if n := s.progress.Load(); n != last || s.sleeping.Load() {
			last, since = n, time.Now()
			continue
		}
		if time.Since(since) < s.cfg.IdleTimeout {
			continue
		}
		if s.mu.TryLock() {
			s.mu.Unlock()
			s.step(func() { s.player.Close(replay.Idle) })
			last, since = s.progress.Load(), time.Now()
		} else if s.blocked() {
			return
		}
	}
}

// blocked ends a launch whose client does not read: the writer holds the lock
// and will not come back. It returns false when the lock is held for another
// reason.
func (s *session) blocked() bool {
	s.writing.mu.Lock()
	busy, r, next, n := s.writing.busy, s.writing.report, s.writing.next, s.writing.bytes
	s.writing.mu.Unlock()
	if !busy {
		return false
	}
	defer close(s.stuck)
	if r.Failure != nil {
		return true // told already; only the last words did not get through
	}
	r.Verdict, r.ExitCode = replay.Timeout, replay.ExitFailed
	r.Failure = &replay.Failure{
		Reason: "output_blocked", File: s.script.Path, Awaiting: next,
		Message: fmt.Sprintf("the client does not read: %d bytes could not be written within the idle timeout", n),
	}
	if len(next) > 0 {
		r.Failure.Line, r.Failure.Label = next[0].Line, next[0].Label
	}
	st := replay.State{Version: 1, Transcript: s.script.SHA256, Launches: r.Launches, Verdict: r.Verdict}
	if err := s.files.write(st, &r); err != nil {
		s.say(fmt.Sprintf("replay-peer: %v\n", err))
	}
	s.say("replay-peer: " + r.Text())
	return true
}
