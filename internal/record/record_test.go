//go:build unix

package record

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// oddReader returns what it has in pieces of odd sizes.
type oddReader struct {
	data []byte
	rng  *rand.Rand
}

func (r *oddReader) Read(b []byte) (int, error) {
	if len(r.data) == 0 {
		return 0, io.EOF
	}
	n := min(len(b), len(r.data), 1+r.rng.IntN(70_000))
	copy(b, r.data[:n])
	r.data = r.data[n:]
	return n, nil
}

func TestBytesPassUnmodified(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 200_000)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	huge := 20 << 20
	if raced {
		huge = 1 << 20
	}
	var data []byte
	data = append(data, `{"method":"small","params":{"n":1.0,"n":9007199254740993,"s":"\u2028"}}`+"\r\n\n"...)
	data = append(data, `{"method":"huge","params":"`+strings.Repeat("0123456789", huge/10)+`"}`+"\n"...)
	data = append(data, noise...)
	data = append(data, "\nno end"...)
	p := &pipes{stdin: &oddReader{bytes.Clone(data), rng}}
	path := target(t)
	if _, err := p.record(t, "cat", Options{Path: path}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(p.stdout.Bytes(), data) {
		t.Errorf("client got %d bytes, want the same %d", p.stdout.Len(), len(data))
	}
	var in, out []string // frames that are of the protocol
	for _, e := range read(t, path).Entries {
		switch e := e.(type) {
		case *envelope.ExpectOutbound:
			if e.Label != "" {
				out = append(out, string(e.Frame))
			}
		case *envelope.EmitInbound:
			if e.Channel == "" {
				in = append(in, string(e.Frame))
			}
		}
	}
	lines := strings.SplitN(string(data), "\n", 4)
	want := []string{strings.TrimSpace(lines[0]), lines[2]}
	if diff := cmp.Diff(want, in); diff != "" {
		t.Errorf("inbound frames (-want +got):\n%.500s", diff)
	}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("outbound frames (-want +got):\n%.500s", diff)
	}
}

func TestTranscript(t *testing.T) {
	path := target(t)
	p := send(`{"id":1,"method":"initialize","params":{}}`, `{"method":"initialized"}`, `{"id":"x","method":"thread/start"}`)
	res, err := p.record(t, "provider", Options{
		Path: path, Workspace: mustGetwd(), Model: "m", Source: "scripted-model", Metadata: [][2]string{{"ticket", "A-1"}},
		Recorder: "1.2.3", Check: func(string) error { return nil },
	})
	if err != nil || res.Path != path || !res.Exit.Success() {
		t.Fatalf("result %+v, %v", res, err)
	}
	want := `out initialize {"id":1,"method":"initialize","params":{}}
in initialize {"id":1,"result":{"cwd":"<workspace>"}}
out initialized {"method":"initialized"}
out thread/start {"id":"x","method":"thread/start"}
in thread/start {"id":"x","result":{"cwd":"<workspace>"}}
exit success 
`
	if got := show(t, path); !sameLines(got, want) {
		t.Errorf("transcript:\n%s", got)
	}
	h := read(t, path).Header
	if h.Provider != "codex" || h.Protocol != "codex.app-server" || h.Scenario != "test" {
		t.Errorf("header %+v", h)
	}
	m := gjson.ParseBytes(h.Metadata)
	for k, v := range map[string]string{
		"model": "m", "source": "scripted-model", "cwdPolicy": "workspace", "ticket": "A-1", "recorder.name": "replay-record",
		"recorder.version": "1.2.3", "redaction.ruleSet": "replaypeer/1", "redaction.counts.workspace": "2", "incomplete": "",
	} {
		if got := m.Get(k).String(); got != v {
			t.Errorf("metadata %s is %q, want %q", k, got, v)
		}
	}
	if _, err := time.Parse(time.RFC3339, m.Get("capturedAt").Str); err != nil {
		t.Error(err)
	}
	if got := names(t, path); got != "out.ndjson" {
		t.Errorf("files %s", got)
	}
}

// sameLines compares without order: the client of this test does not wait for
// answers.
func sameLines(a, b string) bool {
	sorted := func(s string) []string {
		l := strings.Split(s, "\n")
		for i := range l {
			for k := range l[:i] {
				if l[i] < l[k] {
					l[i], l[k] = l[k], l[i]
				}
			}
		}
		return l
	}
	return cmp.Equal(sorted(a), sorted(b))
}

