//go:build !unix

package proc

import (
	"os"
	"os/exec"
)

// Signals are the ones a stand-in passes on to the process it stands for.
var Signals = []os.Signal{os.Interrupt}

func (p *Process) terminate() { p.Kill() }

func signalProcess(pid int, sig os.Signal) error {
	child, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return child.Signal(sig)
}

func signalGroup(pid int, sig os.Signal) error { return signalProcess(pid, sig) }

func exitOf(state *os.ProcessState) Exit {
	if state == nil {
		return Exit{Code: -1}
	}
	return Exit{Code: state.ExitCode()}
}

func signalNumber(string) int { return 0 }

// Reraise does nothing: there are no signals to die of.
func Reraise(string) {}

func setGroup(*exec.Cmd) {}
