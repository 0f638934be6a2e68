package peer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// apart is the least time between deliveries on two connections. A client sees
// the order of what comes on one connection; across connections it sees when
// each becomes readable, and needs a moment to take up the first. Where the
// system tells whether the client has read, that moment begins then, or after
// patient at the latest.
const (
	apart   = 2 * time.Millisecond
	patient = 200 * time.Millisecond
)

// farewell is how long closing waits for answers on their way.
const farewell = 500 * time.Millisecond

// httpWire is HTTP with event streams. Every request is an exchange that stays
// open until the player emits its answer. Answers and events leave through one
// queue, so that they reach the client in the order of the transcript.
type httpWire struct {
	s      *session
	args   []string
	l      net.Listener // made by open unless a test has set it
	server *http.Server
	stop   chan struct{} // ends keep-alives

	connMu sync.Mutex
	conns  map[net.Conn]bool // that have a request

	// Guarded by the session's lock.
	lastID  int
	pending []*exchange // requests without an answer, in the order they came
	streams []*exchange // event streams, in the order they opened
	queue   []delivery
	last    *exchange // who got the last delivery, and when
	lastAt  time.Time
}

// exchange is one request and its answer.
type exchange struct {
	id     string
	client string // addresses of both ends
	server string
	line   string // "GET /event", for messages
	w      http.ResponseWriter
	done   chan struct{} // closed when the answer is complete
	closed bool          // done is closed
	gone   bool          // the client has given up

	stream    string // the operation of an event stream; "" for other answers
	keepAlive string
	begun     bool   // an event went out
	opening   []byte // the event a stream begins with, until it has begun
}

func newHTTPWire(s *session, args []string) *httpWire {
	return &httpWire{s: s, args: args, stop: make(chan struct{}), conns: map[net.Conn]bool{}}
}

func (h *httpWire) open() error {
	url, err := h.listen()
	if err != nil {
		return err
	}
	h.server = &http.Server{Handler: h, ConnState: h.state, ErrorLog: log.New(io.Discard, "", 0)}
	go h.server.Serve(h.l) // ends with close
	go h.keepAlive()
	if ready := h.s.script.Flavor.Ready; ready != "" {
		if _, err := fmt.Fprintf(h.s.stdout, ready+"\n", url); err != nil {
			return fmt.Errorf("tell the address: %w", err)
		}
	}
	go h.s.step(func() {}) // what comes before the client's first request; it may find a client that does not read
	return nil
}

// listen returns the URL by which the client asked for the server.
func (h *httpWire) listen() (string, error) {
	if h.l != nil {
		return "http://" + h.l.Addr().String(), nil
	}
	addr, err := "127.0.0.1:0", error(nil)
	switch {
	case h.s.cfg.Listen != "":
		addr = h.s.cfg.Listen
	case h.s.script.Flavor.Address != nil:
		addr, err = h.s.script.Flavor.Address(h.args)
	}
	if err != nil {
		return "", err
	}
	if h.l, err = net.Listen("tcp", addr); err != nil {
		return "", fmt.Errorf("listen: %w", err)
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil || host == "" {
		return "http://" + h.l.Addr().String(), nil
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(h.l.Addr().(*net.TCPAddr).Port)), nil
}

// close ends what is open: streams end, connections close. A crash leaves
// answers unfinished.
func (h *httpWire) close(abruptly bool) {
	close(h.stop)
	if h.server == nil {
		return
	}
	if abruptly {
		h.server.Close()
	}
	h.s.mu.Lock()
	for _, x := range slices.Concat(h.pending, h.streams) {
		x.finish()
	}
	h.s.mu.Unlock()
	// Not Shutdown: it would wait for connections that were never used.
	for end := time.Now().Add(farewell); h.active() && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	h.server.Close()
}

// state keeps which connections are in the middle of something.
func (h *httpWire) state(c net.Conn, st http.ConnState) {
	h.connMu.Lock()
	defer h.connMu.Unlock()
	if st == http.StateActive {
		h.conns[c] = true
	} else {
		delete(h.conns, c)
	}
}

func (h *httpWire) active() bool {
	h.connMu.Lock()
	defer h.connMu.Unlock()
	return len(h.conns) > 0
}

func (x *exchange) finish() {
	if !x.closed {
		x.closed = true
		close(x.done)
	}
}

// ServeHTTP takes one request and stays until it is answered, or its stream
// ends, or the client gives up.
func (h *httpWire) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header()["Date"] = nil // the same replay gives the same bytes
	allowOrigin(w.Header(), r)
	if r.Method == http.MethodOptions || r.Method == http.MethodHead {
		w.WriteHeader(http.StatusNoContent) // asks what it may ask: no frame
		return
	}
	limit := h.s.cfg.MaxLine
	if limit <= 0 {
		limit = envelope.MaxLine
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(limit)))
	x := &exchange{w: w, line: r.Method + " " + r.URL.EscapedPath(), done: make(chan struct{}), client: r.RemoteAddr}
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		x.server = a.String()
	}
	if !h.receive(x, r, body, err) {
		h.refuseOne(x, "replay-peer: the replay is over")
		return
	}
	select {
	case <-x.done:
	case <-r.Context().Done():
		h.s.step(func() { h.lost(x) })
	}
}

