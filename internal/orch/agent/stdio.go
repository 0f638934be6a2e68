package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/replaypeer/replaypeer/internal/orch"
	"github.com/replaypeer/replaypeer/internal/proc"
)

// drainLimit is how long output may still come once the process is gone: only
// a process that left its group can hold the pipe that long.
const drainLimit = time.Second

// stdio is a provider's process with a conversation on its stdin and stdout.
type stdio struct {
	name   string // the provider, for errors
	proc   *proc.Process
	rpc    *rpc
	stderr proc.Tail
	wg     sync.WaitGroup

	mu      sync.Mutex
	closing bool // Close came first
}

// open starts the process of a session and shakes hands, and leaves nothing
// behind where either fails. events takes the end of the session.
func (s *stdio) open(ctx context.Context, command []string, dir string, env []string, events *eventQueue, shake func(context.Context) error) error {
	if err := s.start(command, dir, env, events.end); err != nil {
		events.close()
		events.discard()
		return fmt.Errorf("open %s: %w", s.name, err)
	}
	if err := shake(ctx); err != nil {
		go events.discard() // nobody else reads them; close ends them
		s.close(ctx)
		<-events.done
		return fmt.Errorf("open %s: %w", s.name, err)
	}
	return nil
}

// start starts the process and the conversation. ended is called once, when
// the process is gone and every message it sent was handled; err is nil after
// close. Calls still in flight fail after that with the same reason.
func (s *stdio) start(command []string, dir string, env []string, ended func(err error)) error {
	p, err := proc.Start(proc.Config{Path: command[0], Args: command[1:], Dir: dir, Env: env, Stderr: &s.stderr})
	if err != nil {
		return err
	}
	s.proc = p
	s.wg.Go(func() {
		if s.rpc.write(p.Stdin) != nil {
			p.Stop(context.Background()) // it closed its stdin: it can't be asked any more
		}
	})
	s.wg.Go(func() {
		<-p.Done()
		p.Stdout.SetReadDeadline(time.Now().Add(drainLimit))
	})
	s.wg.Go(func() {
		readErr := s.rpc.read(p.Stdout)
		p.Stdout.Close()
		exit, _ := p.Stop(context.Background())
		if errors.Is(readErr, os.ErrDeadlineExceeded) {
			readErr = nil // everything it wrote itself has been read
		}
		err := s.obituary(exit, readErr)
		if s.isClosing() {
			ended(nil)
		} else {
			ended(err)
		}
		s.rpc.end(goneError{err})
	})
	return nil
}

// close ends the process as proc.Process.Stop does and waits for the
// conversation's goroutines. Idempotent.
func (s *stdio) close(ctx context.Context) error {
	select {
	case <-s.proc.Done(): // it went by itself
	default:
		s.mu.Lock()
		s.closing = true
		s.mu.Unlock()
	}
	_, err := s.proc.Stop(ctx)
	s.wg.Wait()
	if err != nil {
		return fmt.Errorf("close %s: killed: %w", s.name, err)
	}
	return nil
}

func (s *stdio) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// obituary says how the process ended, with everything it left behind that
// may explain it: its stderr's tail, an error it answered to no call, a line
// that was no message.
func (s *stdio) obituary(exit proc.Exit, readErr error) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s ended: %s", s.name, exit)
	if readErr != nil {
		fmt.Fprintf(&b, ": read: %v", readErr)
	}
	refused, garbage := s.rpc.remarks()
	if refused != nil {
		fmt.Fprintf(&b, "\nerror answer: %s", clip(refused.Error()))
	}
	if garbage != "" {
		fmt.Fprintf(&b, "\nnot a message on stdout: %q", garbage)
	}
	if tail := strings.TrimSpace(s.stderr.String()); tail != "" {
		fmt.Fprintf(&b, "\nstderr: %s", tail)
	}
	return errors.New(strings.ToValidUTF8(b.String(), "\uFFFD"))
}

// clip bounds a text that goes into an error.
func clip(s string) string {
	const limit = 2000
	if len(s) <= limit {
		return s
	}
	return s[:limit] + "…"
}

// goneError is why a call to a provider that is gone failed.
type goneError struct{ error }

func (e goneError) Unwrap() error { return e.error }

// Is matches orch.ErrSessionEnded.
func (goneError) Is(target error) bool { return target == orch.ErrSessionEnded }
