//go:build live && linux

package peer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/replay"
)

const claudeSDK = "0.3.332"

// claudeSDKDir is where the pinned Agent SDK is installed. It is fetched once.
func claudeSDKDir(t *testing.T) string {
	t.Helper()
	cache := cmp.Or(os.Getenv("REPLAYPEER_CACHE"), filepath.Join(os.Getenv("HOME"), ".cache", "replaypeer"))
	dir := filepath.Join(cache, "npm", "claude-agent-sdk-"+claudeSDK)
	sdk := filepath.Join(dir, "node_modules", "@anthropic-ai", "claude-agent-sdk")
	if _, err := os.Stat(filepath.Join(sdk, "sdk.mjs")); err == nil {
		return sdk
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("npm", "install", "--prefix", dir, "--omit=optional", "--omit=peer", "--legacy-peer-deps",
		"--ignore-scripts", "--no-audit", "--no-fund", "@anthropic-ai/claude-agent-sdk@"+claudeSDK).CombinedOutput()
	if err != nil {
		t.Skipf("NOT TESTED: no Agent SDK below %s, and npm can't fetch it: %v\n%s", dir, err, out)
	}
	return sdk
}

// claudeRun is what the real SDK made of one transcript.
type claudeRun struct {
	yields []string
	calls  map[string]string // control call to its outcome
	errors string            // what query() threw
	report *replay.Report
}

// runClaudeSDK runs a scenario of scripts/live/claude on the SDK, with a fake
// claude that plays the transcript.
func runClaudeSDK(t *testing.T, exe, sdk, transcript, scenario string, env ...string) claudeRun {
	t.Helper()
	dir := t.TempDir()
	for _, sub := range []string{"home", "tmp"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	cfg := Config{
		Transcript: transcript, Report: filepath.Join(dir, "report.json"), State: filepath.Join(dir, "state"),
		Workspace: workspace, IdleTimeout: patience / 3,
	}
	fake, err := Link(dir, "claude", exe, cfg)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "../../scripts/loopback.sh", "timeout", fmt.Sprint(int(patience.Seconds())),
		"node", "../../scripts/live/claude/driver.mjs", sdk, fake, scenario)
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home"), "TMPDIR=" + filepath.Join(dir, "tmp"), "LANG=C.UTF-8", "TZ=UTC",
	}, env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("driver: %v\n%s%s", err, out, stderr.Bytes())
	}
	r := claudeRun{calls: map[string]string{}, report: readReport(t, dir, "report.json")}
	for line := range strings.Lines(string(out)) {
		o := gjson.Parse(line)
		switch {
		case o.Get("yield").Exists():
			r.yields = append(r.yields, o.Get("yield").Raw)
		case o.Get("call").Exists():
			r.calls[o.Get("call").Str] = cmp.Or(o.Get("error").Str, o.Get("value").Raw)
		case o.Get("end").Exists():
			r.errors = o.Get("errors").Raw
		}
	}
	return r
}

// sdkMessages are the messages of a transcript that query() yields.
func sdkMessages(entries []claudeEntry) []string {
	var all []string
	for _, e := range entries {
		if e.out || e.exit || strings.Contains(e.typ, ".") || e.typ == "transcript_mirror" || gjson.Get(e.frame, "sdk_host_only").Bool() {
			continue
		}
		all = append(all, e.frame)
	}
	return all
}

func decoded(t *testing.T, raw string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(raw), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func wantYields(t *testing.T, got, want []string) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if !reflect.DeepEqual(decoded(t, got[i]), decoded(t, want[i])) {
			t.Errorf("message %d: query() yields %s: want %s", i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("query() yields %d messages: want %d", len(got), len(want))
	}
}

// The real Agent SDK starts the peer as its claude, and its query() yields
// what was recorded.
func TestLiveClaudeSDK(t *testing.T) {
	sdk, exe := claudeSDKDir(t), buildPeer(t)
	tests := []struct {
		scenario string
		calls    map[string]string
		errors   string
	}{
		{scenario: "simple"},
		{scenario: "string_prompt"},
		{scenario: "multi_turn"},
		{scenario: "interrupt", calls: map[string]string{"interrupt": `{"still_queued":[]}`}, errors: "Request was aborted."},
		{scenario: "permission_allow"},
		{scenario: "permission_deny"},
		{scenario: "permission_crossed"},
		{scenario: "permission_aborted", calls: map[string]string{"interrupt": `{"still_queued":[]}`}, errors: "exited with code 1"},
		{scenario: "steering"},
		{scenario: "resume"},
		{scenario: "subagent"},
		{scenario: "api_error", errors: "API Error: 500"},
		{scenario: "controls", calls: map[string]string{
			"setModel": "null", "setPermissionMode": `{"mode":"acceptEdits"}`, "bypass": "bypass is not available", "mcpServerStatus": "[]",
			"supportedModels": `[{"value":"default","displayName":"Default","description":"[trimmed]"}]`,
		}},
		{scenario: "callbacks"},
		{scenario: "abort", errors: "aborted by user"},
	}
	for _, c := range tests {
		t.Run(c.scenario, func(t *testing.T) {
			file := claudeTranscript(t, c.scenario)
			r := runClaudeSDK(t, exe, sdk, file, c.scenario)
			if r.report.Verdict != replay.Passed {
				t.Errorf("%s", r.report.Text())
			}
			wantYields(t, r.yields, sdkMessages(readClaude(t, file)))
			if c.calls == nil {
				c.calls = map[string]string{}
			}
			if !reflect.DeepEqual(r.calls, c.calls) {
				t.Errorf("calls %v: want %v", r.calls, c.calls)
			}
			if (c.errors == "") != (r.errors == "[]") || !strings.Contains(r.errors, c.errors) {
				t.Errorf("query() throws %s: want %q", r.errors, c.errors)
			}
		})
	}
}

// The client's own session id comes back in what the provider says, in the
// next process too.
func TestLiveClaudeOwnSession(t *testing.T) {
	sdk, exe := claudeSDKDir(t), buildPeer(t)
	const own = "99999999-8888-4777-8666-555555555555"
	file := claudeTranscript(t, "resume")
	r := runClaudeSDK(t, exe, sdk, file, "resume", "OWN_SESSION="+own)
	if r.report.Verdict != replay.Passed || r.report.Launches != 2 {
		t.Errorf("%d launches\n%s", r.report.Launches, r.report.Text())
	}
	var want []string
	for _, m := range sdkMessages(readClaude(t, file)) {
		want = append(want, strings.ReplaceAll(m, gjson.Get(m, "session_id").Str, own))
	}
	wantYields(t, r.yields, want)
}

// A call that differs from the recording turns the replay red, although the
// client swallows what the SDK throws and exits with 0.
func TestLiveClaudeChangedCall(t *testing.T) {
	sdk, exe := claudeSDKDir(t), buildPeer(t)
	for scenario, path := range map[string]string{
		"simple": "message.message.content", "controls": "model", "permission_deny": "result.behavior",
	} {
		t.Run(scenario, func(t *testing.T) {
			r := runClaudeSDK(t, exe, sdk, claudeTranscript(t, scenario), scenario, "CHANGED=1")
			if r.report.Verdict != replay.Mismatch || r.report.ExitCode != replay.ExitFailed || !strings.Contains(r.report.Text(), path) {
				t.Errorf("want a mismatch at %s\n%s", path, r.report.Text())
			}
			if !strings.Contains(r.errors, "exited with code 97") {
				t.Errorf("query() throws %s", r.errors)
			}
		})
	}
}