// allowOrigin lets a browser's client in, as the real server does.
func allowOrigin(header http.Header, r *http.Request) {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return
	}
	header.Set("Access-Control-Allow-Origin", origin)
	header.Set("Vary", "Origin")
	if r.Method == http.MethodOptions {
		header.Set("Access-Control-Allow-Methods", "GET,HEAD,PUT,PATCH,POST,DELETE")
		header.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
	}
}

// receive hands a request to the player. It returns false when the launch is
// over.
func (h *httpWire) receive(x *exchange, r *http.Request, body []byte, err error) (taken bool) {
	m := flavors.HTTPMessage{Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery}
	for name, values := range r.Header {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-") || name == "content-type" {
			m.Headers = append(m.Headers, flavors.Header{Name: name, Value: values[0]})
		}
	}
	slices.SortFunc(m.Headers, func(a, b flavors.Header) int { return strings.Compare(a.Name, b.Name) })
	switch {
	case len(body) == 0:
	case envelope.Valid(body):
		m.Body = body
	default:
		m.Text = strings.ToValidUTF8(string(body), "\uFFFD")
	}
	h.s.step(func() {
		taken = true
		h.lastID++
		x.id = strconv.Itoa(h.lastID)
		m.ID = x.id
		h.pending = append(h.pending, x)
		wire := m.Append(nil)
		if err != nil {
			h.s.player.Illegal(wire, fmt.Errorf("read the body of %s: %v", x.line, err))
			return
		}
		frames, err := h.s.codec.Decode(envelope.Out, wire)
		h.s.frames(wire, frames, err)
	})
	return taken
}

// lost is a client that has closed the connection of an open exchange. That
// is its right; it fails when something more is to be delivered.
func (h *httpWire) lost(x *exchange) {
	x.gone = true
	h.streams = remove(h.streams, x)
}

func remove(list []*exchange, x *exchange) []*exchange {
	if at := slices.Index(list, x); at >= 0 {
		return slices.Delete(list, at, at+1)
	}
	return list
}

// refuse answers every request that waits.
func (h *httpWire) refuse(message string) {
	queue := h.queue
	h.queue = nil
	for i := range queue { // what was played before
		if queue[i].deliver(h) != nil {
			break
		}
	}
	for _, x := range h.pending {
		if !x.gone && !x.closed {
			h.refuseOne(x, message)
		}
	}
	h.pending = nil
}

func (h *httpWire) refuseOne(x *exchange, message string) {
	id := json.RawMessage(x.id)
	if x.id == "" {
		id = json.RawMessage("0")
	}
	answer := flavors.HTTPMessage{Status: http.StatusInternalServerError, Text: message}
	if refusal := h.s.script.Flavor.Refusal; refusal != nil {
		if m, err := flavors.ParseHTTPMessage(refusal(flavors.Frame{Kind: flavors.Request, ID: id}, message)); err == nil {
			answer = m
		}
	}
	_ = h.answer(x, &answer) // the client may be gone
}

var errGone = errors.New("the client has closed the connection")

// failGone ends the launch because something can't be delivered.
func (h *httpWire) failGone(what string) bool {
	h.s.player.Warn(what)
	h.s.player.Close(replay.OutputClosed)
	h.s.fail()
	return false
}
