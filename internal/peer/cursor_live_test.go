//go:build live && linux

package peer

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/pkg/envelope"
)

const (
	liveInside  = "LIVE_INSIDE"
	liveBackend = "REPLAYPEER_CURSOR_BACKEND"
)

// TestLiveCursor records the real SDK behind its bridge and replays what came
// out to the same client. It needs a script for Node that stands in for the
// SDK's backend on 127.0.0.1:$PORT: it answers any prompt with text, one with
// TOOL by reading $CWD/package.json first, and leaves one with HANG open. It
// runs itself again in a network namespace with nothing but loopback.
//
//	REPLAYPEER_CURSOR_BACKEND=… go test -tags live -run TestLiveCursor ./internal/peer
func TestLiveCursor(t *testing.T) {
	if dir := os.Getenv(liveInside); dir != "" {
		liveCursor(t, dir)
		return
	}
	backend := os.Getenv(liveBackend)
	if backend == "" {
		t.Skipf("NOT TESTED: %s names no stand-in for the backend", liveBackend)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	cache := cmp.Or(os.Getenv("REPLAYPEER_CACHE"), filepath.Join(os.Getenv("HOME"), ".cache", "replaypeer"))
	install := exec.Command("bash", "-euc", "source scripts/providers/cursor.sh; provider_install")
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
		liveInside + "=" + dir, liveBackend + "=" + backend, "cache=" + cache, "HOME=" + dir + "/home", "TMPDIR=" + dir + "/tmp",
		"SCENARIO=" + cmp.Or(os.Getenv("SCENARIO"), "./scenario-multi.mjs"),
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
	setup := `source ../../scripts/providers/cursor.sh; home=$HOME CURSOR_BACKEND_URL=` + startBackend(t, dir) + `; provider_setup; cd "$1"
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

func startBackend(t *testing.T, dir string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(addr)
	cmd := exec.CommandContext(t.Context(), "node", os.Getenv(liveBackend))
	cmd.Env = append(os.Environ(), "PORT="+port, "LOG="+dir+"/backend.log", "CWD="+dir+"/work")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Wait() }) // its context has ended
	for deadline := time.Now().Add(patience); ; {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return "http://" + addr
		}
		if time.Now().After(deadline) {
			t.Fatal("the backend does not listen")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// bridgeEnds checks how the bridge ends: the end of its input cancels a live
// run, and what is no frame ends it at once.
func bridgeEnds(t *testing.T, bridge func() *exec.Cmd) {
	const open = `{"type":"agent.open","operation":"create","options":{"model":{"id":"composer-2.5"},"local":{"enableAgentRetries":false}}}` + "\n"
	for _, c := range []struct {
		name, in string
		exit     int
		last     string // what the last line holds
	}{
		{"no input", "", 0, `"bridge.ready"`},
		{"end of input in a run", open + `{"type":"run.start","message":"HANG","options":{"model":{"id":"composer-2.5"}}}` + "\n", 0, `"status":"cancelled"`},
		{"second run", open + strings.Repeat(`{"type":"run.start","message":"HANG","options":{"model":{"id":"composer-2.5"}}}`+"\n", 2), 0, `"status":"cancelled"`},
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
	if tr.Header.Version != "1.0.32" || meta.Get("providerVersion").Str != "1.0.32" || meta.Get("sdk").Str != "@cursor/sdk" || meta.Get("model").Str != "composer-2.5" {
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
		"agent.open": 3, "agent.opened": 2, "run.start": 3, "run.started": 3, "run.cancel": 1, "run.completed": 3,
		"call.failed": 1, "agent.close": 1, "stderr": 0, "tool-call-started": 1, "tool-call-completed": 1,
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
			if f := gjson.Parse(line); f.Get("type").Str == kind {
				return f
			}
		}
	}
	say := func(format string, args ...any) { fmt.Fprintf(stdin, format+"\n", args...) }
	options := fmt.Sprintf(`{"model":{"id":"composer-2.5"},"name":"a name","apiKey":"key_of_nobody","mode":"agent","local":{"cwd":%q,"autoReview":false,"sandboxOptions":{"enabled":false},"enableAgentRetries":false}}`, work)
	const run = `"options":{"model":{"id":"composer-2.5"},"mode":"agent"}`

	until("bridge.ready")
	say(`{"type":"agent.open","operation":"create","options":%s}`, options)
	agent := until("agent.opened").Get("agentId").Str
	say(`{"type":"run.start","message":"TOOL: read %s/package.json",%s}`, work, run)
	if r := until("run.completed"); r.Get("result.status").Str != "finished" {
		t.Errorf("first run: %s", r)
	}
	say(`{"type":"run.start","message":"HANG",%s}`, run)
	id := until("run.started").Get("runId").Str
	until("interaction.update")
	say(`{"type":"run.cancel","runId":%q}`, id)
	if r := until("run.completed"); r.Get("result.status").Str != "cancelled" || r.Get("result.id").Str != id {
		t.Errorf("cancelled run: %s", r)
	}
	say(`{"type":"agent.close","agentId":%q}`, agent)
	say(`{"type":"agent.open","operation":"resume","agentId":%q,"options":%s}`, agent, options)
	if again := until("agent.opened").Get("agentId").Str; again != agent {
		t.Errorf("resumed agent %s is %s", agent, again)
	}
	say(`{"type":"run.start","message":"second","options":{"model":{"id":"composer-2.5"},"mode":"plan"}}`)
	until("run.completed")
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