// TestCauseComesFirst talks in lock step, so that every frame is caused by
// the one before it.
func TestCauseComesFirst(t *testing.T) {
	toTap, client := io.Pipe()
	fromTap, tap := io.Pipe()
	p := &pipes{stdin: toTap}
	const rounds = 400
	go func() {
		defer client.Close()
		answers := bufio.NewScanner(fromTap)
		for i := range rounds {
			fmt.Fprintf(client, `{"id":%d,"method":"ask"}`+"\n", i)
			answers.Scan()
		}
	}()
	path := target(t)
	o := Options{Path: path}
	if _, err := p.recordTo(t, "provider", o, tap); err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSpace(show(t, path)), "\n")[:2*rounds] {
		want := fmt.Sprintf(`out ask {"id":%d,`, i/2)
		if i%2 == 1 {
			want = fmt.Sprintf(`in ask {"id":%d,`, i/2)
		}
		if !strings.HasPrefix(line, want) {
			t.Fatalf("entry %d is %s, want %s…", i, line, want)
		}
	}
}

// TestNoiseAndExitCode has a client that closes because its provider has gone.
func TestNoiseAndExitCode(t *testing.T) {
	path := target(t)
	stdin, client := io.Pipe()
	p := &pipes{stdin: stdin}
	res, err := p.recordTo(t, "noisy", Options{Path: path, Home: mustGetwd()}, hangUp{&p.stdout, client})
	if err != nil || res.Exit.Code != 3 {
		t.Fatalf("result %+v, %v", res, err)
	}
	want := `in stdout stdout "starting\n"
in stdout stdout "\n"
in ready {"method":"ready"}
in stdout stdout "half {"
in stderr stderr "warning: ` + "\ufffd" + ` <home>\n"
exit error {"exitCode":3}
`
	if got := show(t, path); !sameLines(got, want) {
		t.Errorf("transcript:\n%s", got)
	}
	if got := p.stdout.String(); got != "starting\n\n{\"method\":\"ready\"}\nhalf {" {
		t.Errorf("client got %q", got)
	}
}

func TestHowItEnded(t *testing.T) {
	t.Run("killed by someone else", func(t *testing.T) {
		path := target(t)
		res, err := send().record(t, "provider:kill", Options{Path: path})
		if err != nil || res.Exit.Signal != "SIGKILL" || res.Exit.Status() != 137 {
			t.Errorf("result %+v, %v", res, err)
		}
		if got := show(t, path); got != "exit error {\"signal\":\"SIGKILL\"}\n" {
			t.Errorf("transcript %s", got)
		}
	})
	t.Run("ended by the client", func(t *testing.T) {
		path := target(t)
		stdin, client := io.Pipe()
		defer client.Close()
		fromTap, tap := io.Pipe()
		go func() {
			bufio.NewReader(fromTap).ReadString('\n')
			syscall.Kill(os.Getpid(), syscall.SIGTERM)
			io.Copy(io.Discard, fromTap)
		}()
		res, err := (&pipes{stdin: stdin}).recordTo(t, "waiter", Options{Path: path}, tap)
		if err != nil || res.Exit.Signal != "SIGTERM" {
			t.Errorf("result %+v, %v", res, err)
		}
		if got := show(t, path); got != "in ready {\"method\":\"ready\"}\nexit cancelled {\"signal\":\"SIGTERM\"}\n" {
			t.Errorf("transcript %s", got)
		}
	})
}

func TestVersionIsAskedFor(t *testing.T) {
	path := target(t)
	if _, err := send().record(t, "versioned", Options{Path: path}); err != nil {
		t.Fatal(err)
	}
	h := read(t, path).Header
	if h.Version != "9.8.7" || gjson.GetBytes(h.Metadata, "providerVersion").Str != "9.8.7" {
		t.Errorf("version %q, metadata %s", h.Version, h.Metadata)
	}
}

