package flavors

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

func TestCursorOptions(t *testing.T) {
	tests := []struct{ name, live, logged string }{
		{
			"everything",
			`{"type":"agent.open","operation":"create","options":{"model":{"id":"m","params":[{"id":"fast","value":"true"}]},"apiKey":"k","name":"n","mode":"plan",` +
				`"mcpServers":{"a":{"headers":{"authorization":"Bearer k"}}},"agents":{"zoe":{"prompt":"p"},"adam":{}},"agentId":"agent-1","idempotencyKey":"i","tools":["shell"],` +
				`"systemPrompt":"s","local":{"cwd":"/ws","dirs":["/a"],"settingSources":["project"],"sandboxOptions":{"enabled":true,"x":1},"autoReview":false,"enableAgentRetries":true,"customTools":{"t":{}},"store":{}}}}`,
			`{"type":"agent.open","operation":"create","options":{"model":{"id":"m","params":[{"id":"fast","value":"true"}]},"hasName":true,"mode":"plan",` +
				`"agents":["adam","zoe"],"agentId":"agent-1","idempotencyKey":"i","tools":["shell"],` +
				`"hasSystemPrompt":true,"local":{"hasCwd":true,"hasDirs":true,"settingSources":["project"],"sandboxEnabled":true,"autoReview":false,"enableAgentRetries":true,"hasCustomTools":true}}}`,
		},
		{
			"a run",
			`{"type":"run.start","message":{"text":"t","images":[{"data":"aGk="}]},"options":{"model":{"id":"m"},"mode":"agent","mcpServers":{},"local":{"force":true,"customTools":{}},"cloud":{"envVars":{"A":"b"}}}}`,
			`{"type":"run.start","message":{"text":"t","images":[{"data":"aGk="}]},"options":{"model":{"id":"m"},"mode":"agent","local":{"force":true,"hasCustomTools":true},"hasCloud":true}}`,
		},
		{"null is nothing there", `{"type":"agent.open","options":{"name":null,"local":{"sandboxOptions":null}}}`, `{"type":"agent.open","options":{"local":{}}}`},
		{"escaped keys", `{"type":"agent.open","op\u0074ions":{"apiKe\u0079":"k","n\u0061me":"n"}}`, `{"type":"agent.open","options":{"hasName":true}}`},
		{"flags say yes or no", `{"type":"agent.open","options":{"hasCwd":"/home/me","hasRoom":false,"hash":true}}`, `{"type":"agent.open","options":{"hasRoom":false}}`},
		{"what is not in the options stays", `{"type":"agent.open","surprise":1,"options":{"apiKey":"k"}}`, `{"type":"agent.open","surprise":1,"options":{}}`},
		{"other frames stay", `{"type":"run.cancel","runId":"r","options":{"apiKey":"k"}}`, `{"type":"run.cancel","runId":"r","options":{"apiKey":"k"}}`},
		{"options that are none", `{"type":"run.start","options":[1]}`, `{"type":"run.start","options":[1]}`},
	}
	for _, c := range tests {
		codec := Cursor.NewCodec(Launch{})
		frames, err := codec.Decode(envelope.Out, []byte(c.live))
		if err != nil || len(frames) != 1 {
			t.Fatalf("%s: %v, %v", c.name, frames, err)
		}
		if d := cmp.Diff(c.logged, string(frames[0].Raw)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
		again, err := codec.Decode(envelope.Out, []byte(c.logged))
		if err != nil || string(again[0].Raw) != c.logged {
			t.Errorf("%s: the logged form became %s, %v", c.name, again[0].Raw, err)
		}
		if _, err := Cursor.Classify(envelope.Out, []byte(c.logged)); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := Cursor.Classify(envelope.Out, []byte(c.live)); (err == nil) != (c.live == c.logged) {
			t.Errorf("%s: the live form in a transcript: %v", c.name, err)
		}
	}
}

func TestClassifyCursor(t *testing.T) {
	tests := []struct{ raw, method, err string }{
		{raw: `{"type":"agent.opened","agentId":"a"}`, method: "agent.opened"},
		{raw: ` {"x":{"type":"y"},"\u0074ype":"a\u002eb"} `, method: "a.b"},
		{raw: `{"type":"a","type":"b"}`, err: "two types in one frame"},
		{raw: `{"type":1}`, err: "type is not a name"},
		{raw: `{"type":""}`, err: "type is not a name"},
		{raw: `{}`, err: "no type: not a frame of the bridge"},
		{raw: `[{"type":"a"}]`, err: "not a JSON object"},
		{raw: `"x"`, err: "not a JSON object"},
		{raw: `{"type":"a"`, err: "not JSON"},
		{raw: ``, err: "not JSON"},
		{raw: `{"type":"bridge.ready"}`, err: "bridge.ready is on the wire only, it is no frame of a transcript"},
		{raw: `{"type":"agent.open","options":{"local":{"cwd":"/ws"}}}`, err: "agent.open: options.local.cwd is not in its logged form"},
	}
	for _, c := range tests {
		f, err := Cursor.Classify(envelope.Out, json.RawMessage(c.raw))
		switch {
		case c.err != "":
			if err == nil || err.Error() != c.err {
				t.Errorf("%s: got %v, want %s", c.raw, err, c.err)
			}
		case err != nil:
			t.Errorf("%s: %v", c.raw, err)
		case f.Kind != Notification || f.Method != c.method || f.ID != nil || string(f.Raw) != c.raw:
			t.Errorf("%s: got %s %q %s", c.raw, f.Kind, f.Method, f.ID)
		}
	}
}

func TestCursorWireOnly(t *testing.T) {
	header := envelope.Header{Version: "1", Metadata: json.RawMessage(`{"providerVersion":"1.0.32"}`)}
	codec := Cursor.NewCodec(Launch{Header: header})
	greeting := codec.Greeting([]byte("before\n"))
	want := "before\n" + `{"type":"bridge.ready","bridge":1,"protocol":"cursor-agent-sdk.local","sdk":{"name":"@cursor/sdk","version":"1.0.32"}}` + "\n"
	if d := cmp.Diff(want, string(greeting)); d != "" {
		t.Errorf("greeting (-want +got):\n%s", d)
	}
	wire := bytes.TrimSpace(bytes.TrimPrefix(greeting, []byte("before\n")))
	if frames, err := codec.Decode(envelope.In, wire); len(frames) != 0 || err != nil {
		t.Errorf("bridge.ready is %v, %v", frames, err)
	}
	facts := Cursor.Probe(envelope.In, Frame{Raw: wire})
	if d := cmp.Diff(map[string]string{"providerVersion": "1.0.32", "sdk": "@cursor/sdk"}, facts); d != "" {
		t.Errorf("facts (-want +got):\n%s", d)
	}
	if facts := Cursor.Probe(envelope.In, Frame{Raw: []byte(": heartbeat {")}); facts != nil {
		t.Errorf("facts of a comment: %v", facts)
	}
	if frames, err := codec.Decode(envelope.Out, []byte(`{"type":"bridge.end"}`)); len(frames) != 0 || err != nil {
		t.Errorf("bridge.end is %v, %v", frames, err)
	}
	// Where a transcript has no provider version, the header's stands.
	if got := Cursor.NewCodec(Launch{Header: envelope.Header{Version: "1"}}).Greeting(nil); !strings.Contains(string(got), `"version":"1"}`) {
		t.Errorf("greeting %s", got)
	}
}

func TestCursorLabelAndModel(t *testing.T) {
	tests := []struct {
		dir          envelope.Direction
		raw          string
		label, model string
	}{
		{envelope.In, `{"type":"interaction.update","update":{"type":"text-delta"}}`, "text-delta", ""},
		{envelope.In, `{"type":"interaction.update"}`, "interaction.update", ""},
		{envelope.Out, `{"type":"agent.open","options":{"model":{"id":"m"}}}`, "agent.open", "m"},
		{envelope.In, `{"type":"run.completed","result":{"model":{"id":"m"}}}`, "run.completed", ""},
	}
	for _, c := range tests {
		f, err := Cursor.Classify(c.dir, json.RawMessage(c.raw))
		if err != nil {
			t.Fatal(err)
		}
		if label, model := Cursor.Label(f), Cursor.Probe(c.dir, f)["model"]; label != c.label || model != c.model {
			t.Errorf("%s: label %q, model %q", c.raw, label, model)
		}
	}
}

// Every frame of the public transcripts comes through the codec as it was.
func TestCursorCorpusRoundTrip(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join("..", "..", "..", "shared", "corpus", "*", "cursor.ndjson"))
	if len(files) == 0 {
		t.Skip("no corpus beside the repository")
	}
	for _, file := range files {
		codec := Cursor.NewCodec(Launch{})
		eachFrame(t, file, func(dir envelope.Direction, raw json.RawMessage) {
			f, err := Cursor.Classify(dir, raw)
			if err != nil {
				t.Fatalf("%s: %v: %s", file, err, raw)
			}
			wire, err := codec.Encode(nil, dir, f, nil)
			if err != nil {
				t.Fatal(err)
			}
			back, err := codec.Decode(dir, bytes.TrimSuffix(wire, []byte("\n")))
			if err != nil || len(back) != 1 || !bytes.Equal(back[0].Raw, raw) || back[0].Method != f.Method {
				t.Fatalf("%s: %s\ncame back as %v, %v", file, raw, back, err)
			}
		})
	}
}

