package scenario

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/internal/orch"
)

const valid = `name: simple
description: One turn.
providers:
  codex: {model: m}
timeout: 2s
steps:
  - message:
      text: hello
      await: completed
  - capture_snapshot: {key: first}
  - restart: {}
assertions:
  - {path: runs.#, equals: 1}
  - {path: thread.branch, equals: null, for: [codex], snapshot: first}
`

func TestParse(t *testing.T) {
	s, err := parse("x/simple/scenario.yaml", []byte(valid))
	if err != nil {
		t.Fatal(err)
	}
	if got := []int{s.Steps[0].Line, s.Steps[1].Line, s.Steps[2].Line, s.Assertions[1].Line}; !cmp.Equal([]int{7, 10, 11, 14}, got) {
		t.Errorf("lines: %v", got)
	}
	if s.Steps[0].Message.Await != "completed" || s.Steps[2].Restart == nil || time.Duration(s.Timeout) != 2*time.Second {
		t.Errorf("steps: %+v", s.Steps)
	}
	if string(s.Assertions[1].Equals) != "null" || string(s.Assertions[0].Equals) != "1" {
		t.Errorf("operators: %+v", s.Assertions)
	}
}

func TestParseErrors(t *testing.T) {
	tests := []struct {
		name     string
		old, new string // replaced in valid; old "" replaces all of it
		want     []string
	}{
		{"empty", "", "", []string{"f.yaml:1: the file is empty"}},
		{"not YAML", "timeout: 2s", "timeout: [", []string{"f.yaml:"}},
		{"two documents", "description: One turn.", "description: One turn.\n---\na: 1", []string{"f.yaml:3: a second document"}},
		{"unknown field", "timeout: 2s", "tiemout: 2s", []string{"f.yaml:1:", "'tiemout'"}},
		{"key twice", "timeout: 2s", "timeout: 2s\ntimeout: 3s", []string{`f.yaml:6: key "timeout" stands twice`}},
		{"alias", "timeout: 2s", "timeout: &a 2s\nprobes: *a", []string{"f.yaml:6: aliases are not supported"}},
		{"unknown step", "restart: {}", "reboot: {}", []string{"f.yaml:11: unknown step:", "'reboot'"}},
		{"two steps in one", "restart: {}", "restart: {}\n    probe: {assertions: [{path: a, exists: true}]}", []string{"f.yaml:11:"}},
		{"unknown key of a step", "text: hello", "text: hello\n      txet: x", []string{"f.yaml:8:", "'txet'"}},
		{"unknown status", "await: completed", "await: done", []string{"f.yaml:9:"}},
		{"bad duration", "timeout: 2s", "timeout: soon", []string{"f.yaml:5: at /timeout"}},
		{"no operator", "path: runs.#, equals: 1", "path: runs.#", []string{"f.yaml:13: at /assertions/0: want exactly one of equals, length"}},
		{"two operators", "path: runs.#, equals: 1", "path: runs.#, equals: 1, length: 1", []string{"f.yaml:13: at /assertions/0: want exactly one of"}},
		{"no path", "{path: runs.#, equals: 1}", "{equals: 1}", []string{"f.yaml:13: at /assertions/0: missing path"}},
		{"bad pattern", "equals: 1", "matches: '('", []string{"f.yaml:13:"}},
		{"foreign provider", "for: [codex]", "for: [claude]", []string{`f.yaml:14: assertion is for "claude"`}},
		{"snapshot never taken", "snapshot: first", "snapshot: second", []string{`f.yaml:14: no step before captures a snapshot "second"`}},
		{"foreign step", "restart: {}", "restart: {}\n    for: [claude]", []string{`f.yaml:11: step is for "claude"`}},
		{"for nothing", "restart: {}", "for: [codex]", []string{"f.yaml:11:"}},
		{"without what is not needed", "timeout: 2s", "without: {fork: {steps: [{restart: {}}], assertions: [{path: a, exists: true}]}}", []string{"f.yaml:5: without fork: the scenario does not need it"}},
		{"unknown step without", "timeout: 2s", "needs: [fork]\nwithout:\n  fork:\n    steps:\n      - reboot: {}\n    assertions: [{path: a, exists: true}]", []string{"f.yaml:9: unknown step:", "'reboot'"}},
		{"bad assertion without", "timeout: 2s", "needs: [fork]\nwithout:\n  fork:\n    steps: [{restart: {}}]\n    assertions:\n      - {path: a, exists: true, snapshot: first}", []string{`f.yaml:10: no step before captures a snapshot "first"`}},
		{"late thread", "restart: {}", "create_thread: {}", []string{"f.yaml:11: create_thread must be the first step"}},
		{"unknown capability", "timeout: 2s", "needs: [approvals, flight]", []string{`f.yaml:5: unknown capability "flight": want `, "approvals"}},
		{"file outside", "timeout: 2s", "workspace: {../a: x}", []string{`f.yaml:5: workspace file "../a" does not lie in the workspace`}},
		{"git file", "timeout: 2s", "workspace: {.git/config: x}", []string{"does not lie in the workspace"}},
		{"number for a string", "name: simple", "name: 7", []string{"f.yaml:1: at /name"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := tt.new
			if tt.old != "" {
				text = strings.Replace(valid, tt.old, tt.new, 1)
			}
			s, err := parse("f.yaml", []byte(text))
			if err == nil {
				t.Fatalf("no error: %+v", s)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q\nlacks %q", err, want)
				}
			}
		})
	}
}

func TestLoadAll(t *testing.T) {
	dir := t.TempDir()
	if _, err := LoadAll(dir, "shown"); !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "no scenario in shown: want shown/NAME/scenario.yaml") {
		t.Errorf("empty folder: %v", err)
	}
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("README.md", "no scenario")
	write("empty/codex.ndjson", "")
	write("simple/scenario.yaml", valid)
	all, err := LoadAll(dir, "shown")
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	file, shown := all[0].transcript("codex", all[0].Providers["codex"].Transcript)
	if file != filepath.Join(dir, "simple", "codex.ndjson") || shown != "shown/simple/codex.ndjson" {
		t.Errorf("transcript %s, shown as %s", file, shown)
	}
	write("other/scenario.yaml", valid)
	write("bad/scenario.yaml", "name: bad\n")
	_, err = LoadAll(dir, "shown")
	for _, want := range []string{
		`shown/other/scenario.yaml:1: scenario is called "simple" but its folder "other"`,
		"shown/bad/scenario.yaml:1: missing steps",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v\nlacks %q", err, want)
		}
	}
}

func TestLacking(t *testing.T) {
	has := orch.Capabilities{Approvals: true, Fork: true}
	if got := lacking(has, []string{"approvals", "questions", "fork", "rollback"}); !cmp.Equal([]string{"questions", "rollback"}, got) {
		t.Errorf("lacking %v", got)
	}
	if got := lacking(has, nil); len(got) != 0 {
		t.Errorf("lacking %v", got)
	}
}
