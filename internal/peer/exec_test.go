//go:build unix

package peer

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/replaypeer/replaypeer/internal/replay"
)

const execTurns = `{"type":"transcript_start","provider":"codex","protocol":"codex.exec-jsonl","version":"0.171.0","scenario":"exec"}
{"type":"expect_outbound","label":"exec.start","frame":{"type":"exec.start","args":["exec","--experimental-json","--model","gpt-5.5","--config","openai_base_url=<any>","--cd","<workspace>"],"prompt":"one\n\ntwo"}}
{"type":"emit_inbound","label":"thread.started","frame":{"type":"thread.started","thread_id":"T"}}
{"type":"emit_inbound","label":"log","channel":"stderr","frame":"thinking\n"}
{"type":"emit_inbound","label":"turn.completed","frame":{ "type":"turn.completed","usage":{"input_tokens":1.0}},"afterMs":5}
{"type":"runtime_exit","status":"success"}
{"type":"expect_outbound","label":"exec.start","frame":{"type":"exec.start","args":["exec","--experimental-json","resume","T"],"prompt":"go on"}}
{"type":"emit_inbound","label":"turn.failed","frame":{"type":"turn.failed","error":{"message":"m"}}}
{"type":"runtime_exit","status":"error","error":{"exitCode":1,"stderr":"failed\n"}}
`

// execFake links the real binary as codex.
func execFake(t *testing.T, transcript string, cfg Config) (fake string) {
	t.Helper()
	exe, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Transcript = writeFile(t, filepath.Join(t.TempDir(), "t.ndjson"), transcript)
	if fake, err = Link(t.TempDir(), "codex", exe, cfg); err != nil {
		t.Fatal(err)
	}
	return fake
}

type execRun struct {
	stdout, stderr string
	code           int
}

func runExec(t *testing.T, fake, prompt string, args ...string) execRun {
	t.Helper()
	var out, diag bytes.Buffer
	cmd := exec.CommandContext(t.Context(), fake, args...)
	cmd.Env = append(os.Environ(), "REPLAY_PEER_WORKSPACE="+workspace)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(prompt), &out, &diag
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return execRun{out.String(), diag.String(), cmd.ProcessState.ExitCode()}
}

func firstTurn(t *testing.T, fake, prompt string) execRun {
	return runExec(t, fake, prompt, "exec", "--experimental-json", "-m", "gpt-5.5", "-c", "openai_base_url=http://127.0.0.1:1", "--cd", workspace)
}

func TestExecTurns(t *testing.T) {
	for _, pace := range []string{"", "recorded"} {
		fake := execFake(t, execTurns, Config{Pace: pace})
		got := firstTurn(t, fake, "one\n\ntwo")
		want := execRun{`{"type":"thread.started","thread_id":"T"}` + "\n" + `{ "type":"turn.completed","usage":{"input_tokens":1.0}}` + "\n", "thinking\n", 0}
		if got != want {
			t.Fatalf("turn 1: got %+v, want %+v", got, want)
		}
		got = runExec(t, fake, "go on", "exec", "--experimental-json", "resume", "T")
		want = execRun{`{"type":"turn.failed","error":{"message":"m"}}` + "\n", "failed\n", 1}
		if got != want {
			t.Fatalf("turn 2: got %+v, want %+v", got, want)
		}
		if r := readReport(t, filepath.Dir(fake), "codex.report.json"); r.Verdict != replay.Passed || r.Launches != 2 || r.ExitCode != 1 {
			t.Errorf("report: %+v", r)
		}
		if v := runExec(t, fake, "", "--version"); v.stdout != "codex-cli 0.171.0\n" {
			t.Errorf("version: %+v", v)
		}
	}
}