// FuzzCursorDecode: no panic; what comes out is a legal frame in its logged
// form, and stays as it is from then on.
func FuzzCursorDecode(f *testing.F) {
	for _, s := range []string{
		`{"type":"agent.open","operation":"create","options":{"model":{"id":"m"},"name":"n","apiKey":"k","agents":{"b":{},"a":{}},"local":{"cwd":"/w","sandboxOptions":{"enabled":true},"customTools":{}}}}`,
		`{"type":"run.start","message":"x","options":{"local":{"force":true},"idempotencyKey":"i"}}`,
		`{"\u0074ype":"agent.open","options":{"local":{"sandboxOptions":{}, "cwd":null}}}`,
		`{"type":"bridge.ready"}`, `{"type":"bridge.end"}`, `{"type":"run.cancel","runId":"r"}`, `[]`, `{`, ``, `{"type":"agent.open","options":{"agents":[]}}`,
	} {
		f.Add([]byte(s))
	}
	files, _ := filepath.Glob(filepath.Join("..", "..", "..", "shared", "corpus", "*", "cursor.ndjson"))
	for _, file := range files {
		eachFrame(f, file, func(dir envelope.Direction, raw json.RawMessage) {
			if dir == envelope.Out {
				f.Add([]byte(raw))
			}
		})
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		before := bytes.Clone(wire)
		for _, dir := range []envelope.Direction{envelope.Out, envelope.In} {
			frames, err := Cursor.NewCodec(Launch{}).Decode(dir, wire)
			if !bytes.Equal(wire, before) {
				t.Fatalf("%q became %q", before, wire)
			}
			if err != nil && frames != nil {
				t.Fatalf("%q: frames beside %v", wire, err)
			}
			for _, frame := range frames {
				raw := bytes.Clone(frame.Raw)
				if !json.Valid(raw) {
					t.Fatalf("%q became %q", wire, raw)
				}
				again, err := Cursor.NewCodec(Launch{}).Decode(dir, raw)
				if err != nil || len(again) != 1 || !bytes.Equal(again[0].Raw, raw) {
					t.Fatalf("%q, then %v, %v", raw, again, err)
				}
				if strings.HasPrefix(frame.Method, "bridge.") {
					continue // legal one way only
				}
				if _, err := Cursor.Classify(dir, raw); err != nil {
					t.Fatalf("%q became %q: %v", wire, raw, err)
				}
			}
		}
	})
}
