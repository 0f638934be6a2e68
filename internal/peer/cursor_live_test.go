//go:build live && linux

package peer

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/pkg/envelope"
)

const liveInside = "LIVE_INSIDE"

// cursorScript is what the model says behind the real SDK.
const cursorScript = `replies:
  - when: {user: TOOL}
    items:
      - reasoning: I need to look.
      - {text: I look., chunks: 2}
      - call: {name: shell, arguments: {command: cat package.json, description: Look}}
  - when: {user: TOOL, toolResults: 1}
    items: [{text: It is a package.}]
  - when: {user: HANG}
    items: [{text: half}, {hold: never}]
  - when: {user: FAIL}
    error: {status: 400, message: no luck}
  - when: {user: PLAN}
    items: [{call: {name: create_plan, arguments: {plan: "1. Rest"}}}]
  - when: {user: PLAN, toolResults: 1}
    items: [{text: That is the plan.}]
`

// TestLiveCursor records the real SDK behind its bridge and replays what came
// out to the same client. The SDK's service is the stand-in of this project,
// which the recipe starts, with a scripted model behind it. The test runs
// itself again in a network namespace with nothing but loopback.
//
//	go test -tags live -run TestLiveCursor ./internal/peer
func TestLiveCursor(t *testing.T) {
	if dir := os.Getenv(liveInside); dir != "" {
		liveCursor(t, dir)
		return
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	cache := cmp.Or(os.Getenv("REPLAYPEER_CACHE"), filepath.Join(os.Getenv("HOME"), ".cache", "replaypeer"))
	install := exec.Command("bash", "-euc", "source scripts/npm.sh; source scripts/providers/cursor.sh; provider_install")
	install.Dir, install.Env = root, append(os.Environ(), "cache="+cache)
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("install: %v\n%s", err, out)
	}
	dir := t.TempDir()
	for _, sub := range []string{"home", "tmp", "work", "bin"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-o", dir+"/bin/", "./cmd/replay-record", "./cmd/replay-peer")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	cmd := exec.Command(root+"/scripts/loopback.sh", os.Args[0], "-test.run=^TestLiveCursor$", "-test.v")
	cmd.Env = []string{
		liveInside + "=" + dir, "cache=" + cache, "HOME=" + dir + "/home", "TMPDIR=" + dir + "/tmp",
		"PATH=" + dir + "/bin:" + os.Getenv("PATH"), "LANG=C.UTF-8", "TZ=UTC", "SHELL=/bin/sh",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("inside: %v\n%s", err, out)
	}
	t.Logf("%s", out)
}

func liveCursor(t *testing.T, dir string) {
	work := dir + "/work"
	if err := os.WriteFile(work+"/package.json", []byte(`{"name":"x"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	setup := `source ../../scripts/npm.sh; source ../../scripts/providers/cursor.sh; home=$HOME model_url=` + startModel(t, dir) + `; provider_setup; cd "$1"
exec env "${env[@]}" `
	bridgeEnds(t, func() *exec.Cmd { return exec.Command("bash", "-euc", setup+`"${command[@]}"`, "bash", work) })

	path := filepath.Join(dir, "cursor.ndjson")
	recorder := `replay-record stdio --provider cursor --scenario live -o "$2" --source scripted-model -- "${command[@]}"`
	recorded := talkCursor(t, work, exec.Command("bash", "-euc", setup+recorder, "bash", work, path))

	if err := replay.SelfCheck(path); err != nil {
		t.Error(err)
	}
	checkLiveCursor(t, dir, path)
	report := filepath.Join(dir, "report.json")
	replayed := talkCursor(t, work, exec.Command("replay-peer", "serve", "--workspace", work, "--report", report, path))
	if d := gocmp.Diff(recorded, replayed); d != "" {
		t.Errorf("the replay says something else (-recorded +replayed):\n%s", d)
	}
	if r := readReport(t, dir, "report.json"); r.Verdict != replay.Passed {
		t.Errorf("report: %s", r.Text())
	}
}

// startModel serves the script and returns its URL.
func startModel(t *testing.T, dir string) string {
	script := filepath.Join(dir, "model.yaml")
	if err := os.WriteFile(script, []byte(cursorScript), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "replay-record", "model", "--script", script)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Wait() }) // its context has ended
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the model does not listen: %v", err)
	}
	return strings.TrimSpace(url)
}

// bridgeEnds checks how the bridge ends: the end of its input cancels a live
// run, and what is no frame ends it at once.
func bridgeEnds(t *testing.T, bridge func() *exec.Cmd) {
	const open = `{"type":"agent.open","operation":"create","options":{"model":{"id":"scripted-model"},"local":{"enableAgentRetries":false}}}` + "\n"
	for _, c := range []struct {
		name, in string
		exit     int
		last     string // what the last line holds
	}{
		{"no input", "", 0, `"bridge.ready"`},
		{"end of input in a run", open + `{"type":"run.start","message":"HANG","options":{"model":{"id":"scripted-model"}}}` + "\n", 0, `"status":"cancelled"`},
		{"second run", open + strings.Repeat(`{"type":"run.start","message":"HANG","options":{"model":{"id":"scripted-model"}}}`+"\n", 2), 0, `"status":"cancelled"`},
		{"run without an agent", `{"type":"run.start","message":"x"}` + "\n", 0, `"call.failed","call":"run.start"`},
		{"no JSON", "x\n", 65, `"bridge.fatal"`},
		{"unknown frame", `{"type":"run.dance"}` + "\n", 65, `"bridge.fatal","error":{"name":"UnknownFrame"`},
	} {
		cmd := bridge()
		cmd.Stdin = strings.NewReader(c.in)
		out, _ := cmd.Output()
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		if code := cmd.ProcessState.ExitCode(); code != c.exit || !strings.Contains(lines[len(lines)-1], c.last) {
			t.Errorf("%s: exit code %d, want %d, and last %s:\n%s", c.name, code, c.exit, c.last, out)
		}
	}
}

// checkLiveCursor looks at what stands in the transcript.
func checkLiveCursor(t *testing.T, dir, path string) {
	tr, err := envelope.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	meta := gjson.ParseBytes(tr.Header.Metadata)
	if tr.Header.Version != "1.0.32" || meta.Get("providerVersion").Str != "1.0.32" || meta.Get("sdk").Str != "@cursor/sdk" || meta.Get("model").Str != "scripted-model" {
		t.Errorf("header %s %s", tr.Header.Version, meta)
	}
	text := readFile(t, path)
	for _, secret := range []string{dir, "key_of_nobody", "bridge.ready", "a name"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is in the transcript:\n%s", secret, text)
		}
	}
	labels := map[string]int{}
	for _, e := range tr.Entries {
		_, label := e.Position()
		labels[label]++
	}
	for label, want := range map[string]int{
		"agent.open": 3, "agent.opened": 2, "run.start": 4, "run.started": 4, "run.cancel": 1, "run.completed": 4,
		"call.failed": 1, "agent.close": 1, "stderr": 0, "tool-call-started": 2, "tool-call-completed": 2,
		"thinking-delta": 1, "thinking-completed": 1, "agent.messages.list": 1, "agent.messages": 1,
	} {
		if labels[label] != want {
			t.Errorf("%d entries %s, want %d:\n%s", labels[label], label, want, text)
		}
	}
	t.Logf("%d entries, labels %v, metadata %s", len(tr.Entries), labels, meta)
}

// talkCursor plays the client with a provider, in the options' live form, and
// returns what the provider said.
func talkCursor(t *testing.T, work string, cmd *exec.Cmd) []string {
	t.Helper()
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(stdout)
	var heard []string
	until := func(kind string) gjson.Result {
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				t.Fatalf("waiting for %s: %v\n%s", kind, err, strings.Join(heard, ""))
			}
			heard = append(heard, line)
			if f := gjson.Parse(line); f.Get("type").Str == kind || f.Get("update.type").Str == kind {
				return f
			}
		}
	}
	say := func(format string, args ...any) { fmt.Fprintf(stdin, format+"\n", args...) }
	options := fmt.Sprintf(`{"model":{"id":"scripted-model"},"name":"a name","apiKey":"key_of_nobody","mode":"agent","local":{"cwd":%q,"autoReview":false,"sandboxOptions":{"enabled":false},"enableAgentRetries":false}}`, work)
	const run = `"options":{"model":{"id":"scripted-model"},"mode":"agent"}`

	until("bridge.ready")
	say(`{"type":"agent.open","operation":"create","options":%s}`, options)
	agent := until("agent.opened").Get("agentId").Str
	say(`{"type":"run.start","message":"TOOL: read %s/package.json",%s}`, work, run)
	if done := until("tool-call-completed"); done.Get("update.toolCall.result.value.stdout").Str != `{"name":"x"}` {
		t.Errorf("the command: %s", done)
	}
	if r := until("run.completed"); r.Get("result.status").Str != "finished" || r.Get("result.result").Str != "It is a package." {
		t.Errorf("first run: %s", r)
	}
	say(`{"type":"run.start","message":"HANG",%s}`, run)
	id := until("run.started").Get("runId").Str
	until("interaction.update")
	say(`{"type":"run.cancel","runId":%q}`, id)
	if r := until("run.completed"); r.Get("result.status").Str != "cancelled" || r.Get("result.id").Str != id {
		t.Errorf("cancelled run: %s", r)
	}
	say(`{"type":"run.start","message":"FAIL",%s}`, run)
	if r := until("run.completed"); r.Get("result.status").Str != "error" || !strings.Contains(r.Get("result.error.message").Str, "no luck") {
		t.Errorf("failed run: %s", r)
	}
	say(`{"type":"agent.messages.list","agentId":%q}`, agent)
	until("agent.messages")
	say(`{"type":"agent.close","agentId":%q}`, agent)
	say(`{"type":"agent.open","operation":"resume","agentId":%q,"options":%s}`, agent, options)
	if again := until("agent.opened").Get("agentId").Str; again != agent {
		t.Errorf("resumed agent %s is %s", agent, again)
	}
	say(`{"type":"run.start","message":"PLAN","options":{"model":{"id":"scripted-model"},"mode":"plan"}}`)
	if plan := until("tool-call-completed"); plan.Get("update.toolCall.result.status").Str != "success" {
		t.Errorf("the plan: %s", plan)
	}
	if r := until("run.completed"); r.Get("result.status").Str != "finished" {
		t.Errorf("resumed run: %s", r)
	}
	say(`{"type":"agent.open","operation":"resume","agentId":"agent-00000000-0000-4000-8000-000000000000","options":%s}`, options)
	if f := until("call.failed"); f.Get("call").Str != "agent.open" || f.Get("error.message").Str == "" {
		t.Errorf("unknown agent: %s", f)
	}
	stdin.Close()
	rest, err := io.ReadAll(in)
	if err != nil || len(rest) > 0 {
		t.Errorf("after the end of input: %s, %v", rest, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%s: %v", cmd.Path, err)
	}
	return heard
}
