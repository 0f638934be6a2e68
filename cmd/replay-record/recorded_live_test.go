//go:build live && linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/replaypeer/replaypeer/internal/model"
	"github.com/replaypeer/replaypeer/internal/replay"
)

// drivenProviders are those whose recipe names a vendor's client.
var drivenProviders = []struct {
	name      string
	scenarios []string
}{
	{"opencode", []string{"simple", "multi_turn"}},  // by OpenCode's SDK
	{"opencode-acp", []string{"simple"}},            // by acpx
	{"claude", []string{"simple", "multi_turn"}},    // by the Agent SDK
	{"gemini", []string{"simple", "multi_turn"}},    // by scripts/drivers/acp.mjs
	{"qwen", []string{"simple", "multi_turn"}},      // the same
	{"codex-acp", []string{"simple", "multi_turn"}}, // the same
	{"cursor", []string{"simple", "multi_turn"}},    // by a plain client of the bridge
}

// recordScript runs scripts/record.sh. The exit code is -1 when it hangs.
func recordScript(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "../../scripts/record.sh", args...)
	cmd.Env = append(os.Environ(), "CLIENT=vendor")
	b, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(b), cmd.ProcessState.ExitCode()
}

// TestLiveVendorClients records the real providers through their real clients,
// compares with the committed recordings, and plays the new ones to the same
// clients: once as recorded, once with another prompt expected.
//
//	go test -tags live -run TestLiveVendorClients ./cmd/replay-record
func TestLiveVendorClients(t *testing.T) {
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("NOT TESTED: no npm")
	}
	for _, p := range drivenProviders {
		for _, scenario := range p.scenarios {
			t.Run(p.name+"/"+scenario, func(t *testing.T) { vendorClient(t, p.name, scenario) })
		}
	}
}

