//go:build live && linux

package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/model"
	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// TestLiveCodex records one turn of the real Codex against a scripted model.
// It wants the version that scripts/record.sh installs, and runs itself again
// in a network namespace with nothing but loopback.
//
//	go test -tags live -run TestLiveCodex ./cmd/replay-record
func TestLiveCodex(t *testing.T) {
	if os.Getenv("LIVE_INSIDE") != "" {
		liveCodex(t)
		return
	}
	cache := cmp.Or(os.Getenv("REPLAYPEER_CACHE"), filepath.Join(os.Getenv("HOME"), ".cache", "replaypeer"))
	found, _ := filepath.Glob(filepath.Join(cache, "npm/codex-*/node_modules/@openai/codex-*/vendor/*/bin/codex"))
	if len(found) == 0 {
		t.Skipf("NOT TESTED: no codex below %s: run scripts/record.sh once", cache)
	}
	dir := t.TempDir()
	for _, sub := range []string{"home", "tmp", "work"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("../../scripts/loopback.sh", os.Args[0], "-test.run=^TestLiveCodex$", "-test.v")
	cmd.Env = []string{
		"LIVE_INSIDE=" + dir, "HOME=" + dir + "/home", "TMPDIR=" + dir + "/tmp", "cache=" + cache,
		"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TZ=UTC", "SHELL=/bin/sh",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("inside: %v\n%s", err, out)
	}
	t.Logf("%s", out)
}

func liveCodex(t *testing.T) {
	dir := os.Getenv("LIVE_INSIDE")
	script, err := model.Load("../../transcripts/simple/model.yaml")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(model.New(script, nil, func(s string) { t.Error(s) }))
	defer server.Close()

	path := filepath.Join(dir, "out.ndjson")
	recipe := `source ../../scripts/npm.sh; source ../../scripts/providers/codex.sh; home=$HOME model_url=` + server.URL + `; provider_setup; cd "$1"
exec env "${env[@]}" replay-record stdio --provider codex --scenario simple -o "$2" --source scripted-model -- "${command[@]}"`
	cmd := exec.Command("bash", "-euc", recipe, "bash", dir+"/work", path)
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
	c := liveClient{t, stdin, bufio.NewReader(stdout)}
	c.call(1, "initialize", `{"clientInfo":{"name":"live-test","version":"0"},"capabilities":{"experimentalApi":true}}`)
	fmt.Fprintln(stdin, `{"method":"initialized"}`)
	thread := c.call(2, "thread/start", fmt.Sprintf(`{"cwd":%q}`, dir+"/work")).Get("thread.id").Str
	c.call(3, "turn/start", fmt.Sprintf(`{"threadId":%q,"input":[{"type":"text","text":"Respond with exactly: fixture simple ok"}]}`, thread))
	c.await(func(f gjson.Result) bool { return f.Get("method").Str == "turn/completed" })
	stdin.Close()
	io.Copy(io.Discard, c.out)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}

	if err := replay.SelfCheck(path); err != nil {
		t.Error(err)
	}
	tr, err := envelope.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if tr.Header.Version != "0.171.0" || gjson.GetBytes(tr.Header.Metadata, "model").Str != "scripted-model" {
		t.Errorf("header %s %s", tr.Header.Version, tr.Header.Metadata)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), dir) {
		t.Errorf("a path of this machine is in the transcript:\n%s", data)
	}
	if n := strings.Count(string(data), `"label":"item/agentMessage/delta"`); n != 3 {
		t.Errorf("%d deltas, want 3:\n%s", n, data)
	}
	t.Logf("%d entries, metadata %s", len(tr.Entries), tr.Header.Metadata)
}

type liveClient struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
}

func (c liveClient) call(id int, method, params string) gjson.Result {
	c.t.Helper()
	fmt.Fprintf(c.in, `{"id":%d,"method":%q,"params":%s}`+"\n", id, method, params)
	return c.await(func(f gjson.Result) bool { return f.Get("id").Int() == int64(id) && !f.Get("method").Exists() }).Get("result")
}

func (c liveClient) await(match func(gjson.Result) bool) gjson.Result {
	c.t.Helper()
	for {
		line, err := c.out.ReadString('\n')
		if err != nil {
			c.t.Fatalf("provider: %v", err)
		}
		if f := gjson.Parse(line); match(f) {
			return f
		}
	}
}
