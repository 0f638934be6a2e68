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
	waits  []gateWait    // control connections waiting for a gate
	told   bool          // the files of the end are in place
	crlf   bool          // the client sent CR LF
	more   bool          // the client's next line is at hand: nothing is written or ended before it
	done   chan struct{} // closed when over

	progress atomic.Uint64 // counts steps and writes, for the watchdog
	sleeping atomic.Bool   // in a recorded pause: silence is expected
	writing  snapshot
	stuck    chan struct{} // closed when a write never returned; mu is lost then
}

func newSession(cfg Config, script *replay.Script, p *replay.Player, f *files, args []string, stdout, stderr io.Writer) *session {
	return &session{
		cfg: cfg, script: script, player: p, files: f, stdout: stdout, stderr: stderr,
		codec: script.Flavor.NewCodec(flavors.Launch{Args: args, Header: script.Header}), start: time.Now(), done: make(chan struct{}), stuck: make(chan struct{}),
	}
}

// run plays until the launch is over and returns the exit code.
func (s *session) run(ctx context.Context, stdin io.Reader) int {
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
	go s.read(stdin) // ends with stdin; the launch does not wait for it
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
	const end = 2 // "}" and LF: without them nobody takes a frame for whole
	last := s.buf[max(len(s.buf)-end, 0):]
	s.buf = s.buf[:len(s.buf)-len(last)]
	if !s.flush() {
		ready.drop()
		return
	}
	if err := ready.commit(); err != nil {
		s.player.FailLaunch(err.Error())
		return
	}
	s.told = true
	s.send(last)
}

// fail tells of a failure on every channel and ends the launch.
func (s *session) fail() {
	if s.over {
		return
	}
	s.tell()
	if len(s.buf) > 0 {
		s.write(s.stdout, s.buf) // what was played before; the client may be gone
	}
	if req := s.player.Refusal(); req != nil && s.script.Flavor.Refusal != nil {
		if answer := s.script.Flavor.Refusal(*req, "replay-peer: "+s.player.Report().Headline()); answer != nil {
			s.write(s.stdout, append(answer, '\n'))
		}
	}
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

// read hands the client's lines to the player.
func (s *session) read(stdin io.Reader) {
	s.step(func() { s.buf = s.codec.Greeting(s.buf) }) // and what comes before the client's first frame
	limit := s.cfg.MaxLine
	if limit <= 0 {
		limit = envelope.MaxLine
	}
	var err error
	if s.script.Flavor.Prose {
		readProse(stdin, s.prose)
	} else {
		err = readLines(stdin, limit, s.lines)
	}
	s.step(func() {
		var long *lineError
		if errors.As(err, &long) {
			s.player.Illegal([]byte(long.start), err)
			return
		}
		frames, err := s.codec.End(envelope.Out)
		s.frames(nil, frames, err)
		s.player.Close(replay.EndOfInput)
	})
}

// lines takes complete lines, as many as one read brought. Each is played
// before the next is looked at, so that it makes no difference how many came
// at once.
func (s *session) lines(lines [][]byte) {
	s.step(func() {
		for i, line := range lines {
			s.line(line)
			if i == len(lines)-1 {
				return // step plays on
			}
			s.more = true
			s.pump()
			s.more = false
			if s.over {
				return
			}
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
	s.frames(line, frames, err)
}

// prose takes text as it comes.
func (s *session) prose(text []byte) {
	s.step(func() {
		frames, err := s.codec.Decode(envelope.Out, text)
		s.frames(text, frames, err)
	})
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
