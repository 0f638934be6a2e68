//go:build unix

package peer

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/pkg/envelope"
)

const openCodeHeader = `{"type":"transcript_start","provider":"opencode","protocol":"opencode-sdk.sse","version":"1","scenario":"test"}`

// openCodeFile writes a transcript of lines in short: "> OPERATION [INPUT]",
// "< OPERATION DATA", "! EVENT"; anything else is an entry as it stands. More
// fields of the entry follow after " + ".
func openCodeFile(t *testing.T, short ...string) string {
	lines := []string{openCodeHeader}
	for _, s := range short {
		s, more, _ := strings.Cut(s, " + ")
		kind, rest, _ := strings.Cut(s, " ")
		name, value, _ := strings.Cut(rest, " ")
		if more != "" {
			more = "," + more
		}
		switch kind {
		case ">":
			if value != "" {
				value = `,"input":` + value
			}
			s = fmt.Sprintf(`{"type":"expect_outbound","label":%q,"frame":{"type":%q%s}%s}`, name, name, value, more)
		case "<":
			s = fmt.Sprintf(`{"type":"emit_inbound","label":%q,"frame":{"type":"sdk.response","operation":%q,"data":%s}%s}`, name, name, value, more)
		case "!":
			s = fmt.Sprintf(`{"type":"emit_inbound","label":%q,"frame":{"type":"sdk.event","event":{"type":%q}}%s}`, name, name, more)
		}
		lines = append(lines, s)
	}
	return writeFile(t, filepath.Join(t.TempDir(), "t.ndjson"), strings.Join(lines, "\n")+"\n")
}

// eventTypes opens a stream and reads so many events of it.
func eventTypes(t *testing.T, c *httpClient, n int) (types string, stream *http.Response) {
	r, err := http.NewRequestWithContext(c.ctx, "GET", c.url+"/event", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return moreTypes(t, resp, n), resp
}

func moreTypes(t *testing.T, resp *http.Response, n int) string {
	var types []string
	lines := bufio.NewReader(resp.Body)
	for len(types) < n {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("after %q: %v", types, err)
		}
		if _, rest, ok := strings.Cut(line, `"type":"`); ok {
			kind, _, _ := strings.Cut(rest, `"`)
			types = append(types, kind)
		}
	}
	return strings.Join(types, " ")
}

func (s *server) mustPass(t *testing.T) {
	t.Helper()
	if code := s.end(t); code != 0 || s.receipt(t).Verdict != replay.Passed {
		t.Errorf("exit code %d, verdict %s\n%s", code, s.receipt(t).Verdict, s.errors(t))
	}
}

// A client may lose its stream and subscribe again where the transcript says
// so, and gets what comes from then on.
func TestOpenCodeSubscribeAgain(t *testing.T) {
	s := serveTranscript(t, openCodeFile(t,
		`> event.subscribe + "repeat":true`, `! a`, `> session.list {}`, `< session.list []`, `! b`))
	c := newHTTPClient(t, s.url, workspace)
	first, stream := eventTypes(t, c, 2)
	stream.Body.Close()
	second, again := eventTypes(t, c, 1)
	defer again.Body.Close()
	c.get("/session")
	if third := moreTypes(t, again, 1); first != "server.connected a" || second != "server.connected" || third != "b" {
		t.Errorf("got %q, then %q and %q", first, second, third)
	}
	s.mustPass(t)
}

// Two streams get the same events; a recorded first event replaces the peer's.
func TestOpenCodeTwoStreams(t *testing.T) {
	s := serveTranscript(t, openCodeFile(t,
		`> event.subscribe`, `! server.connected`, `> event.subscribe`, `> session.list {}`, `< session.list []`, `! a`, `! server.heartbeat`, `! b`))
	c := newHTTPClient(t, s.url, workspace)
	one, first := eventTypes(t, c, 1)
	two, second := eventTypes(t, c, 1)
	defer first.Body.Close()
	defer second.Body.Close()
	c.get("/session")
	one, two = one+" "+moreTypes(t, first, 3), two+" "+moreTypes(t, second, 3)
	if want := "server.connected a server.heartbeat b"; one != want || two != want {
		t.Errorf("got %q and %q, want %q", one, two, want)
	}
	s.mustPass(t)
}

