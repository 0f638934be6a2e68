//go:build unix

package peer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/replaypeer/replaypeer/internal/replay"
)

// A peer of these tests is a process: the test binary, started again with its
// Config in the environment or through a link.
const (
	childConfig = "PEER_TEST_CONFIG" // the child's Config, as JSON
	childMiddle = "PEER_TEST_MIDDLE" // be a process between test and peer
)

// patience bounds everything a test waits for. Nothing is measured by it.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	cfg, linked, err := Linked(os.Args[0])
	switch text := os.Getenv(childConfig); {
	case os.Getenv(childMiddle) != "":
		os.Exit(middle())
	case text != "":
		err = json.Unmarshal([]byte(text), &cfg)
	case !linked:
		code := m.Run()
		os.RemoveAll(binaryDir)
		os.Exit(code)
	}
	if err == nil {
		err = FromEnv(&cfg, os.Getenv)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	cfg.Process = true
	if cfg.Workspace == "" {
		cfg.Workspace = workspace
	}
	os.Exit(Serve(context.Background(), cfg, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

var binaryDir string // "" until a test wants the binary

// binary builds the real replay-peer, once.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "replay-peer")
	if err != nil {
		return "", err
	}
	binaryDir = dir
	path := filepath.Join(dir, "replay-peer")
	if out, err := exec.Command("go", "build", "-o", path, "../../cmd/replay-peer").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build replay-peer: %v\n%s", err, out)
	}
	return path, nil
})

// process is a peer at work and the client's ends of its pipes.
type process struct {
	cmd    *exec.Cmd
	in     *os.File // to its stdin
	out    *os.File // from its stdout
	lines  *bufio.Reader
	stderr string // file
	ctx    context.Context
	waited bool
}

// startPeer starts a peer in dir, where file names of cfg are looked up.
func startPeer(t testing.TB, dir string, cfg Config, args ...string) *process {
	t.Helper()
	p := newProcess(t, dir, cfg, args...)
	p.start(t)
	return p
}

func newProcess(t testing.TB, dir string, cfg Config, args ...string) *process {
	t.Helper()
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return newBinary(t, dir, exe, []string{childConfig + "=" + string(text)}, args...)
}

// newBinary prepares a process whose stderr is a file.
func newBinary(t testing.TB, dir, exe string, env []string, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	stderr, err := os.CreateTemp(t.TempDir(), "stderr")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), env...), stderr
	p := &process{cmd: cmd, stderr: stderr.Name(), ctx: ctx}
	t.Cleanup(func() {
		cancel()
		if cmd.Process != nil && !p.waited {
			cmd.Wait()
		}
		stderr.Close()
	})
	return p
}

func (p *process) start(t testing.TB) {
	t.Helper()
	inRead, inWrite := pipe(t)
	outRead, outWrite := pipe(t)
	p.cmd.Stdin, p.cmd.Stdout = inRead, outWrite
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	inRead.Close()
	outWrite.Close()
	deadline, _ := p.ctx.Deadline()
	outRead.SetReadDeadline(deadline)
	inWrite.SetWriteDeadline(deadline)
	p.in, p.out, p.lines = inWrite, outRead, bufio.NewReader(outRead)
	t.Cleanup(func() {
		inWrite.Close()
		outRead.Close()
	})
}

func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

func (p *process) send(line []byte) error {
	_, err := p.in.Write(append(bytes.Clone(line), '\n'))
	return err
}

// recv reads one line, without its end.
func (p *process) recv() (string, error) {
	line, err := p.lines.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

// stopReading closes the client's end of stdout. No process that another test
// is starting right now holds a copy of it afterwards, which would keep the
// pipe whole until that process has begun its own program.
func (p *process) stopReading() error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return p.out.Close()
}

// rest reads stdout to its end.
func (p *process) rest() (string, error) {
	b, err := io.ReadAll(p.lines)
	return string(b), err
}

// wait returns how the process ended: its exit code, or the signal.
func (p *process) wait(t testing.TB) (code int, sig syscall.Signal) {
	t.Helper()
	err := p.cmd.Wait()
	p.waited = true
	if p.ctx.Err() != nil {
		t.Fatalf("the peer hangs; stderr:\n%s", p.errors(t))
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if st := p.cmd.ProcessState.Sys().(syscall.WaitStatus); st.Signaled() {
		return -1, st.Signal()
	}
	return p.cmd.ProcessState.ExitCode(), 0
}

func (p *process) errors(t testing.TB) string { return readFile(t, p.stderr) }

func readFile(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func writeFile(t testing.TB, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func readReport(t testing.TB, dir, name string) *replay.Report {
	t.Helper()
	r, err := replay.ReadReport(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// firstLine is where a failure says what it is.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
