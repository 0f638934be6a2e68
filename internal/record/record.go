// Package record taps a live provider and writes a transcript of what went
// over its pipes, or over HTTP.
//
// Bytes pass through unmodified, and are forwarded before they are recorded.
// What keeps the order right nevertheless is a ticket that each message takes
// before it is forwarded: the answer to a message can only be read after the
// message went out, so its ticket is later, and one goroutine writes in
// ticket order. The disk never delays the pipe.
//
// While it runs, the recording is a hidden file beside the output, marked
// "incomplete" in its metadata and valid after every line:
//
//	.simple.ndjson.partial    header first, then one line per entry
//	.simple.ndjson.lock       held for as long as the recorder lives
//	simple.ndjson             the finished recording, put there at once
//	simple.rejected.ndjson    instead, when it does not hold against itself
//
// Secrets, personal data and paths of the machine are replaced before anything
// reaches the disk. Entries that carry a piece of a longer text wait, in
// memory, until no secret can go on in the next piece. A recording that still
// holds a secret at the end is removed.
package record

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/replaypeer/replaypeer/internal/proc"
	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// Options says what to record and where to.
type Options struct {
	Path     string // the transcript to write
	Flavor   *flavors.Flavor
	Provider string // "" means the flavor's usual name
	Scenario string

	Model    string      // "" means what the traffic tells
	Source   string      // metadata.source; "" means "live"
	Metadata [][2]string // more metadata, in order: key and string value
	Recorder string      // version of this tool

	// Directories whose paths are replaced; "" replaces nothing.
	Workspace, Home, Tmp string

	// Force replaces an existing transcript, and what a crashed recorder left.
	// Append adds a further provider process to an existing one instead.
	Force, Append bool

	// LockTimeout is how long to wait for another recorder of the same file
	// to end; 0 means 10 s.
	LockTimeout time.Duration

	// MaxLine is the longest message recorded, in bytes; 0 means
	// envelope.MaxLine. Longer ones pass through and spoil the recording.
	MaxLine int

	// Users and Hosts are names of the machine to leave out. Env is the
	// environment, KEY=VALUE: the values of secret-looking variables are left
	// out, wherever they stand. That of Stdio's command is added to it.
	Users, Hosts, Env []string

	// Check says whether a finished transcript holds; nil accepts all.
	Check func(path string) error
}

// Streams are the client's side of the tap.
type Streams struct {
	Stdin  io.Reader
	Stdout io.WriteCloser // closed when the provider closes its own
	Stderr io.Writer
	// Signals are passed on to the provider; nil passes none.
	Signals []os.Signal
}

// Result is what became of a recording.
type Result struct {
	Exit proc.Exit // how the provider ended
	Path string    // the file written, "" for none
}

// RejectedError says that a recording does not hold against itself.
type RejectedError struct {
	Path string // where it was kept
	Err  error
}

// Error returns the check's complaint and the file.
func (e *RejectedError) Error() string {
	return fmt.Sprintf("recording does not hold, kept as %s: %v", e.Path, e.Err)
}

// Unwrap returns the check's complaint.
func (e *RejectedError) Unwrap() error { return e.Err }

// Stdio starts the provider, stands between it and the client until it ends,
// and finishes the transcript. Result.Exit is valid whenever the provider was
// started, also beside an error. The error is a *RejectedError when the
// recording does not hold, and a *LeakError when a secret was left in it. The end of ctx ends the provider.
//
// A goroutine may go on reading Streams.Stdin after Stdio returned.
func Stdio(ctx context.Context, o Options, command proc.Config, s Streams) (Result, error) {
	return between(ctx, o, command, s, func(p *proc.Process, maxLine int) *tap { return startTap(p, s, maxLine) })
}

// between records what a tap sees of a provider that it starts.
func between(ctx context.Context, o Options, command proc.Config, s Streams, start func(p *proc.Process, maxLine int) *tap) (Result, error) {
	o.Provider = cmp.Or(o.Provider, o.Flavor.Providers[0])
	o.Source = cmp.Or(o.Source, "live")
	if o.MaxLine <= 0 {
		o.MaxLine = envelope.MaxLine
	}
	o.Env = append(o.Env[:len(o.Env):len(o.Env)], command.Env...)
	r := newRedactor(&o)
	out, err := openOutput(&o, r)
	if err != nil {
		return Result{}, err
	}
	defer out.unlock()
	p, err := proc.Start(command)
	if err != nil {
		out.discard()
		return Result{}, err
	}
	t := newTranslator(&o, command.Args, r)
	tap := start(p, o.MaxLine)
	written := make(chan struct{})
	go func() {
		defer close(written)
		background()
		tap.order.run(func(m message) { t.write(out, m) })
		out.redacted(r.Flush())
	}()
	exit := tap.wait(ctx, s.Signals)
	<-written

	if t.facts["providerVersion"] == "" && out.meta.str("providerVersion") == "" {
		t.facts["providerVersion"] = askVersion(ctx, o.Flavor, command)
	}
	out.spoil(tap.failure())
	path, err := out.finish(&o, t)
	return Result{Exit: exit, Path: path}, err
}

// versionLimit is how long the provider has to print its version. A client
// that waits for the tap to end may lose patience soon.
const versionLimit = 2 * time.Second

// askVersion runs the provider once more to make it print its version, "" when
// what it prints is not of the flavor's form: the command may be an
// interpreter that prints its own.
func askVersion(ctx context.Context, f *flavors.Flavor, command proc.Config) string {
	if len(f.VersionArgs) == 0 {
		return ""
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return ""
	}
	defer null.Close()
	var text proc.Tail
	command.Args, command.Stdin = f.VersionArgs, null
	command.Stdout, command.Stderr = &text, io.Discard
	p, err := proc.Start(command)
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, versionLimit)
	defer cancel()
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.Kill() // an error means that it is gone
	}
	if !p.Wait().Success() {
		return ""
	}
	before, after, _ := strings.Cut(cmp.Or(f.VersionLine, "%s"), "%s")
	line, _, _ := strings.Cut(text.String(), "\n")
	version, ok := strings.CutPrefix(strings.TrimSpace(line), before)
	if version, ok2 := strings.CutSuffix(version, after); ok && ok2 && looksLikeVersion(version) {
		return version
	}
	return ""
}

func looksLikeVersion(s string) bool {
	return s != "" && s[0] >= '0' && s[0] <= '9' && !strings.ContainsAny(s, " \t")
}
