package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// exchange is the answer to one request on its way to the client.
type exchange struct {
	front   *front
	id      string
	res     *http.Response
	w       http.ResponseWriter
	control *http.ResponseController
	begun   bool // the status went out
}

// forward writes the answer to the client. An error means that it could not be
// forwarded to its end.
func (x *exchange) forward(method string) error {
	header := x.w.Header()
	for name, values := range x.res.Header {
		header[name] = values
	}
	hopByHop(header)
	if _, ok := header["Date"]; !ok {
		header["Date"] = nil // or Go adds one
	}
	kind := x.res.Header.Get("Content-Type")
	switch {
	case x.res.StatusCode < 300 && (kind == "text/event-stream" || strings.HasPrefix(kind, "text/event-stream;")):
		return x.stream()
	case x.res.ContentLength == 0 || method == http.MethodHead || x.res.StatusCode == http.StatusNoContent || x.res.StatusCode == http.StatusNotModified:
		return x.answer(nil, nil)
	}
	return x.content()
}

// write sends the status, where that is still to be done, and a chunk.
func (x *exchange) write(chunk []byte) error {
	if !x.begun {
		x.begun = true
		x.w.WriteHeader(x.res.StatusCode)
	}
	if len(chunk) > 0 {
		if _, err := x.w.Write(chunk); err != nil {
			return err
		}
	}
	return x.control.Flush()
}

// answer takes the answer's ticket, sends its last chunk, and hands it in when
// that got through.
func (x *exchange) answer(body, last []byte) error {
	m := flavors.HTTPMessage{ID: x.id, Status: x.res.StatusCode}
	if kind := x.res.Header.Get("Content-Type"); kind != "" {
		m.Headers = append(m.Headers, flavors.Header{Name: "content-type", Value: kind})
	}
	setBody(&m, body)
	order := x.front.tap.order
	t, ok := order.take()
	err := x.write(last)
	switch {
	case !ok:
	case err != nil:
		order.put(t, nil)
	default:
		order.put(t, &message{from: fromServer, line: m.Append(nil)})
	}
	return err
}

// content forwards an answer chunk by chunk. Its ticket is taken before the
// client gets the last one.
func (x *exchange) content() error {
	left := x.res.ContentLength
	if err := x.write(nil); err != nil {
		return err
	}
	var whole []byte
	long := false
	buf := make([]byte, 64<<10)
	for {
		n, err := x.res.Body.Read(buf)
		left -= int64(n)
		if long = long || len(whole)+n > x.front.maxLine; !long {
			whole = append(whole, buf[:n]...)
		}
		switch {
		case err == io.EOF || err == nil && left == 0:
			if long {
				x.front.tap.fail(fmt.Errorf("an answer is longer than %d bytes", x.front.maxLine))
				return x.write(buf[:n])
			}
			return x.answer(whole, buf[:n])
		case err != nil:
			return err
		}
		if err := x.write(buf[:n]); err != nil {
			return err
		}
	}
}

