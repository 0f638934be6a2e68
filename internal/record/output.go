package record

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/redact"
)

// output is a recording in progress. Only the writing goroutine appends;
// everything else happens before it starts or after it ended.
type output struct {
	path    string // of the finished transcript
	partial string // of the recording in progress
	lock    *flock.Flock
	file    *os.File
	w       *envelope.Writer
	header  envelope.Header
	meta    *metadata
	body    int64 // offset of the first entry in the partial file
	adopted bool  // the partial file goes on with what a crash left
	err     error // what was not recorded
}

// openOutput takes the lock and starts the hidden file with a header that
// says "incomplete", and with the entries of an earlier process.
func openOutput(o *Options, r *redact.Redactor) (_ *output, err error) {
	if o.Force && o.Append {
		return nil, errors.New("force and append exclude each other")
	}
	abs, err := filepath.Abs(o.Path) // what the client does to our working directory does not matter
	if err != nil {
		return nil, err
	}
	dir, name := filepath.Split(abs)
	out := &output{path: abs, partial: filepath.Join(dir, "."+name+".partial")}
	if err := out.acquire(filepath.Join(dir, "."+name+".lock"), cmp.Or(o.LockTimeout, 10*time.Second)); err != nil {
		return nil, fmt.Errorf("record %s: %w", o.Path, err)
	}
	defer func() {
		if err != nil {
			out.unlock()
			err = fmt.Errorf("record %s: %w", o.Path, err)
		}
	}()
	out.header = envelope.Header{Provider: o.Provider, Protocol: o.Flavor.Protocol, Version: unknown, Scenario: o.Scenario}
	earlier, err := out.earlier(o)
	if err != nil {
		return nil, err
	}
	r.Reserve(earlier)
	for i := range o.Metadata {
		o.Metadata[i][1] = r.Text(o.Metadata[i][1])
	}
	out.meta = startMetadata(o, out.header.Metadata)
	out.header.Metadata = out.meta.json()
	if err := out.start(earlier); err != nil {
		return nil, err
	}
	return out, nil
}

// start makes the hidden file. Until it is there, what a crash left stays.
func (out *output) start(earlier []byte) error {
	line := envelope.AppendHeader(nil, &out.header)
	out.body = int64(len(line))
	f, err := os.Create(out.partial + ".new")
	if err != nil {
		return err
	}
	if _, err = f.Write(append(line, earlier...)); err == nil {
		err = os.Rename(f.Name(), out.partial)
	}
	if err != nil {
		f.Close()
		os.Remove(f.Name())
		return err
	}
	out.file, out.w = f, envelope.NewWriter(f)
	return nil
}

// acquire takes the lock file. Whoever held it before may have removed it
// while this recorder waited, so the name must still be the file locked.
func (out *output) acquire(path string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	for {
		lock := flock.New(path)
		ok, err := lock.TryLockContext(ctx, 5*time.Millisecond)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return errors.New("another recorder writes this file")
		case err != nil:
			return err
		case !ok:
			return errors.New("lock refused") // unreachable: TryLockContext waits
		}
		held, err := lock.Stat()
		named, err2 := os.Stat(path)
		if err == nil && err2 == nil && os.SameFile(held, named) {
			out.lock = lock
			return nil
		}
		lock.Close()
	}
}

func (out *output) unlock() {
	os.Remove(out.lock.Path())
	out.lock.Close()
}

// earlier looks at what exists already. It returns the lines to go on from
// and takes their header over.
func (out *output) earlier(o *Options) ([]byte, error) {
	finished, err := readIfExists(out.path)
	if err != nil {
		return nil, err
	}
	crashed, err := readIfExists(out.partial)
	if err != nil {
		return nil, err
	}
	switch {
	case o.Force:
		return nil, nil
	case !o.Append && finished != nil:
		return nil, errors.New("file exists: remove it, or force")
	case !o.Append && crashed != nil:
		return nil, fmt.Errorf("a crashed recording exists: remove %s, or force", out.partial)
	case crashed != nil:
		out.adopted = true
		return out.adopt(out.partial, crashed[:bytes.LastIndexByte(crashed, '\n')+1], true)
	case finished != nil:
		return out.adopt(out.path, finished, false)
	}
	return nil, nil
}

