//go:build unix

package peer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// orderRuns is how often each order is played.
const orderRuns = 1000

// memoryWire is a listener in memory. What the server writes has arrived when
// the write returns, so that arrived is the order in which the client gets it,
// whatever the connection.
type memoryWire struct {
	conns chan net.Conn
	done  chan struct{}

	mu      sync.Mutex
	arrived []byte
}

func newMemoryWire() *memoryWire {
	return &memoryWire{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (m *memoryWire) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	in := &inbox{}
	in.news.L = &in.mu
	select {
	case m.conns <- serverConn{server, in, m}:
		return clientConn{client, in}, nil
	case <-m.done:
		return nil, net.ErrClosed
	}
}

func (m *memoryWire) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.done:
		return nil, net.ErrClosed
	}
}

func (m *memoryWire) Close() error {
	select {
	case <-m.done:
	default:
		close(m.done)
	}
	return nil
}

func (m *memoryWire) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// inbox is what a client has got and not read yet.
type inbox struct {
	mu     sync.Mutex
	news   sync.Cond
	buf    []byte
	closed bool
}

func (in *inbox) change(b []byte, closed bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.buf, in.closed = append(in.buf, b...), in.closed || closed
	in.news.Broadcast()
}

// serverConn writes to an inbox, and reads from a pipe.
type serverConn struct {
	net.Conn
	to *inbox
	m  *memoryWire
}

func (c serverConn) Write(b []byte) (int, error) {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	c.m.arrived = append(c.m.arrived, b...)
	c.to.change(b, false)
	return len(b), nil
}

func (c serverConn) Close() error {
	c.to.change(nil, true)
	return c.Conn.Close()
}

// clientConn is the other end.
type clientConn struct {
	net.Conn
	from *inbox
}

func (c clientConn) Read(b []byte) (int, error) {
	in := c.from
	in.mu.Lock()
	defer in.mu.Unlock()
	for len(in.buf) == 0 {
		if in.closed {
			return 0, io.EOF
		}
		in.news.Wait()
	}
	n := copy(b, in.buf)
	in.buf = in.buf[n:]
	return n, nil
}

func (c clientConn) Close() error {
	c.from.change(nil, true)
	return c.Conn.Close()
}

// replayInMemory plays a transcript without a process or a socket, and returns
// all that the client got.
func replayInMemory(t *testing.T, script *replay.Script, tr *envelope.Transcript) []byte {
	player, err := replay.New(script, replay.Options{Workspace: workspace}, replay.State{})
	if err != nil {
		t.Error(err)
		return nil
	}
	defer player.Stop()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := newSession(Config{IdleTimeout: patience}, script, player, &files{}, nil, nil, io.Discard, io.Discard)
	m := newMemoryWire()
	s.wire.(*httpWire).l = m
	exit := make(chan int, 1)
	go func() { exit <- s.run(ctx) }()
	c := newHTTPClient(t, "http://memory", workspace)
	c.http = &http.Client{Transport: &http.Transport{DialContext: m.dial}}
	err = c.play(tr)
	c.close()
	cancel()
	if code := <-exit; err != nil || code != 0 {
		t.Error(errors.Join(err), code, player.Report().Text())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.arrived
}

// The order of answers and events is the transcript's, every time: as
// recorded, and with the two exchanged.
func TestOpenCodeOrder(t *testing.T) {
	for _, o := range []struct {
		name, file    string
		answer, event string // labels of two entries
		marks         []string
	}{
		{
			"idle before the answer to abort", "interrupt", "session.abort", "session.idle",
			[]string{`{"type":"idle"}`, "\r\n\r\ntrue"},
		},
		{
			"user message before the answer to prompt", "user_first", "session.promptAsync", "user",
			[]string{`"role":"user"`, "204 No Content"},
		},
	} {
		t.Run(o.name, func(t *testing.T) {
			text := readFile(t, "testdata/opencode/"+o.file+".ndjson")
			checkOrder(t, text, o.marks, orderRuns)
		})
		t.Run("not "+o.name, func(t *testing.T) {
			text := answerFirst(t, readFile(t, "testdata/opencode/"+o.file+".ndjson"), o.answer)
			slices.Reverse(o.marks)
			checkOrder(t, text, o.marks, orderRuns/10)
		})
	}
}

// answerFirst moves a recorded answer right behind its call.
func answerFirst(t *testing.T, text, label string) string {
	lines := strings.Split(text, "\n")
	find := func(kind string) int {
		return slices.IndexFunc(lines, func(l string) bool {
			return strings.Contains(l, `"type":"`+kind+`","label":"`+label+`"`)
		})
	}
	call, answer := find("expect_outbound"), find("emit_inbound")
	if call < 0 || answer < call {
		t.Fatalf("%s: call %d, answer %d", label, call, answer)
	}
	moved := lines[answer]
	lines = slices.Delete(lines, answer, answer+1)
	return strings.Join(slices.Insert(lines, call+1, moved), "\n")
}

func checkOrder(t *testing.T, text string, marks []string, runs int) {
	path := writeFile(t, t.TempDir()+"/t.ndjson", text)
	script, err := replay.Load(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	tr := readTranscript(t, path)
	const workers = 25
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range runs / workers {
				got := replayInMemory(t, script, tr)
				first, second := bytes.Index(got, []byte(marks[0])), bytes.Index(got, []byte(marks[1]))
				if first < 0 || second < 0 || first > second {
					t.Errorf("%q at %d, %q at %d", marks[0], first, marks[1], second)
				}
				if t.Failed() {
					return
				}
			}
		})
	}
	wg.Wait()
}
