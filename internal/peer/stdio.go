package peer

import (
	"errors"
	"fmt"
	"io"

	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// batch is how much output is gathered before it is written, and how much is
// written at a time, in bytes.
const batch = 64 << 10

// stdioWire is one message a line, on the process's stdin and stdout.
type stdioWire struct {
	s   *session
	in  io.Reader
	buf []byte // output not written yet
}

// open starts reading. The reader ends with stdin; the launch does not wait
// for it.
func (w *stdioWire) open() error {
	go w.read()
	return nil
}

func (w *stdioWire) close(bool) {}

func (w *stdioWire) emit(act replay.Action) bool {
	s := w.s
	switch act.Channel {
	case envelope.Protocol:
		buf, err := s.codec.Encode(w.buf, envelope.In, act.Frame, act.ID)
		if err != nil {
			s.player.Illegal(act.Frame.Raw, fmt.Errorf("recorded frame can't be encoded: %v", err))
			return true
		}
		w.buf = buf
	case envelope.Stdout:
		w.buf = append(w.buf, envelope.Unquote(act.Frame.Raw)...)
	case envelope.Stderr:
		if !w.flush() {
			return false
		}
		_ = s.write(s.stderr, []byte(envelope.Unquote(act.Frame.Raw))) // a client may have closed it
	default:
		s.player.Illegal(act.Frame.Raw, fmt.Errorf("channel %q", act.Channel)) // unreachable unless a Channel is added
	}
	if len(w.buf) < batch {
		return true
	}
	return w.flush()
}

func (w *stdioWire) flush() bool {
	b := w.buf
	w.buf = w.buf[:0]
	if cap(w.buf) > 1<<20 {
		w.buf = nil
	}
	return w.send(b)
}

func (w *stdioWire) send(b []byte) bool {
	if len(b) == 0 || w.s.write(w.s.stdout, b) == nil {
		return true
	}
	w.s.player.Close(replay.OutputClosed)
	w.s.fail()
	return false
}

func (w *stdioWire) hold() (last func(), ok bool) {
	const end = 2 // "}" and LF: without them nobody takes a frame for whole
	tail := w.buf[max(len(w.buf)-end, 0):]
	w.buf = w.buf[:len(w.buf)-len(tail)]
	if !w.flush() {
		return nil, false
	}
	return func() { w.send(tail) }, true
}

func (w *stdioWire) refuse(message string) {
	s := w.s
	if len(w.buf) > 0 {
		s.write(s.stdout, w.buf) // what was played before; the client may be gone
	}
	if req := s.player.Refusal(); req != nil && s.script.Flavor.Refusal != nil {
		if answer := s.script.Flavor.Refusal(*req, message); answer != nil {
			s.write(s.stdout, append(answer, '\n'))
		}
	}
}

// read hands the client's lines to the player.
func (w *stdioWire) read() {
	s := w.s
	s.step(func() { w.buf = s.codec.Greeting(w.buf) }) // and what comes before the client's first frame
	limit := s.cfg.MaxLine
	if limit <= 0 {
		limit = envelope.MaxLine
	}
	var err error
	if s.script.Flavor.Prose {
		readProse(w.in, w.prose)
	} else {
		err = readLines(w.in, limit, w.lines)
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
func (w *stdioWire) lines(lines [][]byte) {
	s := w.s
	s.step(func() {
		for i, line := range lines {
			w.line(line)
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

func (w *stdioWire) line(line []byte) {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		w.s.player.Warn("the client ended lines with CR LF")
		line = line[:n-1]
	}
	if blank(line) {
		return
	}
	if f, ok := w.s.player.Expected(line); ok {
		w.s.player.Receive(f)
		return
	}
	frames, err := w.s.codec.Decode(envelope.Out, line)
	w.s.frames(line, frames, err)
}

// prose takes text as it comes.
func (w *stdioWire) prose(text []byte) {
	w.s.step(func() {
		frames, err := w.s.codec.Decode(envelope.Out, text)
		w.s.frames(text, frames, err)
	})
}
