//go:build unix

package peer

import (
	"bufio"
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/internal/replay"
)

// interrupt is a turn that ends some time after its interrupt was
// acknowledged.
var interrupt = []string{
	`< ready {"method":"ready"}`, // the control socket is there before it
	`> interrupt {"id":1,"method":"turn/interrupt","params":{"threadId":"th-1","turnId":"tu-1"}}`,
	`< interrupt {"id":1,"result":{}}`,
	`< turn/completed {"method":"turn/completed","params":{"threadId":"th-1","turn":{"id":"tu-1","status":"interrupted"}}}`,
	`< turn/completed {"method":"turn/completed","params":{"threadId":"th-2","turn":{"id":"tu-2","status":"interrupted"}}}`,
	exitSuccess,
}

// steered is a peer with a control socket.
type steered struct {
	*process
	t   *testing.T
	dir string
}

func steer(t *testing.T, lines []string, set func(*Config)) *steered {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "t.ndjson"), entries(lines...))
	cfg := Config{Transcript: "t.ndjson", Report: "report.json", Control: "control", IdleTimeout: patience}
	if set != nil {
		set(&cfg)
	}
	s := &steered{startPeer(t, dir, cfg), t, dir}
	s.gets("ready")
	return s
}

func hold(labels ...string) func(*Config) { return func(cfg *Config) { cfg.Hold = labels } }

// do sends one command and wants no error.
func (s *steered) do(line string) *Status {
	s.t.Helper()
	st, err := s.ask(line)
	if err != nil {
		s.t.Fatalf("%s: %v", line, err)
	}
	return st
}

func (s *steered) ask(line string) (*Status, error) {
	return Command(s.ctx, filepath.Join(s.dir, "control"), line)
}

// gets wants one line of the peer.
func (s *steered) gets(part string) {
	s.t.Helper()
	if line, err := s.recv(); err != nil || !strings.Contains(line, part) {
		s.t.Fatalf("got %q, %v: want %s\n%s", line, err, part, s.errors(s.t))
	}
}

// silent wants nothing to be readable now. It proves something after a round
// trip on the control socket, which the peer makes after its writes.
func (s *steered) silent() {
	s.t.Helper()
	raw, err := s.out.SyscallConn()
	if err != nil {
		s.t.Fatal(err)
	}
	b := make([]byte, 100)
	var n int
	var readErr error
	if err := raw.Read(func(fd uintptr) bool {
		n, readErr = syscall.Read(int(fd), b)
		return true
	}); err != nil {
		s.t.Fatal(err)
	}
	if !errors.Is(readErr, syscall.EAGAIN) || s.lines.Buffered() > 0 {
		s.t.Fatalf("the client sees %q, %v before it should", b[:max(n, 0)], readErr)
	}
}

func (s *steered) ends(code int, v replay.Verdict) {
	s.t.Helper()
	s.in.Close()
	if rest, err := s.rest(); rest != "" || err != nil {
		s.t.Errorf("stdout goes on with %q, %v", rest, err)
	}
	if got, _ := s.wait(s.t); got != code {
		s.t.Errorf("exit code %d: want %d\n%s", got, code, s.errors(s.t))
	}
	if got := readReport(s.t, s.dir, "report.json").Verdict; got != v {
		s.t.Errorf("report is %s: want %s", got, v)
	}
}

func (s *steered) interrupt() {
	s.t.Helper()
	if err := s.send([]byte(`{"id":9,"method":"turn/interrupt","params":{"threadId":"th-1","turnId":"tu-1"}}`)); err != nil {
		s.t.Fatal(err)
	}
	s.gets(`{"id":9,"result":{}}`)
}

