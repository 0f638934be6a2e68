//go:build !unix && !windows

package proc

import "os"

// group is the child alone.
type group struct{}

func (group) adopt(int) {}

func (group) kill(pid int) error { return signalProcess(pid, os.Kill) }

func (group) end(int) {} // the pid may be someone else's by now
