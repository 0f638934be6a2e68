//go:build unix

package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// openCodeTranscripts are those of testdata, and the public ones where they
// stand beside the repository or in the folder TRANSCRIPT_CORPUS.
func openCodeTranscripts(t testing.TB) []string {
	corpus := os.Getenv("TRANSCRIPT_CORPUS")
	if corpus == "" {
		corpus = filepath.Join("..", "..", "..", "shared", "corpus")
	}
	files, _ := filepath.Glob("testdata/opencode/*.ndjson")
	public, _ := filepath.Glob(filepath.Join(corpus, "*", "opencode.ndjson"))
	if len(files) == 0 {
		t.Fatal("no transcripts")
	}
	if len(public) == 0 {
		t.Logf("NOT TESTED: no public transcripts in %s", corpus)
	}
	return append(files, public...)
}

// server is a replay-peer that serves a transcript.
type server struct {
	*process
	url    string
	report string
}

// serveTranscript starts the real binary as `opencode serve`.
func serveTranscript(t testing.TB, path string, flags ...string) *server {
	t.Helper()
	exe, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if path, err = filepath.Abs(path); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"serve", "--report", "report.json", "--workspace", workspace}, flags...)
	args = append(args, path, "--", "serve", "--hostname=127.0.0.1", "--port=0")
	s := &server{process: newBinary(t, dir, exe, nil, args...), report: filepath.Join(dir, "report.json")}
	s.start(t)
	line, err := s.recv()
	url, ok := strings.CutPrefix(line, "opencode server listening on ")
	if !ok || err != nil {
		t.Fatalf("first line of stdout is %q, %v; stderr:\n%s", line, err, s.errors(t))
	}
	s.url = url
	return s
}

// end terminates the server and returns its exit code.
func (s *server) end(t testing.TB) int {
	t.Helper()
	s.cmd.Process.Signal(syscall.SIGTERM)
	code, _ := s.wait(t)
	return code
}

func (s *server) receipt(t testing.TB) *replay.Report {
	t.Helper()
	r, err := replay.ReadReport(s.report)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func readTranscript(t testing.TB, path string) *envelope.Transcript {
	t.Helper()
	tr, err := envelope.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// Every transcript replays unmodified when the client sends what is recorded,
// and the client gets what is recorded.
func TestOpenCodeReplay(t *testing.T) {
	for _, path := range openCodeTranscripts(t) {
		t.Run(nameOf(path), func(t *testing.T) {
			t.Parallel()
			s := serveTranscript(t, path)
			c := newHTTPClient(t, s.url, workspace)
			if err := c.play(readTranscript(t, path)); err != nil {
				t.Errorf("%v\nstderr: %s", err, s.errors(t))
			}
			if r := s.receipt(t); r.Verdict != replay.Passed {
				t.Errorf("the report says %s when the client has the last frame", r.Verdict)
			}
			c.close()
			if code := s.end(t); code != 0 {
				t.Errorf("exit code %d\n%s", code, s.errors(t))
			}
			if rest, _ := s.rest(); rest != "" {
				t.Errorf("stdout goes on with %q", rest)
			}
		})
	}
}

func nameOf(path string) string {
	if base := filepath.Base(path); base != "opencode.ndjson" {
		return strings.TrimSuffix(base, ".ndjson")
	}
	return filepath.Base(filepath.Dir(path))
}

// With one field changed, in any outbound frame, no transcript passes.
func TestOpenCodeMutation(t *testing.T) {
	for _, path := range openCodeTranscripts(t) {
		tr := readTranscript(t, path)
		for _, e := range tr.Entries {
			x, ok := e.(*envelope.ExpectOutbound)
			if !ok {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", nameOf(path), x.Line), func(t *testing.T) {
				t.Parallel()
				s := serveTranscript(t, path)
				c := newHTTPClient(t, s.url, workspace)
				c.change = func(line int, frame []byte) []byte {
					if line == x.Line {
						return mutate(frame)
					}
					return frame
				}
				err := c.play(tr)
				if err == nil || !strings.Contains(err.Error(), "outbound mismatch") {
					t.Errorf("the client was told: %v", err)
				}
				code, _ := s.wait(t)
				if r := s.receipt(t); code != replay.ExitFailed || r.Verdict != replay.Mismatch || r.Failure.Line != x.Line {
					t.Errorf("exit code %d, verdict %s at line %d: want 97, mismatch at %d", code, r.Verdict, r.Failure.Line, x.Line)
				}
			})
		}
	}
}

// mutate changes one value of a call, adds one where there is none.
func mutate(frame []byte) []byte {
	in := gjson.GetBytes(frame, "input")
	var last string
	in.ForEach(func(_, v gjson.Result) bool {
		if v.Type == gjson.String && v.Str != "whatever" {
			last = v.Raw
		}
		return true
	})
	switch {
	case !in.Exists():
		return bytes.Replace(frame, []byte(`}`), []byte(`,"input":{"directory":"/elsewhere"}}`), 1)
	case last == "":
		return bytes.Replace(frame, []byte(`"input":{`), []byte(`"input":{"extra":1,`), 1)
	}
	return bytes.Replace(frame, []byte(last), []byte(last[:len(last)-1]+`x"`), 1)
}

// What a client may do wrong besides sending the wrong thing.
func TestOpenCodeEnds(t *testing.T) {
	tr := readTranscript(t, "testdata/opencode/interrupt.ndjson")
	upTo := func(label string) *envelope.Transcript {
		for i, e := range tr.Entries {
			if _, l := e.Position(); l == label {
				return &envelope.Transcript{Header: tr.Header, Entries: tr.Entries[:i+1]}
			}
		}
		panic(label)
	}
	for _, v := range []struct {
		name    string
		until   string
		then    func(*server, *httpClient)
		flags   []string
		verdict replay.Verdict
		reason  string
	}{
		{"terminated before the end", "busy", func(s *server, _ *httpClient) { s.cmd.Process.Signal(syscall.SIGTERM) }, nil, replay.Aborted, "terminated"},
		{"silent", "busy", nil, []string{"--idle-timeout", "300ms"}, replay.Timeout, "idle"},
		{"request after the end", "", func(_ *server, c *httpClient) { c.get("/session") }, nil, replay.Unexpected, "after_end"},
		{"unknown route", "session.create", func(_ *server, c *httpClient) { c.get("/nothing/here?x=1") }, nil, replay.Mismatch, "frame"},
		{"body that is no JSON", "session.create", func(_ *server, c *httpClient) { c.post("/session", "{") }, nil, replay.Mismatch, "illegal_frame"},
	} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			s := serveTranscript(t, "testdata/opencode/interrupt.ndjson", v.flags...)
			c := newHTTPClient(t, s.url, workspace)
			part := tr
			if v.until != "" {
				part = upTo(v.until)
			}
			if err := c.play(part); err != nil {
				t.Fatal(err)
			}
			if v.then != nil {
				v.then(s, c)
			}
			code, _ := s.wait(t)
			if r := s.receipt(t); code != replay.ExitFailed || r.Verdict != v.verdict || reasonOf(r) != v.reason {
				t.Errorf("exit code %d, %s, %s: want 97, %s, %s\n%s", code, r.Verdict, reasonOf(r), v.verdict, v.reason, s.errors(t))
			}
		})
	}
}

