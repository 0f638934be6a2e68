package lint

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the want sections of testdata/bad")

// now is when the samples are checked.
var now = time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)

// sample is one file of testdata/bad: a transcript with what must be found in
// it, and one in which nothing is. A line "transform: crlf" or "transform:
// chop" of the comment changes the bad one's line ends; "gate: LABEL",
// "current: NAME=VERSION" and "schemas: DIR" are options; "before: same" puts the bad transcript
// into the corpus first, under another scenario, "before: other" another
// conversation under the same one.
type sample struct {
	file      string
	archive   *txtar.Archive
	bad, good []byte
	want      string
	opts      Options
	before    string
}

// options are those of the sample, with a corpus of its own where it needs one.
func (s sample) options(t *testing.T) Options {
	t.Helper()
	o := s.opts
	o.Now = now
	text := string(s.bad)
	switch s.before {
	case "":
		return o
	case "same":
		text = strings.Replace(text, `"scenario":"`, `"scenario":"first-`, 1)
		text = strings.ReplaceAll(text, "T-2", "T-1")
	case "other":
		text = strings.ReplaceAll(text, "initialize", "something/else")
	}
	o.Corpus = &Corpus{}
	if _, err := Check("other/first", strings.NewReader(text), o); err != nil {
		t.Fatal(err)
	}
	return o
}

func samples(t *testing.T) []sample {
	t.Helper()
	files, err := filepath.Glob("testdata/bad/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	var all []sample
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Files) != 3 {
			t.Fatalf("%s has %d sections: want transcript, want and good", file, len(a.Files))
		}
		s := sample{file: file, archive: a, bad: a.Files[0].Data, want: string(a.Files[1].Data), good: a.Files[2].Data}
		switch comment := string(a.Comment); {
		case strings.Contains(comment, "transform: crlf"):
			s.bad = bytes.ReplaceAll(s.bad, []byte("\n"), []byte("\r\n"))
		case strings.Contains(comment, "transform: chop"):
			s.bad = bytes.TrimSuffix(s.bad, []byte("\n"))
		}
		for line := range strings.Lines(string(a.Comment)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			switch name {
			case "gate":
				s.opts.Gates = append(s.opts.Gates, Gate{value, "scenario.yaml"})
			case "current":
				provider, version, _ := strings.Cut(value, "=")
				s.opts.Current = map[string]string{provider: version}
			case "schemas":
				published, err := OpenPublished(value)
				if err != nil {
					t.Fatal(err)
				}
				s.opts.Published = published
			case "before":
				s.before = value
			}
		}
		all = append(all, s)
	}
	return all
}

func checkText(t *testing.T, name string, transcript []byte, opts Options) (string, []Finding) {
	t.Helper()
	found, err := Check(name, bytes.NewReader(transcript), opts)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, f := range found {
		fmt.Fprintln(&text, f)
	}
	return text.String(), found
}

func TestSamples(t *testing.T) {
	for _, s := range samples(t) {
		t.Run(strings.TrimSuffix(filepath.Base(s.file), ".txtar"), func(t *testing.T) {
			got, _ := checkText(t, "bad", s.bad, s.options(t))
			if *update {
				s.archive.Files[1].Data = []byte(got)
				if err := os.WriteFile(s.file, txtar.Format(s.archive), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if d := cmp.Diff(s.want, got); d != "" {
				t.Errorf("findings (-want +got):\n%s", d)
			}
			if got, _ := checkText(t, "good", s.good, s.options(t)); got != "" {
				t.Errorf("the good transcript has findings:\n%s", got)
			}
		})
	}
}

// TestEveryRule wants a sample per rule, named for it, in which it finds
// something and whose good transcript it passes, and that nothing of the kind
// is found once the rule is disabled.
func TestEveryRule(t *testing.T) {
	named := map[string]bool{}
	for _, s := range samples(t) {
		named[filepath.Base(s.file)[:len("TL000")]] = true
	}
	for _, r := range Rules {
		if r.What == "" || r.Why == "" || strings.Count(r.What, ". ") > 0 {
			t.Errorf("%s: want one sentence each for what and why", r.ID)
		}
		if !named[r.ID] {
			t.Errorf("%s %s has no sample testdata/bad/%s-*.txtar", r.ID, r.Name, r.ID)
		}
	}
	for _, s := range samples(t) {
		id := filepath.Base(s.file)[:len("TL000")]
		_, found := checkText(t, "bad", s.bad, s.options(t))
		is := func(f Finding) bool { return f.Rule == id }
		if !slices.ContainsFunc(found, is) {
			t.Errorf("%s: rule %s finds nothing", s.file, id)
		}
		opts := s.options(t)
		opts.Disable = []string{id}
		found, err := Check("bad", bytes.NewReader(s.bad), opts)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(found, is) {
			t.Errorf("%s: rule %s finds something although disabled", s.file, id)
		}
	}
}

func TestRuleIDsAreInOrder(t *testing.T) {
	for i, r := range Rules {
		if want := fmt.Sprintf("TL%03d", i+1); r.ID != want {
			t.Errorf("rule %d has id %s: want %s", i, r.ID, want)
		}
	}
}