// An interrupt's acknowledgement is not the end of the turn: a gate makes the
// time between them as long as a test needs.
func TestGate(t *testing.T) {
	t.Parallel()
	s := steer(t, interrupt, hold("turn/completed"))
	s.interrupt()
	want := &Status{Version: 1, Verdict: replay.Running, Cursor: 3, Total: 6, Launch: 1, Held: "turn/completed",
		Awaiting: replay.Awaited{{Line: 5, Label: "turn/completed", Type: "emit_inbound"}}}
	if d := cmp.Diff(want, s.do("wait turn/completed")); d != "" {
		t.Errorf("status (-want +got):\n%s", d)
	}
	if d := cmp.Diff(want, s.do("status")); d != "" {
		t.Errorf("status (-want +got):\n%s", d)
	}
	s.silent()
	s.do("release turn/completed")
	s.gets("th-1")
	s.do("wait turn/completed") // the next one
	s.silent()
	s.do("release turn/completed")
	s.gets("th-2")
	if st := s.do("status"); st.Verdict != replay.Passed || st.Held != "" {
		t.Errorf("status at the end: %+v", st)
	}
	s.ends(0, replay.Passed)
}

func TestGateOfOneOccurrence(t *testing.T) {
	t.Parallel()
	s := steer(t, interrupt, hold("turn/completed#2"))
	s.interrupt()
	s.gets("th-1")
	s.do("wait turn/completed#2")
	s.silent()
	s.do("release turn/completed#2")
	s.gets("th-2")
	s.ends(0, replay.Passed)
}

// A release before the gate is reached counts, once.
func TestReleaseAhead(t *testing.T) {
	t.Parallel()
	s := steer(t, interrupt, hold("turn/completed"))
	s.do("release turn/completed")
	s.interrupt()
	s.gets("th-1")
	s.do("wait turn/completed")
	s.silent()
	s.do("release turn/completed")
	s.gets("th-2")
	s.ends(0, replay.Passed)
}

func TestPauseStepResume(t *testing.T) {
	t.Parallel()
	s := steer(t, interrupt, nil)
	if st := s.do("pause"); !st.Paused || st.Cursor != 2 { // the expectation is open already
		t.Errorf("status after pause: %+v", st)
	}
	if err := s.send([]byte(`{"id":9,"method":"turn/interrupt","params":{"threadId":"th-1","turnId":"tu-1"}}`)); err != nil {
		t.Fatal(err)
	}
	s.do("step")
	s.gets(`{"id":9,"result":{}}`)
	s.do("status")
	s.silent()
	s.do("step")
	s.gets("th-1")
	s.do("status")
	s.silent()
	if st := s.do("resume"); st.Paused {
		t.Errorf("status after resume: %+v", st)
	}
	s.gets("th-2")
	s.ends(0, replay.Passed)
}

func TestVirtualPace(t *testing.T) {
	t.Parallel()
	lines := append([]string(nil), interrupt...)
	lines[2] = `{"type":"emit_inbound","label":"interrupt","frame":{"id":1,"result":{}},"afterMs":0}`
	lines[3] = `{"type":"emit_inbound","label":"turn/completed","frame":{"method":"turn/completed","params":{"n":1}},"afterMs":3600000}`
	lines[4] = `{"type":"emit_inbound","label":"turn/completed","frame":{"method":"turn/completed","params":{"n":2}},"afterMs":50}`
	s := steer(t, lines, func(cfg *Config) { cfg.Pace = "virtual" })
	s.interrupt()
	s.do("advance 59m59.999s")
	s.silent()
	s.do("advance 1ms")
	s.gets(`"n":1`)
	s.do("status")
	s.silent()
	s.do("advance 50ms")
	s.gets(`"n":2`)
	s.ends(0, replay.Passed)
}

func TestControlMistakes(t *testing.T) {
	t.Parallel()
	s := steer(t, interrupt, hold("turn/completed"))
	for line, want := range map[string]string{
		"":                `unknown command ""`,
		"restart":         `unknown command "restart": want pause, resume, step, release LABEL, advance DUR, wait LABEL or status`,
		"release nothing": `no gate at label "nothing"`,
		"wait nothing":    `no gate at label "nothing"`,
		"advance soon":    `invalid duration "soon"`,
		"advance 1s":      `advance needs the virtual pace`,
	} {
		st, err := s.ask(line)
		if err == nil || !strings.Contains(err.Error(), want) || st == nil || st.Verdict != replay.Running {
			t.Errorf("%q: %v, want %s", line, err, want)
		}
	}
	waits := make(chan error)
	go func() { _, err := s.ask("wait turn/completed"); waits <- err }()
	s.do("status")
	s.ends(replay.ExitFailed, replay.Leftover)
	if err := <-waits; err == nil {
		t.Error("a wait for a gate that was never reached succeeds")
	}
	if st, err := s.ask("status"); err == nil {
		t.Errorf("a peer that is gone says %+v", st)
	}
}