// A stream that the client has closed is missed by the next event.
func TestOpenCodeStreamGone(t *testing.T) {
	tr := readTranscript(t, "testdata/opencode/interrupt.ndjson")
	s := serveTranscript(t, "testdata/opencode/interrupt.ndjson", "--hold", "busy", "--control", "control.sock")
	c := newHTTPClient(t, s.url, workspace)
	if err := c.play(&envelope.Transcript{Entries: tr.Entries[:6]}); err != nil {
		t.Fatal(err)
	}
	c.close()
	socket := filepath.Join(filepath.Dir(s.report), "control.sock")
	_, _ = Command(context.Background(), socket, "release busy")
	code, _ := s.wait(t)
	if r := s.receipt(t); code != replay.ExitFailed || r.Verdict != replay.Aborted || !strings.Contains(strings.Join(r.Warnings, "\n"), "was not delivered") {
		t.Errorf("exit code %d, %s, %q\n%s", code, r.Verdict, r.Warnings, s.errors(t))
	}
}

// OPTIONS and HEAD ask what may be asked and are no frames.
func TestOpenCodePreflight(t *testing.T) {
	s := serveTranscript(t, "testdata/opencode/user_first.ndjson")
	c := newHTTPClient(t, s.url, workspace)
	for _, method := range []string{"OPTIONS", "HEAD"} {
		r, err := c.raw(method, "/session", "", "Origin", "http://localhost:3000", "Access-Control-Request-Headers", "content-type")
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Header.Get("Access-Control-Allow-Origin"); r.StatusCode != 204 || got != "http://localhost:3000" {
			t.Errorf("%s: status %d, origin %q", method, r.StatusCode, got)
		}
	}
	if err := c.play(readTranscript(t, "testdata/opencode/user_first.ndjson")); err != nil {
		t.Error(err)
	}
	if code := s.end(t); code != 0 {
		t.Errorf("exit code %d\n%s", code, s.errors(t))
	}
}

// The fake binary answers --version as the real one does.
func TestOpenCodeVersion(t *testing.T) {
	exe, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	fake, err := Link(t.TempDir(), "opencode", exe, Config{Transcript: "testdata/opencode/interrupt.ndjson"})
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(fake, "--version").Output()
	if string(out) != "1.18.33\n" || err != nil {
		t.Errorf("--version prints %q, %v", out, err)
	}
	var exit *exec.ExitError
	if out, err = exec.Command(fake, "run", "hi").Output(); !errors.As(err, &exit) || exit.ExitCode() != replay.ExitFailed || len(out) > 0 {
		t.Errorf("opencode run: %q, %v", out, err)
	}
}
