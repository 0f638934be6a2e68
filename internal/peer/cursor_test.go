//go:build unix

package peer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// own is a Cursor transcript of our own, for what the public ones lack.
const own = `{"type":"transcript_start","provider":"cursor","protocol":"cursor-agent-sdk.local","version":"1.0.32","scenario":"own","metadata":{"providerVersion":"1.0.32"}}
{"type":"expect_outbound","label":"agent.open","frame":{"type":"agent.open","operation":"create","options":{"model":{"id":"m"},"hasName":true,"mode":"agent","agents":["adam","zoe"],"local":{"hasCwd":true,"sandboxEnabled":true,"autoReview":false,"hasCustomTools":true}}}}
{"type":"emit_inbound","label":"agent.opened","frame":{"type":"agent.opened","agentId":"agent-1"}}
{"type":"expect_outbound","label":"run.start","frame":{"type":"run.start","message":{"text":"look at <workspace>/a","images":[]},"options":{"model":{"id":"m"},"mode":"agent","idempotencyKey":"key-1"}}}
{"type":"emit_inbound","label":"run.started","frame":{"type":"run.started","runId":"run-1","agentId":"agent-1"}}
{"type":"emit_inbound","label":"tool-call-started","frame":{"type":"interaction.update","runId":"run-1","update":{"type":"tool-call-started","callId":"key-1"}}}
{"type":"expect_outbound","label":"run.cancel","frame":{"type":"run.cancel","runId":"run-1"}}
{"type":"emit_inbound","label":"runtime.exit","frame":{"type":"runtime.exit","status":"cancelled","error":{"name":"AbortError","message":"m"}}}
{"type":"expect_outbound","label":"agent.messages.list","frame":{"type":"agent.messages.list","agentId":"agent-1"}}
{"type":"emit_inbound","label":"call.failed","frame":{"type":"call.failed","call":"agent.messages.list","error":{"name":"E","message":"m"}}}
{"type":"expect_outbound","label":"agent.close","frame":{"type":"agent.close","agentId":"agent-1"}}
{"type":"runtime_exit","status":"success"}
`

// cursorClient is one way to play a transcript's client.
type cursorClient struct {
	file string
	// change edits the outbound frames, as they stand in the transcript.
	change func(i int, frame string) string
}

