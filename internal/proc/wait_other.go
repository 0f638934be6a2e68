//go:build !linux

package proc

import "os"

// waitExited waits for the child and reaps it. On unix its group id stays
// taken for as long as the group has members.
func waitExited(child *os.Process) *os.ProcessState {
	state, _ := child.Wait() // a nil state stands for the error
	return state
}