// TestExecDiffers changes one thing at a time: the prompt in what only bytes
// tell, the arguments, the protocol.
func TestExecDiffers(t *testing.T) {
	for _, c := range []struct {
		prompt string
		args   []string
		want   string
	}{
		{"one\n\ntwo\n", nil, "outbound mismatch at prompt"},
		{"one\ntwo", nil, "outbound mismatch at prompt"},
		{"one\r\n\ntwo", nil, "outbound mismatch at prompt"},
		{"", nil, "outbound mismatch at prompt"},
		{"one\n\ntwo", []string{"exec", "--experimental-json", "-m", "gpt-5", "-c", "openai_base_url=x", "--cd", workspace}, "outbound mismatch at args.3"},
		{"one\n\ntwo", []string{"exec", "--experimental-json", "-m", "gpt-5.5", "-c", "openai_base_url=x", "--cd", "/elsewhere"}, "outbound mismatch at args.7"},
		{"one\n\ntwo", []string{"app-server"}, "codex app-server does not speak codex.exec-jsonl: the transcript is one of codex exec"},
	} {
		fake := execFake(t, execTurns, Config{})
		var got execRun
		if c.args == nil {
			got = firstTurn(t, fake, c.prompt)
		} else {
			got = runExec(t, fake, c.prompt, c.args...)
		}
		if got.code != replay.ExitFailed || got.stdout != "" || !strings.Contains(got.stderr, c.want) {
			t.Errorf("%q %q: got %+v, want %q", c.prompt, c.args, got, c.want)
		}
		if r := readReport(t, filepath.Dir(fake), "codex.report.json"); r.Verdict == replay.Passed || r.Verdict == replay.Running {
			t.Errorf("%q %q: verdict %s", c.prompt, c.args, r.Verdict)
		}
		// Nothing is played after a failure.
		if again := firstTurn(t, fake, "one\n\ntwo"); again.code != replay.ExitFailed || again.stdout != "" {
			t.Errorf("%q %q: the next launch gave %+v", c.prompt, c.args, again)
		}
	}
}

// TestAppServerIsNoExec: the fake of the app server refuses to be exec.
func TestAppServerIsNoExec(t *testing.T) {
	transcript := strings.NewReplacer("codex.exec-jsonl", "codex.app-server").Replace(strings.SplitAfterN(execTurns, "\n", 2)[0]) +
		`{"type":"expect_outbound","label":"a","frame":{"id":1,"method":"a"}}` + "\n"
	got := firstTurn(t, execFake(t, transcript, Config{}), "one")
	if got.code != replay.ExitFailed || !strings.Contains(got.stderr, "codex exec does not speak codex.app-server: the transcript is one of codex app-server") {
		t.Errorf("got %+v", got)
	}
}

// TestExecLeftover: a conversation that stops early has not passed.
func TestExecLeftover(t *testing.T) {
	fake := execFake(t, execTurns, Config{})
	firstTurn(t, fake, "one\n\ntwo")
	if r := readReport(t, filepath.Dir(fake), "codex.report.json"); r.Verdict != replay.Running {
		t.Errorf("after one of two turns the verdict is %s: want running", r.Verdict)
	}
}

// TestExecGoesOn: a client that has sent its prompt is still there. A gate
// holds the turn, a signal ends it, and silence does.
func TestExecGoesOn(t *testing.T) {
	start := func(t *testing.T, cfg Config) (*exec.Cmd, *bytes.Buffer, string) {
		fake := execFake(t, execTurns, cfg)
		cmd := exec.CommandContext(t.Context(), fake, "exec", "--experimental-json", "-m", "gpt-5.5", "-c", "openai_base_url=x", "--cd", workspace)
		cmd.Env = append(os.Environ(), "REPLAY_PEER_WORKSPACE="+workspace)
		out := &bytes.Buffer{}
		cmd.Stdin, cmd.Stdout = strings.NewReader("one\n\ntwo"), out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, out, filepath.Dir(fake)
	}
	socket := filepath.Join(t.TempDir(), "control")
	command := func(text string) {
		t.Helper()
		for end := time.Now().Add(patience); ; {
			_, err := Command(t.Context(), socket, text)
			if err == nil {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %v", text, err)
			}
			time.Sleep(10 * time.Millisecond) // until the socket is there
		}
	}

	cmd, out, dir := start(t, Config{Hold: []string{"turn.completed"}, Control: socket})
	command("wait turn.completed")
	command("release turn.completed")
	if err := cmd.Wait(); err != nil || strings.Count(out.String(), "\n") != 2 {
		t.Errorf("behind the gate: %v, %q", err, out)
	}
	if r := readReport(t, dir, "codex.report.json"); r.Verdict != replay.Running {
		t.Errorf("verdict %s", r.Verdict)
	}

	cmd, _, dir = start(t, Config{Hold: []string{"turn.completed"}, Control: socket})
	command("wait turn.completed")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the signal has no effect")
	}
	if r := readReport(t, dir, "codex.report.json"); r.Verdict != replay.Aborted {
		t.Errorf("after the signal the verdict is %s", r.Verdict)
	}

	cmd, _, dir = start(t, Config{Pace: "virtual", IdleTimeout: 100 * time.Millisecond})
	if err := cmd.Wait(); err == nil {
		t.Error("silence has no effect")
	}
	if r := readReport(t, dir, "codex.report.json"); r.Verdict != replay.Timeout {
		t.Errorf("after silence the verdict is %s", r.Verdict)
	}
}
