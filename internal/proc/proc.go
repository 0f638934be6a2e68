// Package proc starts child processes in their own process group and ends
// them without leaving orphans.
//
//	p, err := proc.Start(proc.Config{Path: "codex", Args: []string{"app-server"}})
//	…                       // write p.Stdin, read p.Stdout and p.Stderr
//	exit, err := p.Stop(ctx) // close stdin, SIGTERM, SIGKILL the group
//
// The child leads its own group, so a signal from the terminal does not reach
// it unless it is forwarded (see Forward). When it has exited, whatever is
// left of its group is killed before the child is reaped, while its group id
// can't have been given to anyone else. On Linux the child is killed when the
// process that started it dies, however it dies. On other unix systems a crash
// of the parent leaves the child to notice the end of its stdin.
//
// On Windows the group is a job object, which ends with the process that
// started the child; what the child starts in its first instant, before it is
// in the job, is not in it. There are no signals: to be told to end is to be
// killed. This part compiles and is vetted in the gate, which runs on Linux.
package proc

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// DefaultGrace is how long Stop waits after each gentle step.
const DefaultGrace = 2 * time.Second

// copyLimit is how long the copying of output may go on after the group is
// gone: only a process that left the group can still hold the pipe.
const copyLimit = time.Second

// Config says what to start.
type Config struct {
	Path string   // program: a path, or a name looked up on PATH
	Args []string // arguments without the program's name
	Dir  string   // working directory; "" is the caller's
	Env  []string // KEY=value; nil is the caller's environment

	// Stdin is the child's input; nil makes a pipe, Process.Stdin.
	Stdin *os.File

	// Stdout and Stderr take the child's output; nil makes a pipe that the
	// caller must read, Process.Stdout and Process.Stderr. An *os.File is
	// handed to the child as it is; to any other writer the output is copied,
	// completely before Done.
	Stdout, Stderr io.Writer

	// Grace is how long Stop waits after closing stdin, and again after
	// SIGTERM; 0 means DefaultGrace.
	Grace time.Duration

	// KeepGroup leaves the rest of the group alone when the child exits.
	KeepGroup bool
}

// Process is a started child. Its methods are safe for concurrent use.
type Process struct {
	// Pipes, nil where Config named something else. The caller reads Stdout
	// and Stderr to their end and closes them; Stop closes Stdin.
	Stdin          *os.File
	Stdout, Stderr *os.File

	pid   int
	group group
	grace time.Duration
	done  chan struct{}

	// mu keeps signals from reaching a pid that has been reaped.
	mu     sync.Mutex
	reaped bool
	exit   Exit // valid once done is closed
}

// Exit is how a process ended.
type Exit struct {
	Code   int    // exit code; -1 when a signal ended it
	Signal string // "SIGKILL"; "" when it exited by itself
}

// Success reports exit code 0.
func (e Exit) Success() bool { return e.Code == 0 && e.Signal == "" }

// String returns "exit code 3" or "signal SIGKILL".
func (e Exit) String() string {
	if e.Signal != "" {
		return "signal " + e.Signal
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// Status returns the code a shell reports: the exit code, or 128 plus the
// number of the signal.
func (e Exit) Status() int {
	if e.Signal != "" {
		return 128 + signalNumber(e.Signal)
	}
	return e.Code
}

// ErrExited is what Signal returns when the process is gone.
var ErrExited = os.ErrProcessDone

// Start starts the child. The error names the program.
func Start(cfg Config) (*Process, error) {
	p := &Process{grace: cfg.Grace, done: make(chan struct{})}
	if p.grace <= 0 {
		p.grace = DefaultGrace
	}
	cmd := exec.Command(cfg.Path, cfg.Args...)
	cmd.Dir, cmd.Env = cfg.Dir, cfg.Env
	setGroup(cmd)

	pipes := plumbing{cmd: cmd}
	p.Stdin = pipes.input(cfg.Stdin)
	var copies [2]*os.File
	p.Stdout, copies[0] = pipes.output(cfg.Stdout, &cmd.Stdout)
	p.Stderr, copies[1] = pipes.output(cfg.Stderr, &cmd.Stderr)
	if pipes.err != nil {
		pipes.closeAll()
		return nil, fmt.Errorf("start %s: %w", cfg.Path, pipes.err)
	}

	started := make(chan error)
	go p.run(cmd, cfg, copies, started)
	if err := <-started; err != nil {
		pipes.closeAll()
		return nil, fmt.Errorf("start %s: %w", cfg.Path, err)
	}
	pipes.closeChild()
	return p, nil
}

// Pid returns the process id, which is also the id of the group.
func (p *Process) Pid() int { return p.pid }

// Done is closed when the child is reaped and its copied output is complete.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for Done and returns how the child ended.
func (p *Process) Wait() Exit {
	<-p.done
	return p.exit
}

// Signal sends a signal to the child alone. ErrExited when it is gone.
func (p *Process) Signal(sig os.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return ErrExited
	}
	return signalProcess(p.pid, sig)
}

// SignalGroup sends a signal to the child and to what it started, unless that
// left the group. ErrExited when the child is gone.
func (p *Process) SignalGroup(sig os.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return ErrExited
	}
	return signalGroup(p.pid, sig)
}