func vendorClient(t *testing.T, provider, scenario string) {
	path := filepath.Join(t.TempDir(), "out.ndjson")
	if out, code := recordScript(t, provider, scenario, path); code != 0 {
		t.Fatalf("record: exit code %d\n%s", code, out)
	}
	if err := replay.SelfCheck(path); err != nil {
		t.Error(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if found := machine.Find(data); found != nil {
		t.Errorf("the transcript has %s", found)
	}
	if committed := filepath.Join(recorded, provider, scenario+".ndjson"); exists(committed) {
		differ, moved := differences(settled(t, committed), settled(t, path))
		for _, line := range append(differ, moved...) {
			t.Errorf("differs from %s: %s", committed, line)
		}
	}
	if out, code := recordScript(t, "--replay", provider, scenario, path); code != 0 || !strings.Contains(out, "\npassed ") {
		t.Errorf("replay: exit code %d\n%s", code, out)
	}
	changed := strings.Replace(string(data), "Respond with exactly", "Respond with nothing but", 1)
	if err := os.WriteFile(path, []byte(changed), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, code := recordScript(t, "--replay", provider, scenario, path); code == 0 || !strings.Contains(out, "\nmismatch ") {
		t.Errorf("replay of another prompt: exit code %d\n%s", code, out)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// openCodeScript is what the model says to scripts/live/opencode/sdk.mjs.
const openCodeScript = `replies:
  - when: {user: "run echo hi"}
    items: [{call: {name: bash, arguments: {command: "echo hi", description: "Print a word"}}}]
  - when: {user: "run echo hi", toolResults: 1}
    items: [{text: "Done."}]
  - when: {user: "ask me"}
    items:
      - call:
          name: question
          arguments: {questions: [{question: "Which colour?", header: Colour, options: [{label: Red, description: Warm}, {label: Blue, description: Cool}]}]}
  - when: {user: "ask me", toolResults: 1}
    items: [{text: "Red it is."}]
  - when: {user: "count slowly"}
    items: [{text: ["one ", {hold: never}, "two"]}]
`

// TestLiveOpenCodeHTTP lets OpenCode's SDK, of both versions, start the real
// server through the tap, and have the conversation of the peer's live tests:
// a permission, a question, an abort, an error. The transcripts replay to the
// same client.
func TestLiveOpenCodeHTTP(t *testing.T) {
	if os.Getenv("LIVE_INSIDE") != "" {
		for _, version := range []string{"v1", "v2"} {
			t.Run(version, func(t *testing.T) { openCodeHTTP(t, version) })
		}
		return
	}
	cache := cmp.Or(os.Getenv("REPLAYPEER_CACHE"), filepath.Join(os.Getenv("HOME"), ".cache", "replaypeer"))
	dir := t.TempDir()
	for _, sub := range []string{"home", "tmp", "bin"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range [][]string{
		{"bash", "-euc", "source ../../scripts/npm.sh; source ../../scripts/providers/opencode.sh; cache=$1; provider_install", "bash", cache},
		{"go", "build", "-o", dir + "/bin/", "../replay-peer", "."},
	} {
		if out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Skipf("NOT TESTED: %v: %v\n%s", command, err, out)
		}
	}
	cmd := exec.CommandContext(t.Context(), "../../scripts/loopback.sh", os.Args[0], "-test.run=^TestLiveOpenCodeHTTP$", "-test.v")
	cmd.Env = []string{
		"LIVE_INSIDE=" + dir, "HOME=" + dir + "/home", "TMPDIR=" + dir + "/tmp", "cache=" + cache,
		"PATH=" + dir + "/bin:" + os.Getenv("PATH"), "LANG=C.UTF-8", "TZ=UTC", "SHELL=/bin/sh",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("inside: %v\n%s", err, out)
	}
	t.Logf("%s", out)
}

func openCodeHTTP(t *testing.T, version string) {
	dir := t.TempDir()
	name := filepath.Join(dir, "model.yaml")
	if err := os.WriteFile(name, []byte(openCodeScript), 0o666); err != nil {
		t.Fatal(err)
	}
	script, err := model.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(model.New(script, nil, func(s string) { t.Error(s) }))
	defer server.Close()
	path := filepath.Join(dir, "out.ndjson")
	record := `source ../../scripts/npm.sh; source ../../scripts/providers/opencode.sh; home=$HOME root=../.. model_url=` + server.URL + `; provider_setup
printf '#!/bin/sh\nexec%s "$@"\n' "$(printf ' %q' env "${env[@]}" "$(command -v replay-record)" http --provider opencode --scenario sdk -o "$2" \
	--source scripted-model -- "${command[@]}")" >"$1/opencode"`
	play := `printf '#!/bin/sh\nexec%s "$@"\n' "$(printf ' %q' replay-peer serve --report "$1/report.json" "$2" --)" >"$1/opencode"`
	for what, setup := range map[string]string{"record": record, "play": play} {
		if err := os.Mkdir(filepath.Join(dir, what), 0o777); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("bash", "-euc", setup+`; chmod +x "$1/opencode"`, "bash", filepath.Join(dir, what), path).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	recorded := openCodeClient(t, dir, "record", version, "../..")
	for end := time.Now().Add(20 * time.Second); !exists(path) && time.Now().Before(end); { // the recorder outlives its client
		time.Sleep(50 * time.Millisecond)
	}
	if err := replay.SelfCheck(path); err != nil {
		t.Fatal(err)
	}
	played := openCodeClient(t, dir, "play", version, "../..")
	r, err := replay.ReadReport(filepath.Join(dir, "play", "report.json"))
	if err != nil || r.Verdict != replay.Passed {
		t.Errorf("verdict %v, %v\n%s", r, err, r.Text())
	}
	// Results and events come on connections of their own: in which order the
	// client takes up two that come together is its own affair.
	for _, kind := range []string{`{"result":`, `{"event":`} {
		before, after := only(kind, recorded), only(kind, played)
		for i := range max(len(before), len(after)) {
			if i >= len(before) || i >= len(after) || before[i] != after[i] {
				t.Errorf("of %d and %d %q, number %d differs:\n%.300q\n%.300q", len(before), len(after), kind, i, before[i:min(i+1, len(before))], after[i:min(i+1, len(after))])
				break
			}
		}
	}
	t.Logf("%d expectations, %d lines seen", r.Outbound.Matched, strings.Count(played, "\n"))
}

// only are the lines that begin so.
func only(start, text string) (lines []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, start) {
			lines = append(lines, line)
		}
	}
	return lines
}

// openCodeClient runs the client and returns what its user sees, without what
// the flavor leaves out.
func openCodeClient(t *testing.T, dir, what, version, root string) string {
	t.Helper()
	sdk := os.Getenv("cache") + "/npm/opencode-sdk-1.19.3/node_modules/@opencode-ai/sdk"
	driver, err := filepath.Abs(root + "/scripts/live/opencode/sdk.mjs")
	if err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(dir, "work")
	if err := os.MkdirAll(work, 0o777); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "timeout", "100", "node", driver, sdk, version)
	cmd.Dir = work
	cmd.Env = append(os.Environ(), fmt.Sprintf("PATH=%s:%s", filepath.Join(dir, what), os.Getenv("PATH")))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%s: %v\n%s%s", what, err, out, stderr.String())
	}
	var lines strings.Builder
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "swallowed") {
			t.Errorf("%s: %s", what, line)
		}
		if !noise.MatchString(line) {
			lines.WriteString(line)
		}
	}
	return lines.String()
}
