//go:build live && linux

package peer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// liveClient is a real client in a network namespace with nothing but
// loopback, and the fake `opencode` that it talks to.
type liveClient struct {
	dir    string // working directory of both
	fake   string
	report string
	env    []string
}

// npmFolder is where scripts/live/opencode/install.sh puts a package.
func npmFolder(t *testing.T, name string) string {
	cache := cmp.Or(os.Getenv("REPLAYPEER_CACHE"), filepath.Join(os.Getenv("HOME"), ".cache", "replaypeer"))
	dir := filepath.Join(cache, "npm", name, "node_modules")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("NOT TESTED: no %s: run scripts/live/opencode/install.sh", dir)
	}
	return dir
}

func newLiveClient(t *testing.T, transcript string) *liveClient {
	exe, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := &liveClient{dir: filepath.Join(dir, "work")}
	for _, sub := range []string{"work", "home", "tmp"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	bin := filepath.Join(dir, "bin")
	if c.fake, err = Link(bin, "opencode", exe, Config{Transcript: transcript}); err != nil {
		t.Fatal(err)
	}
	c.report = c.fake + ".report.json"
	c.env = []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + dir + "/home", "TMPDIR=" + dir + "/tmp",
		"LANG=C.UTF-8", "TZ=UTC", "SHELL=/bin/sh",
	}
	return c
}

// run runs a command of the client's and returns its output and exit code.
func (c *liveClient) run(t *testing.T, args ...string) (lines []string, code int) {
	script, err := filepath.Abs("../../scripts/loopback.sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), script, args...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.dir, c.env, &stdout, &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	t.Logf("stderr of %s:\n%s", args[0], stderr.String())
	return strings.Split(strings.TrimSpace(stdout.String()), "\n"), cmd.ProcessState.ExitCode()
}

func (c *liveClient) verdict(t *testing.T) *replay.Report {
	r, err := replay.ReadReport(c.report)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func scriptPath(t *testing.T, name string) string {
	path, err := filepath.Abs("../../scripts/live/opencode/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// seen is what sdk.mjs prints when everything comes as the transcript says, in
// its order. session.messages is asked twice.
func seen(t *testing.T, transcript, workspace string) []string {
	var lines []string
	for _, e := range readTranscript(t, transcript).Entries {
		in, ok := e.(*envelope.EmitInbound)
		if !ok {
			continue
		}
		frame := strings.ReplaceAll(string(in.Frame), "<workspace>", workspace)
		if event := gjson.Get(frame, "event"); event.Exists() {
			lines = append(lines, `{"event":`+event.Raw+`}`)
			continue
		}
		operation := gjson.Get(frame, "operation").Raw
		line := `{"result":` + operation + `,"data":` + gjson.Get(frame, "data").Raw + `}`
		if fail := gjson.Get(frame, "error"); fail.Exists() {
			line = `{"result":` + operation + `,"status":404,"error":` + fail.Raw + `}`
		}
		lines = append(lines, line)
		if operation == `"session.messages"` {
			lines = append(lines, line)
		}
	}
	return lines
}

// The real SDK, of both versions, starts the fake server, and its user sees
// what was recorded, in the recorded order.
func TestLiveOpenCodeSDK(t *testing.T) {
	sdk := filepath.Join(npmFolder(t, "opencode-sdk-1.19.3"), "@opencode-ai", "sdk")
	for _, version := range []string{"v1", "v2"} {
		t.Run(version, func(t *testing.T) {
			transcript := "testdata/opencode/replies_" + version + ".ndjson"
			c := newLiveClient(t, transcript)
			got, code := c.run(t, "node", scriptPath(t, "sdk.mjs"), sdk, version)
			want := seen(t, transcript, c.dir)
			if diff := firstDifference(want, got); diff != "" || code != 0 {
				t.Errorf("exit code %d; %s", code, diff)
			}
			if r := c.verdict(t); r.Verdict != replay.Passed || r.Outbound.Repeated != 1 {
				t.Errorf("verdict %s\n%s", r.Verdict, r.Text())
			}
		})
		t.Run(version+" with a wrong answer", func(t *testing.T) {
			c := newLiveClient(t, "testdata/opencode/replies_"+version+".ndjson")
			got, code := c.run(t, "node", scriptPath(t, "sdk.mjs"), sdk, version, "wrong")
			if last := got[len(got)-1]; code != 0 || !strings.Contains(last, "swallowed") {
				t.Errorf("the client was to swallow the error: exit code %d, %s", code, last)
			}
			r := c.verdict(t)
			if r.Verdict != replay.Mismatch || r.ExitCode != replay.ExitFailed || r.Failure.Line != 12 {
				t.Errorf("verdict %s, exit code %d\n%s", r.Verdict, r.ExitCode, r.Text())
			}
		})
	}
}

func firstDifference(want, got []string) string {
	for i := range max(len(want), len(got)) {
		w, g := "(nothing)", "(nothing)"
		if i < len(want) {
			w = want[i]
		}
		if i < len(got) {
			g = got[i]
		}
		if w != g {
			return fmt.Sprintf("line %d\n got %s\nwant %s", i+1, g, w)
		}
	}
	return ""
}

// The real `opencode run` attaches to the fake server.
func TestLiveOpenCodeAttach(t *testing.T) {
	real, _ := filepath.Glob(filepath.Join(npmFolder(t, "opencode-ai-1.18.33"), "opencode-linux-*", "bin", "opencode"))
	if len(real) == 0 {
		t.Skip("NOT TESTED: no opencode binary for this platform")
	}
	for _, v := range []struct {
		message string
		verdict replay.Verdict
		code    int
		want    string
	}{
		{"hello there", replay.Passed, 0, "I was not allowed to."},
		{"hello you there", replay.Mismatch, replay.ExitFailed, "outbound mismatch"},
	} {
		t.Run(v.message, func(t *testing.T) {
			c := newLiveClient(t, "testdata/opencode/attach.ndjson")
			got, code := c.run(t, scriptPath(t, "attach.sh"), real[0], c.fake, v.message)
			r := c.verdict(t)
			if code != v.code || r.Verdict != v.verdict {
				t.Errorf("exit code %d, verdict %s: want %d, %s\n%s", code, r.Verdict, v.code, v.verdict, r.Text())
			}
			if text := strings.Join(got, "\n"); !strings.Contains(text, v.want) {
				t.Errorf("no %q in what it prints:\n%s", v.want, text)
			}
		})
	}
}
