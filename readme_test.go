package replaypeer

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// shellBlock is what stands in a fenced block of shell.
var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// elsewhere are blocks of the README that the gate runs in steps of their own:
// scripts/live.sh records, where npm answers, and this test is part of the
// tests. The README says so itself.
var elsewhere = map[string]string{
	"# needs Linux and npm, which installs the pinned provider\nscripts/record.sh codex simple /tmp/simple.ndjson\n": "scripts/live.sh",
	"go test ./...\n": ".ci/run",
}

// TestReadme types what the README says into one shell, from top to bottom, in
// a fresh clone of what is committed, with an empty home, no network for Go and
// nothing else on the PATH than Go and the system.
func TestReadme(t *testing.T) {
	if testing.Short() || strings.Contains(os.Getenv("GOFLAGS"), "-cover") {
		t.Skip("SKIPPED, the README was not run: -short, or a run for coverage, which comes beside a plain one")
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skipf("SKIPPED, the README was not run: %v", err)
	}
	dir := t.TempDir()
	clone := filepath.Join(dir, "replaypeer")
	if out, err := exec.Command("git", "clone", "-q", ".", clone).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED, the README was not run: this is no clone of the repository: %v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(clone, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("\n")); n > 200 {
		t.Errorf("the README has %d lines: want 200 at most", n)
	}
	script, run := "set -euo pipefail\n", 0
	for _, block := range shellBlock.FindAllSubmatch(text, -1) {
		commands := string(block[1])
		if step, ok := elsewhere[commands]; ok {
			t.Logf("not run here, but by %s:\n%s", step, commands)
			continue
		}
		script += commands
		run++
	}
	if run < 4 {
		t.Fatalf("%d blocks of shell: want at least 4", run)
	}
	cmd := exec.CommandContext(t.Context(), bash, "-c", script)
	cmd.Dir, cmd.WaitDelay = clone, time.Minute
	cmd.Env = cleanEnvironment(t, filepath.Join(dir, "home"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	for _, want := range []string{ // of each block something that only its success says
		" 0 failed, 0 not reached, 0 skipped in ",
		"orch-run: 1 of 1 peers passed; the command ended with exit code 0\n",
		"exit 3: no peer was started, and that is no pass\n",
		" 0 errors, ",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
}

// cleanEnvironment is that of a new user, who shares nothing but what Go has
// downloaded and built.
func cleanEnvironment(t *testing.T, home string) []string {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(home, "tmp"), 0o777); err != nil {
		t.Fatal(err)
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	env := []string{
		"HOME=" + home, "TMPDIR=" + filepath.Join(home, "tmp"),
		"PATH=" + filepath.Dir(goTool) + ":/usr/bin:/bin",
		"GOPROXY=off", "GOTOOLCHAIN=local", "GOFLAGS=-mod=readonly",
	}
	for _, name := range []string{"GOMODCACHE", "GOCACHE"} {
		out, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, name+"="+strings.TrimSpace(string(out)))
	}
	return env
}
