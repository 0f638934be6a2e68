package flavors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

const (
	contentType = "content-type"
	jsonType    = "application/json"
)

// scopeInputs are inputs of every operation that an SDK's user gives once: a
// GET has them in its query, everything else in a header, where the directory
// is percent-encoded.
var scopeInputs = []struct{ name, header string }{
	{"directory", "x-opencode-directory"},
	{"workspace", "x-opencode-workspace"},
}

// openCodeCodec translates between HTTPMessages and logical frames.
type openCodeCodec struct {
	calls map[string]string // exchange to operation, until it is answered
	// streams are the open event streams of each operation; several of one
	// operation carry the same events, which are one frame each.
	streams map[string][]string
	seen    seenEvents
	frame   [1]Frame
}

func newOpenCodeCodec() *openCodeCodec {
	return &openCodeCodec{calls: map[string]string{}, streams: map[string][]string{}}
}

func (c *openCodeCodec) Greeting(dst []byte) []byte { return dst }

func (c *openCodeCodec) End(envelope.Direction) ([]Frame, error) { return nil, nil }

func (c *openCodeCodec) Decode(dir envelope.Direction, wire []byte) ([]Frame, error) {
	m, err := ParseHTTPMessage(wire)
	if err != nil {
		return nil, err
	}
	var raw json.RawMessage
	switch {
	case dir == envelope.Out:
		raw, err = c.call(&m)
	case m.Status != 0:
		raw = c.answered(&m)
	case m.Ended:
		c.closed(m.ID)
	default:
		raw = c.event(&m)
	}
	if err != nil || raw == nil {
		return nil, err
	}
	f, err := classifyOpenCode(dir, source{raw: raw})
	if err != nil {
		return nil, err
	}
	if f.Kind != Notification {
		f.ID = json.RawMessage(m.ID)
	}
	c.frame[0] = f
	return c.frame[:], nil
}

// call is the logical frame of a request.
func (c *openCodeCodec) call(m *HTTPMessage) (json.RawMessage, error) {
	if m.Method == "" || m.Path == "" {
		return nil, errors.New("no request: want a method and a path")
	}
	if m.Method == "OPTIONS" || m.Method == "HEAD" {
		return nil, nil // asks what it may ask
	}
	r, inputs := routes().find(m.Method, m.Path)
	if r == nil {
		name := "http." + m.Method + " " + strings.ToValidUTF8(m.Path, "\uFFFD")
		c.calls[m.ID] = name
		return appendCall(name, plainInputs(m), true), nil
	}
	c.calls[m.ID] = r.name
	inputs, err := r.inputsOf(m, inputs)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %v", m.Method, m.Path, err)
	}
	return appendCall(r.name, inputs, r.answer != eventStream || len(inputs) > 0), nil
}

func appendCall(name string, inputs []input, withInput bool) json.RawMessage {
	raw := append([]byte(`{"type":`), quote(name)...)
	if withInput {
		raw = append(raw, `,"input":`...)
		raw = append(appendObject(raw, inputs), '}')
		return raw
	}
	return append(raw, '}')
}

func appendObject(dst []byte, inputs []input) []byte {
	dst = append(dst, '{')
	for i, in := range inputs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, quote(in.name)...), ':'), in.value...)
	}
	return append(dst, '}')
}

// plainInputs are the parts of a request to a route that is not in the table.
func plainInputs(m *HTTPMessage) []input {
	var list []input
	if query := queryInputs(m.Query, nil); len(query) > 0 {
		list = append(list, input{"query", appendObject(nil, query)})
	}
	list = append(list, scopes(m)...)
	switch {
	case m.Body != nil:
		list = append(list, input{"body", m.Body})
	case m.Text != "":
		list = append(list, input{"text", quote(strings.ToValidUTF8(m.Text, "\uFFFD"))})
	}
	return list
}

func scopes(m *HTTPMessage) []input {
	var list []input
	for _, s := range scopeInputs {
		text := m.Header(s.header)
		if text == "" {
			continue
		}
		if v, err := url.PathUnescape(text); err == nil && s.name == "directory" {
			text = v
		}
		list = append(list, input{s.name, quote(strings.ToValidUTF8(text, "\uFFFD"))})
	}
	return list
}

