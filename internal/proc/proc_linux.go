package proc

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func setDeathSignal(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// waitExited blocks until the child has exited and leaves it to be reaped.
func waitExited(child *os.Process) *os.ProcessState {
	for {
		err := unix.Waitid(unix.P_PID, child.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, syscall.EINTR) {
			return nil
		}
	}
}
