package record

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
	"github.com/replaypeer/replaypeer/pkg/redact"
)

// proseKeys are the keys, by protocol, under which a provider shows its own
// instructions. They are long, not ours to publish, and say nothing about the
// client.
var proseKeys = map[string]map[string]bool{
	"codex.app-server": {
		"developer_instructions": true, "developerInstructions": true,
		"base_instructions": true, "baseInstructions": true,
		"instructions": true,
	},
}

// Rules completes a redactor's configuration with what is known of a
// protocol. The flavor may be nil: nothing is known then.
func Rules(c redact.Config, f *flavors.Flavor) redact.Config {
	if f == nil {
		return c
	}
	for _, s := range f.Streams {
		c.Streams = append(c.Streams, redact.Stream(s))
	}
	c.ProseKeys = proseKeys[f.Protocol]
	return c
}

func newRedactor(o *Options) *redact.Redactor {
	return redact.New(Rules(redact.Config{
		Workspace: o.Workspace, Home: o.Home, Tmp: o.Tmp,
		Users: o.Users, Hosts: o.Hosts, Env: o.Env, Wire: true,
	}, o.Flavor))
}

// LeakError says that a recording still held a secret and was not kept.
type LeakError struct {
	Path string // the transcript that was not written
	Err  error  // a *redact.LeakError
}

// Error returns what was found where, never the secret itself.
func (e *LeakError) Error() string {
	return fmt.Sprintf("recording holds a secret, nothing was kept: %v", e.Err)
}

// Unwrap returns the find.
func (e *LeakError) Unwrap() error { return e.Err }

// redacted writes what the redactor let go, and gives up when it failed.
func (out *output) redacted(entries []envelope.Entry, err error) {
	for _, e := range entries {
		out.append(e)
	}
	if err != nil && out.err == nil {
		out.spoil(err)
	}
}

// again redacts the recorded entries once more, into a file beside them, with
// all that was learned on the way. It returns their file and where they begin.
func (out *output) again(r *redact.Redactor, path string) (_ *os.File, err error) {
	r.Second()
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	if _, err := out.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	in, w := envelope.NewReader(out.partial, out.file), envelope.NewWriter(f)
	if _, err := in.Header(); err != nil {
		return nil, err
	}
	write := func(entries []envelope.Entry, err error) error {
		for _, e := range entries {
			if err := w.WriteEntry(e); err != nil {
				return err
			}
		}
		return err
	}
	for {
		e, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = write(r.Add(e))
		}
		if err != nil {
			return nil, err
		}
	}
	if err := write(r.Flush()); err != nil {
		return nil, err
	}
	_, err = f.Seek(0, io.SeekStart)
	return f, err
}

// checkLeak looks for what redaction left. Where it finds something, it
// removes the files: they are not to stay.
func (out *output) checkLeak(r *redact.Redactor, path string, remove ...string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	err = r.Check(out.path, f)
	var leak *redact.LeakError
	if !errors.As(err, &leak) {
		return err
	}
	for _, name := range append(remove, path) {
		os.Remove(name)
	}
	return &LeakError{out.path, leak}
}
