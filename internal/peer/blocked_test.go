//go:build unix

package peer

import (
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/replaypeer/replaypeer/internal/replay"
)

// big is a frame that no pipe takes at once.
var big = `{"method":"big","params":{"text":"` + strings.Repeat("x", 1<<20) + `"}}`

// A client that does not read ends in a report, whatever else it does.
func TestClientDoesNotRead(t *testing.T) {
	ask := `> initialize {"id":1,"method":"initialize"}`
	answer := `< initialize {"id":1,"result":{}}`
	tests := []struct {
		name  string
		lines []string
		do    op
		label string
	}{
		{"stdout", []string{ask, answer, "< big " + big, exitSuccess}, op{}, ""},
		{"stdout from the start", []string{"< big " + big, ask, answer, exitSuccess}, op{}, "initialize"},
		{"stderr", []string{ask, answer, `{"type":"emit_inbound","channel":"stderr","label":"noise","frame":"` + strings.Repeat("x", 1<<20) + `"}`, exitSuccess}, op{}, ""},
		{"stdout, and is told to end", []string{ask, answer, "< big " + big, exitSuccess}, signals(syscall.SIGTERM), ""},
		{"stdout, and asks on the control socket", []string{ask, answer, "< big " + big, exitSuccess},
			does("status", func(p *process) error {
				c, err := net.Dial("unix", filepath.Join(p.cmd.Dir, "control"))
				if err != nil {
					return err
				}
				t.Cleanup(func() { c.Close() })
				_, err = c.Write([]byte("status\n")) // gets no answer
				return err
			}), ""},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			writeFile(t, filepath.Join(dir, "t.ndjson"), entries(c.lines...))
			p := startPeerUnread(t, dir, Config{Transcript: "t.ndjson", Report: "report.json", State: "state", Control: filepath.Join(dir, "control"), IdleTimeout: soonTimeout})
			if err := p.send([]byte(`{"id":1,"method":"initialize"}`)); err != nil {
				t.Fatal(err)
			}
			if c.lines[0] == ask && c.name != "stderr" {
				if line, err := p.recv(); err != nil || line != `{"id":1,"result":{}}` {
					t.Fatalf("got %q, %v", line, err)
				}
			}
			if c.do.do != nil {
				if err := c.do.do(p); err != nil {
					t.Fatal(err)
				}
			}
			if code, sig := p.wait(t); code != replay.ExitFailed {
				t.Errorf("exit code %d, signal %v", code, sig)
			}
			r := readReport(t, dir, "report.json")
			if r.Verdict != replay.Timeout || reasonOf(r) != "output_blocked" || r.Failure.Label != c.label || r.Failure.Line == 0 {
				t.Errorf("report is %s: %+v", r.Verdict, r.Failure)
			}
			next := startPeer(t, dir, Config{Transcript: "t.ndjson", Report: "report.json", State: "state"})
			if code, _ := next.wait(t); code != replay.ExitFailed {
				t.Errorf("the next launch exits with %d", code)
			}
		})
	}
}

// startPeerUnread starts a peer whose stderr is a pipe that nobody reads.
func startPeerUnread(t *testing.T, dir string, cfg Config) *process {
	t.Helper()
	r, w := pipe(t)
	t.Cleanup(func() { r.Close() })
	p := newProcess(t, dir, cfg)
	p.cmd.Stderr = w
	p.start(t)
	w.Close()
	return p
}
