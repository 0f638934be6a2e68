//go:build unix

package proc_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/replaypeer/replaypeer/internal/proc"
)

// TestMain lets the test binary be its own children: see role.
func TestMain(m *testing.M) {
	if r := os.Getenv("PROC_ROLE"); r != "" {
		role(r)
		return
	}
	goleak.VerifyTestMain(m)
}

// role is a child process. Each prints a line when it is ready.
func role(name string) {
	switch name {
	case "echo": // copies stdin and exits at its end with code 7
		io.Copy(os.Stdout, os.Stdin)
		os.Exit(7)
	case "stubborn": // neither the end of stdin nor SIGTERM ends it
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		time.Sleep(time.Hour)
	case "sleeper": // dies of SIGTERM, ignores its stdin
		fmt.Println("ready")
		time.Sleep(time.Hour)
	case "parent": // starts a stubborn child of its own and exits at end of stdin
		child, line := start("stubborn", nil)
		fmt.Println(line, child.Process.Pid)
		io.Copy(io.Discard, os.Stdin)
	case "owner": // starts a stubborn child with this package and stays
		p, err := proc.Start(proc.Config{Path: os.Args[0], Env: env("stubborn")})
		if err != nil {
			panic(err)
		}
		line, _ := bufio.NewReader(p.Stdout).ReadString('\n')
		fmt.Println(strings.TrimSpace(line), p.Pid())
		time.Sleep(time.Hour)
	case "reraise":
		fmt.Println("ready")
		proc.Reraise("SIGTERM")
	}
}

// start starts a role with os/exec alone and returns its first line.
func start(role string, stdin io.Reader) (*exec.Cmd, string) {
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stdin = env(role), stdin
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		panic(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	return cmd, strings.TrimSpace(line)
}

func env(role string) []string { return append(os.Environ(), "PROC_ROLE="+role) }

func launch(t *testing.T, cfg proc.Config, role string) *proc.Process {
	t.Helper()
	cfg.Path, cfg.Env = os.Args[0], env(role)
	p, err := proc.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		p.Wait()
		for _, f := range []*os.File{p.Stdin, p.Stdout, p.Stderr} {
			if f != nil {
				f.Close()
			}
		}
	})
	return p
}

// ready reads the child's first line: "ready", or "ready PID".
func ready(t *testing.T, r io.Reader) (pid int) {
	t.Helper()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "ready") {
		t.Fatalf("first line %q, %v", line, err)
	}
	pid, _ = strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "ready")))
	return pid
}

// gone waits until no process has the pid. Zombies that init has not reaped
// yet count as gone.
func gone(t *testing.T, pid int) {
	t.Helper()
	if pid == 0 {
		t.Fatal("no pid")
	}
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
		if syscall.Kill(pid, 0) != nil {
			return
		}
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && strings.Contains(string(stat), ") Z ") {
			return
		}
		syscall.Select(0, nil, nil, nil, &syscall.Timeval{Usec: 2000})
	}
	t.Errorf("process %d is still alive", pid)
	syscall.Kill(pid, syscall.SIGKILL)
}

func TestPipesAndExitCode(t *testing.T) {
	p := launch(t, proc.Config{}, "echo")
	go func() {
		io.WriteString(p.Stdin, "hello")
		p.Stdin.Close()
	}()
	out, err := io.ReadAll(p.Stdout)
	if err != nil || string(out) != "hello" {
		t.Errorf("stdout %q, %v", out, err)
	}
	if e := p.Wait(); e.Code != 7 || e.Signal != "" || e.Status() != 7 || e.Success() {
		t.Errorf("exit %+v", e)
	}
	if err := p.Signal(syscall.SIGTERM); err != proc.ErrExited {
		t.Errorf("signal to a reaped child: %v", err)
	}
}

func TestWriterIsCompleteWhenDone(t *testing.T) {
	var out strings.Builder
	p := launch(t, proc.Config{Stdout: &out}, "echo")
	want := strings.Repeat("0123456789abcdef", 1<<16)
	io.WriteString(p.Stdin, want)
	if _, err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out.String() != want {
		t.Errorf("got %d bytes, want %d", out.Len(), len(want))
	}
}

func TestStopEscalates(t *testing.T) {
	for _, c := range []struct{ role, signal string }{
		{"sleeper", "SIGTERM"},
		{"stubborn", "SIGKILL"},
	} {
		t.Run(c.role, func(t *testing.T) {
			p := launch(t, proc.Config{Grace: 50 * time.Millisecond}, c.role)
			ready(t, p.Stdout)
			e, err := p.Stop(t.Context())
			if err != nil || e.Signal != c.signal {
				t.Errorf("exit %v, %v: want %s", e, err, c.signal)
			}
			if again, _ := p.Stop(t.Context()); again != e {
				t.Errorf("second Stop: %v", again)
			}
		})
	}
}

func TestStopObeysContext(t *testing.T) {
	p := launch(t, proc.Config{Grace: time.Hour}, "stubborn")
	ready(t, p.Stdout)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if e, err := p.Stop(ctx); err != context.Canceled || e.Status() != 137 {
		t.Errorf("exit %v, %v", e, err)
	}
}

func TestNoOrphans(t *testing.T) {
	t.Run("grandchild, child exits by itself", func(t *testing.T) {
		p := launch(t, proc.Config{}, "parent")
		grandchild := ready(t, p.Stdout)
		p.Stdin.Close()
		if e := p.Wait(); !e.Success() {
			t.Errorf("exit %v", e)
		}
		gone(t, grandchild)
	})
	t.Run("grandchild, group killed", func(t *testing.T) {
		p := launch(t, proc.Config{}, "parent")
		grandchild := ready(t, p.Stdout)
		p.Kill()
		p.Wait()
		gone(t, grandchild)
	})
	t.Run("child, its owner killed", func(t *testing.T) {
		if _, err := os.Stat("/proc/self/stat"); err != nil {
			t.Skip("needs the Linux death signal")
		}
		owner, line := start("owner", nil)
		child := 0
		fmt.Sscanf(line, "ready %d", &child)
		owner.Process.Kill()
		owner.Wait()
		gone(t, child)
	})
}

func TestForward(t *testing.T) {
	p := launch(t, proc.Config{}, "sleeper")
	ready(t, p.Stdout)
	var noted []os.Signal
	stop := proc.Forward(p, func(s os.Signal) { noted = append(noted, s) }, syscall.SIGTERM)
	syscall.Kill(os.Getpid(), syscall.SIGTERM)
	e := p.Wait()
	stop()
	if e.Signal != "SIGTERM" || len(noted) != 1 {
		t.Errorf("exit %v, noted %v", e, noted)
	}
}

func TestReraise(t *testing.T) {
	cmd, _ := start("reraise", nil)
	cmd.Wait()
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signal() != syscall.SIGTERM {
		t.Errorf("ended by %v", cmd.ProcessState)
	}
}

func TestTail(t *testing.T) {
	tail := proc.Tail{Max: 5}
	for _, s := range []string{"ab", "cdef", "g", "0123456789"} {
		fmt.Fprint(&tail, s)
	}
	if got := tail.String(); got != "56789" {
		t.Errorf("tail %q", got)
	}
}

func TestStartNamesTheProgram(t *testing.T) {
	_, err := proc.Start(proc.Config{Path: "/no/such/program"})
	if err == nil || !strings.Contains(err.Error(), "start /no/such/program") {
		t.Errorf("error %v", err)
	}
}
