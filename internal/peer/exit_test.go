//go:build unix

package peer

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/internal/replay"
)

// ended is what a client sees of a provider that ended.
type ended struct {
	Stdout, Stderr string
	Code           int
	Signal         syscall.Signal
	Verdict        replay.Verdict
	ReportedCode   int
}

// TestExits plays recorded ends. The client sends its request, reads to the
// end of stdout, and only then closes its own side, except where the provider
// waits for that.
func TestExits(t *testing.T) {
	t.Parallel()
	const answer = "{\"id\":1,\"result\":{}}\n"
	raw := func(channel, text string) string {
		quoted, _ := json.Marshal(text) // strings always encode
		return fmt.Sprintf(`{"type":"emit_inbound","channel":%q,"frame":%s}`, channel, quoted)
	}
	exit := func(rest string) string { return `{"type":"runtime_exit",` + rest + `}` }
	tests := []struct {
		name  string
		lines []string
		do    *op // nil reads to the end of stdout first
		want  ended
	}{
		{"success waits for the client", []string{exit(`"status":"success"`)}, new(closeInput), ended{Stdout: answer, Verdict: replay.Passed}},
		{"error", []string{exit(`"status":"error"`)}, nil, ended{Stdout: answer, Code: 1, Verdict: replay.Passed, ReportedCode: 1}},
		{"error with a code", []string{exit(`"status":"error","error":{"exitCode":42}`)}, nil, ended{Stdout: answer, Code: 42, Verdict: replay.Passed, ReportedCode: 42}},
		{"error with last words", []string{exit(`"status":"error","error":{"exitCode":2,"stderr":"panic: no\n"}`)}, nil,
			ended{Stdout: answer, Stderr: "panic: no\n", Code: 2, Verdict: replay.Passed, ReportedCode: 2}},
		{"error that is text", []string{exit(`"status":"error","error":"out of memory"`)}, nil,
			ended{Stdout: answer, Stderr: "out of memory\n", Code: 1, Verdict: replay.Passed, ReportedCode: 1}},
		{"error at the end of input", []string{exit(`"status":"error","error":{"exitCode":4,"inputClosed":true}`)}, new(closeInput), ended{Stdout: answer, Code: 4, Verdict: replay.Passed, ReportedCode: 4}},
		{"success with a code", []string{exit(`"status":"success","error":{"exitCode":3}`)}, new(closeInput), ended{Stdout: answer, Code: 3, Verdict: replay.Passed, ReportedCode: 3}},
		{"unknown signal", []string{exit(`"status":"error","error":{"signal":"SIGNOTHING"}`)}, nil, ended{Stdout: answer, Code: 1, Verdict: replay.Passed, ReportedCode: 1}},
		{"noise on stdout", []string{raw("stdout", "\x1b[1mwarning\x1b[0m\nno line end"), `< next {"method":"next"}`, exitSuccess}, new(closeInput),
			ended{Stdout: answer + "\x1b[1mwarning\x1b[0m\nno line end{\"method\":\"next\"}\n", Verdict: replay.Passed}},
		{"half a frame", []string{raw("stdout", `{"method":"item/ag`), exit(`"status":"error","error":{"exitCode":9}`)}, nil,
			ended{Stdout: answer + `{"method":"item/ag`, Code: 9, Verdict: replay.Passed, ReportedCode: 9}},
		{"stderr channel", []string{raw("stderr", "WARN é\u2028\n"), `< next {"method":"next"}`, exitSuccess}, new(closeInput),
			ended{Stdout: answer + "{\"method\":\"next\"}\n", Stderr: "WARN é\u2028\n", Verdict: replay.Passed}},
		{"a stall, until the client kills it", []string{exit(`"status":"cancelled"`)}, new(signals(syscall.SIGKILL)), ended{Stdout: answer, Code: -1, Signal: syscall.SIGKILL, Verdict: replay.Passed}},
		{"a stall, until the client ends it", []string{exit(`"status":"cancelled","error":{"exitCode":143}`)}, new(signals(syscall.SIGTERM)), ended{Stdout: answer, Code: 143, Verdict: replay.Passed, ReportedCode: 143}},
		{"no runtime_exit", nil, new(closeInput), ended{Stdout: answer, Verdict: replay.Passed}},
	}
	for _, sig := range []string{"SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGSEGV", "SIGABRT", "SIGBUS", "SIGQUIT", "SIGPIPE"} {
		tests = append(tests, tests[0])
		c := &tests[len(tests)-1]
		c.name, c.lines, c.do = sig, []string{exit(`"status":"error","error":{"signal":"` + sig + `","stderr":"bye"}`)}, nil
		c.want = ended{Stdout: answer, Stderr: "bye", Code: -1, Signal: signalNamed[sig], Verdict: replay.Passed, ReportedCode: 1}
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			lines := append([]string{`> go {"id":1,"method":"go"}`, `< go {"id":1,"result":{}}`}, c.lines...)
			writeFile(t, filepath.Join(dir, "t.ndjson"), entries(lines...))
			p := startPeer(t, dir, Config{Transcript: "t.ndjson", Report: "report.json", IdleTimeout: patience})
			if err := p.send([]byte(`{"id":1,"method":"go"}`)); err != nil {
				t.Fatal(err)
			}
			first, err := p.recv()
			if err != nil {
				t.Fatal(err)
			}
			if c.do != nil {
				if err := c.do.do(p); err != nil {
					t.Fatal(err)
				}
			}
			rest, err := p.rest()
			if err != nil {
				t.Error(err)
			}
			got := ended{Stdout: first + "\n" + rest}
			got.Code, got.Signal = p.wait(t)
			r := readReport(t, dir, "report.json")
			got.Stderr, got.Verdict, got.ReportedCode = p.errors(t), r.Verdict, r.ExitCode
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

var signalNamed = map[string]syscall.Signal{
	"SIGKILL": syscall.SIGKILL, "SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT, "SIGHUP": syscall.SIGHUP, "SIGPIPE": syscall.SIGPIPE,
	"SIGSEGV": syscall.SIGSEGV, "SIGABRT": syscall.SIGABRT, "SIGBUS": syscall.SIGBUS, "SIGQUIT": syscall.SIGQUIT,
}

var closeInput = does("close input", func(p *process) error { return p.in.Close() })

// A client that sends one frame more after the provider's own end is told,
// when that frame is there in time.
func TestFrameAfterOwnExit(t *testing.T) {
	dir := t.TempDir()
	path := writeFile(t, filepath.Join(dir, "t.ndjson"), entries(`> a {"method":"a"}`, `{"type":"runtime_exit","status":"error"}`))
	both := does("both", func(p *process) error {
		_, err := p.in.WriteString("{\"method\":\"a\"}\n{\"method\":\"b\"}\n")
		return err
	})
	code, _, stderr := serveHere(t, Config{Transcript: path, Report: filepath.Join(dir, "report.json")}, []op{both})
	if code != replay.ExitFailed || readReport(t, dir, "report.json").Verdict != replay.Unexpected {
		t.Errorf("exit code %d:\n%s", code, stderr)
	}
}
