//go:build unix

package peer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// A driver is a client that plays the outbound side of a transcript over the
// real wire, with request ids of its own, against the real binary.
type driver struct {
	flags  []string                                  // of serve
	args   []string                                  // the provider's
	nextID func(n int) string                        // the nth request id; nil counts from 1000
	change func(index int, frame []byte) []byte      // of the nth outbound frame; nil leaves all
	inject func(index int, wire []byte) []byte       // of the nth outbound message on the wire
	seen   func(dir envelope.Direction, wire []byte) // each message
	launch int                                       // which of the transcript's launches to play
	dir    string                                    // where report and state stand; "" is a fresh folder
}

// asked is a provider's request that waits for the client's answer.
type asked struct {
	method       string
	recorded, id json.RawMessage
}

// driven is what became of a run.
type driven struct {
	report *replay.Report
	code   int
	stderr string
	err    error // what the driver met first
}

// drive plays a transcript to its end or to the first trouble.
func (d driver) drive(t *testing.T, path string) driven {
	t.Helper()
	exe, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	if path, err = filepath.Abs(path); err != nil {
		t.Fatal(err)
	}
	tr, err := envelope.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flavor, err := flavors.ByProtocol(tr.Header.Protocol)
	if err != nil {
		t.Fatal(err)
	}
	dir := d.dir
	if dir == "" {
		dir = t.TempDir()
	}
	args := append([]string{"serve", "--report", "report.json", "--workspace", workspace, "--idle-timeout", "20s"}, d.flags...)
	p := newBinary(t, dir, exe, nil, append(append(args, path, "--"), d.args...)...)
	p.start(t)
	c := driving{driver: d, p: p, flavor: flavor, codec: flavor.NewCodec(flavors.Launch{})}
	out := driven{err: c.play(launches(tr.Entries)[d.launch])}
	p.in.Close()
	io.Copy(io.Discard, p.lines)
	out.code, _ = p.wait(t)
	out.stderr = p.errors(t)
	out.report = readReport(t, dir, "report.json")
	return out
}

// driving is a driver at work.
type driving struct {
	driver
	p      *process
	flavor *flavors.Flavor
	codec  flavors.Codec
	sent   int // outbound frames
	ids    int // request ids used
	open   []asked
}

func (c *driving) play(entries []envelope.Entry) error {
	for _, e := range entries {
		var err error
		switch e := e.(type) {
		case *envelope.ExpectOutbound:
			err = c.send(e)
		case *envelope.EmitInbound:
			err = c.receive(e)
		case *envelope.RuntimeExit:
			return nil
		}
		if err != nil {
			line, label := e.Position()
			return fmt.Errorf("line %d (%s): %w", line, label, err)
		}
	}
	return nil
}

func (c *driving) send(e *envelope.ExpectOutbound) error {
	raw := plain(e.Frame)
	if c.change != nil {
		raw = c.change(c.sent, raw)
	}
	f, err := c.flavor.Classify(envelope.Out, raw)
	if err != nil {
		return err
	}
	var id json.RawMessage
	switch f.Kind {
	case flavors.Request:
		id = json.RawMessage(strconv.Itoa(1000 + c.ids))
		if c.nextID != nil {
			id = json.RawMessage(c.nextID(c.ids))
		}
		c.ids++
	case flavors.Response:
		at := slices.IndexFunc(c.open, func(a asked) bool {
			if f.ID != nil && a.recorded != nil {
				return bytes.Equal(f.ID, a.recorded)
			}
			return a.method == f.Method
		})
		if at < 0 {
			return fmt.Errorf("no open request %s", f.Method)
		}
		id = c.open[at].id
		c.open = slices.Delete(c.open, at, at+1)
	}
	wire, err := c.codec.Encode(nil, envelope.Out, f, id)
	if err != nil {
		return err
	}
	if c.inject != nil {
		wire = c.inject(c.sent, wire)
	}
	c.sent++
	if c.seen != nil {
		c.seen(envelope.Out, wire)
	}
	_, err = c.p.in.Write(wire)
	return err
}