// stream forwards an event stream. Its events take their tickets before the
// chunk in which they end is forwarded.
func (x *exchange) stream() error {
	f := x.front
	if err := x.answer(nil, nil); err != nil {
		return err
	}
	defer f.put(&flavors.HTTPMessage{ID: x.id, Ended: true})
	events := eventReader{maxLine: f.maxLine, fail: f.tap.fail}
	buf := make([]byte, 64<<10)
	for {
		n, err := x.res.Body.Read(buf)
		if n > 0 {
			if err := x.pass(buf[:n], &events); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (x *exchange) pass(chunk []byte, events *eventReader) error {
	order := x.front.tap.order
	var tickets []ticket
	var messages []*message
	for _, data := range events.read(chunk) {
		if !envelope.Valid(data) {
			x.front.tap.fail(errors.New("an event is not JSON"))
			continue
		}
		if t, ok := order.take(); ok {
			m := flavors.HTTPMessage{ID: x.id, Event: oneLine(data)}
			tickets, messages = append(tickets, t), append(messages, &message{from: fromServer, line: m.Append(nil)})
		}
	}
	err := x.write(chunk)
	for i, t := range tickets {
		if err != nil {
			messages[i] = nil // who knows what got through
		}
		order.put(t, messages[i])
	}
	return err
}

// upgrade passes a connection through that is going to be something else than
// HTTP.
func (f *front) upgrade(w http.ResponseWriter, r *http.Request) {
	f.tap.fail(fmt.Errorf("%s %s: a connection was upgraded to %s", r.Method, r.URL.Path, r.Header.Get("Upgrade")))
	proxy := httputil.ReverseProxy{
		Rewrite:       func(p *httputil.ProxyRequest) { p.SetURL(f.target); p.Out.Host = p.In.Host },
		FlushInterval: -1,
		ErrorLog:      f.server.ErrorLog,
	}
	proxy.ServeHTTP(w, r)
}

// requestMessage is what the codec reads of a request.
func requestMessage(r *http.Request, body []byte) flavors.HTTPMessage {
	m := flavors.HTTPMessage{Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery}
	for name, values := range r.Header {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-") || name == "content-type" {
			m.Headers = append(m.Headers, flavors.Header{Name: name, Value: values[0]})
		}
	}
	slices.SortFunc(m.Headers, func(a, b flavors.Header) int { return strings.Compare(a.Name, b.Name) })
	setBody(&m, body)
	return m
}

func setBody(m *flavors.HTTPMessage, body []byte) {
	switch {
	case len(body) == 0:
	case envelope.Valid(body):
		m.Body = oneLine(body)
	default:
		m.Text = strings.ToValidUTF8(string(body), "\ufffd")
	}
}

// oneLine takes the line ends out of JSON. They can only be white space.
func oneLine(raw []byte) []byte {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw
	}
	raw = bytes.Clone(raw)
	for i, c := range raw {
		if c == '\n' || c == '\r' {
			raw[i] = ' '
		}
	}
	return raw
}

// eventReader cuts server-sent events out of chunks. Only their data counts.
type eventReader struct {
	maxLine int
	fail    func(error)
	line    []byte // not complete yet
	data    []byte
	some    bool // the event has data
	skip    bool // the event is too long
	cr      bool // the line before ended in CR: an LF belongs to it
}

// read returns the data of the events that end in the chunk.
func (e *eventReader) read(chunk []byte) (events [][]byte) {
	for len(chunk) > 0 {
		if e.cr && chunk[0] == '\n' {
			chunk, e.cr = chunk[1:], false
			continue
		}
		e.cr = false
		n := bytes.IndexAny(chunk, "\r\n")
		if n < 0 {
			e.keep(chunk)
			return events
		}
		e.keep(chunk[:n])
		e.cr = chunk[n] == '\r'
		chunk = chunk[n+1:]
		if len(e.line) > 0 {
			e.field()
			continue
		}
		if e.some && !e.skip {
			events = append(events, e.data)
		}
		e.data, e.some, e.skip = nil, false, false
	}
	return events
}

// field takes in a line that is complete.
func (e *eventReader) field() {
	if value, ok := bytes.CutPrefix(e.line, []byte("data:")); ok {
		if e.some {
			e.data = append(e.data, '\n')
		}
		e.data, e.some = append(e.data, bytes.TrimPrefix(value, []byte(" "))...), true
	}
	e.line = e.line[:0]
}

func (e *eventReader) keep(part []byte) {
	switch {
	case e.skip:
		if len(e.line) == 0 && len(part) > 0 {
			e.line = append(e.line, part[0]) // not empty: the event goes on
		}
	case len(e.line)+len(e.data)+len(part) > e.maxLine:
		e.fail(fmt.Errorf("an event is longer than %d bytes", e.maxLine))
		e.skip, e.line, e.data = true, []byte{' '}, nil
	default:
		e.line = append(e.line, part...)
	}
}
