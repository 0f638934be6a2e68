//go:build unix

package record

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/proc"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// server is a provider that serves HTTP: a little of OpenCode. What it sends
// on its event stream it is told by POST /raw, byte for byte.
func server(how string) {
	if os.Args[1] == "--version" {
		os.Exit(2)
	}
	raw, ready := make(chan []byte), make(chan string, 1)
	var streams atomic.Int32
	mux := http.NewServeMux()
	mux.HandleFunc("GET /session/streams", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, streams.Load()) })
	mux.HandleFunc("GET /event", func(w http.ResponseWriter, r *http.Request) {
		streams.Add(1)
		defer streams.Add(-1)
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: {\"id\":\"e\",\"type\":\"server.connected\",\"properties\":{}}\n\n")
		http.NewResponseController(w).Flush()
		for {
			select {
			case b := <-raw:
				w.Write(b)
				http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	mux.HandleFunc("POST /raw", func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		raw <- b
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /session", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"id":"ses_1","version":"1.2.3","seen":%q}`, r.Header.Get("Accept-Encoding")+" "+r.Header.Get("User-Agent")+" "+r.Host)
	})
	mux.HandleFunc("GET /session/big", func(w http.ResponseWriter, r *http.Request) { // in pieces, pretty
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, "{\n \"id\": \"")
		for range 1 << 10 {
			io.WriteString(w, strings.Repeat("0123456789abcdef", 64))
		}
		io.WriteString(w, "\"\n}\n")
	})
	mux.HandleFunc("POST /session/{id}/abort", func(w http.ResponseWriter, r *http.Request) {
		if how == "crash" {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, `{"half":`)
			http.NewResponseController(w).Flush()
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"name":"NotFoundError"}`)
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() { ready <- "http://" + l.Addr().String() }()
	fmt.Println("Warning: no password")
	fmt.Printf("opencode server listening on %s\nstarted\n", <-ready)
	http.Serve(l, mux)
}

// httpClient is a client of the tap.
type httpClient struct {
	t    *testing.T
	url  string
	out  *bufio.Reader // of the tap
	done chan struct{}
	res  Result
	err  error
	path string
}

func startHTTP(t *testing.T, how string) *httpClient {
	t.Helper()
	c := &httpClient{t: t, done: make(chan struct{}), path: target(t)}
	fromTap, tap := io.Pipe()
	stdin, _ := io.Pipe()
	go func() {
		defer close(c.done)
		c.res, c.err = HTTP(t.Context(), Options{Path: c.path, Flavor: flavors.OpenCode, Scenario: "test"},
			proc.Config{Path: os.Args[0], Args: []string{"serve", "--port", "0"}, Env: append(os.Environ(), "RECORD_ROLE=server:"+how, "GORACE=atexit_sleep_ms=0")},
			Streams{Stdin: stdin, Stdout: tap, Stderr: io.Discard, Signals: []os.Signal{syscall.SIGTERM}})
		tap.Close()
	}()
	t.Cleanup(func() { stdin.Close() })
	c.out = bufio.NewReader(fromTap)
	if line, _ := c.out.ReadString('\n'); line != "Warning: no password\n" {
		t.Fatalf("stdout %q", line)
	}
	line, _ := c.out.ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "opencode server listening on ")
	if !ok || !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Fatalf("stdout %q", line)
	}
	if line, _ := c.out.ReadString('\n'); line != "started\n" {
		t.Fatalf("stdout %q", line)
	}
	go io.Copy(io.Discard, c.out)
	c.url = url
	return c
}

// call returns status and body, "" when there is no whole answer.
func (c *httpClient) call(method, path, body string) string {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer not-to-be-seen")
	transport := &http.Transport{DisableKeepAlives: true}
	res, err := transport.RoundTrip(r)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return ""
	}
	return fmt.Sprint(res.StatusCode, " ", string(b))
}

// events opens the event stream.
func (c *httpClient) events() (*bufio.Reader, func()) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	r, _ := http.NewRequestWithContext(ctx, "GET", c.url+"/event", nil)
	transport := &http.Transport{DisableKeepAlives: true}
	res, err := transport.RoundTrip(r)
	if err != nil {
		c.t.Fatal(err)
	}
	stream := bufio.NewReader(res.Body)
	c.wantRaw(stream, "data: {\"id\":\"e\",\"type\":\"server.connected\",\"properties\":{}}\n\n")
	return stream, func() { cancel(); res.Body.Close() }
}

func (c *httpClient) wantRaw(stream io.Reader, want string) {
	c.t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(stream, got); err != nil || string(got) != want {
		c.t.Fatalf("stream: %q, %v: want %q", got, err, want)
	}
}

// stop ends the tap as a client ends its server, and returns the transcript.
func (c *httpClient) stop() string {
	c.t.Helper()
	syscall.Kill(os.Getpid(), syscall.SIGTERM)
	<-c.done
	return show(c.t, c.path)
}

func TestHTTP(t *testing.T) {
	c := startHTTP(t, "")
	stream, cancel := c.events()
	defer cancel()
	proxy := strings.TrimPrefix(c.url, "http://")
	if got := c.call("POST", "/session", `{"title":"t"}`); got != `200 {"id":"ses_1","version":"1.2.3","seen":"identity Go-http-client/1.1 `+proxy+`"}` {
		t.Errorf("answer %s", got)
	}
	// Every piece arrives before the next one is sent: nothing is held back.
	for _, piece := range []string{
		"data: {\"id\":\"1\",\"type\":\"session.created\",", "\"properties\":{}}\r\n", "\r\n:comment\n", "id: 7\ndata: {\"id\":\"2\",\ndata:\"type\":\"session.idle\",\"properties\":{}}\n\nda",
		"ta: {\"type\":\"server.heartbeat\",\"properties\":{}}\n\ndata: {\"id\":\"3\",\"type\":\"plugin.added\",\"properties\":{}}\n\n", "event: x\n\n",
	} {
		if got := c.call("POST", "/raw", piece); got != "204 " {
			t.Errorf("answer %q", got)
		}
		c.wantRaw(stream, piece)
	}
	if got := c.call("GET", "/session/big", ""); len(got) != 1<<20+18 || !strings.HasSuffix(got, "\"\n}\n") {
		t.Errorf("%d bytes", len(got))
	}
	if got := c.call("POST", "/session/ses_9/abort", ""); got != `404 {"name":"NotFoundError"}` {
		t.Errorf("answer %s", got)
	}
	got := c.stop()
	if c.err != nil || c.res.Exit.Signal != "SIGTERM" {
		t.Errorf("result %+v, %v", c.res, c.err)
	}
	if strings.Contains(got, "not-to-be-seen") {
		t.Error("a header that says nothing was recorded")
	}
	var lines []string
	for line := range strings.Lines(got) {
		if i := strings.Index(line, "0123456789"); i > 0 {
			line = line[:i] + line[len(line)-20:]
		}
		if !strings.Contains(line, "/raw") { // the test's own
			lines = append(lines, line)
		}
	}
	want := `in stdout stdout "Warning: no password\n"
in stdout stdout "started\n"
out event.subscribe {"type":"event.subscribe"}
out session.create {"type":"session.create","input":{"title":"t"}}
in session.create {"type":"sdk.response","operation":"session.create","contentType":"text/plain; charset=utf-8","data":{"id":"ses_1","version":"1.2.3","seen":"identity Go-http-client/1.1 ` + proxy + `"}}
in session.created {"type":"sdk.event","event":{"id":"1","type":"session.created","properties":{}}}
in session.idle {"type":"sdk.event","event":{"id":"2", "type":"session.idle","properties":{}}}
out session.get {"type":"session.get","input":{"sessionID":"big"}}
in session.get {"type":"sdk.response","operation":"session.get","data":{  "id": "123456789abcdef" }}
out session.abort {"type":"session.abort","input":{"sessionID":"ses_9"}}
in session.abort {"type":"sdk.response","operation":"session.abort","error":{"name":"NotFoundError"}}
exit cancelled {"signal":"SIGTERM"}
`
	want = strings.ReplaceAll(want, `"contentType":"text/plain; charset=utf-8",`, "")
	if diff := cmp.Diff(want, strings.Join(lines, "")); diff != "" {
		t.Errorf("transcript (-want +got):\n%s", diff)
	}
	if h := read(t, c.path).Header; h.Version != "1.2.3" {
		t.Errorf("header %+v", h)
	}
}

// TestHTTPStreams opens a second stream after the first one has ended.
func TestHTTPStreams(t *testing.T) {
	c := startHTTP(t, "")
	event := func(id string) string {
		return "data: {\"id\":\"" + id + "\",\"type\":\"session.idle\",\"properties\":{}}\n\n"
	}
	stream, cancel := c.events()
	c.call("POST", "/raw", event("1"))
	c.wantRaw(stream, event("1"))
	cancel()
	for c.call("GET", "/session/streams", "") != "200 0" { // or the server writes to the stream that is dead
	}
	stream, cancel = c.events()
	c.call("POST", "/raw", event("2"))
	c.wantRaw(stream, event("2"))
	cancel()
	got := c.stop()
	for _, want := range []string{`{"id":"1",`, `{"id":"2",`} {
		if n := strings.Count(got, want); n != 1 {
			t.Errorf("%d events %s in\n%s", n, want, got)
		}
	}
}

// TestHTTPCrash lets the provider die in the middle of an answer.
func TestHTTPCrash(t *testing.T) {
	c := startHTTP(t, "crash")
	_, cancel := c.events()
	defer cancel()
	if got := c.call("POST", "/session/s/abort", ""); got != "" {
		t.Errorf("whole answer %q", got)
	}
	<-c.done
	if c.err != nil || c.res.Exit.Signal != "SIGKILL" {
		t.Errorf("result %+v, %v", c.res, c.err)
	}
	if got := show(t, c.path); !strings.HasSuffix(got, "out session.abort {\"type\":\"session.abort\",\"input\":{\"sessionID\":\"s\"}}\nexit error {\"signal\":\"SIGKILL\"}\n") {
		t.Errorf("transcript\n%s", got)
	}
}

// TestHTTPNeverServes ends a provider that tells no address.
func TestHTTPNeverServes(t *testing.T) {
	path := target(t)
	var out bytes.Buffer
	res, err := HTTP(t.Context(), Options{Path: path, Flavor: flavors.OpenCode, Scenario: "test"},
		proc.Config{Path: "sh", Args: []string{"-c", "echo no; exit 4", "serve"}},
		Streams{Stdin: strings.NewReader(""), Stdout: closing{&out}, Stderr: io.Discard})
	if err != nil || res.Exit.Code != 4 || out.String() != "no\n" {
		t.Errorf("result %+v, %v, stdout %q", res, err, out.String())
	}
	if got := show(t, path); got != "in stdout stdout \"no\\n\"\nexit error {\"exitCode\":4}\n" {
		t.Errorf("transcript\n%s", got)
	}
}

// TestHTTPAddress says so before anything is started.
func TestHTTPAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, args := range [][]string{{"serve", "--port=" + l.Addr().String()[strings.LastIndexByte(l.Addr().String(), ':')+1:]}, {"run"}} {
		path := target(t)
		_, err := HTTP(t.Context(), Options{Path: path, Flavor: flavors.OpenCode}, proc.Config{Path: "sh", Args: args}, Streams{})
		if err == nil {
			t.Errorf("%v: no error", args)
		}
		if got := names(t, path); got != "" {
			t.Errorf("%v: files %s", args, got)
		}
	}
}

func TestEventReader(t *testing.T) {
	const text = "\n\ndata: a\n\n:c\ndata:b\r\ndata:  c\r\rid: 1\n\nevent: x\ndata\n\ndata: long long long\ndata: more\n\ndata: d\n\ndata: cut"
	for size := 1; size < len(text); size++ {
		long := 0
		e := eventReader{maxLine: 14, fail: func(error) { long++ }}
		var got []string
		for rest := []byte(text); len(rest) > 0; rest = rest[min(size, len(rest)):] {
			for _, data := range e.read(rest[:min(size, len(rest))]) {
				got = append(got, string(data))
			}
		}
		if diff := cmp.Diff([]string{"a", "b\n c", "d"}, got); diff != "" || long != 1 {
			t.Errorf("pieces of %d: %d too long, events (-want +got)\n%s", size, long, diff)
		}
	}
}

func TestOneLine(t *testing.T) {
	const pretty = "{\n  \"a\": \"\\n\u2028\",\r\n \"b\": 1.0 }\n"
	got := oneLine([]byte(pretty))
	if strings.ContainsAny(string(got), "\r\n") || len(got) != len(pretty) || gjson.GetBytes(got, "a").Str != "\n\u2028" {
		t.Errorf("%q", got)
	}
}
