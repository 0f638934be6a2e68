//go:build unix

package peer

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/internal/replay"
)

var short = []string{`> go {"id":1,"method":"go","params":{"cwd":"<workspace>"}}`, `< go {"id":1,"result":{}}`, exitSuccess}

// linked makes dir/codex a fake binary for lines.
func linked(t *testing.T, lines []string, cfg Config) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	cfg.Transcript = writeFile(t, filepath.Join(t.TempDir(), "t.ndjson"), entries(lines...))
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if path, err = Link(dir, "codex", exe, cfg); err != nil {
		t.Fatal(err)
	}
	return dir, path
}

// startLinked starts the fake by its name, found on PATH, as clients do.
func startLinked(t *testing.T, dir string, env []string, args ...string) *process {
	t.Helper()
	path := "PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH")
	p := newBinary(t, t.TempDir(), filepath.Join(dir, "codex"), append(env, path), args...)
	p.cmd.Args[0] = "codex"
	p.start(t)
	return p
}

func play(t *testing.T, p *process, line, answer string) {
	t.Helper()
	if err := run(p, []op{{name: "> go", line: []byte(line)}, {name: "< go", line: []byte(answer)}}); err != nil {
		t.Fatalf("%v\n%s", err, p.errors(t))
	}
	p.in.Close()
	if code, _ := p.wait(t); code != 0 {
		t.Errorf("exit code %d: %s", code, p.errors(t))
	}
}

// Making the link again is how a second run starts.
func TestLinkAgain(t *testing.T) {
	t.Parallel()
	cfg := Config{Workspace: workspace}
	dir, path := linked(t, short, cfg)
	for range 2 {
		p := startLinked(t, dir, nil)
		play(t, p, `{"id":1,"method":"go","params":{"cwd":"/ws"}}`, `{"id":1,"result":{}}`)
		if r := readReport(t, dir, "codex.report.json"); r.Verdict != replay.Passed || r.Launches != 1 {
			t.Errorf("report is %s after %d launches", r.Verdict, r.Launches)
		}
		old, _, err := Linked(path)
		if err != nil {
			t.Fatal(err)
		}
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Link(dir, "codex", exe, Config{Transcript: old.Transcript, Workspace: workspace}); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"codex.report.json", ".codex.state"} {
			if _, err := os.Stat(filepath.Join(dir, file)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is left of the old run: %v", file, err)
			}
		}
	}
}

func TestLink(t *testing.T) {
	t.Parallel()
	dir, path := linked(t, short, Config{Workspace: workspace})
	if path != filepath.Join(dir, "codex") {
		t.Errorf("link is %s", path)
	}
	for range 2 { // a version probe is no launch
		p := startLinked(t, dir, nil, "--version")
		if out, err := p.rest(); out != "codex-cli 0.171.0\n" || err != nil {
			t.Errorf("--version says %q, %v", out, err)
		}
		if code, _ := p.wait(t); code != 0 {
			t.Errorf("--version exits with %d", code)
		}
	}
	p := startLinked(t, dir, nil, "app-server", "--listen", "stdio://", "-c", `model="x"`)
	play(t, p, `{"id":1,"method":"go","params":{"cwd":"/ws"}}`, `{"id":1,"result":{}}`)
	if r := readReport(t, dir, "codex.report.json"); r.Verdict != replay.Passed || r.Launches != 1 {
		t.Errorf("report is %s after %d launches", r.Verdict, r.Launches)
	}
	if _, err := os.Stat(filepath.Join(dir, ".codex.state")); err != nil {
		t.Error(err)
	}
	again := startLinked(t, dir, nil, "app-server")
	if code, _ := again.wait(t); code != replay.ExitFailed {
		t.Errorf("a second launch exits with %d", code)
	}
	if r := readReport(t, dir, "codex.report.json"); r.Verdict != replay.Unexpected {
		t.Errorf("report is %s after a launch too many", r.Verdict)
	}
}