func TestNeverReplaces(t *testing.T) {
	for _, file := range []string{"out.ndjson", ".out.ndjson.partial"} {
		path := target(t)
		old := filepath.Join(filepath.Dir(path), file)
		if err := os.WriteFile(old, []byte("precious"), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := send().record(t, "noisy", Options{Path: path})
		if err == nil || !strings.Contains(err.Error(), "exists") {
			t.Errorf("%s: error %v", file, err)
		}
		if b, _ := os.ReadFile(old); string(b) != "precious" {
			t.Errorf("%s was changed to %q", file, b)
		}
		if got := names(t, path); got != file {
			t.Errorf("files %s", got)
		}
		if _, err := send().record(t, "noisy", Options{Path: path, Force: true}); err != nil {
			t.Error(err)
		}
		if got := names(t, path); got != "out.ndjson" {
			t.Errorf("files %s", got)
		}
	}
}

func TestRejected(t *testing.T) {
	path := target(t)
	_, err := send().record(t, "noisy", Options{Path: path, Check: func(path string) error {
		return fmt.Errorf("%s:2: does not hold", path)
	}})
	want := strings.TrimSuffix(path, ".ndjson") + ".rejected.ndjson"
	var rejected *RejectedError
	if !errors.As(err, &rejected) || rejected.Path != want || rejected.Err.Error() != want+":2: does not hold" {
		t.Errorf("error %v", err)
	}
	if got := names(t, path); got != "out.rejected.ndjson" {
		t.Errorf("files %s", got)
	}
}

func TestTooLongLineSpoils(t *testing.T) {
	path := target(t)
	p := send(`{"method":"short"}`, `{"method":"`+strings.Repeat("x", 200)+`"}`)
	_, err := p.record(t, "cat", Options{Path: path, MaxLine: 100})
	if err == nil || !strings.Contains(err.Error(), "longer than 100 bytes") || p.stdout.Len() != 233 {
		t.Errorf("error %v, %d bytes passed", err, p.stdout.Len())
	}
	if got := names(t, path); got != ".out.ndjson.partial" {
		t.Errorf("files %s", got)
	}
}

func TestAppend(t *testing.T) {
	path := target(t)
	for _, method := range []string{"one", "two"} {
		if _, err := send(`{"method":"`+method+`"}`).record(t, "provider:1", Options{Path: path, Append: true, Workspace: "/ws"}); err != nil {
			t.Fatal(err)
		}
	}
	want := "out one {\"method\":\"one\"}\nexit error {\"exitCode\":1,\"inputClosed\":true}\nout two {\"method\":\"two\"}\nexit error {\"exitCode\":1,\"inputClosed\":true}\n"
	if got := show(t, path); got != want {
		t.Errorf("transcript:\n%s", got)
	}
	_, err := send().record(t, "provider", Options{Path: path, Append: true, Scenario: "other"})
	if err == nil || !strings.Contains(err.Error(), "can't append") {
		t.Errorf("another scenario: %v", err)
	}
	if got := show(t, path); got != want {
		t.Errorf("transcript was changed:\n%s", got)
	}
}

func TestOneRecorderAtATime(t *testing.T) {
	path := target(t)
	stdin, client := io.Pipe()
	fromTap, tap := io.Pipe()
	done := make(chan error)
	go func() {
		_, err := (&pipes{stdin: stdin}).recordTo(t, "waiter", Options{Path: path, Append: true}, tap)
		done <- err
	}()
	bufio.NewReader(fromTap).ReadString('\n')
	_, err := send().record(t, "provider", Options{Path: path, Append: true, LockTimeout: time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "another recorder") {
		t.Errorf("error %v", err)
	}
	syscall.Kill(os.Getpid(), syscall.SIGTERM)
	io.Copy(io.Discard, fromTap)
	client.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestCrash kills a recorder. What it leaves is readable and marked, its
// provider is gone, and the next process of the run goes on from there.
func TestCrash(t *testing.T) {
	path := target(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "RECORD_ROLE=recorder:"+path)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(stdout)
	if line, _ := r.ReadString('\n'); line != "{\"method\":\"ready\"}\n" {
		t.Fatalf("client got %q", line)
	}
	partial := filepath.Join(filepath.Dir(path), ".out.ndjson.partial")
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); { // the disk may be behind the pipe
		if tr, err := envelope.ReadFile(partial); err != nil || len(tr.Entries) > 0 {
			break
		}
	}
	cmd.Process.Kill()
	// The provider holds the other end of stdout: this ends when it is gone.
	if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
		t.Errorf("after the crash: %q, %v", rest, err)
	}
	cmd.Wait()
	if _, err := os.Stat(path); err == nil {
		t.Error("the crash left a finished transcript")
	}
	if m := read(t, partial).Header.Metadata; !gjson.GetBytes(m, "incomplete").Bool() {
		t.Errorf("metadata %s", m)
	}
	if got := show(t, partial); got != "in ready {\"method\":\"ready\"}\n" {
		t.Errorf("prefix:\n%s", got)
	}
	f, err := os.OpenFile(partial, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString(`{"type":"emit_inb`) // a line cut by the crash
	f.Close()
	if _, err := send().record(t, "provider", Options{Path: path, Scenario: "crash", Append: true}); err != nil {
		t.Fatal(err)
	}
	if got := show(t, path); got != "in ready {\"method\":\"ready\"}\nexit cancelled {\"signal\":\"SIGKILL\"}\nexit success \n" {
		t.Errorf("transcript:\n%s", got)
	}
	if m := read(t, path).Header.Metadata; gjson.GetBytes(m, "incomplete").Exists() {
		t.Errorf("metadata %s", m)
	}
}
