package framelog

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/replaypeer/replaypeer/pkg/redact"
)

// read returns every line that is kept, oldest first, and the size of all.
func read(t *testing.T, dir string) (lines []line, size int64, files int) {
	t.Helper()
	for n := 9; n >= 0; n-- {
		f, err := os.Open((&Log{cfg: Config{Dir: dir}}).name(n))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%v, %v", info, err)
		}
		files++
		size += info.Size()
		in := bufio.NewScanner(f)
		in.Buffer(nil, 1<<20)
		for in.Scan() {
			var l line
			if err := json.Unmarshal(in.Bytes(), &l); err != nil {
				t.Fatalf("%v: %s", err, in.Bytes())
			}
			lines = append(lines, l)
		}
	}
	return lines, size, files
}

// However much is said, the files stay within their bounds, have the last of
// it, and say what they have not.
func TestBounded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	cfg := Config{Dir: dir, Size: 10_000, Files: 3}
	l, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	const frames = 20_000
	for i := range frames {
		l.Add("codex", i%2 == 0, fmt.Appendf(nil, `{"id":%d}`, i))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l.Add("codex", true, []byte("late")) // of no consequence
	lines, size, files := read(t, dir)
	if files != 3 || size > 30_000 || size < 10_000 {
		t.Errorf("%d files of %d bytes", files, size)
	}
	last, end := -1, 0
	for _, l := range lines {
		if l.Dropped > 0 {
			end += l.Dropped
			continue
		}
		var id int
		if _, err := fmt.Sscanf(l.Frame, `{"id":%d}`, &id); err != nil {
			t.Fatal(err)
		}
		if want := last + end + 1; last >= 0 && id != want {
			t.Fatalf("frame %d after %d, with %d dropped", id, last, end)
		}
		if want := []string{"out", "in"}[id%2]; l.Direction != want {
			t.Errorf("frame %d went %s", id, l.Direction)
		}
		last, end = id, 0
	}
	if last+end != frames-1 {
		t.Errorf("the last frame is %d and %d were dropped after it: want %d", last, end, frames-1)
	}
	if l, err = Open(cfg); err != nil { // what was there is older now
		t.Fatal(err)
	}
	l.Add("claude", false, []byte("again"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	lines, _, files = read(t, dir)
	kept := 0 // a file may begin with what was dropped
	for lines[kept].Dropped > 0 {
		kept++
	}
	if files != 3 || lines[len(lines)-1].Frame != "again" || lines[kept].Instance != "codex" {
		t.Errorf("%d files, %+v", files, lines)
	}
}

// No secret is written, neither one by its looks nor one of the environment,
// and none that is cut in two.
func TestMasked(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(Config{Dir: dir, Mask: redact.Config{Env: []string{"SOME_API_KEY=correct-horse-battery"}, Home: "/home/somebody"}})
	if err != nil {
		t.Fatal(err)
	}
	secret := "sk-ant-api03-" + strings.Repeat("aB3dE5", 16) + "-AA"
	l.Add("claude", true, []byte(`{"headers":{"x-api-key":"`+secret+`"},"key":"correct-horse-battery","dir":"/home/somebody/x"}`))
	l.Add("claude", true, []byte(strings.Repeat("x", maxFrame-30)+` `+secret))
	l.Add("claude", true, []byte("\xff\xfe"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	lines, _, _ := read(t, dir)
	if len(lines) != 3 {
		t.Fatalf("%d lines", len(lines))
	}
	for _, l := range lines {
		for _, text := range []string{secret[:20], "correct-horse", "somebody"} {
			if strings.Contains(l.Frame, text) {
				t.Errorf("%q is in %.300s", text, l.Frame)
			}
		}
	}
	if !strings.Contains(lines[0].Frame, `"dir"`) {
		t.Errorf("nothing is left: %s", lines[0].Frame)
	}
}

// A folder that can't be written is told when it is closed, and disturbs
// nobody before.
func TestBrokenDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "frames")
	l, err := Open(Config{Dir: dir, Size: 100})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		l.Add("codex", true, []byte(strings.Repeat("x", 100)))
	}
	if err := l.Close(); err == nil {
		t.Error("no error")
	}
	if _, err := Open(Config{Dir: filepath.Join("/dev/null", "x")}); err == nil {
		t.Error("opened below a file")
	}
}
