package example

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/replaypeer/replaypeer/internal/peer"
	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// A real flavor stands in the list itself.
func TestMain(m *testing.M) {
	flavors.All = append(flavors.All, Parrot)
	os.Exit(m.Run())
}

// play sends lines to a peer and returns what it wrote and its report.
func play(t *testing.T, in string) (out string, code int, r *replay.Report) {
	t.Helper()
	report := filepath.Join(t.TempDir(), "report.json")
	var stdout bytes.Buffer
	cfg := peer.Config{Transcript: "parrot.ndjson", Report: report}
	code = peer.Serve(t.Context(), cfg, nil, strings.NewReader(in), &stdout, io.Discard)
	r, err := replay.ReadReport(report)
	if err != nil {
		t.Fatal(err)
	}
	return stdout.String(), code, r
}

// The client's ids are its own, and the answers carry them.
func TestPlays(t *testing.T) {
	out, code, r := play(t, "ASK 70 what time is it\nASK 71 say hello twice\n")
	if d := cmp.Diff("HELLO 2.1\nNOTE looking\nTELL 70 noon\nFAIL 71 once is enough\n", out); d != "" {
		t.Errorf("wire (-want +got):\n%s", d)
	}
	if code != 0 || r.Verdict != replay.Passed {
		t.Errorf("exit code %d\n%s", code, r.Text())
	}
}

// Whatever differs from the transcript fails, and the client hears of it in
// its own protocol.
func TestFails(t *testing.T) {
	for in, verdict := range map[string]replay.Verdict{
		"ASK 1 what day is it\n":              replay.Mismatch,
		"ASK x what time is it\n":             replay.Mismatch, // no legal id
		"ASK 1 what time is it\nSQUAWK 1 x\n": replay.Mismatch,
		"ASK 1 what time is it\n":             replay.Leftover,
	} {
		out, code, r := play(t, in)
		if code != replay.ExitFailed || r.Verdict != verdict {
			t.Errorf("%q: exit code %d\n%s", in, code, r.Text())
		}
		if in == "ASK 1 what day is it\n" && !strings.HasSuffix(out, "mismatch at text (label \"ask\")\n") {
			t.Errorf("%q is answered\n%s", in, out)
		}
	}
}

// Decoding both sides' lines gives the transcript's frames; playing the
// transcript against itself, they hold.
func TestRecords(t *testing.T) {
	tr, err := envelope.ReadFile("parrot.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	c := Parrot.NewCodec(flavors.Launch{})
	if frames, err := c.Decode(envelope.In, []byte("HELLO 2.1")); len(frames) != 0 || err != nil {
		t.Errorf("the greeting is %v, %v", frames, err)
	}
	if d := cmp.Diff(map[string]string{"providerVersion": "2.1"}, Parrot.Probe(envelope.In, flavors.Frame{Raw: []byte("HELLO 2.1")})); d != "" {
		t.Errorf("facts (-want +got):\n%s", d)
	}
	for _, e := range tr.Entries {
		dir, raw := envelope.Out, json.RawMessage(nil)
		switch e := e.(type) {
		case *envelope.ExpectOutbound:
			raw = e.Frame
		case *envelope.EmitInbound:
			dir, raw = envelope.In, e.Frame
		default:
			continue
		}
		f, err := Parrot.Classify(dir, raw)
		if err != nil {
			t.Fatal(err)
		}
		wire, err := c.Encode(nil, dir, f, nil)
		if err != nil {
			t.Fatal(err)
		}
		back, err := c.Decode(dir, bytes.TrimSuffix(wire, []byte("\n")))
		if err != nil || len(back) != 1 || string(back[0].Raw) != string(raw) {
			t.Errorf("%s came back as %v, %v", raw, back, err)
		}
	}
	if err := replay.SelfCheck("parrot.ndjson"); err != nil {
		t.Error(err)
	}
}

func TestSchema(t *testing.T) {
	tr, err := envelope.ReadFile("parrot.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.LoadURL = func(url string) (io.ReadCloser, error) {
		return os.Open(filepath.Join("..", "..", "schemas", filepath.Base(url)))
	}
	const file = "metadata.parrot.schema.json"
	text, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	const id = "https://github.com/replaypeer/replaypeer/schemas/" + file
	if err := c.AddResource(id, text); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile(id)
	if err != nil {
		t.Fatal(err)
	}
	var meta map[string]any
	if err := json.Unmarshal(tr.Header.Metadata, &meta); err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(meta); err != nil {
		t.Error(err)
	}
	delete(meta, "cage")
	if schema.Validate(meta) == nil {
		t.Error("metadata without a cage is valid")
	}
}

// Every block of code in the page stands in one of these files.
func TestPageIsTrue(t *testing.T) {
	page, err := os.ReadFile("../adding-a-flavor.md")
	if err != nil {
		t.Fatal(err)
	}
	var files strings.Builder
	for _, name := range []string{"flavor_test.go", "parrot.ndjson", "metadata.parrot.schema.json"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files.Write(text)
	}
	blocks := regexp.MustCompile("(?ms)^```(?:go|json)\n(.*?)^```$").FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 5 {
		t.Errorf("%d blocks of code in the page", len(blocks))
	}
	for _, b := range blocks {
		if !strings.Contains(files.String(), b[1]) {
			t.Errorf("stands in no file:\n%s", b[1])
		}
	}
}