// Requests that were sent together are met in any order.
func TestOpenCodeSentTogether(t *testing.T) {
	s := serveTranscript(t, openCodeFile(t, `> event.subscribe`, `> session.list {}`, `< session.list []`, `! a`))
	c := newHTTPClient(t, s.url, workspace)
	early := make(chan struct{})
	go func() {
		c.get("/session")
		close(early)
	}()
	time.Sleep(50 * time.Millisecond) // nothing can tell that the request has come
	types, stream := eventTypes(t, c, 2)
	defer stream.Body.Close()
	if <-early; types != "server.connected a" {
		t.Errorf("got %q", types)
	}
	s.mustPass(t)
}

// Recorded delays are kept when asked for.
func TestOpenCodeRecordedPace(t *testing.T) {
	s := serveTranscript(t, openCodeFile(t, `> event.subscribe`, `> session.list {}`, `< session.list []`, `! a + "afterMs":400`), "--pace", "recorded")
	c := newHTTPClient(t, s.url, workspace)
	_, stream := eventTypes(t, c, 1)
	defer stream.Body.Close()
	c.get("/session")
	start := time.Now()
	moreTypes(t, stream, 1)
	if d := time.Since(start); d < 300*time.Millisecond {
		t.Errorf("the event came %v after the answer, recorded are 400ms", d)
	}
	s.mustPass(t)
}

// A provider that died leaves its client with broken connections, and ends by
// itself with the recorded exit code.
func TestOpenCodeCrash(t *testing.T) {
	s := serveTranscript(t, openCodeFile(t, `> event.subscribe`, `> session.list {}`, `! a`,
		`{"type":"runtime_exit","status":"error","error":{"exitCode":7,"stderr":"out of luck\n"}}`))
	c := newHTTPClient(t, s.url, workspace)
	_, stream := eventTypes(t, c, 1)
	defer stream.Body.Close()
	lost := make(chan error, 1)
	go func() {
		_, err := c.raw("GET", "/session", "")
		lost <- err
	}()
	if _, err := io.ReadAll(stream.Body); err == nil {
		t.Error("the stream ended as if nothing had happened")
	}
	if err := <-lost; err == nil {
		t.Error("the open request was answered")
	}
	code, _ := s.wait(t)
	if r := s.receipt(t); code != 7 || r.Verdict != replay.Passed || s.errors(t) != "out of luck\n" {
		t.Errorf("exit code %d, %s, stderr %q", code, r.Verdict, s.errors(t))
	}
}

// A client that does not read is no hang.
func TestOpenCodeBlocked(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	var entries []string
	entries = append(entries, `> event.subscribe`)
	for range 20 {
		entries = append(entries, `! `+big)
	}
	s := serveTranscript(t, openCodeFile(t, entries...), "--idle-timeout", "500ms")
	c := newHTTPClient(t, s.url, workspace)
	_, stream := eventTypes(t, c, 1)
	defer stream.Body.Close()
	code, _ := s.wait(t)
	if r := s.receipt(t); code != replay.ExitFailed || r.Verdict != replay.Timeout || reasonOf(r) != "output_blocked" {
		t.Errorf("exit code %d, %s, %s", code, r.Verdict, reasonOf(r))
	}
}

// The server ends with its parent.
func TestOpenCodeParentDeath(t *testing.T) {
	dir := t.TempDir()
	path, err := filepath.Abs("testdata/opencode/interrupt.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := []string{childMiddle + "=1", childConfig + fmt.Sprintf(`={"transcript":%q,"report":"report.json"}`, path)}
	p := newBinary(t, dir, exe, env)
	p.start(t)
	line, err := p.recv()
	if err != nil {
		t.Fatal(err)
	}
	c := newHTTPClient(t, strings.TrimPrefix(line, "opencode server listening on "), workspace)
	tr := readTranscript(t, path)
	if err := c.play(&envelope.Transcript{Entries: tr.Entries[:4]}); err != nil {
		t.Fatal(err)
	}
	p.cmd.Process.Signal(syscall.SIGKILL)
	if _, err := p.rest(); err != nil { // the peer has the only writing end
		t.Error(err)
	}
	p.wait(t)
	if r := readReport(t, dir, "report.json"); r.Verdict != replay.Aborted || reasonOf(r) != "parent_gone" {
		t.Errorf("%s, %s", r.Verdict, reasonOf(r))
	}
}
