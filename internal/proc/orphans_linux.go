package proc

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// orphanPoll is how often EndOrphans looks whether they are gone.
const orphanPoll = 10 * time.Millisecond

// AdoptOrphans makes this process the parent of descendants whose own parent
// has ended, even of those that left their group and session, until it exits.
// Linux only; elsewhere a process that left its group is not found again.
func AdoptOrphans() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopt orphans: %w", err)
	}
	return nil
}

// EndOrphans ends every child of this process: it waits, sends SIGTERM and
// waits, kills, each for grace; the end of ctx skips to the last step. It
// returns the command lines of those that had to be told. To be called when no
// child that somebody else waits for is left.
func EndOrphans(ctx context.Context, grace time.Duration) (told []string) {
	for _, sig := range []syscall.Signal{0, syscall.SIGTERM, syscall.SIGKILL} {
		noted := map[int]bool{}
		for end := time.Now().Add(grace); ; {
			left := orphans()
			if len(left) == 0 {
				return told
			}
			for _, pid := range left {
				if sig == 0 || noted[pid] {
					continue
				}
				noted[pid] = true
				if sig == syscall.SIGTERM {
					told = append(told, commandLine(pid))
				}
				syscall.Kill(pid, sig)
			}
			if time.Now().After(end) || ctx.Err() != nil && sig != syscall.SIGKILL {
				break
			}
			time.Sleep(orphanPoll)
		}
	}
	return told
}

// orphans reaps the children that have ended and returns the others.
func orphans() []int {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if pid <= 0 {
			break
		}
	}
	files, _ := filepath.Glob("/proc/self/task/*/children") // an error means a bad pattern
	var pids []int
	for _, file := range files {
		list, _ := os.ReadFile(file) // a thread that has ended meanwhile has no children
		for _, field := range strings.Fields(string(list)) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func commandLine(pid int) string {
	args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // gone meanwhile: nothing to show
	return strings.TrimSpace(string(bytes.ReplaceAll(args, []byte{0}, []byte{' '})))
}
