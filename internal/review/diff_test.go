package review

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

const tool = "testdata/tool.ndjson"

func load(t *testing.T, file string, edit func(string) string) *envelope.Transcript {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	if edit != nil {
		if text = edit(text); text == string(b) {
			t.Fatal("the edit changes nothing")
		}
	}
	tr, err := envelope.Read(file, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// What differs between two recordings of one scenario does not show.
func TestNoise(t *testing.T) {
	lines := func(text string) []string { return strings.SplitAfter(text, "\n") }
	swap := func(i int) func(string) string {
		return func(text string) string {
			l := lines(text)
			l[i-1], l[i] = l[i], l[i-1]
			return strings.Join(l, "")
		}
	}
	for name, edit := range map[string]func(string) string{
		"ids": strings.NewReplacer("711f-79d0", "811f-aaaa", "713b-7ad3", "913b-7bbb").Replace,
		"clocks": strings.NewReplacer("1796033638", "1796099999", `"durationMs":12`, `"durationMs":77`, `"durationMs":80`, `"durationMs":1`,
			`"afterMs":7`, `"afterMs":900`, "2026-01-02", "2026-03-04").Replace,
		"request ids":  strings.NewReplacer(`"id":1,`, `"id":11,`, `"id":2,`, `"id":"b",`, `"id":3,`, `"id":99,`).Replace,
		"pieces":       strings.NewReplacer(`12 READ"`, `1"`, `"ME.md\n"`, `"2 README.md\n"`).Replace,
		"answer races": swap(8),
		"child races":  swap(13),
		"child later":  func(text string) string { l := lines(text); l[16], l[18] = l[18], l[16]; return strings.Join(l, "") },
		"key order":    strings.NewReplacer(`"type":"text","text":"count"`, `"text":"count","type":"text"`, `"wc `, `"\u0077c `).Replace,
		"client races": func(text string) string {
			l := lines(text)
			l[3], l[2] = l[2], l[3] // initialized before the answer
			return strings.Join(l, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			if d := Compare(load(t, tool, nil), load(t, tool, edit)); !d.Same || d.Text() != "" {
				t.Errorf("shown:\n%s", d.Text())
			}
		})
	}
}

func TestOneToolCall(t *testing.T) {
	edit := strings.NewReplacer("wc -l README.md", "wc -c README.md").Replace
	d := Compare(load(t, tool, nil), load(t, tool, edit))
	want := `testdata/tool.ndjson → testdata/tool.ndjson: 1 change
inbound: params.item.command changed in item/started, item/completed (2 frames from line 11)
    "wc -l README.md" → "wc -c README.md"
`
	if diff := cmp.Diff(want, d.Text()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if md := d.Markdown(); strings.Count(md, "\n| changed | `params.item.command` |") != 1 || !strings.Contains(md, "<code>\"wc -c README.md\"</code>") {
		t.Errorf("markdown:\n%s", md)
	}
	if js := string(d.JSON()); !strings.HasPrefix(js, `{"version":1,`) || !strings.Contains(js, `"new":"\"wc -c`) && !strings.Contains(js, `"new":"wc -c README.md"`) {
		t.Errorf("JSON: %s", js)
	}
}

func TestChanges(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(string) string
		want string
	}{
		"header": {strings.NewReplacer("0.171.0", "0.172.0").Replace, "header: version changed"},
		"field added everywhere": {
			strings.NewReplacer(`"params":{"threadId"`, `"params":{"tier":"x","threadId"`).Replace,
			"inbound: params.tier added in thread/settings/updated, turn/started, item/started, item/commandExecution/outputDelta and 2 more (9 frames",
		},
		"frame removed": {func(s string) string {
			l := strings.SplitAfter(s, "\n")
			return strings.Join(append(l[:17:17], l[18:]...), "")
		}, "inbound: account/rateLimits/updated removed (old line 18)"},
		"order in a thread": {func(s string) string {
			l := strings.SplitAfter(s, "\n")
			l[14], l[15] = l[15], l[14]
			return strings.Join(l, "")
		}, "inbound: item/completed stands elsewhere"},
		"text of a stream": {strings.NewReplacer(`12 READ"`, `13 READ"`).Replace, `"12 README.md\n" → "13 README.md\n"`},
		"exit":             {strings.NewReplacer(`"status":"success"}`+"\n", `"status":"error"}`+"\n").Replace, `inbound: status changed in runtime_exit`},
		"expectation":      {strings.NewReplacer(`"label":"initialized"`, `"label":"initialized","optional":true`).Replace, `(expectation) added in initialized`},
	} {
		t.Run(name, func(t *testing.T) {
			got := Compare(load(t, tool, nil), load(t, tool, c.edit)).Text()
			if !strings.Contains(got, c.want) {
				t.Errorf("want %q in\n%s", c.want, got)
			}
			if strings.Count(got, "\n") > 20 {
				t.Errorf("%d lines:\n%s", strings.Count(got, "\n"), got)
			}
		})
	}
}

// Every transcript is the same as itself, and one with a word less is not.
func TestCorpusAgainstItself(t *testing.T) {
	var files []string
	for _, pattern := range []string{"../../transcripts/*/*.ndjson", "../../../shared/corpus/*/*.ndjson"} {
		found, _ := filepath.Glob(pattern)
		files = append(files, found...)
	}
	for _, file := range files {
		tr := load(t, file, nil)
		if d := Compare(tr, load(t, file, nil)); !d.Same {
			t.Errorf("%s differs from itself:\n%s", file, d.Text())
		}
		other := load(t, file, nil)
		other.Entries = other.Entries[:len(other.Entries)-1]
		if d := Compare(tr, other); d.Same {
			t.Errorf("%s: a lost entry does not show", file)
		}
	}
}
