package record

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/replaypeer/replaypeer/internal/proc"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// HTTP is Stdio for a provider that serves HTTP. Where the arguments tell the
// provider to serve, a proxy listens; the provider gets a port of its own, and
// the line in which it tells its address is printed with the proxy's.
//
// Requests, answers and events of all connections become one sequence. A
// request takes its ticket before the provider gets it, an answer before the
// client gets its end, an event before the client gets it. Answers and streams
// are forwarded as they come, chunk by chunk.
func HTTP(ctx context.Context, o Options, command proc.Config, s Streams) (Result, error) {
	f := &front{flavor: o.Flavor, idle: make(chan struct{})}
	if err := f.listen(command.Args); err != nil {
		return Result{}, err
	}
	defer f.l.Close()
	command.Args = o.Flavor.Serve(command.Args)
	return between(ctx, o, command, s, func(p *proc.Process, maxLine int) *tap { return f.start(p, s, maxLine) })
}

// front is the proxy before one provider process.
type front struct {
	flavor    *flavors.Flavor
	l         net.Listener
	url       string // where clients find it
	tap       *tap
	maxLine   int
	server    *http.Server
	transport http.Transport
	target    *url.URL // of the provider; set before serving begins

	mu      sync.Mutex
	lastID  int
	serving bool
	open    int           // exchanges in progress
	over    bool          // no more exchanges
	idle    chan struct{} // closed when over and none is in progress
}

func (f *front) listen(args []string) error {
	addr, err := f.flavor.Address(args)
	if err != nil {
		return err
	}
	if f.l, err = net.Listen("tcp", addr); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil || host == "" {
		f.url = "http://" + f.l.Addr().String()
		return nil
	}
	f.url = "http://" + net.JoinHostPort(host, strconv.Itoa(f.l.Addr().(*net.TCPAddr).Port))
	return nil
}

// start connects the provider's standard streams. The proxy serves once the
// provider has told its address.
func (f *front) start(p *proc.Process, s Streams, maxLine int) *tap {
	t := &tap{p: p, order: newOrder(), abort: make(chan struct{})}
	f.tap, f.maxLine = t, maxLine
	f.transport = http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 16}
	f.server = &http.Server{Handler: f, ErrorLog: log.New(io.Discard, "", 0)}
	go func() {
		io.Copy(p.Stdin, s.Stdin) // how it ends does not matter
		p.Stdin.Close()
	}()
	ready := &readyReader{r: bufio.NewReader(p.Stdout), flavor: f.flavor, ready: f.serve}
	t.drain(&pump{from: fromLog, file: p.Stdout, src: ready, dst: s.Stdout, maxLine: maxLine}, s.Stdout)
	t.drain(&pump{from: fromStderr, file: p.Stderr, dst: s.Stderr, maxLine: maxLine}, nil)
	t.output.Go(f.drain)
	return t
}

// serve begins to serve, in front of the provider at the address. It returns
// the proxy's.
func (f *front) serve(target *url.URL) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.serving && !f.over {
		f.serving, f.target = true, target
		go f.server.Serve(f.l) // ends with drain
	}
	return f.url
}

// drain waits for the end of the provider, and then until what it left on its
// connections is forwarded.
func (f *front) drain() {
	<-f.tap.p.Done()
	f.mu.Lock()
	f.over = true
	if f.open == 0 {
		close(f.idle)
	}
	f.mu.Unlock()
	f.l.Close()
	select {
	case <-f.idle:
	case <-time.After(linger):
	}
	f.server.Close() // ends the exchanges that are left
	<-f.idle
	f.transport.CloseIdleConnections()
}

// begin returns the number of an exchange. ok is false after the end.
func (f *front) begin() (id string, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return "", false
	}
	f.open++
	f.lastID++
	return strconv.Itoa(f.lastID), true
}

func (f *front) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open--
	if f.over && f.open == 0 {
		close(f.idle)
	}
}

// ServeHTTP forwards one request and its answer.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, ok := f.begin()
	if !ok {
		panic(http.ErrAbortHandler) // as a server that is gone
	}
	defer f.end()
	if r.Header.Get("Upgrade") != "" {
		f.upgrade(w, r)
		return
	}
	out, err := f.request(id, r)
	if err != nil {
		panic(http.ErrAbortHandler) // the client has given up in the middle
	}
	res, err := f.transport.RoundTrip(out)
	if err != nil {
		if r.Context().Err() == nil {
			f.tap.fail(fmt.Errorf("%s %s was not answered: %w", r.Method, r.URL.Path, err))
		}
		panic(http.ErrAbortHandler)
	}
	defer res.Body.Close()
	x := exchange{front: f, id: id, res: res, w: w, control: http.NewResponseController(w)}
	if err := x.forward(r.Method); err != nil {
		panic(http.ErrAbortHandler) // the client is to see an answer cut off
	}
}

// request takes in what the client asks and returns the request to forward.
// Its only change is that the answer shall not be compressed.
func (f *front) request(id string, r *http.Request) (*http.Request, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, int64(f.maxLine)+1))
	if err != nil {
		return nil, err
	}
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.RequestURI = f.target.Scheme, f.target.Host, ""
	out.Close = false
	hopByHop(out.Header)
	out.Header.Set("Accept-Encoding", "identity")
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header.Set("User-Agent", "") // or Go names itself
	}
	if len(body) > f.maxLine {
		f.tap.fail(fmt.Errorf("a request is longer than %d bytes", f.maxLine))
		out.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), r.Body))
		return out, nil
	}
	out.Body, out.ContentLength, out.TransferEncoding = http.NoBody, int64(len(body)), nil
	if len(body) > 0 {
		out.Body = io.NopCloser(bytes.NewReader(body))
	}
	m := requestMessage(r, body)
	m.ID = id
	f.put(&m)
	return out, nil
}

// put hands in a message whose turn is now.
func (f *front) put(m *flavors.HTTPMessage) {
	if t, ok := f.tap.order.take(); ok {
		f.tap.order.put(t, &message{from: fromOf(m), line: m.Append(nil)})
	}
}

func fromOf(m *flavors.HTTPMessage) source {
	if m.Method != "" {
		return fromClient
	}
	return fromServer
}

// hopByHop takes out the headers that are of a connection, not of a message.
func hopByHop(h http.Header) {
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"} {
		h.Del(name)
	}
}

// readyReader reads the provider's stdout and puts the proxy's address into
// the line that tells the provider's. Up to that line it returns whole lines.
type readyReader struct {
	r      *bufio.Reader
	flavor *flavors.Flavor
	ready  func(target *url.URL) (instead string)
	rest   []byte // of a line
	found  bool
}

func (r *readyReader) Read(b []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.found {
			return r.r.Read(b)
		}
		line, err := r.r.ReadSlice('\n')
		if len(line) == 0 && err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return 0, err
		}
		if target, ok := readyURL(r.flavor, line); ok {
			r.found = true
			line = bytes.Replace(line, []byte(target.String()), []byte(r.ready(target)), 1)
		}
		r.rest = append(r.rest[:0], line...)
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// readyURL reads the address out of the line with which a provider says that
// it serves.
func readyURL(f *flavors.Flavor, line []byte) (*url.URL, bool) {
	before, after, _ := strings.Cut(f.Ready, "%s")
	text, ok := strings.CutPrefix(strings.TrimSpace(string(line)), before)
	text, ok2 := strings.CutSuffix(text, after)
	if f.Ready == "" || !ok || !ok2 {
		return nil, false
	}
	u, err := url.Parse(text)
	return u, err == nil && u.Scheme == "http" && u.Host != "" && u.String() == text
}
