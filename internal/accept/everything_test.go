package accept

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// additions are a field that a client puts into a frame of each protocol.
var additions = map[string][2]string{
	"codex.app-server":       {`"clientInfo":{`, `"clientInfo":{"build":7,`},
	"acp.ndjson-jsonrpc":     {`"clientInfo":{`, `"clientInfo":{"build":7,`},
	"claude-agent-sdk.query": {`"options":{`, `"options":{"build":7,`},
	"opencode-sdk.sse":       {`"input":{"title"`, `"input":{"build":7,"title"`},
	"cursor-agent-sdk.local": {`"operation":`, `"build":7,"operation":`},
}

// A client that has a new field in its frames is taken into a copy of all our
// transcripts in one step, which shows one change per method, and changes that
// field alone, byte for byte.
func TestFieldInAllTranscripts(t *testing.T) {
	found, err := filepath.Glob("../../transcripts/*/*.ndjson")
	more, err2 := filepath.Glob("../../transcripts/recorded/*/*.ndjson")
	if err != nil || err2 != nil || len(found) < 20 || len(more) == 0 {
		t.Fatalf("%d transcripts: %v %v", len(found)+len(more), err, err2)
	}
	dir := t.TempDir()
	files := map[string][]byte{}
	edits := map[string][2]string{}
	var reports []Report
	for _, file := range append(found, more...) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tr, err := envelope.Read(file, bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		edit, ok := additions[tr.Header.Protocol]
		if !bytes.Contains(b, []byte(edit[0])) { // the draft of ACP's version 2
			edit = [2]string{`"info":{`, `"info":{"build":7,`}
		}
		if !ok {
			t.Fatalf("%s: no field for protocol %s", file, tr.Header.Protocol)
		}
		name := filepath.Join(dir, strings.ReplaceAll(strings.TrimPrefix(file, "../../transcripts/"), "/", "-"))
		if err := os.WriteFile(name, b, 0o644); err != nil {
			t.Fatal(err)
		}
		files[name], edits[name] = b, edit
		r := play(t, name, strings.NewReplacer(edit[0], edit[1]).Replace)
		if r.Verdict != replay.Mismatch {
			t.Fatalf("%s: verdict %s with a new field", file, r.Verdict)
		}
		reports = append(reports, Report{name + ".report.json", r})
	}
	plan, err := Make(files, reports, Options{Workspace: workspace})
	if err != nil {
		t.Fatal(err)
	}
	for _, refused := range plan.Refused {
		t.Errorf("refused: %v", refused)
	}
	for _, c := range plan.Changes {
		if c.Op != "added" || string(c.New) != "7" || !strings.HasSuffix("."+c.Path, ".build") {
			t.Errorf("change %+v", c)
		}
	}
	if len(plan.Changes) > len(additions) {
		t.Errorf("%d changes to look at: want one per protocol\n%s", len(plan.Changes), plan.Text())
	}
	written := plan.Written()
	if len(written) != len(files) {
		t.Errorf("%d of %d files written", len(written), len(files))
	}
	for name, b := range written {
		n := bytes.Count(b, []byte(`"build":7`))
		for _, form := range []string{`"build":7,`, `,"build":7`} {
			b = bytes.ReplaceAll(b, []byte(form), nil)
		}
		want := 0
		for line := range bytes.Lines(files[name]) {
			if bytes.HasPrefix(line, []byte(`{"type":"expect_outbound"`)) {
				want += bytes.Count(line, []byte(edits[name][0]))
			}
		}
		if n == 0 || n != want || !bytes.Equal(b, files[name]) {
			t.Errorf("%s: the field stands in %d of %d frames, and the rest is as it was: %t", filepath.Base(name), n, want, bytes.Equal(b, files[name]))
		}
	}
	t.Logf("%d transcripts, %d changes", len(files), len(plan.Changes))
}
