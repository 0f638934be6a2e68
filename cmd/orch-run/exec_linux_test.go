package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// execScript plays its provider to the end, leaves a process in a session of
// its own behind, and waits for a signal, which its child gets as well.
const execScript = `printf '{"id":1,"method":"go"}\n' | codex
setsid sh -c 'echo left $$; exec sleep 1000 >/dev/null 2>&1' </dev/null &
trap 'wait $child; echo parent told; exit 5' TERM
sh -c 'trap "echo child told; exit 0" TERM; echo ready; while :; do sleep 0.05; done' &
child=$!
while :; do sleep 0.05; done
`

// TestExecSignal tells orch-run to end: the command and its children are told,
// the code it ends with is kept, and nothing it started goes on, not even what
// left its group and session.
func TestExecSignal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir+"/t.ndjson", `{"type":"transcript_start","provider":"codex","protocol":"codex.app-server","version":"0","scenario":"go"}
{"type":"expect_outbound","label":"go","frame":{"id":1,"method":"go"}}
{"type":"emit_inbound","label":"go","frame":{"id":1,"result":{}}}
{"type":"runtime_exit","status":"success"}
`)
	cmd := exec.Command("orch-run", "exec", "--timeout", "60s", "--peer", "codex=t.ndjson", "--", "sh", "-c", execScript)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	left, ready := 0, false
	lines := bufio.NewScanner(stdout)
	for (left == 0 || !ready) && lines.Scan() {
		fmt.Sscanf(lines.Text(), "left %d", &left)
		ready = ready || lines.Text() == "ready"
	}
	if left == 0 || !ready {
		t.Fatalf("the command did not start: %s", &stderr)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var rest strings.Builder
	for lines.Scan() {
		fmt.Fprintln(&rest, lines.Text())
	}
	cmd.Wait() // the code is looked at below
	if got := rest.String(); got != "child told\nparent told\n" {
		t.Errorf("output after the signal %q", got)
	}
	if code := cmd.ProcessState.ExitCode(); code != 5 {
		t.Errorf("exit %d: want the command's", code)
	}
	if err := syscall.Kill(left, 0); err != syscall.ESRCH {
		t.Errorf("process %d is left: %v", left, err)
		syscall.Kill(left, syscall.SIGKILL)
	}
	for _, want := range []string{
		"orch-run: the command left a process behind, which was ended: sleep 1000\n",
		"orch-run: 1 of 1 peers passed; the command ended with exit code 5\n",
	} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("stderr lacks %q:\n%s", want, &stderr)
		}
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