// Nobody waits for ever: not at a gate, not in a pause, not for the clock.
func TestNeverReleased(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*Config)
		do   string
		want string
	}{
		{"gate", func(cfg *Config) { cfg.Hold = []string{"turn/completed"} }, "status", `the gate at label "turn/completed" was not released within the idle timeout`},
		{"pause", func(*Config) {}, "pause", "playing was paused and not resumed within the idle timeout"},
		{"clock", func(cfg *Config) { cfg.Pace = "virtual" }, "status", "the virtual clock was not advanced within the idle timeout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			lines := append([]string(nil), interrupt...)
			lines[3] = `{"type":"emit_inbound","label":"turn/completed","frame":{"method":"turn/completed"},"afterMs":5}`
			s := steer(t, lines, func(cfg *Config) {
				cfg.IdleTimeout = soonTimeout
				c.set(cfg)
			})
			s.do(c.do)
			if err := s.send([]byte(`{"id":9,"method":"turn/interrupt","params":{"threadId":"th-1","turnId":"tu-1"}}`)); err != nil {
				t.Fatal(err)
			}
			if _, err := s.rest(); err != nil {
				t.Fatal(err)
			}
			s.ends(replay.ExitFailed, replay.Timeout)
			if text := firstLine(s.errors(t)); !strings.Contains(text, c.want) {
				t.Errorf("stderr %q: want %q", text, c.want)
			}
		})
	}
}

// Asking how things stand is not something that happens: it does not keep a
// peer alive.
func TestStatusDoesNotKeepAlive(t *testing.T) {
	t.Parallel()
	s := steer(t, interrupt, func(cfg *Config) { cfg.Hold, cfg.IdleTimeout = []string{"turn/completed"}, soonTimeout })
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	asked := make(chan int)
	go func() {
		n := 0
		for ctx.Err() == nil {
			if _, err := s.ask("status"); err != nil && n > 0 {
				break
			}
			n++
		}
		asked <- n
	}()
	if _, err := s.rest(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if n := <-asked; n == 0 {
		t.Error("no status was asked for")
	}
	s.ends(replay.ExitFailed, replay.Timeout)
}

// Several commands go over one connection, and several peers can't share a
// socket. A socket that a killed peer left is replaced.
func TestControlSocket(t *testing.T) {
	t.Parallel()
	s := steer(t, interrupt, hold("turn/completed"))
	s.interrupt()
	c, err := net.Dial("unix", filepath.Join(s.dir, "control"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	in := bufio.NewScanner(c)
	for range 3 {
		if _, err := c.Write([]byte("status\n")); err != nil || !in.Scan() || !strings.Contains(in.Text(), `"verdict":"running"`) {
			t.Fatalf("%v, %q", err, in.Text())
		}
	}
	second := startPeer(t, s.dir, Config{Transcript: "t.ndjson", Report: "second.json", Control: "control"})
	if code, _ := second.wait(t); code != replay.ExitFailed || !strings.Contains(second.errors(t), "control socket control: another peer listens on it") {
		t.Errorf("exit code %d: %s", code, second.errors(t))
	}
	if r := readReport(t, s.dir, "second.json"); r.Verdict != replay.Unexpected || reasonOf(r) != "launch" {
		t.Errorf("report is %s, %s", r.Verdict, reasonOf(r))
	}
	s.cmd.Process.Kill()
	s.wait(t)
	third := &steered{startPeer(t, s.dir, Config{Transcript: "t.ndjson", Report: "third.json", Control: "control"}), t, s.dir}
	third.gets("ready")
	third.interrupt()
	third.do("status")
}
