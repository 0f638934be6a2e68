package record

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// background makes the calling goroutine, until it ends, give way to those
// that forward: on its own thread, with a lower priority. Redaction takes
// longer than forwarding.
func background() {
	runtime.LockOSThread()                         // and its end ends the thread
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 15) // of the thread; where it is refused nothing is lost
}
