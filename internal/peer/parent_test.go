//go:build unix

package peer

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/replaypeer/replaypeer/internal/replay"
)

// middle starts the peer on its own stdin and stdout and waits for it, so
// that a test can kill the peer's parent and keep the peer's pipes.
func middle() int {
	exe, err := os.Executable()
	if err != nil {
		return 1
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childMiddle+"=")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return cmd.ProcessState.ExitCode()
}

// A parent that is killed takes the peer with it, although the peer's input
// stays open.
func TestParentDeath(t *testing.T) {
	for _, at := range []struct {
		name, after string
		verdict     replay.Verdict
	}{
		{"mid-way", "< thread/started", replay.Aborted},
		{"after the last frame", "< turn/completed", replay.Passed},
	} {
		t.Run(at.name, func(t *testing.T) {
			t.Parallel()
			p, dir := startOrphan(t)
			c := &client{t: t, ops: faithful(green)}
			c.cut(at.after, signals(syscall.SIGKILL))
			if err := run(p, c.ops); err != nil {
				t.Fatal(err)
			}
			// The peer holds the only writing end: its end is the end of stdout.
			if rest, err := p.rest(); rest != "" || err != nil {
				t.Errorf("stdout goes on with %q, %v", rest, err)
			}
			if _, sig := p.wait(t); sig != syscall.SIGKILL {
				t.Errorf("the process between ended by %v", sig)
			}
			r := readReport(t, dir, "report.json")
			if r.Verdict != at.verdict || at.verdict == replay.Aborted && reasonOf(r) != "parent_gone" {
				t.Errorf("report is %s, %s: want %s", r.Verdict, reasonOf(r), at.verdict)
			}
		})
	}
}

// startOrphan starts a peer below a process that a signal to p ends.
func startOrphan(t *testing.T) (p *process, dir string) {
	t.Helper()
	dir = t.TempDir()
	writeFile(t, filepath.Join(dir, "green.ndjson"), entries(green...))
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := []string{childMiddle + "=1", childConfig + `={"transcript":"green.ndjson","report":"report.json"}`}
	p = newBinary(t, dir, exe, env)
	p.start(t)
	return p, dir
}
