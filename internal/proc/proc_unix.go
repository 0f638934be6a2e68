//go:build unix

package proc

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Signals are the ones a stand-in passes on to the process it stands for.
var Signals = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}

func (p *Process) terminate() { p.Signal(syscall.SIGTERM) }

func signalProcess(pid int, sig os.Signal) error {
	s, ok := sig.(syscall.Signal)
	if !ok {
		return syscall.EINVAL // unreachable on unix
	}
	return syscall.Kill(pid, s)
}

func signalGroup(pid int, sig os.Signal) error { return signalProcess(-pid, sig) }

// group is a process group, whose id is that of the child.
type group struct{}

func (group) adopt(int) {} // setGroup did

func (group) kill(pid int) error { return syscall.Kill(-pid, syscall.SIGKILL) }

// end kills what an exited child left of its group.
func (g group) end(pid int) { g.kill(pid) }

func exitOf(state *os.ProcessState) Exit {
	if state == nil {
		return Exit{Code: -1}
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return Exit{Code: -1, Signal: unix.SignalName(ws.Signal())}
	}
	return Exit{Code: state.ExitCode()}
}

func signalNumber(name string) int { return int(unix.SignalNum(name)) }

// Reraise ends this process by the named signal, so that its parent sees what
// it would have seen of the child. It returns when the signal is one that a
// Go program can't die of; the caller then exits with Exit.Status.
func Reraise(name string) {
	switch sig := unix.SignalNum(name); sig {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGKILL:
		signal.Reset(sig)
		if syscall.Kill(os.Getpid(), sig) == nil {
			time.Sleep(time.Second) // the signal is on its way
		}
	}
}

func setGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	setDeathSignal(cmd.SysProcAttr)
}
