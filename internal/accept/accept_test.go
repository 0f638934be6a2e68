package accept

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

const workspace = "/tmp/ws"

// play sends what the transcript expects, as the client has changed it, and
// returns the report.
func play(t *testing.T, file string, client func(frame string) string) *replay.Report {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return playAs(t, file, b, client)
}

// playAs sends what another version of the transcript expects.
func playAs(t *testing.T, file string, source []byte, client func(frame string) string) *replay.Report {
	t.Helper()
	s, err := replay.Load(file, 0)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := envelope.Read(file, bytes.NewReader(source))
	if err != nil {
		t.Fatal(err)
	}
	flavor, err := flavors.ByProtocol(tr.Header.Protocol)
	if err != nil {
		t.Fatal(err)
	}
	var frames []flavors.Frame
	for _, e := range tr.Entries {
		if e, ok := e.(*envelope.ExpectOutbound); ok {
			raw := client(strings.ReplaceAll(string(e.Frame), "<workspace>", workspace))
			f, err := flavor.Classify(envelope.Out, json.RawMessage(raw))
			if err != nil {
				t.Fatalf("%v in %s", err, raw)
			}
			if f.Kind == flavors.Request && f.ID == nil { // the frame has none, its message on the wire does
				f.ID = json.RawMessage(fmt.Sprintf(`"request-%d"`, e.Line))
			}
			frames = append(frames, f)
		}
	}
	p, err := replay.New(s, replay.Options{Workspace: workspace}, replay.State{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	var now time.Duration
	for range 100000 { // many more than a transcript has entries
		switch act := p.Next(now); act.Kind {
		case replay.Sleep:
			now += act.Delay
		case replay.Wait:
			if len(frames) == 0 {
				t.Fatal("no frame left")
			}
			p.Receive(frames[0])
			frames = frames[1:]
		case replay.Closing:
			p.Close(replay.EndOfInput)
		case replay.Quit, replay.Fail:
			return p.Report().Masked()
		}
	}
	t.Fatalf("%s: the player goes on and on: %+v", file, p.Report())
	return nil
}

// corpus copies our transcripts of codex.
func corpus(t *testing.T) (files map[string][]byte, names []string) {
	t.Helper()
	dir := t.TempDir()
	files = map[string][]byte{}
	for _, scenario := range []string{"multi_turn", "simple"} {
		b, err := os.ReadFile(filepath.Join("..", "..", "transcripts", scenario, "codex.ndjson"))
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, scenario+".ndjson")
		if err := os.WriteFile(name, b, 0o644); err != nil {
			t.Fatal(err)
		}
		files[name] = b
		names = append(names, name)
	}
	return files, names
}

func write(t *testing.T, files map[string][]byte) {
	t.Helper()
	for name, b := range files {
		if err := os.WriteFile(name, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// One report makes a corpus green: its change goes to every expectation of
// the method, and nothing that the provider said is touched.
func TestOneReportForACorpus(t *testing.T) {
	files, names := corpus(t)
	client := strings.NewReplacer(
		`"approvalPolicy":"never",`, `"approvalPolicy":"on-request",`, // changed
		`"approvalsReviewer":"user",`, ``, // removed
		`"params":{"threadId"`, `"params":{"tier":{"name":"<any>","dir":"`+workspace+`/x"},"threadId"`, // added
	).Replace
	r := play(t, names[0], client)
	plan, err := Make(files, []Report{{"r.json", r}}, Options{Workspace: workspace})
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Refused) > 0 || len(plan.Changes) != 3 {
		t.Fatalf("changes %v, refused %v", plan.Changes, plan.Refused)
	}
	text := plan.Text()
	for _, want := range []string{
		"turn/start: params.approvalPolicy changed in 3 frames of 2 files\n  - \"never\"\n  + \"on-request\"\n",
		"turn/start: params.approvalsReviewer removed in 3 frames of 2 files\n  - \"user\"\n",
		"turn/start: params.tier added in 3 frames of 2 files\n  + {\"name\":\"<<any>\",\"dir\":\"<workspace>/x\"}\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
	written := plan.Written()
	if len(written) != 2 {
		t.Fatalf("%d files written", len(written))
	}
	write(t, written)
	for _, name := range names {
		if r := playAs(t, name, files[name], client); r.Verdict != replay.Passed {
			t.Errorf("%s: %s %+v", name, r.Verdict, r.Failure)
		}
		before, after := bytes.Split(files[name], []byte("\n")), bytes.Split(written[name], []byte("\n"))
		for i := range before {
			if !bytes.Contains(before[i], []byte(`"turn/start","frame":{"id":`)) && !bytes.Equal(before[i], after[i]) {
				t.Errorf("%s:%d changed", name, i+1)
			}
		}
	}
}

// Several reports, and only what they name.
func TestReportedOnly(t *testing.T) {
	files, names := corpus(t)
	client := strings.NewReplacer(`"clientInfo":{"name"`, `"clientInfo":{"build":7,"name"`).Replace
	reports := []Report{{"a", play(t, names[0], client)}, {"b", play(t, names[1], func(s string) string { return s })}}
	plan, err := Make(files, reports, Options{Reported: true})
	if err != nil {
		t.Fatal(err)
	}
	want := []Change{{Method: "initialize", Op: "added", Path: "params.clientInfo.build", New: json.RawMessage("7"), Places: []Place{{names[0], 2}}}}
	if d := cmp.Diff(want, plan.Changes, cmp.AllowUnexported(Change{}), cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".protocol" }, cmp.Ignore())); d != "" {
		t.Errorf("changes (-want +got):\n%s", d)
	}
	reports[1].Report = play(t, names[1], client)
	both, err := Make(files, reports, Options{})
	if err != nil || len(both.Changes) != 1 || len(both.Changes[0].Places) != 2 || len(both.Refused) > 0 {
		t.Errorf("two reports of one change: %v %v %v", both.Changes, both.Refused, err)
	}
}

func TestRefusals(t *testing.T) {
	files, names := corpus(t)
	for name, c := range map[string]struct {
		client func(string) string
		want   string
	}{
		"another frame": {strings.NewReplacer(`"method":"thread/start"`, `"method":"thread/resume"`).Replace, "record"},
		"a secret":      {strings.NewReplacer(`"clientInfo":{`, `"clientInfo":{"api_key":"sk-aaaaaaaaaaaaaaaaaaaaaaaa",`).Replace, "credential"},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := Make(files, []Report{{"r", play(t, names[0], c.client)}}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(plan.Refused) != 1 || !strings.Contains(plan.Refused[0].Why, c.want) || len(plan.Written()) > 0 {
				t.Errorf("refused %v, changes %v", plan.Refused, plan.Changes)
			}
		})
	}
	r := play(t, names[0], strings.NewReplacer(`"clientInfo":{`, `"clientInfo":{"x":1,`).Replace)
	r.Transcript.SHA256 = "0"
	plan, err := Make(files, []Report{{"r", r}}, Options{})
	if err != nil || len(plan.Refused) != 1 || !strings.Contains(plan.Refused[0].Why, "another version") {
		t.Errorf("a report about another version: %v %v", plan, err)
	}
}

// Every other byte of a frame stays.
func TestEdit(t *testing.T) {
	raw := `{ "a" : 1.0, "b":[1, {"x.y":2} ,3 ] ,"c":{}, "a":9 }`
	for _, c := range []struct{ op, path, old, new, want string }{
		{"changed", "a", "1.0", `"z"`, `{ "a" : "z", "b":[1, {"x.y":2} ,3 ] ,"c":{}, "a":9 }`},
		{"changed", "a", "1", `2`, ""},
		{"changed", `b.1.x\.y`, "2", `{"q":[]}`, `{ "a" : 1.0, "b":[1, {"x.y":{"q":[]}} ,3 ] ,"c":{}, "a":9 }`},
		{"removed", "b.2", "3", "", `{ "a" : 1.0, "b":[1, {"x.y":2}  ] ,"c":{}, "a":9 }`},
		{"removed", "b.0", "1", "", `{ "a" : 1.0, "b":[{"x.y":2} ,3 ] ,"c":{}, "a":9 }`},
		{"removed", "c", "{}", "", `{ "a" : 1.0, "b":[1, {"x.y":2} ,3 ] ,"a":9 }`},
		{"added", "c.n", "", "true", `{ "a" : 1.0, "b":[1, {"x.y":2} ,3 ] ,"c":{"n":true}, "a":9 }`},
		{"added", "b.3", "", "4", `{ "a" : 1.0, "b":[1, {"x.y":2} ,3,4 ] ,"c":{}, "a":9 }`},
		{"added", "b.5", "", "4", ""},
		{"added", "a", "", "4", ""},
		{"added", "none.x", "", "4", ""},
		{"added", "d", "", "4", `{ "a" : 1.0, "b":[1, {"x.y":2} ,3 ] ,"c":{}, "a":9,"d":4 }`},
	} {
		got, ok := edit(json.RawMessage(raw), &Change{Op: c.op, Path: c.path, Old: json.RawMessage(c.old), New: json.RawMessage(c.new)})
		if ok != (c.want != "") || string(got) != c.want {
			t.Errorf("%s %s: %s %t: want %s", c.op, c.path, got, ok, c.want)
		}
		if ok && !json.Valid(got) {
			t.Errorf("%s %s: not JSON: %s", c.op, c.path, got)
		}
	}
}

func TestExpected(t *testing.T) {
	for in, want := range map[string]string{
		"<any>": "<<any>", "a <int> b": "a <<int> b", "/w/s": "<workspace>", "/w/s/x and /w/s2 /y/w/s": "<workspace>/x and /w/s2 /y/w/s", "plain <b>": "plain <b>",
	} {
		if got := expected(in, "/w/s"); got != want {
			t.Errorf("expected(%q) = %q: want %q", in, got, want)
		}
	}
	if got := fmt.Sprint(split(`a.b\.c.0`)); got != "[a b.c 0]" {
		t.Errorf("split: %s", got)
	}
}