func (c *driving) receive(e *envelope.EmitInbound) error {
	wire, err := c.p.recv()
	if err != nil {
		return err
	}
	if c.seen != nil {
		c.seen(envelope.In, []byte(wire))
	}
	frames, err := c.codec.Decode(envelope.In, []byte(wire))
	if err != nil {
		return fmt.Errorf("%w: %.300s", err, wire)
	}
	if len(frames) != 1 {
		return fmt.Errorf("%d frames in %s", len(frames), wire)
	}
	f := frames[0]
	want, err := c.flavor.Classify(envelope.In, plain(e.Frame))
	if err != nil {
		return err
	}
	if f.Kind == flavors.Request {
		c.open = append(c.open, asked{f.Method, want.ID, bytes.Clone(f.ID)})
		if want.ID != nil && !bytes.Equal(want.ID, f.ID) {
			return fmt.Errorf("request %s went out with id %s: want %s", f.Method, f.ID, want.ID)
		}
	}
	if got, want := withoutID(f), withoutID(want); got != want {
		return fmt.Errorf("got  %.300s\nwant %.300s", got, want)
	}
	return nil
}

// launches cuts entries after each runtime_exit.
func launches(entries []envelope.Entry) (all [][]envelope.Entry) {
	for start, i := 0, 0; i < len(entries); i++ {
		if _, exit := entries[i].(*envelope.RuntimeExit); exit || i == len(entries)-1 {
			all = append(all, entries[start:i+1])
			start = i + 1
		}
	}
	return all
}

// plain replaces the placeholders that the corpus has.
func plain(raw json.RawMessage) json.RawMessage {
	return json.RawMessage(strings.NewReplacer(`"<any>"`, `[]`, "<any>", "anything", "<workspace>", workspace).Replace(string(raw)))
}

// withoutID is a frame without its id.
func withoutID(f flavors.Frame) string {
	if f.ID == nil {
		return string(f.Raw)
	}
	return strings.Replace(string(f.Raw), `"id":`+string(f.ID)+",", "", 1)
}

// corpus lists the files of the public corpus beside the repository.
func corpus(t *testing.T, name string) []string {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join("..", "..", "..", "shared", "corpus", "*", name))
	if len(files) == 0 {
		t.Skip("no corpus beside the repository")
	}
	return files
}

// passed checks that a run is green on every channel.
func (o driven) passed(t *testing.T) {
	t.Helper()
	if o.err != nil || o.code != 0 || o.report.Verdict != replay.Passed {
		t.Errorf("%v, exit code %d, verdict %s\n%s", o.err, o.code, o.report.Verdict, o.stderr)
	}
}

// failed checks that a run is red on every channel, and says so.
func (o driven) failed(t *testing.T, message string) {
	t.Helper()
	if o.code != replay.ExitFailed || o.report.Verdict == replay.Passed || o.report.Failure == nil || !strings.Contains(o.stderr, message) {
		t.Errorf("%v, exit code %d, verdict %s: want a failure that says %q\n%s", o.err, o.code, o.report.Verdict, message, o.stderr)
	}
}

// leaves returns the paths of the scalars in a frame but those that say what
// it is.
func leaves(raw []byte) (paths []string) {
	var walk func(path string, v gjson.Result)
	walk = func(path string, v gjson.Result) {
		if !v.IsObject() && !v.IsArray() {
			paths = append(paths, path)
			return
		}
		i := 0
		v.ForEach(func(k, child gjson.Result) bool {
			key := k.String()
			if v.IsArray() {
				key = strconv.Itoa(i)
				i++
			}
			if path != "" {
				key = path + "." + key
			}
			if key != "kind" && key != "method" && key != "id" && key != "type" {
				walk(key, child)
			}
			return true
		})
	}
	walk("", gjson.ParseBytes(raw))
	return paths
}

// changed replaces the scalar at a path by another one of its type.
func changed(raw []byte, path string) []byte {
	v := gjson.GetBytes(raw, path)
	other := `"changed"`
	switch v.Type {
	case gjson.Number:
		other = v.Raw + "1"
	case gjson.True:
		other = "false"
	case gjson.False:
		other = "true"
	}
	out := bytes.Clone(raw[:v.Index])
	return append(append(out, other...), raw[v.Index+len(v.Raw):]...)
}

func transcriptFile(t *testing.T, provider string, lines ...string) string {
	t.Helper()
	head := `{"type":"transcript_start","provider":"` + provider + `","protocol":"acp.ndjson-jsonrpc","version":"1","scenario":"test"}`
	path := filepath.Join(t.TempDir(), "t.ndjson")
	text := head + "\n" + strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := envelope.ReadFile(path); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return path
}
