package agent

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/proc"
)

// openCodeServer is one `opencode serve` process and the connections to it: one
// for its events, and others for calls.
type openCodeServer struct {
	proc   *proc.Process
	stderr proc.Tail
	url    string
	user   string // for basic authentication; "" for none
	secret string
	http   http.Client
	trace  func(outbound bool, wire []byte) // may be nil
	handle func(event gjson.Result)         // on the goroutine that reads the events, in their order
	ready  chan struct{}                    // closed by the first event
	gone   chan struct{}                    // closed when the process and its last event are gone
	wg     sync.WaitGroup

	mu      sync.Mutex // guards trace's calls and all below
	closing bool       // Close came first
	lost    error      // why the event stream broke
	obit    error      // why the process is gone; valid once gone is closed
}

// openCodeListening is the line that tells where the server is, as the
// vendor's SDK looks for it.
var openCodeListening = regexp.MustCompile(`^opencode server listening.*?on\s+(https?://\S+)`)

// start starts the process and waits until it listens. ended is called once,
// when it is gone and every event that it sent was handled; err is nil after
// close.
func (s *openCodeServer) start(ctx context.Context, command []string, dir string, env []string, ended func(err error)) error {
	args := append(slices.Clone(command[1:]), "serve", "--hostname=127.0.0.1", "--port=0")
	p, err := proc.Start(proc.Config{Path: command[0], Args: args, Dir: dir, Env: env, Stderr: &s.stderr})
	if err != nil {
		return err
	}
	s.proc, s.ready, s.gone = p, make(chan struct{}), make(chan struct{})
	s.http.Transport = &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 8}
	s.credentials(env)
	address := make(chan string, 1)
	s.wg.Go(func() { s.readOutput(address) })
	s.wg.Go(func() {
		<-p.Done()
		p.Stdout.SetReadDeadline(time.Now().Add(drainLimit))
	})
	events := make(chan *http.Response, 1)
	s.wg.Go(func() {
		defer close(s.gone)
		if res, ok := <-events; ok {
			s.readEvents(res.Body)
		}
		p.Stop(context.Background()) // a server whose events are lost is of no use
		s.mu.Lock()
		s.obit = s.obituary(p.Wait())
		err := s.obit
		if s.closing {
			err = nil
		}
		s.mu.Unlock()
		s.http.CloseIdleConnections()
		ended(err)
	})
	res, err := s.connect(ctx, address)
	if err == nil {
		events <- res
		err = s.subscribed(ctx)
	}
	close(events)
	if err != nil {
		s.proc.Signal(syscall.SIGTERM)
		s.proc.Stop(context.Background())
		s.wg.Wait()
		if ctx.Err() == nil {
			err = fmt.Errorf("%w: %w", err, s.obit)
		}
	}
	return err
}

// subscribed waits for the first event.
func (s *openCodeServer) subscribed(ctx context.Context) error {
	select {
	case <-s.ready:
		return nil
	case <-s.gone:
		return errors.New("its events ended before the first")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// credentials are those that the server takes from its environment.
func (s *openCodeServer) credentials(env []string) {
	if env == nil {
		env = os.Environ()
	}
	s.user = "opencode"
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "OPENCODE_SERVER_PASSWORD="); ok {
			s.secret = v
		}
		if v, ok := strings.CutPrefix(kv, "OPENCODE_SERVER_USERNAME="); ok && v != "" {
			s.user = v
		}
	}
}

// readOutput reads the process's stdout to its end. What does not tell the
// address is dropped.
func (s *openCodeServer) readOutput(address chan<- string) {
	defer close(address)
	defer s.proc.Stdout.Close()
	lines := bufio.NewReader(s.proc.Stdout)
	for {
		line, err := lines.ReadString('\n')
		if m := openCodeListening.FindStringSubmatch(line); m != nil {
			address <- m[1]
			io.Copy(io.Discard, lines)
			return
		}
		if err != nil {
			return
		}
	}
}

// connect waits for the address and opens the event stream.
func (s *openCodeServer) connect(ctx context.Context, address <-chan string) (*http.Response, error) {
	select {
	case url, ok := <-address:
		if !ok {
			return nil, errors.New("it did not tell its address")
		}
		s.url = strings.TrimRight(url, "/")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	life, cancel := context.WithCancel(context.Background())
	s.wg.Go(func() {
		defer cancel()
		<-s.proc.Done()
		select {
		case <-s.gone:
		case <-time.After(drainLimit): // only another process can hold the connection that long
		}
	})
	stop := context.AfterFunc(ctx, cancel) // ctx bounds the opening only
	res, err := s.send(life, http.MethodGet, "/event", nil)
	if !stop() && err == nil {
		res.Body.Close()
		err = ctx.Err()
	}
	if err == nil && res.StatusCode != http.StatusOK {
		res.Body.Close()
		err = fmt.Errorf("GET /event: %s", res.Status)
	}
	return res, err
}

// readEvents reads server-sent events, of which only the data counts, to the
// end of the stream.
func (s *openCodeServer) readEvents(body io.ReadCloser) {
	defer body.Close()
	lines := bufio.NewReaderSize(body, 64<<10)
	var data []byte
	first := true
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			s.mu.Lock()
			s.lost = err
			s.mu.Unlock()
			return
		}
		line = bytes.TrimRight(line, "\r\n")
		if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(append(data, bytes.TrimPrefix(value, []byte(" "))...), '\n')
			continue
		}
		if len(line) > 0 || len(data) == 0 {
			continue // another field, or a comment
		}
		if first {
			first = false
			close(s.ready)
		}
		event := bytes.TrimSuffix(data, []byte("\n"))
		if gjson.ValidBytes(event) {
			s.log(false, event, nil)
			s.handle(gjson.ParseBytes(event))
		}
		data = nil
	}
}

// close ends the process and waits for everything that reads from it.
// Idempotent. The server has no stdin to close: it is told to release what it
// holds, and then ended by a signal.
func (s *openCodeServer) close(ctx context.Context) error {
	select {
	case <-s.proc.Done(): // it went by itself
	default:
		s.mu.Lock()
		first := !s.closing
		s.closing = true
		s.mu.Unlock()
		if first {
			farewell, cancel := context.WithTimeout(ctx, proc.DefaultGrace)
			_, _ = s.call(farewell, http.MethodPost, "/instance/dispose", nil) // it ends either way
			cancel()
		}
	}
	s.proc.Signal(syscall.SIGTERM)
	_, err := s.proc.Stop(ctx)
	s.wg.Wait()
	if err != nil {
		return fmt.Errorf("close opencode: killed: %w", err)
	}
	return nil
}

// obituary says how the process ended, with what may explain it.
func (s *openCodeServer) obituary(exit proc.Exit) error {
	text := "opencode ended: " + exit.String()
	if s.lost != nil && !errors.Is(s.lost, io.EOF) && !errors.Is(s.lost, io.ErrUnexpectedEOF) {
		text += ": events: " + s.lost.Error()
	}
	if tail := strings.TrimSpace(s.stderr.String()); tail != "" {
		text += "\nstderr: " + tail
	}
	return errors.New(strings.ToValidUTF8(text, "\uFFFD"))
}