// drive plays the outbound side of a transcript on the pipes of a real peer:
// it sends what the transcript expects and reads what it emits, in its order.
// It returns what came instead of the recorded lines, and the report.
func (w cursorClient) drive(t *testing.T, peer string) (unlike []string, code int, r *replay.Report) {
	t.Helper()
	dir := t.TempDir()
	p := newBinary(t, dir, peer, nil, "serve", "--report", "report.json", "--workspace", "/ws", w.file)
	p.start(t)
	tr, err := envelope.ReadFile(w.file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.recv(); err != nil { // bridge.ready
		unlike = append(unlike, err.Error())
	}
	sent := 0
	for _, e := range tr.Entries {
		switch e := e.(type) {
		case *envelope.ExpectOutbound:
			frame := strings.ReplaceAll(string(e.Frame), "<workspace>", "/ws")
			if w.change != nil {
				frame = w.change(sent, frame)
			}
			sent++
			if err := p.send([]byte(frame)); err != nil {
				unlike = append(unlike, err.Error())
			}
		case *envelope.EmitInbound:
			if line, err := p.recv(); err != nil || line != string(e.Frame) {
				unlike = append(unlike, fmt.Sprint(line, err))
			}
		}
		if len(unlike) > 0 {
			break
		}
	}
	p.in.Close()
	if rest, _ := p.rest(); rest != "" {
		unlike = append(unlike, rest)
	}
	code, _ = p.wait(t)
	return unlike, code, readReport(t, dir, "report.json")
}

// TestCursorOnTheWire plays the Cursor transcripts against the peer's own
// binary: the recorded client passes, and one that sends any one value
// otherwise does not.
func TestCursorOnTheWire(t *testing.T) {
	peer := filepath.Join(t.TempDir(), "replay-peer")
	if out, err := exec.Command("go", "build", "-o", peer, "../../cmd/replay-peer").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	files, _ := filepath.Glob(filepath.Join("..", "..", "..", "shared", "corpus", "*", "cursor.ndjson"))
	if len(files) == 0 {
		t.Log("NOT TESTED: no corpus beside the repository")
	}
	files = append(files, writeFile(t, filepath.Join(t.TempDir(), "own.ndjson"), own))
	for _, file := range files {
		file, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(gjson.Get(readFile(t, file), "scenario").Str, func(t *testing.T) {
			unlike, code, r := cursorClient{file: file}.drive(t, peer)
			if len(unlike) > 0 || code != 0 || r.Verdict != replay.Passed || r.Outbound.Matched != r.Outbound.Expected {
				t.Fatalf("exit code %d, %v\n%s", code, unlike, r.Text())
			}
			for _, m := range mutants(t, file) {
				_, code, r := cursorClient{file, m.apply}.drive(t, peer)
				if code != replay.ExitFailed || r.Verdict != replay.Mismatch || r.Failure.Reason != "frame" || len(r.Failure.Differences) != 1 {
					t.Errorf("frame %d with another %s: exit code %d\n%s", m.frame, m.path, code, r.Text())
				}
			}
		})
	}
	t.Run("live form", func(t *testing.T) { cursorLiveForm(t, peer, files[len(files)-1]) })
}

// cursorLiveForm sends the options as a client has them, with values of its
// own where the transcript has flags.
func cursorLiveForm(t *testing.T, peer, file string) {
	for _, c := range []struct {
		name, local string
		passes      bool
	}{
		{"all", `"cwd":"/elsewhere","sandboxOptions":{"enabled":true},"autoReview":false,"customTools":{"t":{}}`, true},
		{"another value", `"cwd":"/elsewhere","sandboxOptions":{"enabled":false},"autoReview":false,"customTools":{"t":{}}`, false},
		{"one missing", `"cwd":"/elsewhere","sandboxOptions":{"enabled":true},"autoReview":false`, false},
	} {
		live := `{"type":"agent.open","operation":"create","options":{"apiKey":"k","mcpServers":{"s":{}},"agents":{"zoe":{"prompt":"p"},"adam":{}},"mode":"agent","name":"n","model":{"id":"m"},"local":{` + c.local + `}}}`
		w := cursorClient{file, func(i int, frame string) string {
			if i == 0 {
				return live
			}
			return frame
		}}
		unlike, code, r := w.drive(t, peer)
		if passed := code == 0 && r.Verdict == replay.Passed && len(unlike) == 0; passed != c.passes {
			t.Errorf("%s: exit code %d, %v\n%s", c.name, code, unlike, r.Text())
		}
		if text, _ := json.Marshal(r); strings.Contains(string(text), "elsewhere") || strings.Contains(string(text), "apiKey") {
			t.Errorf("%s: the report holds what is not logged: %s", c.name, text)
		}
	}
}

// mutant is one value of one outbound frame to be sent otherwise.
type mutant struct {
	frame    int
	path     string
	from, to int // of its literal
}

func (m mutant) apply(i int, frame string) string {
	if i != m.frame {
		return frame
	}
	return frame[:m.from] + `"something else"` + frame[m.to:]
}

// mutants lists every value of every outbound frame that is compared: those
// the client may choose are not.
func mutants(t *testing.T, file string) (list []mutant) {
	tr, err := envelope.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range tr.Entries {
		e, ok := e.(*envelope.ExpectOutbound)
		if !ok {
			continue
		}
		frame := bytes.ReplaceAll(e.Frame, []byte("<workspace>"), []byte("/ws"))
		f, err := flavors.Cursor.Classify(envelope.Out, frame)
		if err != nil {
			t.Fatal(err)
		}
		eachValue(gjson.ParseBytes(frame), 0, "", func(path string, from, to int) {
			for _, pl := range flavors.Cursor.Chosen {
				if pl.Method == f.Method && pl.Path == path {
					return
				}
			}
			list = append(list, mutant{n, path, from, to})
		})
		n++
	}
	if len(list) == 0 {
		t.Fatalf("%s: nothing to change", file)
	}
	return list
}

// eachValue calls fn with the path and the place of every value in v that
// holds no others. at is where v starts.
func eachValue(v gjson.Result, at int, path string, fn func(path string, from, to int)) {
	empty := true
	if v.IsObject() || v.IsArray() {
		v.ForEach(func(k, child gjson.Result) bool {
			empty = false
			name := k.String()
			if v.IsArray() {
				name = "*"
			}
			eachValue(child, at+child.Index-v.Index, strings.TrimPrefix(path+"."+name, "."), fn)
			return true
		})
	}
	if empty {
		fn(path, at, at+len(v.Raw))
	}
}
