package flavors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// HTTPMessage is what the codec of an HTTP flavor takes and gives as a wire
// message: a request (Method is set), the answer to one (Status is set), one
// event of an event stream (Event alone is set), or its end. As JSON:
//
//	{"id":"3","method":"POST","path":"/session/ses_1/abort","headers":{"x-opencode-directory":"%2Fp"}}
//	{"id":"3","status":200,"headers":{"content-type":"application/json"},"body":true}
//	{"id":"1","status":200,"stream":"event.subscribe"}
//	{"id":"1","event":{"type":"session.idle","properties":{}}}
//	{"id":"1","ended":true}
type HTTPMessage struct {
	// ID numbers the exchange: a driver gives each request one, an integer,
	// and answers and events carry it. Events that a peer sends have none:
	// they go to every stream.
	ID     string
	Method string
	Path   string // of the request, escaped as it was on the wire
	Query  string // without the question mark
	// Status is the answer's.
	Status int
	// Headers are those that mean something to the flavor, their names in
	// lower case.
	Headers []Header
	// Body is a JSON body as it stands, Text one that is not JSON. Both nil
	// and empty mean that there is none.
	Body json.RawMessage
	Text string
	// Stream names the operation whose answer is an event stream. On an
	// event, only streams of that operation get it; "" goes to all.
	Stream string
	// Event is the data of one event. On the answer that opens a stream it is
	// the event that every stream begins with.
	Event json.RawMessage
	// Opening marks an event of the kind that every stream begins with: a
	// stream that has begun does not get it again.
	Opening bool
	// Ended is the end of the event stream that the exchange is. It stands
	// alone beside ID, and only a recorder says it.
	Ended bool
	// KeepAlive is what a silent stream says from time to time, as it goes on
	// the wire.
	KeepAlive string
}

// Header is one header of an HTTPMessage.
type Header struct{ Name, Value string }

// Header returns the value of a header, "" when it is absent.
func (m *HTTPMessage) Header(name string) string {
	for _, h := range m.Headers {
		if h.Name == name {
			return h.Value
		}
	}
	return ""
}

// Append appends the message as one line of JSON, without its end. Body and
// Event stay byte for byte.
func (m *HTTPMessage) Append(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, '{')
	member := func(name string, value []byte) {
		if len(dst) > start+1 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), name...), `":`...)
		dst = append(dst, value...)
	}
	text := func(name, value string) {
		if value != "" {
			member(name, quote(value))
		}
	}
	text("id", m.ID)
	text("method", m.Method)
	text("path", m.Path)
	text("query", m.Query)
	if m.Status != 0 {
		member("status", strconv.AppendInt(nil, int64(m.Status), 10))
	}
	if len(m.Headers) > 0 {
		member("headers", m.appendHeaders(nil))
	}
	if m.Body != nil {
		member("body", m.Body)
	}
	text("text", m.Text)
	text("stream", m.Stream)
	if m.Event != nil {
		member("event", m.Event)
	}
	if m.Opening {
		member("opening", []byte("true"))
	}
	if m.Ended {
		member("ended", []byte("true"))
	}
	text("keepAlive", m.KeepAlive)
	return append(dst, '}')
}

func (m *HTTPMessage) appendHeaders(dst []byte) []byte {
	for i, h := range m.Headers {
		dst = append(dst, `{,`[min(i, 1)])
		dst = append(append(append(dst, quote(h.Name)...), ':'), quote(h.Value)...)
	}
	return append(dst, '}')
}

// ParseHTTPMessage reads what Append wrote. Body and Event are slices of wire.
func ParseHTTPMessage(wire []byte) (HTTPMessage, error) {
	var m HTTPMessage
	if !isObject(wire) {
		return m, errors.New("HTTP message: not a JSON object")
	}
	texts := map[string]*string{
		"id": &m.ID, "method": &m.Method, "path": &m.Path, "query": &m.Query,
		"text": &m.Text, "stream": &m.Stream, "keepAlive": &m.KeepAlive,
	}
	ok, err := envelope.ValidMembers(wire, func(key, value []byte) error {
		name := envelope.Unquote(key)
		if to := texts[name]; to != nil {
			if value[0] != '"' {
				return fmt.Errorf("%s is not a string", name)
			}
			*to = envelope.Unquote(value)
			return nil
		}
		switch name {
		case "status":
			n, err := strconv.Atoi(string(value))
			m.Status = n
			return err
		case "body":
			m.Body = value
		case "event":
			m.Event = value
		case "opening":
			m.Opening = string(value) == "true"
		case "ended":
			m.Ended = string(value) == "true"
		case "headers":
			return m.parseHeaders(value)
		default:
			return fmt.Errorf("unknown member %s", key)
		}
		return nil
	})
	if err == nil && !ok {
		err = errors.New("not JSON")
	}
	if err != nil {
		return HTTPMessage{}, fmt.Errorf("HTTP message: %v", err)
	}
	return m, nil
}

func (m *HTTPMessage) parseHeaders(object []byte) error {
	if !isObject(object) {
		return errors.New("headers are no object")
	}
	return envelope.EachMember(object, func(key, value []byte) error {
		if value[0] != '"' {
			return fmt.Errorf("header %s is not a string", key)
		}
		m.Headers = append(m.Headers, Header{envelope.Unquote(key), envelope.Unquote(value)})
		return nil
	})
}

// quote returns a string as a JSON literal.
func quote(s string) []byte { return envelope.AppendString(nil, s) }

// isObject says whether JSON text starts like an object.
func isObject(b []byte) bool {
	b = bytes.TrimLeft(b, " \t\r\n")
	return len(b) > 0 && b[0] == '{'
}
