package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/replaypeer/replaypeer/internal/peer"
	"github.com/replaypeer/replaypeer/internal/replay"
)

var update = flag.Bool("update", false, "rewrite the golden parts of testdata/script")

// codex and claude are names that the scripts link.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"replay-peer": main, "codex": main, "claude": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// TestCtl steers a peer from the command line: the ready frame says that the
// socket is there.
func TestCtl(t *testing.T) {
	dir := t.TempDir()
	transcript := filepath.Join(dir, "t.ndjson")
	text := `{"type":"transcript_start","provider":"codex","protocol":"codex.app-server","version":"0","scenario":"ctl"}
{"type":"emit_inbound","label":"ready","frame":{"method":"ready"}}
{"type":"expect_outbound","label":"go","frame":{"method":"go"}}
{"type":"emit_inbound","label":"done","frame":{"method":"done"}}
{"type":"runtime_exit","status":"success"}
`
	if err := os.WriteFile(transcript, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	// A relative name keeps a socket's path short.
	cmd := exec.CommandContext(t.Context(), "replay-peer", "serve", "--control", "s", "--hold", "done", "--report", "r.json", transcript)
	cmd.Dir = dir
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
	lines := bufio.NewReader(stdout)
	read := func(want string) {
		t.Helper()
		if line, err := lines.ReadString('\n'); err != nil || line != want+"\n" {
			t.Fatalf("got %q, %v: want %s", line, err, want)
		}
	}
	ctl := func(code int, args ...string) peer.Status {
		t.Helper()
		c := exec.CommandContext(t.Context(), "replay-peer", append([]string{"ctl", "s"}, args...)...)
		c.Dir = dir
		out, _ := c.Output() // the code is looked at below
		if c.ProcessState.ExitCode() != code {
			t.Fatalf("ctl %s exits with %d: %s", args, c.ProcessState.ExitCode(), out)
		}
		var st peer.Status
		if err := json.Unmarshal(out, &st); err != nil || st.Version != 1 || strings.Count(string(out), "\n") != 1 {
			t.Fatalf("ctl %s prints %q", args, out)
		}
		return st
	}
	read(`{"method":"ready"}`)
	if st := ctl(0, "status"); st.Held != "" || st.Verdict != replay.Running {
		t.Errorf("status %+v", st)
	}
	if st := ctl(1, "release", "nothing"); st.Error != `no gate at label "nothing"` {
		t.Errorf("status %+v", st)
	}
	if _, err := stdin.Write([]byte("{\"method\":\"go\"}\n")); err != nil {
		t.Fatal(err)
	}
	if st := ctl(0, "wait", "done"); st.Held != "done" {
		t.Errorf("status %+v", st)
	}
	ctl(0, "release", "done")
	read(`{"method":"done"}`)
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if r, err := replay.ReadReport(filepath.Join(dir, "r.json")); err != nil || r.Verdict != replay.Passed {
		t.Errorf("report %+v, %v", r, err)
	}
}