// The environment goes over what link wrote.
func TestLinkEnvironment(t *testing.T) {
	t.Parallel()
	dir, _ := linked(t, short, Config{Workspace: workspace})
	other := t.TempDir()
	lines := append([]string{`< ready {"method":"ready"}`}, short...)
	env := []string{
		"REPLAY_PEER_TRANSCRIPT=" + writeFile(t, filepath.Join(other, "other.ndjson"), entries(lines...)),
		"REPLAY_PEER_REPORT=" + filepath.Join(other, "r.json"), "REPLAY_PEER_STATE=" + filepath.Join(other, "state"),
		"REPLAY_PEER_WORKSPACE=/elsewhere", "REPLAY_PEER_HOLD=go#2", "REPLAY_PEER_PACE=recorded", "REPLAY_PEER_IDLE_TIMEOUT=1m",
		"REPLAY_PEER_CONTROL=" + filepath.Join(other, "control"),
	}
	p := startLinked(t, dir, env, "app-server")
	if line, err := p.recv(); err != nil || line != `{"method":"ready"}` {
		t.Fatalf("%q, %v: %s", line, err, p.errors(t))
	}
	if err := p.send([]byte(`{"id":1,"method":"go","params":{"cwd":"/elsewhere"}}`)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []string{"wait go#2", "release go#2"} {
		if _, err := Command(p.ctx, filepath.Join(other, "control"), c); err != nil {
			t.Fatal(err)
		}
	}
	if line, err := p.recv(); err != nil || line != `{"id":1,"result":{}}` {
		t.Fatalf("%q, %v", line, err)
	}
	p.in.Close()
	if code, _ := p.wait(t); code != 0 {
		t.Errorf("exit code %d: %s", code, p.errors(t))
	}
	if r := readReport(t, other, "r.json"); r.Verdict != replay.Passed {
		t.Errorf("report is %s", r.Verdict)
	}
	for _, name := range []string{"codex.report.json", ".codex.state"} {
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, value := range map[string]string{"IDLE_TIMEOUT": "soon", "PACE": "slow", "HOLD": "nothing"} {
		p := startLinked(t, dir, []string{"REPLAY_PEER_" + name + "=" + value}, "app-server")
		if code, _ := p.wait(t); code != 2 && code != replay.ExitFailed || !strings.Contains(p.errors(t), value) {
			t.Errorf("%s: exit code %d: %s", name, code, p.errors(t))
		}
	}
}

func TestReportDir(t *testing.T) {
	t.Parallel()
	reports := filepath.Join(t.TempDir(), "new", "reports")
	dir, _ := linked(t, short, Config{ReportDir: reports, Workspace: workspace})
	play(t, startLinked(t, dir, nil), `{"id":1,"method":"go","params":{"cwd":"/ws"}}`, `{"id":1,"result":{}}`)
	list, err := Reports(reports)
	if err != nil || len(list) != 1 || !list[0].Passed() || filepath.Base(list[0].Path) != "green-codex.json" {
		t.Errorf("%+v, %v", list, err)
	}
}

// Link writes over its own links, and over nothing else.
func TestLinkRefuses(t *testing.T) {
	t.Parallel()
	dir, path := linked(t, short, Config{})
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	transcript := writeFile(t, filepath.Join(t.TempDir(), "t.ndjson"), entries(short...))
	if _, err := Link(dir, "codex", exe, Config{Transcript: transcript}); err != nil {
		t.Errorf("linked again: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	foreign := writeFile(t, path, "#!/bin/sh\n") // in the place of an earlier link
	writeFile(t, filepath.Join(dir, "claude"), "#!/bin/sh\n")
	for _, c := range []struct{ name, transcript, want string }{
		{"codex", transcript, "file exists and is no fake binary: remove it"},
		{"claude", transcript, "file exists and is no fake binary: remove it"},
		{"a/b", transcript, `link "a/b": want a plain file name`},
		{"..", transcript, "want a plain file name"},
		{"", transcript, "want a plain file name"},
		{"new", filepath.Join(dir, "nothing.ndjson"), "no such file"},
		{"new", foreign, "codex:1: "},
	} {
		before := snapshotDir(t, dir)
		if got, err := Link(dir, c.name, exe, Config{Transcript: c.transcript}); err == nil || got != "" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Link(%q): %q, %v: want %s", c.name, got, err, c.want)
		}
		if d := cmp.Diff(before, snapshotDir(t, dir)); d != "" {
			t.Errorf("Link(%q) failed and left:\n%s", c.name, d)
		}
	}
}

// snapshotDir is the folder's files and what they hold.
func snapshotDir(t *testing.T, dir string) map[string]string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range list {
		got[e.Name()] = e.Type().String()
		if e.Type().IsRegular() {
			got[e.Name()] += " " + readFile(t, filepath.Join(dir, e.Name()))
		}
	}
	return got
}

func TestReports(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if list, err := Reports(dir); err != nil || list != nil {
		t.Errorf("an empty folder: %v, %v", list, err)
	}
	if list, err := Reports(filepath.Join(dir, "none")); err == nil || list != nil {
		t.Errorf("no folder: %v, %v", list, err)
	}
	pass := &replay.Report{Version: 1, Verdict: replay.Passed}
	writeFile(t, filepath.Join(dir, "b.json"), string(pass.Encode()))
	writeFile(t, filepath.Join(dir, "a.json"), string((&replay.Report{Version: 1, Verdict: replay.Running}).Encode()))
	writeFile(t, filepath.Join(dir, "c.json"), "{}")
	writeFile(t, filepath.Join(dir, ".hidden.json"), "{}")
	writeFile(t, filepath.Join(dir, "note.txt"), "")
	list, err := Reports(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, n := range list {
		got[filepath.Base(n.Path)] = n.Passed()
	}
	if d := cmp.Diff(map[string]bool{"a.json": false, "b.json": true, "c.json": false}, got); d != "" {
		t.Errorf("passed (-want +got):\n%s", d)
	}
}
