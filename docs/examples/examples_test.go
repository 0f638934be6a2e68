// Package examples holds clients in other languages than Go, and in Go, whose
// own tests run under orch-run exec.
package examples

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestExamples runs the tests of each example as its README says: green as
// it stands, and red as soon as one field of what it sends has changed,
// although its own tests still pass.
func TestExamples(t *testing.T) {
	bin := t.TempDir()
	sources(t, "../../cmd", "../../internal", "../../pkg", "../../transcripts", ".")
	if out, err := exec.Command("go", "build", "-o", bin, "../../cmd/orch-run", "../../cmd/replay-peer").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for _, example := range []struct {
		dir, peer, transcript string
		tests                 []string
		file, field, changed  string
		path                  string // where the report says that it differs
	}{
		{"go", "codex", "simple/codex.ndjson", []string{"go", "test", "-count=1", "./..."},
			"assistant.go", `"approvalPolicy": "never"`, `"approvalPolicy": "on-request"`, "params.approvalPolicy"},
		{"node", "claude", "recorded/claude/simple.ndjson", []string{"node", "--test"},
			"assistant.mjs", `"--permission-mode", "default"`, `"--permission-mode", "plan"`, "options.permissionMode"},
		{"python", "codex-acp", "recorded/codex-acp/simple.ndjson", []string{"python3", "-m", "unittest"},
			"assistant.py", `"terminal": False`, `"terminal": True`, "params.clientCapabilities.terminal"},
	} {
		t.Run(example.dir, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(example.tests[0]); err != nil {
				t.Skipf("SKIPPED, this example was not run: %v", err)
			}
			transcript, err := filepath.Abs(filepath.Join("../../transcripts", example.transcript))
			if err != nil {
				t.Fatal(err)
			}
			args := append([]string{"exec", "--timeout", "5m", "--peer", example.peer + "=" + transcript, "--"}, example.tests...)
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(example.dir)); err != nil {
				t.Fatal(err)
			}
			if code, text := run(t, dir, filepath.Join(bin, "orch-run"), args); code != 0 || !strings.Contains(text, "orch-run: 1 of 1 peers passed; the command ended with exit code 0") {
				t.Fatalf("exit %d:\n%s", code, text)
			}
			edit(t, filepath.Join(dir, example.file), example.field, example.changed)
			code, text := run(t, dir, filepath.Join(bin, "orch-run"), args)
			if code != 3 || !strings.Contains(text, "orch-run: FAILED: 1 of 1 peers did not pass; the command ended with exit code 0") ||
				!strings.Contains(text, "outbound mismatch at "+example.path+" ") {
				t.Errorf("one field changed: exit %d:\n%s", code, text)
			}
		})
	}
}

// sources opens what the binaries and the examples are made of, for the cache
// of test results: what other processes read is not known to it.
func sources(t *testing.T, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		if err := filepath.WalkDir(dir, func(string, fs.DirEntry, error) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
}

// run returns the exit code and everything printed.
func run(t *testing.T, dir, program string, args []string) (int, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, &out, &out, time.Minute
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

func edit(t *testing.T, file, old, changed string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), old); n != 1 {
		t.Fatalf("%s holds %q %d times: want once", file, old, n)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), old, changed, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}
