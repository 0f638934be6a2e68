package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// batch is how much output is gathered before it is written, in bytes.
const batch = 64 << 10

// session is one launch at work. Whoever has news (the reader, a timer, the
// control socket, a signal) calls step, which runs the player until it waits.
type session struct {
	cfg    Config
	script *replay.Script
	files  *files
	stdout io.Writer
	stderr io.Writer
	start  time.Time

	mu     sync.Mutex // guards everything below
	player *replay.Player
	codec  flavors.Codec
	buf    []byte      // output not written yet
	wake   *time.Timer // ends a Sleep
	over   bool
	exit   replay.Exit
	ready  *staged       // files of the end, not in place yet
	waits  []gateWait    // control connections waiting for a gate
	told   bool          // the files of the end are in place
	crlf   bool          // the client sent CR LF
	done   chan struct{} // closed when over

	progress atomic.Uint64 // counts steps, for the watchdog
	sleeping atomic.Bool   // in a recorded pause: silence is expected
	writing  snapshot
	stuck    chan struct{} // closed when a write never returned; mu is lost then
}

// snapshot is the report as it stood before a write that may never return.
type snapshot struct {
	mu     sync.Mutex
	report replay.Report
	bytes  int
}

func newSession(cfg Config, script *replay.Script, p *replay.Player, f *files, stdout, stderr io.Writer) *session {
	return &session{
		cfg: cfg, script: script, player: p, files: f, stdout: stdout, stderr: stderr,
		codec: script.Flavor.NewCodec(), start: time.Now(), done: make(chan struct{}), stuck: make(chan struct{}),
	}
}

