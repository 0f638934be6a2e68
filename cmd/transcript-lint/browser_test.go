//go:build browser && linux

package main

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/replaypeer/replaypeer/internal/lint"
	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// largest is the biggest transcript of the public corpus, or of ours where it
// is not beside the repository.
func largest(t *testing.T) string {
	t.Helper()
	files, err := lint.Find([]string{"../../../shared/corpus"})
	if err != nil {
		t.Log("without the public corpus")
		if files, err = lint.Find([]string{"../../transcripts"}); err != nil {
			t.Fatal(err)
		}
	}
	size := func(file string) int64 {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	return slices.MaxFunc(files, func(a, b string) int { return cmp.Compare(size(a), size(b)) })
}

// opened measures, in the page and in milliseconds since the navigation, until
// all rows are loaded, laid out (the second frame after the load event) and
// something of them is painted.
const opened = `window.opened = (async () => {
	await new Promise(done => addEventListener("load", done));
	const load = performance.now();
	await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
	const laid = performance.now();
	const paint = await new Promise(done => new PerformanceObserver((list, self) => {
		const first = list.getEntriesByName("first-contentful-paint")[0];
		if (first) { self.disconnect(); done(first.startTime); }
	}).observe({type: "paint", buffered: true}));
	return {ms: Math.max(laid, paint), load, paint, rows: document.querySelectorAll(".row").length};
})()`

// TestBrowser opens the page of the largest transcript in a real browser and
// uses it with mouse and keyboard.
func TestBrowser(t *testing.T) {
	program := os.Getenv("CHROMIUM")
	if program == "" {
		var err error
		if program, err = exec.LookPath("chromium"); err != nil {
			t.Skip("NOT TESTED: no chromium: run scripts/browser.sh")
		}
	}
	file := largest(t)
	transcript, err := envelope.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// Two marks, near the beginning and the end.
	last, _ := transcript.Entries[len(transcript.Entries)-1].Position()
	marked := []int{3, last - 1}
	dir := t.TempDir()
	report, page := filepath.Join(dir, "findings.json"), filepath.Join(dir, "page.html")
	var findings strings.Builder
	for _, line := range marked {
		fmt.Fprintf(&findings, `{"rule":"TL000","severity":"error","file":%q,"line":%d,"message":"here"}`+"\n", file, line)
	}
	if err := os.WriteFile(report, []byte(findings.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if code := lintMain([]string{"transcript-lint", "show", "--html", page, "--report", report, file}, nil, os.Stdout, os.Stderr); code != 0 {
		t.Fatalf("show: exit code %d", code)
	}
	c := startChromium(t, program)
	rows := c.open(t, file, page)
	pictures := shots(t)
	c.shoot(t, filepath.Join(pictures, "page.png"))
	_, first := transcript.Entries[0].Position()
	c.search(t, rows, strings.ToLower(first))
	c.fold(t)
	c.jump(t, marked)
	c.shoot(t, filepath.Join(pictures, "marked.png"))
	if len(c.trouble) > 0 {
		t.Errorf("the page complains, or wants the network: %v", c.trouble)
	}
}

// open opens the page three times, takes the best, and leaves the last one
// open: another process may have had the machine in between.
func (c *chromium) open(t *testing.T, file, page string) (rows int) {
	t.Helper()
	info, err := os.Stat(page)
	if err != nil {
		t.Fatal(err)
	}
	var times []float64
	for range 3 {
		c.tab(t, opened)
		c.call(t, "Page.navigate", map[string]any{"url": "file://" + page}, nil)
		var got struct {
			MS, Load, Paint float64
			Rows            int
		}
		c.eval(t, &got, `new Promise(done => {
			const look = () => window.opened && document.readyState === "complete" && location.protocol === "file:" ? done(window.opened) : setTimeout(look, 5);
			look();
		})`)
		if got.Paint <= 0 || got.Rows == 0 || got.Load <= 0 {
			t.Fatalf("nothing was painted: %+v", got)
		}
		t.Logf("load event after %.0f ms, first paint after %.0f ms, all rows after %.0f ms", got.Load, got.Paint, got.MS)
		times, rows = append(times, got.MS), got.Rows
	}
	best := slices.Min(times)
	t.Logf("%s: page of %d bytes and %d rows is open after %.0f ms, the best of %.0f", filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file), info.Size(), rows, best, times)
	if best >= 2000 {
		t.Errorf("the page is open after %.0f ms: want less than 2000", best)
	}
	return rows
}

// shots is where screenshots go: $BROWSER_SCREENSHOTS, or a temporary folder.
func shots(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("BROWSER_SCREENSHOTS")
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "transcript-lint-page-"); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (c *chromium) shoot(t *testing.T, path string) {
	t.Helper()
	var picture struct{ Data string }
	c.call(t, "Page.captureScreenshot", map[string]any{"format": "png"}, &picture)
	b, err := base64.StdEncoding.DecodeString(picture.Data)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("screenshot: %s", path)
}

// visible tells which rows can be seen, and whether the word is in what they
// hold.
const visible = `[...document.querySelectorAll(".row")].map(r => ({
	seen: r.querySelector(".card").getClientRects().length > 0,
	fits: r.querySelector(".card").textContent.toLowerCase().includes(%q),
}))`

// search looks for the first entry's label, and for what is nowhere.
func (c *chromium) search(t *testing.T, rows int, word string) {
	t.Helper()
	check := func(word string) (seen int) {
		t.Helper()
		var list []struct{ Seen, Fits bool }
		c.eval(t, &list, fmt.Sprintf(visible, word))
		for i, r := range list {
			if r.Seen != r.Fits {
				t.Fatalf("search for %q: row %d is seen: %t, holds it: %t", word, i+1, r.Seen, r.Fits)
			}
			if r.Seen {
				seen++
			}
		}
		var text string
		c.eval(t, &text, `document.getElementById("count").textContent`)
		if text != fmt.Sprintf("%d shown", seen) {
			t.Errorf("search for %q says %q: want %d shown", word, text, seen)
		}
		return seen
	}
	if n := check(""); n != rows {
		t.Fatalf("%d of %d rows can be seen", n, rows)
	}
	c.write(t, "#find", strings.ToUpper(word))
	if n := check(word); n == 0 || n == rows {
		t.Errorf("search for %q shows %d of %d rows", word, n, rows)
	}
	c.write(t, "#find", "no frame says this")
	if n := check("no frame says this"); n != 0 {
		t.Errorf("%d rows found", n)
	}
	c.write(t, "#find", "")
	if n := check(""); n != rows {
		t.Errorf("%d of %d rows are back", n, rows)
	}
}

func (c *chromium) fold(t *testing.T) {
	t.Helper()
	seen := func() (is bool) {
		t.Helper()
		c.eval(t, &is, `document.querySelector(".row pre").checkVisibility({contentVisibilityAuto: true})`)
		return is
	}
	for i, want := range []bool{false, true, false} {
		if i > 0 {
			c.click(t, ".row summary")
		}
		if open := seen(); open != want {
			t.Fatalf("after %d clicks the first frame is open: %t", i, open)
		}
	}
}

// jump goes to the marks by button, to a line by number and by its address.
func (c *chromium) jump(t *testing.T, marked []int) {
	t.Helper()
	// An event may come a frame later: what is looked for is waited for.
	at := func(how string, line int) {
		t.Helper()
		var there bool
		c.eval(t, &there, fmt.Sprintf(`new Promise(done => {
			const late = performance.now() + 10000;
			const look = () => {
				const row = [...document.querySelectorAll(".row.at")];
				if (row.length === 1 && row[0].dataset.from <= %[1]d && row[0].dataset.to >= %[1]d && row[0].querySelector("details").open) {
					const head = row[0].querySelector("summary"), r = head.getBoundingClientRect();
					if (head.contains(document.elementFromPoint(r.x + 20, r.y + 5))) return done(true);
				}
				performance.now() < late ? requestAnimationFrame(look) : done(false);
			};
			look();
		})`, line))
		if !there {
			t.Errorf("%s does not show line %d", how, line)
		}
	}
	for _, line := range append(marked, marked[0]) { // round and round
		c.click(t, "#next")
		at("next mark", line)
	}
	c.write(t, "#line", fmt.Sprint(marked[1]))
	at("a line's number", marked[1])
	c.call(t, "Page.navigate", map[string]any{"url": c.address(t) + "#L5"}, nil)
	at("an address", 5)
}

func (c *chromium) address(t *testing.T) (address string) {
	t.Helper()
	c.eval(t, &address, `location.href.split("#")[0]`)
	return address
}