// Kill kills the whole group. ErrExited when the child is gone.
func (p *Process) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return ErrExited
	}
	return p.group.kill(p.pid)
}

// Stop ends the child: it closes the Stdin pipe and waits, sends SIGTERM and
// waits, kills the group. The end of ctx skips to the last step; ctx.Err() is
// then returned beside the exit. Idempotent.
func (p *Process) Stop(ctx context.Context) (Exit, error) {
	if p.Stdin != nil {
		p.Stdin.Close()
	}
	for _, gentle := range []func(){func() {}, p.terminate} {
		gentle()
		timer := time.NewTimer(p.grace)
		select {
		case <-p.done:
			timer.Stop()
			return p.exit, nil
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return p.killAndWait(), ctx.Err()
		}
	}
	return p.killAndWait(), nil
}

func (p *Process) killAndWait() Exit {
	p.Kill() // an error means that it is gone already
	return p.Wait()
}

// finish settles how the child ended. state is nil where it is still to be
// reaped.
func (p *Process) finish(child *os.Process, state *os.ProcessState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if state == nil {
		state, _ = child.Wait() // a nil state stands for the error
	}
	p.reaped = true
	p.exit = exitOf(state)
}

// copying is the output that goes to writers of the caller.
type copying struct {
	wg    sync.WaitGroup
	files []*os.File
}

func (c *copying) start(from *os.File, to io.Writer) {
	if from == nil {
		return
	}
	c.files = append(c.files, from)
	c.wg.Go(func() {
		defer from.Close()
		if _, err := io.Copy(to, from); err != nil {
			io.Copy(io.Discard, from) // never block the child for a broken writer
		}
	})
}

// finish waits for the end of the output, which comes when the group is gone.
func (c *copying) finish() {
	for _, f := range c.files {
		f.SetReadDeadline(time.Now().Add(copyLimit))
	}
	c.wg.Wait()
}

// plumbing makes the pipes of one child and remembers what to close.
type plumbing struct {
	cmd           *exec.Cmd
	parent, child []*os.File
	err           error
}

func (pl *plumbing) pipe() (r, w *os.File) {
	if pl.err != nil {
		return nil, nil
	}
	r, w, pl.err = os.Pipe()
	return r, w
}

func (pl *plumbing) input(given *os.File) *os.File {
	if given != nil {
		pl.cmd.Stdin = given
		return nil
	}
	r, w := pl.pipe()
	if r == nil {
		return nil
	}
	pl.cmd.Stdin = r
	pl.child, pl.parent = append(pl.child, r), append(pl.parent, w)
	return w
}

// output returns the read end that the caller gets, or the one to copy from.
func (pl *plumbing) output(given io.Writer, to *io.Writer) (pipe, copy *os.File) {
	if f, ok := given.(*os.File); ok && f != nil {
		*to = f
		return nil, nil
	}
	r, w := pl.pipe()
	if r == nil {
		return nil, nil
	}
	*to = w
	pl.child, pl.parent = append(pl.child, w), append(pl.parent, r)
	if given != nil {
		return nil, r
	}
	return r, nil
}

func (pl *plumbing) closeChild() {
	for _, f := range pl.child {
		f.Close()
	}
}

func (pl *plumbing) closeAll() {
	pl.closeChild()
	for _, f := range pl.parent {
		f.Close()
	}
}