// run plays until the launch is over and returns the exit code.
func (s *session) run(ctx context.Context, stdin io.Reader) int {
	if err := s.files.write(s.player.State(), s.player.Report()); err != nil {
		fmt.Fprintf(s.stderr, "replay-peer: %v\n", err)
		return replay.ExitFailed
	}
	var owned sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	if s.cfg.Control != "" {
		stop, err := s.listen()
		if err != nil {
			cancel()
			fmt.Fprintf(s.stderr, "replay-peer: %v\n", err)
			return replay.ExitFailed
		}
		defer stop()
	}
	owned.Go(func() { s.watchdog(ctx) })
	if s.cfg.Process {
		owned.Go(func() { s.watchProcess(ctx) })
	}
	stopped := context.AfterFunc(ctx, func() { s.step(func() { s.player.Close(replay.Terminated) }) })
	s.step(func() {})
	go s.read(stdin) // ends with stdin; the launch does not wait for it
	lost := false
	select {
	case <-s.done:
	case <-s.stuck:
		lost = true
	}
	stopped()
	cancel()
	owned.Wait()
	if lost {
		return replay.ExitFailed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wake != nil {
		s.wake.Stop()
	}
	return s.leave()
}

// step takes news to the player and plays on.
func (s *session) step(news func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.progress.Add(1)
	s.sleeping.Store(false)
	news()
	s.pump()
	s.tellGates()
}

// pump runs the player until it waits for somebody.
func (s *session) pump() {
	for {
		act := s.player.Next(time.Since(s.start))
		switch act.Kind {
		case replay.Emit:
			if !s.emit(act) {
				return
			}
		case replay.Wait, replay.Held:
			s.flush()
			return
		case replay.Sleep:
			if s.flush() {
				s.sleep(act.Delay)
			}
			return
		case replay.Closing:
			s.settle()
			if s.player.Failed() {
				continue
			}
			return
		case replay.Quit:
			s.settle()
			if s.player.Failed() {
				continue
			}
			s.finish(act.Exit)
			return
		case replay.Fail:
			s.fail()
			return
		default:
			panic(fmt.Sprintf("action %d", act.Kind)) // unreachable unless an ActionKind is added
		}
	}
}

// emit adds one frame to the output.
func (s *session) emit(act replay.Action) bool {
	switch act.Channel {
	case envelope.Protocol:
		buf, err := s.codec.Encode(s.buf, envelope.In, act.Frame, act.ID)
		if err != nil {
			s.player.Illegal(act.Frame.Raw, fmt.Errorf("recorded frame can't be encoded: %v", err))
			return true
		}
		s.buf = buf
	case envelope.Stdout:
		s.buf = append(s.buf, envelope.Unquote(act.Frame.Raw)...)
	case envelope.Stderr:
		if !s.flush() {
			return false
		}
		io.WriteString(s.stderr, envelope.Unquote(act.Frame.Raw))
	default:
		s.player.Illegal(act.Frame.Raw, fmt.Errorf("channel %q", act.Channel)) // unreachable unless a Channel is added
	}
	if len(s.buf) < batch {
		return true
	}
	return s.flush()
}

// flush writes what has gathered. It returns false when the launch is over.
func (s *session) flush() bool {
	if len(s.buf) == 0 {
		return true
	}
	if err := s.write(s.buf); err != nil {
		s.buf = s.buf[:0]
		s.player.Close(replay.OutputClosed)
		if s.player.Failed() {
			s.fail()
			return false
		}
		return true
	}
	if cap(s.buf) > 1<<20 {
		s.buf = nil
	}
	s.buf = s.buf[:0]
	return true
}

func (s *session) write(b []byte) error {
	s.writing.mu.Lock()
	s.writing.report, s.writing.bytes = *s.player.Report(), len(b)
	s.writing.mu.Unlock()
	if s.cfg.Split <= 0 {
		_, err := s.stdout.Write(b)
		return err
	}
	for len(b) > 0 {
		n := min(s.cfg.Split, len(b))
		if _, err := s.stdout.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

func (s *session) sleep(d time.Duration) {
	s.sleeping.Store(true)
	if s.wake != nil {
		s.wake.Stop()
	}
	s.wake = time.AfterFunc(d, func() { s.step(func() {}) })
}

// settle puts the files of a launch that was played to its end in place, with
// the last frames written in between: see stage.
func (s *session) settle() {
	if s.told {
		s.flush()
		return
	}
	if s.files.refused() {
		s.player.FailLaunch(errClaimed.Error())
		return
	}
	if s.crlf {
		s.player.Warn("the client ended lines with CR LF")
	}
	ready, err := s.files.stage(s.player.State(), s.player.Report())
	if err != nil {
		s.player.FailLaunch(err.Error())
		return
	}
	if !s.flush() {
		ready.drop()
		return
	}
	if s.player.Failed() {
		ready.drop()
		return
	}
	if err := ready.commit(); err != nil {
		s.player.FailLaunch(err.Error())
		return
	}
	s.told = true
}

// fail tells of a failure on every channel and ends the launch.
func (s *session) fail() {
	if s.over {
		return
	}
	r := s.player.Report()
	if err := s.files.write(s.player.State(), r); err != nil {
		fmt.Fprintf(s.stderr, "replay-peer: %v\n", err)
	}
	fmt.Fprintf(s.stderr, "replay-peer: %s", r.Text())
	if len(s.buf) > 0 {
		s.write(s.buf) // what was played before; the client may be gone
	}
	if req := s.player.Refusal(); req != nil && s.script.Flavor.Refusal != nil {
		if answer := s.script.Flavor.Refusal(*req, "replay-peer: "+r.Headline()); answer != nil {
			s.write(append(answer, '\n'))
		}
	}
	s.finish(replay.Exit{Code: replay.ExitFailed})
}

func (s *session) finish(x replay.Exit) {
	s.over, s.exit = true, x
	close(s.done)
}

// leave writes the recorded last words and returns the exit code. A launch
// turned away in the meantime makes this one fail after all.
func (s *session) leave() int {
	if !s.player.Failed() && s.files.refused() {
		s.player.FailLaunch(errClaimed.Error())
		r := s.player.Report()
		if err := s.files.write(s.player.State(), r); err != nil {
			fmt.Fprintf(s.stderr, "replay-peer: %v\n", err)
		}
		fmt.Fprintf(s.stderr, "replay-peer: %s", r.Text())
		s.exit = replay.Exit{Code: replay.ExitFailed}
	}
	if s.exit.Stderr != "" {
		io.WriteString(s.stderr, s.exit.Stderr)
	}
	if s.exit.Signal != "" {
		return dieBy(s.exit.Signal, s.cfg.Process)
	}
	return s.exit.Code
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
		if !s.mu.TryLock() {
			s.blocked()
			return
		}
		s.mu.Unlock()
		s.step(func() { s.player.Close(replay.Idle) })
		last, since = s.progress.Load(), time.Now()
	}
}

// blocked ends a launch whose client does not read: the writer holds the lock
// and will not come back.
func (s *session) blocked() {
	s.writing.mu.Lock()
	r, n := s.writing.report, s.writing.bytes
	s.writing.mu.Unlock()
	defer close(s.stuck)
	if r.Failure != nil {
		return // told already; only the last words did not get through
	}
	r.Verdict, r.ExitCode = replay.Timeout, replay.ExitFailed
	r.Failure = &replay.Failure{
		Reason: "output_blocked", File: s.script.Path,
		Message: fmt.Sprintf("the client does not read: %d bytes could not be written within the idle timeout", n),
	}
	st := replay.State{Version: 1, Transcript: s.script.SHA256, Launches: r.Launches, Verdict: r.Verdict}
	if err := s.files.write(st, &r); err != nil {
		fmt.Fprintf(s.stderr, "replay-peer: %v\n", err)
	}
	fmt.Fprintf(s.stderr, "replay-peer: %s", r.Text())
}

// read hands the client's lines to the player.
func (s *session) read(stdin io.Reader) {
	limit := s.cfg.MaxLine
	if limit <= 0 {
		limit = envelope.MaxLine
	}
	err := readLines(stdin, limit, s.lines)
	s.step(func() {
		var long *lineError
		if errors.As(err, &long) {
			s.player.Illegal([]byte(long.start), err)
			return
		}
		s.player.Close(replay.EndOfInput)
	})
}

// lines takes complete lines, as many as one read brought.
func (s *session) lines(lines [][]byte) {
	s.step(func() {
		for _, line := range lines {
			s.line(line)
		}
	})
}

func (s *session) line(line []byte) {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		s.crlf = true
		line = line[:n-1]
	}
	if blank(line) {
		return
	}
	frames, err := s.codec.Decode(envelope.Out, line)
	if err != nil {
		s.player.Illegal(line, err)
		return
	}
	for _, f := range frames {
		s.player.Receive(f)
	}
}