func readIfExists(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// adopt goes on from an earlier recording. One that a crash cut off gets the
// exit it lacks: its provider was killed together with the recorder.
func (out *output) adopt(path string, data []byte, crashed bool) ([]byte, error) {
	t, err := envelope.Read(path, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	h := out.header
	if t.Header.Provider != h.Provider || t.Header.Protocol != h.Protocol || t.Header.Scenario != h.Scenario {
		return nil, fmt.Errorf("%s holds %s %s, scenario %s: can't append %s %s, scenario %s", path,
			t.Header.Provider, t.Header.Protocol, t.Header.Scenario, h.Provider, h.Protocol, h.Scenario)
	}
	out.header = t.Header
	_, lines, _ := bytes.Cut(data, []byte("\n"))
	if len(lines) > 0 && lines[len(lines)-1] != '\n' {
		lines = append(lines, '\n')
	}
	ended := len(t.Entries) == 0
	if !ended {
		_, ended = t.Entries[len(t.Entries)-1].(*envelope.RuntimeExit)
	}
	switch {
	case ended:
		return lines, nil
	case !crashed:
		return nil, fmt.Errorf("%s does not end in a runtime_exit: can't append", path)
	}
	return envelope.AppendEntry(lines, &envelope.RuntimeExit{Status: envelope.Cancelled, Error: exitError(0, "SIGKILL", false)})
}

// append writes one entry. After an error nothing more is written.
func (out *output) append(e envelope.Entry) {
	if out.err == nil {
		out.err = out.w.WriteEntry(e)
	}
}

// spoil notes that something was not recorded.
func (out *output) spoil(err error) { out.err = errors.Join(out.err, err) }

// discard drops a recording whose provider did not start.
func (out *output) discard() {
	out.file.Close()
	if !out.adopted {
		os.Remove(out.partial)
	}
}

// finish writes the transcript with its complete header, checks it, and puts
// it in place. It returns where the recording is, whatever became of it; ""
// when it held a secret and is gone.
func (out *output) finish(o *Options, t *translator) (string, error) {
	defer out.file.Close()
	if out.err != nil {
		var left *LeakError
		var leak *redact.LeakError
		switch err := out.checkLeak(t.redact, out.partial); {
		case errors.As(err, &left):
			return "", err
		case errors.As(out.err, &leak):
			os.Remove(out.partial)
			return "", &LeakError{out.path, leak}
		}
		return out.partial, fmt.Errorf("recording is incomplete, kept as %s: %w", out.partial, out.err)
	}
	whole := strings.TrimSuffix(out.partial, ".partial") + ".whole"
	if err := out.writeWhole(whole, t); err != nil {
		os.Remove(whole)
		return out.partial, fmt.Errorf("finish recording, kept as %s: %w", out.partial, err)
	}
	if err := out.checkLeak(t.redact, whole, out.partial); err != nil {
		os.Remove(whole)
		return "", err
	}
	target := out.path
	var rejected *RejectedError
	if o.Check != nil {
		if err := o.Check(whole); err != nil {
			target = strings.TrimSuffix(out.path, ".ndjson") + ".rejected.ndjson"
			rejected = &RejectedError{target, errors.New(strings.ReplaceAll(err.Error(), whole, target))}
		}
	}
	if err := os.Rename(whole, target); err != nil {
		return out.partial, fmt.Errorf("finish recording, kept as %s: %w", out.partial, err)
	}
	os.Remove(out.partial)
	if rejected != nil {
		return target, rejected
	}
	return target, nil
}

// writeWhole writes the complete header and the entries, down to the disk.
func (out *output) writeWhole(path string, t *translator) error {
	entries, from := out.file, out.body
	if t.redact.Known() > t.known {
		again, err := out.again(t.redact, path+".entries")
		defer os.Remove(path + ".entries")
		if err != nil {
			return err
		}
		defer again.Close()
		entries, from = again, 0
	}
	out.meta.finish(t.facts, t.withTrimmed(t.redact.Counts()))
	h := out.header
	sum, err := seal(entries, from, &h)
	if err != nil {
		return err
	}
	out.meta.setString("seal", sum)
	h.Metadata = out.meta.json()
	h.Version = cmp.Or(out.meta.str("providerVersion"), unknown)
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := envelope.NewWriter(f).WriteHeader(&h); err != nil {
		return err
	}
	if _, err := entries.Seek(from, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.Copy(f, entries); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}
