package proc

import (
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
)

// run starts the child and waits for it. It owns an OS thread until then,
// because Linux ties the death signal to the thread that forked, not to the
// process.
func (p *Process) run(cmd *exec.Cmd, cfg Config, copies [2]*os.File, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		started <- err
		return
	}
	p.pid = cmd.Process.Pid
	if !cfg.KeepGroup {
		p.group.adopt(p.pid)
	}
	var out copying
	out.start(copies[0], cfg.Stdout)
	out.start(copies[1], cfg.Stderr)
	started <- nil

	state := waitExited(cmd.Process)
	if !cfg.KeepGroup {
		p.mu.Lock()
		p.group.end(p.pid) // on Linux the child is a zombie now and its id still its own
		p.mu.Unlock()
	}
	p.finish(cmd.Process, state)
	out.finish()
	close(p.done)
}

// Forward passes the signals this process gets on to the child until stop is
// called. note, when not nil, is called with each one first.
func Forward(p *Process, note func(os.Signal), signals ...os.Signal) (stop func()) {
	ch := make(chan os.Signal, 8)
	signal.Notify(ch, signals...)
	quit := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case sig := <-ch:
				if note != nil {
					note(sig)
				}
				p.Signal(sig) // an error means that the child is gone
			case <-quit:
				return
			}
		}
	})
	return sync.OnceFunc(func() {
		signal.Stop(ch)
		close(quit)
		wg.Wait()
	})
}

// Tail is a writer that keeps the last bytes written to it. Safe for
// concurrent use; the zero value keeps 4 KiB.
type Tail struct {
	Max int // bytes kept; 0 means 4096

	mu  sync.Mutex
	buf []byte
}

// Write implements io.Writer; it never fails.
func (t *Tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	limit := t.Max
	if limit <= 0 {
		limit = 4096
	}
	n := len(b)
	if n > limit {
		b = b[n-limit:]
	}
	if over := len(t.buf) + len(b) - limit; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	t.buf = append(t.buf, b...)
	return n, nil
}

// String returns what is kept.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
