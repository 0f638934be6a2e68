package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/replaypeer/replaypeer/internal/proc"
)

// linger is how long output is waited for after the provider is gone: only a
// process that left its group can still hold the pipe.
const linger = time.Second

// tap stands between a client and one provider process.
type tap struct {
	p      *proc.Process
	order  *order
	output sync.WaitGroup // the pumps of stdout and stderr
	pumps  []*pump

	mu       sync.Mutex
	signaled bool // the client sent a signal
	unasked  bool // the client's input has ended
	outlived bool // it had when the provider's output ended
	err      error

	abort     chan struct{} // closed by a signal after the provider's end
	abortOnce sync.Once
}

// ending is how the provider ended.
type ending struct {
	exit     proc.Exit
	signaled bool // the client sent a signal before
	closed   bool // the client's input had ended before its output did
}

func startTap(p *proc.Process, s Streams, maxLine int) *tap {
	t := &tap{p: p, order: newOrder(), abort: make(chan struct{})}
	in := &pump{from: fromClient, src: s.Stdin, dst: p.Stdin, tap: t, maxLine: maxLine}
	go func() {
		in.run()
		t.mu.Lock()
		t.unasked = true
		t.mu.Unlock()
		if ticket, ok := t.order.take(); ok {
			t.order.put(ticket, &message{from: clientEnd})
		}
		p.Stdin.Close()
	}()
	t.drain(&pump{from: fromStdout, file: p.Stdout, dst: s.Stdout, maxLine: maxLine}, s.Stdout)
	t.drain(&pump{from: fromStderr, file: p.Stderr, dst: s.Stderr, maxLine: maxLine}, nil)
	return t
}

// drain runs a pump of the provider's output. When either side closes its
// end, so does the other: the provider's pipe breaks and the client sees the
// end, as they would without a tap.
func (t *tap) drain(p *pump, client io.Closer) {
	p.tap = t
	if p.src == nil {
		p.src = p.file
	}
	t.pumps = append(t.pumps, p)
	t.output.Go(func() {
		p.run()
		if p.from == fromStdout { // before the client can know of it, and close because of it
			t.mu.Lock()
			t.outlived = t.unasked
			t.mu.Unlock()
		}
		p.file.Close()
		if client != nil {
			client.Close()
		}
	})
}

// wait passes signals on until the provider has ended and its output is
// forwarded, and closes the sequence with the ending.
func (t *tap) wait(ctx context.Context, signals []os.Signal) proc.Exit {
	if len(signals) > 0 {
		stop := proc.Forward(t.p, t.noteSignal, signals...)
		defer stop()
	}
	select {
	case <-t.p.Done():
	case <-ctx.Done():
		t.noteSignal(nil)
		t.p.Stop(ctx) // ctx has ended: this kills
	}
	for _, p := range t.pumps {
		p.lingering()
	}
	drained := make(chan struct{})
	go func() {
		t.output.Wait()
		close(drained)
	}()
	forced := false
	select {
	case <-drained:
	case <-t.abort:
		forced = true
	}
	t.p.Stdin.Close() // nothing is sent any more
	exit := t.p.Wait()
	t.mu.Lock()
	end := &ending{exit: exit, signaled: t.signaled, closed: t.outlived}
	t.mu.Unlock()
	t.order.finish(&message{from: fromProcess, end: end}, forced)
	return exit
}

// noteSignal remembers that the client ended the provider. After the
// provider's end there is nobody to pass a signal on to: it then ends the
// wait for a client that does not read.
func (t *tap) noteSignal(os.Signal) {
	select {
	case <-t.p.Done():
		t.abortOnce.Do(func() { close(t.abort) })
	default:
		t.mu.Lock()
		t.signaled = true
		t.mu.Unlock()
	}
}

func (t *tap) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = errors.Join(t.err, err)
}

// failure returns what was not recorded, nil when all was.
func (t *tap) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// pump copies one pipe and hands in its lines.
type pump struct {
	from    source
	src     io.Reader
	dst     io.Writer
	file    *os.File // src, where reading can be given up; or nil
	tap     *tap
	maxLine int

	last    atomic.Bool // the provider is gone: wait no longer than linger
	pending []byte      // the line that is not complete yet
	skip    bool        // the rest of a line that is too long
}

// placed is a line that has its ticket.
type placed struct {
	ticket ticket
	line   []byte
	end    int // index in the chunk after its LF
}

// run copies until the source ends or the destination is closed.
func (p *pump) run() {
	buf := make([]byte, 64<<10)
	for {
		if p.last.Load() {
			p.file.SetReadDeadline(time.Now().Add(linger))
		}
		n, err := p.src.Read(buf)
		if n > 0 && !p.pass(buf[:n]) {
			return
		}
		if err != nil {
			break
		}
	}
	if len(p.pending) > 0 {
		if t, ok := p.tap.order.take(); ok {
			p.tap.order.put(t, &message{from: p.from, line: p.pending})
		}
	}
}

// lingering makes the pump give up when nothing more arrives.
func (p *pump) lingering() {
	p.last.Store(true)
	p.file.SetReadDeadline(time.Now().Add(linger))
}

// pass takes the tickets of the lines that end in the chunk, forwards the
// chunk, and hands the lines in that got through. It returns false when the
// destination is closed.
func (p *pump) pass(chunk []byte) bool {
	lines := p.lines(chunk)
	n, err := p.dst.Write(chunk)
	for _, l := range lines {
		if l.end > n {
			p.tap.order.put(l.ticket, nil)
			continue
		}
		p.tap.order.put(l.ticket, &message{from: p.from, line: l.line})
	}
	return err == nil
}

func (p *pump) lines(chunk []byte) (lines []placed) {
	for at := 0; at < len(chunk); {
		n := bytes.IndexByte(chunk[at:], '\n')
		if n < 0 {
			p.keep(chunk[at:])
			return lines
		}
		p.keep(chunk[at : at+n+1])
		at += n + 1
		line, skipped := p.pending, p.skip
		p.pending, p.skip = nil, false
		if skipped {
			continue
		}
		if t, ok := p.tap.order.take(); ok {
			lines = append(lines, placed{t, line, at})
		}
	}
	return lines
}

// keep adds to the pending line, up to the limit.
func (p *pump) keep(part []byte) {
	if p.skip {
		return
	}
	if len(p.pending)+len(part) > p.maxLine {
		p.tap.fail(fmt.Errorf("a message is longer than %d bytes", p.maxLine))
		p.pending, p.skip = nil, true
		return
	}
	p.pending = append(p.pending, part...)
}
