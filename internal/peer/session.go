package peer

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

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
	wire   wire
	wake   *time.Timer // ends a Sleep
	over   bool
	exit   replay.Exit
	waits  []gateWait    // control connections waiting for a gate
	told   bool          // the files of the end are in place
	more   bool          // the client's next line is at hand: nothing is written or ended before it
	done   chan struct{} // closed when over

	progress atomic.Uint64 // counts steps and writes, for the watchdog
	sleeping atomic.Bool   // in a recorded pause: silence is expected
	writing  snapshot
	stuck    chan struct{} // closed when a write never returned; mu is lost then
}

// wire is how frames travel. Everything but open and close is called with the
// session's lock held.
type wire interface {
	// open takes the wire into use: what the client sends goes to the session
	// from now on.
	open() error
	// emit gathers one frame for the client. It returns false when the launch
	// is over.
	emit(replay.Action) bool
	// flush delivers what has gathered, and returns false when that failed and
	// the launch is over: a frame that was not delivered was not played.
	flush() bool
	// hold is flush without the end of the last frame, which last delivers.
	hold() (last func(), ok bool)
	// refuse delivers what has gathered, in spite of a failure, and tells the
	// client of it.
	refuse(message string)
	// close takes the wire out of use; abruptly as a crash does.
	close(abruptly bool)
}

func newSession(cfg Config, script *replay.Script, p *replay.Player, f *files, args []string, stdin io.Reader, stdout, stderr io.Writer) *session {
	s := &session{
		cfg: cfg, script: script, player: p, files: f, stdout: stdout, stderr: stderr,
		codec: script.Flavor.NewCodec(flavors.Launch{Args: args, Header: script.Header}), start: time.Now(), done: make(chan struct{}), stuck: make(chan struct{}),
	}
	if script.Flavor.Transport == flavors.HTTP {
		s.wire = newHTTPWire(s, args)
	} else {
		s.wire = &stdioWire{s: s, in: stdin}
	}
	return s
}

// run plays until the launch is over and returns the exit code.
func (s *session) run(ctx context.Context) int {
	if err := s.files.write(s.player.State(), s.player.Report()); err != nil {
		s.say(fmt.Sprintf("replay-peer: %v\n", err))
		return replay.ExitFailed
	}
	var owned sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	stopControl := func() {}
	if s.cfg.Control != "" {
		stop, err := s.listen()
		if err != nil {
			cancel()
			s.player.FailLaunch(err.Error())
			s.tell()
			return replay.ExitFailed
		}
		stopControl = stop
	}
	owned.Go(func() { s.watchdog(ctx) })
	if s.cfg.Process {
		owned.Go(s.watchProcess(ctx))
	}
	stopped := context.AfterFunc(ctx, func() { s.step(func() { s.player.Close(replay.Terminated) }) })
	if err := s.wire.open(); err != nil {
		s.step(func() { s.player.FailLaunch(err.Error()) })
	}
	select {
	case <-s.done:
	case <-s.stuck: // whoever wants the lock waits for ever
		stopped()
		cancel()
		return replay.ExitFailed
	}
	stopped()
	cancel()
	owned.Wait()
	defer stopControl()
	s.wire.close(s.crashed())
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
	if !s.over {
		s.pump()
	}
	s.tellGates()
}

// pump runs the player until it waits for somebody. While more is set it
// leaves what has gathered, and an end, to the call for the last line.
func (s *session) pump() {
	for {
		act := s.player.Next(time.Since(s.start))
		if s.more && act.Kind != replay.Emit && act.Kind != replay.Fail {
			return
		}
		switch act.Kind {
		case replay.Emit:
			if !s.wire.emit(act) {
				return
			}
		case replay.Wait, replay.Held:
			s.wire.flush()
			return
		case replay.Sleep:
			if s.wire.flush() {
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

func (s *session) sleep(d time.Duration) {
	s.sleeping.Store(true)
	if s.wake != nil {
		s.wake.Stop()
	}
	s.wake = time.AfterFunc(d, func() { s.step(func() {}) })
}

// settle puts the files of a launch that was played to its end in place just
// before the end of the last frame is written. A client that ends the peer
// once it has that frame finds a report that knows it.
func (s *session) settle() {
	if s.told {
		s.wire.flush()
		return
	}
	if s.files.refused() {
		s.player.FailLaunch(errClaimed.Error())
		return
	}
	ready, err := s.files.stage(s.player.State(), s.player.Report())
	if err != nil {
		s.player.FailLaunch(err.Error())
		return
	}
	last, ok := s.wire.hold()
	if !ok {
		ready.drop()
		return
	}
	if err := ready.commit(); err != nil {
		s.player.FailLaunch(err.Error())
		return
	}
	s.told = true
	last()
}

// fail tells of a failure on every channel and ends the launch.
func (s *session) fail() {
	if s.over {
		return
	}
	s.tell()
	s.wire.refuse("replay-peer: " + s.player.Report().Headline())
	s.finish(replay.Exit{Code: replay.ExitFailed})
}

// tell writes a failure to the files and to stderr.
func (s *session) tell() {
	r := s.player.Report()
	if err := s.files.write(s.player.State(), r); err != nil {
		s.say(fmt.Sprintf("replay-peer: %v\n", err))
	}
	s.say("replay-peer: " + r.Text())
}

func (s *session) finish(x replay.Exit) {
	s.over, s.exit = true, x
	close(s.done)
}

// crashed says whether the recorded process ended without saying goodbye.
func (s *session) crashed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.player.Failed() && (s.exit.Code != 0 || s.exit.Signal != "")
}

// leave writes the recorded last words and returns the exit code. A launch
// turned away in the meantime makes this one fail after all.
func (s *session) leave() int {
	if !s.player.Failed() && s.files.refused() {
		s.player.FailLaunch(errClaimed.Error())
		s.tell()
		s.exit = replay.Exit{Code: replay.ExitFailed}
	}
	if s.exit.Stderr != "" {
		s.say(s.exit.Stderr)
	}
	if s.exit.Signal != "" {
		return dieBy(s.exit.Signal, s.cfg.Process)
	}
	return s.exit.Code
}

// frames hands what the codec made of a message to the player.
func (s *session) frames(wire []byte, frames []flavors.Frame, err error) {
	if err != nil {
		s.player.Illegal(wire, err)
		return
	}
	for _, f := range frames {
		s.player.Receive(f)
	}
}
