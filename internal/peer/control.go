package peer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/replaypeer/replaypeer/internal/replay"
)

// Status is the answer to every control command, as one JSON line.
type Status struct {
	Version int            `json:"version"` // 1
	Error   string         `json:"error,omitempty"`
	Verdict replay.Verdict `json:"verdict"`
	Cursor  int            `json:"cursor"` // the entry that comes next, from 0
	Total   int            `json:"total"`
	Launch  int            `json:"launch"`
	Paused  bool           `json:"paused"`
	// Held is the label of the gate that holds playing, "" for none.
	Held     string         `json:"held,omitempty"`
	Awaiting replay.Awaited `json:"awaiting,omitempty"`
}

// gateWait is a control connection that waits for a gate.
type gateWait struct {
	label string
	ready chan struct{}
}

// listen serves control connections until stop is called, which waits for
// them.
func (s *session) listen() (stop func(), err error) {
	path := s.cfg.Control
	if _, err := os.Lstat(path); err == nil {
		if c, err := net.Dial("unix", path); err == nil {
			c.Close()
			return nil, fmt.Errorf("control socket %s: another peer listens on it", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("control socket: %w", err)
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	var (
		mu    sync.Mutex
		conns = map[net.Conn]bool{}
		wg    sync.WaitGroup
	)
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns[c] = true
			mu.Unlock()
			wg.Go(func() {
				s.serveControl(c)
				mu.Lock()
				delete(conns, c)
				mu.Unlock()
				c.Close()
			})
		}
	})
	return func() {
		l.Close()
		mu.Lock()
		for c := range conns {
			c.SetReadDeadline(time.Now()) // answers on their way still go out
		}
		mu.Unlock()
		wg.Wait()
	}, nil
}

func (s *session) serveControl(c net.Conn) {
	in := bufio.NewScanner(c)
	out := json.NewEncoder(c)
	for in.Scan() {
		st := s.command(in.Text())
		if out.Encode(st) != nil {
			return
		}
	}
}

// command runs one line of the control protocol: a word and its argument.
func (s *session) command(line string) Status {
	word, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch word {
	case "status":
		return s.status(nil)
	case "wait":
		return s.status(s.wait(arg))
	}
	var fail error
	s.step(func() {
		switch word {
		case "pause":
			s.player.Pause()
		case "resume":
			s.player.Resume()
		case "step":
			s.player.Step()
		case "release":
			fail = s.player.Release(arg)
		case "advance":
			var d time.Duration
			if d, fail = time.ParseDuration(arg); fail == nil {
				fail = s.player.Advance(d)
			}
		default:
			fail = fmt.Errorf("unknown command %q: want pause, resume, step, release LABEL, advance DUR, wait LABEL or status", word)
		}
	})
	return s.status(fail)
}

// wait returns when the gate at LABEL, or LABEL#N, holds playing. Like asking
// for the status it is nothing that happens: the idle timeout runs on.
func (s *session) wait(label string) error {
	if !slices.Contains(s.cfg.Hold, label) {
		return fmt.Errorf("no gate at label %q", label)
	}
	w := gateWait{label, make(chan struct{})}
	s.mu.Lock()
	s.waits = append(s.waits, w)
	s.tellGates()
	s.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-s.done:
		return fmt.Errorf("the launch ended before the gate %q was reached", label)
	}
}

func (s *session) status(fail error) Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.player.Report()
	st := Status{
		Version: 1, Verdict: r.Verdict, Cursor: s.player.State().Cursor, Total: r.Entries.Total,
		Launch: r.Launches, Paused: s.player.Paused(), Held: s.player.Reached(), Awaiting: s.player.Awaiting(),
	}
	if fail != nil {
		st.Error = fail.Error()
	}
	return st
}

// tellGates wakes those who wait for the gate that playing has reached.
func (s *session) tellGates() {
	kept := s.waits[:0]
	for _, w := range s.waits {
		if at := s.player.Reached(); at != "" && (w.label == at || occurrence(w.label, at)) {
			close(w.ready)
		} else {
			kept = append(kept, w)
		}
	}
	s.waits = kept
}

// occurrence says whether label is base#N. A gate that names one occurrence
// holds at no other.
func occurrence(label, base string) bool {
	n, ok := strings.CutPrefix(label, base+"#")
	_, err := strconv.Atoi(n)
	return ok && err == nil
}

// Command sends one line to a control socket and returns the answer. An
// answer with an error is returned as one, too.
func Command(ctx context.Context, socket, line string) (*Status, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Now()) })
	defer stop()
	if _, err := fmt.Fprintln(c, line); err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	var st Status
	if err := json.NewDecoder(c).Decode(&st); err != nil {
		return nil, fmt.Errorf("control socket: no answer to %q: %w", line, err)
	}
	if st.Error != "" {
		return &st, errors.New(st.Error)
	}
	return &st, nil
}
