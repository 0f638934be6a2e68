//go:build unix

package peer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// httpClient plays the outbound side of a transcript against a server, and
// checks that what comes in is what the transcript says.
type httpClient struct {
	url       string
	http      *http.Client
	ctx       context.Context
	codec     flavors.Codec
	flavor    *flavors.Flavor
	workspace string
	next      int
	calls     map[string][]chan reply // open calls by operation, oldest first
	streams   []*eventStream
	change    func(line int, frame []byte) []byte // of an outbound frame; nil keeps it
}

// reply is what came of a request.
type reply struct {
	message flavors.HTTPMessage
	err     error
}

// eventStream is an open answer of server-sent events.
type eventStream struct {
	id    string
	body  io.Closer
	lines *bufio.Reader
	begun bool
}

func newHTTPClient(t testing.TB, url, workspace string) *httpClient {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	f := flavors.OpenCode
	c := &httpClient{
		url: url, ctx: ctx, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}},
		codec: f.NewCodec(flavors.Launch{}), flavor: f, workspace: workspace, calls: map[string][]chan reply{},
	}
	t.Cleanup(c.close)
	return c
}

func (c *httpClient) close() {
	for _, s := range c.streams {
		s.body.Close()
	}
	c.streams = nil
	c.http.CloseIdleConnections()
}

// play returns the first thing that is not as the transcript says.
func (c *httpClient) play(t *envelope.Transcript) error {
	for _, e := range t.Entries {
		var err error
		line, label := e.Position()
		switch e := e.(type) {
		case *envelope.ExpectOutbound:
			err = c.send(line, e.Frame)
		case *envelope.EmitInbound:
			err = c.receive(e.Frame)
		}
		if err != nil {
			return fmt.Errorf("line %d (%s): %w", line, label, err)
		}
	}
	return nil
}

// filled is a frame with its placeholders replaced by something they match.
func (c *httpClient) filled(frame []byte) []byte {
	quoted := strings.NewReplacer(`"<any>"`, `"whatever"`, `<workspace>`, c.workspace)
	return []byte(quoted.Replace(string(frame)))
}

func (c *httpClient) send(line int, raw []byte) error {
	raw = c.filled(raw)
	if c.change != nil {
		raw = c.change(line, raw)
	}
	f, err := c.flavor.Classify(envelope.Out, raw)
	if err != nil {
		return err
	}
	c.next++
	wire, err := c.codec.Encode(nil, envelope.Out, f, strconv.AppendInt(nil, int64(c.next), 10))
	if err != nil {
		return err
	}
	m, err := flavors.ParseHTTPMessage(wire)
	if err != nil {
		return err
	}
	if c.flavor.Minimal(f) != nil {
		return c.subscribe(&m)
	}
	answer := make(chan reply, 1)
	c.calls[f.Method] = append(c.calls[f.Method], answer)
	go func() { // ends with the context at the latest
		r, err := c.do(&m)
		if err != nil {
			answer <- reply{err: err}
			return
		}
		defer r.Body.Close()
		got, err := messageOf(m.ID, r)
		answer <- reply{got, err}
	}()
	return nil
}

func (c *httpClient) do(m *flavors.HTTPMessage) (*http.Response, error) {
	body := m.Body
	if m.Text != "" {
		body = []byte(m.Text)
	}
	url := c.url + m.Path
	if m.Query != "" {
		url += "?" + m.Query
	}
	r, err := http.NewRequestWithContext(c.ctx, m.Method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for _, h := range m.Headers {
		r.Header.Set(h.Name, h.Value)
	}
	return c.http.Do(r)
}

func messageOf(id string, r *http.Response) (flavors.HTTPMessage, error) {
	m := flavors.HTTPMessage{ID: id, Status: r.StatusCode}
	m.Headers = []flavors.Header{{Name: "content-type", Value: r.Header.Get("Content-Type")}}
	body, err := io.ReadAll(r.Body)
	switch {
	case len(body) == 0:
	case json.Valid(body):
		m.Body = body
	default:
		m.Text = string(body)
	}
	return m, err
}

// subscribe returns when the stream has begun.
func (c *httpClient) subscribe(m *flavors.HTTPMessage) error {
	r, err := c.do(m)
	if err != nil {
		return err
	}
	if t := r.Header.Get("Content-Type"); r.StatusCode != 200 || t != "text/event-stream" {
		defer r.Body.Close()
		got, _ := messageOf(m.ID, r)
		return fmt.Errorf("event stream: status %d, %s: %s%s", r.StatusCode, t, got.Body, got.Text)
	}
	s := &eventStream{id: m.ID, body: r.Body, lines: bufio.NewReader(r.Body)}
	c.streams = append(c.streams, s)
	opened := flavors.HTTPMessage{ID: m.ID, Status: 200}
	_, err = c.codec.Decode(envelope.In, opened.Append(nil))
	return err
}

// event reads the next event, without the stream's first and keep-alives.
func (c *httpClient) event(s *eventStream) ([]byte, error) {
	for {
		line, err := s.lines.ReadBytes('\n')
		if err != nil {
			return nil, errors.Join(err, c.refusals())
		}
		data, ok := bytes.CutPrefix(bytes.TrimSuffix(line, []byte{'\n'}), []byte("data: "))
		if !ok {
			continue // the blank line, or a comment
		}
		if !s.begun && !bytes.Contains(data, []byte("server.connected")) {
			return nil, fmt.Errorf("the stream begins with %s", data)
		}
		s.begun = true
		m := flavors.HTTPMessage{ID: s.id, Event: data}
		frames, err := c.codec.Decode(envelope.In, m.Append(nil))
		if err != nil || len(frames) > 0 {
			return frames[0].Raw, err
		}
	}
}

// refusals is what the server told open calls when it closed the stream.
func (c *httpClient) refusals() error {
	var all error
	for name := range c.calls {
		for len(c.calls[name]) > 0 {
			got, err := c.answer(name)
			all = errors.Join(all, err, errors.New(string(got)))
		}
	}
	return all
}

// receive waits for an inbound frame and compares it.
func (c *httpClient) receive(raw []byte) error {
	want := c.filled(raw)
	f, err := c.flavor.Classify(envelope.In, want)
	if err != nil {
		return err
	}
	var got []byte
	switch {
	case f.Kind == flavors.Notification && len(c.streams) == 0:
		return errors.New("no stream")
	case f.Kind == flavors.Notification:
		got, err = c.event(c.streams[0])
	default:
		got, err = c.answer(f.Method)
	}
	if err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("got %s\nwant %s", got, want)
	}
	return nil
}

func (c *httpClient) answer(operation string) ([]byte, error) {
	calls := c.calls[operation]
	if len(calls) == 0 {
		return nil, fmt.Errorf("no open call of %s", operation)
	}
	c.calls[operation] = calls[1:]
	r := <-calls[0]
	if r.err != nil {
		return nil, r.err
	}
	frames, err := c.codec.Decode(envelope.In, r.message.Append(nil))
	if err != nil || len(frames) == 0 {
		return nil, fmt.Errorf("answer %+v is no frame: %v", r.message, err)
	}
	return bytes.Clone(frames[0].Raw), nil
}

// raw makes a request that is in no transcript.
func (c *httpClient) raw(method, path, body string, headers ...string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(c.ctx, method, c.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.http.Do(r)
	if err == nil {
		resp.Body.Close()
	}
	return resp, err
}

func (c *httpClient) get(path string) { _, _ = c.raw("GET", path, "") }

func (c *httpClient) post(path, body string) { _, _ = c.raw("POST", path, body) }