// inputsOf adds to the inputs of the path those of query, headers and body.
func (r *route) inputsOf(m *HTTPMessage, inputs []input) ([]input, error) {
	for _, in := range queryInputs(m.Query, r.inputs) {
		if _, listed := r.inputs[in.name]; !listed && m.Method != "GET" && !isScope(in.name) || has(inputs, in.name) {
			in.name = "query_" + in.name
		}
		inputs = append(inputs, in)
	}
	for _, in := range scopes(m) {
		if !has(inputs, in.name) {
			inputs = append(inputs, in)
		}
	}
	switch {
	case m.Text != "":
		return nil, errors.New("body is not JSON")
	case m.Body == nil:
	case r.body != "":
		inputs = append(inputs, input{r.body, m.Body})
	case !isObject(m.Body):
		inputs = append(inputs, input{"body", m.Body})
	default:
		outer := len(inputs)
		ok, _ := envelope.ValidMembers(m.Body, func(key, value []byte) error {
			name := envelope.Unquote(key)
			if has(inputs[:outer], name) {
				name = "body_" + name
			}
			inputs = append(inputs, input{name, value})
			return nil
		})
		if !ok {
			return nil, errors.New("body is not JSON")
		}
	}
	return inputs, nil
}

func has(inputs []input, name string) bool {
	for _, in := range inputs {
		if in.name == name {
			return true
		}
	}
	return false
}

func isScope(name string) bool { return name == scopeInputs[0].name || name == scopeInputs[1].name }

// queryInputs reads a query: a name that comes again makes an array, and
// location[directory]=x an object below location.
func queryInputs(query string, types map[string]string) []input {
	var list []input
	values := map[string][][]byte{}
	members := map[string][]input{}
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		name, text, _ := strings.Cut(pair, "=")
		name, text = queryText(name), queryText(text)
		if outer, inner, ok := strings.Cut(name, "["); ok && outer != "" && strings.HasSuffix(inner, "]") && len(inner) > 1 {
			if members[outer] == nil {
				list = append(list, input{name: outer})
			}
			members[outer] = append(members[outer], input{strings.TrimSuffix(inner, "]"), quote(text)})
			continue
		}
		if values[name] == nil {
			list = append(list, input{name: name})
		}
		values[name] = append(values[name], typedValue(text, types[name]))
	}
	kept := list[:0]
	for _, in := range list {
		switch v := values[in.name]; {
		case members[in.name] != nil && v == nil:
			in.value = appendObject(nil, members[in.name])
		case has(kept, in.name): // both a[b]= and a=: the plain one counts
			continue
		case len(v) == 1:
			in.value = v[0]
		default:
			in.value = append(append([]byte{'['}, bytes.Join(v, []byte{','})...), ']')
		}
		kept = append(kept, in)
	}
	return kept
}

func queryText(s string) string {
	if v, err := url.QueryUnescape(s); err == nil {
		s = v
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// typedValue is the JSON literal of a query's text.
func typedValue(text, kind string) []byte {
	v := gjson.Parse(text)
	if kind == "number" && v.Type == gjson.Number && envelope.Valid([]byte(text)) && v.Raw == text ||
		kind == "bool" && (text == "true" || text == "false") {
		return []byte(text)
	}
	return quote(text)
}

// answered is the logical frame of an answer; an event stream that opens has
// none.
func (c *openCodeCodec) answered(m *HTTPMessage) json.RawMessage {
	name, ok := c.calls[m.ID]
	if !ok {
		return nil // to OPTIONS or HEAD
	}
	delete(c.calls, m.ID)
	if r := routes().byName[name]; r != nil && r.answer == eventStream && m.Status < 300 {
		c.streams[name] = append(c.streams[name], m.ID)
		return nil
	}
	raw := append([]byte(`{"type":"sdk.response","operation":`), quote(name)...)
	member, usual := "data", m.Status == 200 || m.Status == 204
	value := m.Body
	switch {
	case value == nil && m.Text != "":
		value = quote(strings.ToValidUTF8(m.Text, "\uFFFD"))
		if t := m.Header(contentType); !strings.HasPrefix(t, jsonType) {
			raw = append(append(raw, `,"contentType":`...), quote(t)...)
		}
	case value == nil:
		value = json.RawMessage("null")
	}
	if m.Status >= 400 {
		member, usual = "error", m.Status == errorStatus(value)
	}
	if !usual {
		raw = strconv.AppendInt(append(raw, `,"status":`...), int64(m.Status), 10)
	}
	raw = append(append(raw, `,"`+member+`":`...), value...)
	return append(raw, '}')
}
