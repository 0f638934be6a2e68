package review

import (
	"bytes"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite testdata/*.txt")

func TestShow(t *testing.T) {
	var out bytes.Buffer
	marks := []Mark{{Line: 7, Kind: "error", Text: "mismatch: outbound"}, {Line: 14, Kind: "warning", Text: "TL033 home"}, {Line: 1, Kind: "info", Text: "TL035 no seal"}}
	if err := Show(&out, load(t, tool, nil), marks, 100); err != nil {
		t.Fatal(err)
	}
	const file = "testdata/tool.txt"
	if *update {
		if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), out.String()); d != "" {
		t.Errorf("show (-want +got):\n%s", d)
	}
}

// Pieces of a stream that follow each other are one line, and control
// characters reach no terminal.
func TestShowJoinsPieces(t *testing.T) {
	var out bytes.Buffer
	tr := load(t, tool, func(s string) string {
		l := strings.SplitAfter(s, "\n")
		l[12], l[13] = l[13], l[12]
		return strings.Replace(strings.Join(l, ""), `"12 READ"`, `"12 \u001b[31mREAD"`, 1)
	})
	if err := Show(&out, tr, nil, 0); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `item/commandExecution/outputDelta ×2  "12 \u001b[31mREADME.md\n"`) || strings.Contains(out.String(), "\x1b") {
		t.Errorf("pieces:\n%s", out.String())
	}
}

// The page stands alone, has a lane per thread, folds every frame, marks what
// it is told, and is no place for a frame to run a script.
func TestPage(t *testing.T) {
	tr := load(t, tool, strings.NewReplacer(`"text":"count"`, `"text":"</script><script>alert(1)</script><img src=x onerror=alert(2)>"`).Replace)
	var out bytes.Buffer
	if err := Page(&out, tr, []Mark{{Line: 7, Kind: "error", Text: "mismatch <b>"}, {Line: 1, Kind: "info", Text: "head"}}); err != nil {
		t.Fatal(err)
	}
	page := out.String()
	for _, bad := range []string{"<script>alert", "<img", "http://", "https://", "src=", "@import", "<link"} {
		if strings.Contains(strings.ReplaceAll(page, "&lt;img src=x", ""), bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	for what, count := range map[string]int{
		`<div class="row`: 19, "<details>": 19 + 1, "<script>": 1, `<span class="head">`: 3, ` marked"`: 1, `<span class="mark `: 2, "<pre>": 19 + 1,
	} {
		if n := strings.Count(page, what); n != count {
			t.Errorf("%d of %s: want %d", n, what, count)
		}
	}
	if ids := regexp.MustCompile(`id="L(\d+)"`).FindAllString(page, -1); len(ids) != 19 {
		t.Errorf("anchors %v", ids)
	}
}
