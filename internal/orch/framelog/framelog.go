// Package framelog keeps the last raw frames of providers for whoever looks
// for a fault, in a few files of bounded size:
//
//	frames.ndjson      the newest
//	frames.1.ndjson    … frames.3.ndjson, the oldest
//
// One object a line; a frame that is no UTF-8 or too long is cut:
//
//	{"time":"2026-01-02T03:04:05.006Z","instance":"codex","direction":"out","frame":"{\"id\":1,…}"}
//	{"time":"2026-01-02T03:04:05.007Z","dropped":12}
//
// It is diagnostics, no state: nothing reads it, nobody waits for it, and what
// comes faster than it can be written is dropped and counted. Secrets are
// masked before anything is written.
package framelog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/replaypeer/replaypeer/pkg/redact"
)

const (
	queued   = 256      // frames that may wait to be written
	maxFrame = 64 << 10 // bytes of one that are kept
)

// Config says where frames are kept and how many.
type Config struct {
	Dir   string        // there, or made
	Size  int64         // of one file, in bytes; 0 means 4 MiB
	Files int           // how many; 0 means 4
	Mask  redact.Config // what is secret besides what looks it
}

// Log is an open log. Safe for concurrent use.
type Log struct {
	cfg  Config
	wg   sync.WaitGroup
	mask *redact.Redactor // the writer's

	mu      sync.Mutex
	queue   chan frame // nil once closed
	dropped int        // since the last line

	file *os.File // the writer's, as are the rest
	size int64
	err  error // the first, which ends the writing
}

type frame struct {
	at       time.Time
	instance string
	outbound bool
	wire     string
	dropped  int // before it
}

// line is a frame as it is written.
type line struct {
	Time      time.Time `json:"time"`
	Instance  string    `json:"instance,omitempty"`
	Direction string    `json:"direction,omitempty"` // out or in
	Frame     string    `json:"frame,omitempty"`
	Cut       int       `json:"cut,omitempty"` // bytes that were left out
	Dropped   int       `json:"dropped,omitempty"`
}

// Open starts a log in a folder, behind what an earlier one has left there.
func Open(cfg Config) (*Log, error) {
	if cfg.Size == 0 {
		cfg.Size = 4 << 20
	}
	if cfg.Files == 0 {
		cfg.Files = 4
	}
	l := &Log{cfg: cfg, mask: redact.New(cfg.Mask), queue: make(chan frame, queued)}
	err := os.MkdirAll(cfg.Dir, 0o755)
	if err == nil {
		err = l.rotate()
	}
	if err != nil {
		return nil, fmt.Errorf("frame log: %w", err)
	}
	queue := l.queue
	l.wg.Go(func() { l.write(queue) })
	return l, nil
}

// Add keeps a frame. It never waits.
func (l *Log) Add(instance string, outbound bool, wire []byte) {
	f := frame{at: time.Now(), instance: instance, outbound: outbound, wire: string(wire)}
	l.mu.Lock()
	defer l.mu.Unlock()
	f.dropped = l.dropped
	select {
	case l.queue <- f: // never when it is nil
		l.dropped = 0
	default:
		l.dropped++
	}
}

// Close writes what is waiting and returns the error that ended the writing,
// if one did.
func (l *Log) Close() error {
	l.mu.Lock()
	queue, dropped := l.queue, l.dropped
	l.queue = nil
	l.mu.Unlock()
	if queue == nil {
		return nil
	}
	close(queue)
	l.wg.Wait()
	if dropped > 0 {
		l.put(line{Time: time.Now().UTC(), Dropped: dropped})
	}
	err := errors.Join(l.err, l.file.Close())
	if err != nil {
		return fmt.Errorf("frame log: %w", err)
	}
	return nil
}

func (l *Log) write(queue <-chan frame) {
	for f := range queue {
		if f.dropped > 0 {
			l.put(line{Time: f.at.UTC(), Dropped: f.dropped})
		}
		out := line{Time: f.at.UTC(), Instance: f.instance, Direction: "in"}
		if f.outbound {
			out.Direction = "out"
		}
		// Masked before it is cut: half a secret looks like none.
		out.Frame = strings.ToValidUTF8(l.mask.Text(f.wire), "\uFFFD")
		if over := len(out.Frame) - maxFrame; over > 0 {
			out.Frame, out.Cut = strings.ToValidUTF8(out.Frame[:maxFrame], ""), over
		}
		l.put(out)
	}
}

// put writes a line, in a new file when it does not fit into the old one.
func (l *Log) put(v line) {
	if l.err != nil {
		return
	}
	text, err := json.Marshal(v)
	if err == nil && l.size > 0 && l.size+int64(len(text))+1 > l.cfg.Size {
		err = l.rotate()
	}
	if err == nil {
		_, err = l.file.Write(append(text, '\n'))
		l.size += int64(len(text)) + 1
	}
	l.err = err
}

// rotate makes room for a new file.
func (l *Log) rotate() error {
	if l.file != nil {
		if err := l.file.Close(); err != nil {
			return err
		}
	}
	for n := l.cfg.Files - 1; n > 0; n-- {
		if err := os.Rename(l.name(n-1), l.name(n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	file, err := os.OpenFile(l.name(0), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	l.file, l.size = file, 0
	return nil
}

// name is that of the nth file, counted from the newest.
func (l *Log) name(n int) string {
	if n == 0 {
		return filepath.Join(l.cfg.Dir, "frames.ndjson")
	}
	return filepath.Join(l.cfg.Dir, fmt.Sprintf("frames.%d.ndjson", n))
}
