package flavors

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

func (c *openCodeCodec) Encode(dst []byte, dir envelope.Direction, f Frame, id json.RawMessage) ([]byte, error) {
	var m *HTTPMessage
	var err error
	switch {
	case dir == envelope.Out:
		m, err = encodeCall(f)
		c.calls[string(id)] = f.Method
	case f.Kind == Response:
		m, err = encodeAnswer(f)
	default:
		m = encodeEvent(f)
	}
	if err != nil {
		return nil, err
	}
	if f.Kind != Notification {
		m.ID = string(id)
	}
	return m.Append(dst), nil
}

// encodeCall makes the request that gives the logical frame.
func encodeCall(f Frame) (*HTTPMessage, error) {
	in := gjson.GetBytes(f.Raw, "input")
	if rest, ok := strings.CutPrefix(f.Method, "http."); ok {
		return plainCall(rest, in)
	}
	r := routes().byName[f.Method]
	if r == nil {
		return nil, fmt.Errorf("operation %s has no route", f.Method)
	}
	given := in.Map()
	path, used, err := r.pathOf(given)
	if err != nil {
		return nil, err
	}
	m := &HTTPMessage{Method: r.method, Path: path}
	var query []string
	var body []input
	in.ForEach(func(key, v gjson.Result) bool {
		name := key.String()
		_, listed := r.inputs[name]
		plain, forced := strings.CutPrefix(name, "query_")
		inner, inBody := strings.CutPrefix(name, "body_")
		switch {
		case used[name]:
		case name == r.body || name == "body" && !v.IsObject():
			m.Body = json.RawMessage(v.Raw)
		case listed || r.method == "GET" && !forced:
			query = appendQuery(query, name, v)
		case isScope(name):
			m.addScope(name, v.String())
		case forced:
			query = appendQuery(query, plain, v)
		case inBody && (used[inner] || given[inner].Exists()):
			body = append(body, input{inner, []byte(v.Raw)})
		default:
			body = append(body, input{name, []byte(v.Raw)})
		}
		return true
	})
	m.Query = strings.Join(query, "&")
	if len(body) > 0 {
		m.Body = appendObject(nil, body)
	}
	if m.Body != nil {
		m.Headers = append(m.Headers, Header{contentType, jsonType})
	}
	return m, nil
}

// pathOf fills a route's path, and says which inputs that used.
func (r *route) pathOf(given map[string]gjson.Result) (path string, used map[string]bool, err error) {
	used = map[string]bool{}
	segments := make([]string, len(r.segments))
	for i, s := range r.segments {
		name := parameter(s)
		switch {
		case s == "*":
			segments[i], used[restInput] = (&url.URL{Path: given[restInput].String()}).EscapedPath(), true
		case name == "":
			segments[i] = s
		case given[name].Type != gjson.String || given[name].Str == "":
			return "", nil, fmt.Errorf("%s: input.%s is missing: it stands in the path", r.name, name)
		default:
			segments[i], used[name] = url.PathEscape(given[name].Str), true
		}
	}
	return strings.Join(segments, "/"), used, nil
}

func (m *HTTPMessage) addScope(name, text string) {
	for _, s := range scopeInputs {
		if s.name != name {
			continue
		}
		if name == "directory" {
			text = url.PathEscape(text)
		}
		m.Headers = append(m.Headers, Header{s.header, text})
	}
}

func plainCall(line string, in gjson.Result) (*HTTPMessage, error) {
	method, path, ok := strings.Cut(line, " ")
	if !ok || path == "" {
		return nil, fmt.Errorf("operation http.%s: want http.METHOD PATH", line)
	}
	m := &HTTPMessage{Method: method, Path: path}
	var query []string
	in.ForEach(func(key, v gjson.Result) bool {
		switch name := key.String(); name {
		case "query":
			v.ForEach(func(key, v gjson.Result) bool {
				query = appendQuery(query, key.String(), v)
				return true
			})
		case "body":
			m.Body = json.RawMessage(v.Raw)
			m.Headers = append(m.Headers, Header{contentType, jsonType})
		case "text":
			m.Text = v.String()
			m.Headers = append(m.Headers, Header{contentType, "text/plain"})
		default:
			m.addScope(name, v.String())
		}
		return true
	})
	m.Query = strings.Join(query, "&")
	return m, nil
}

func appendQuery(query []string, name string, v gjson.Result) []string {
	pair := func(name, text string) { query = append(query, url.QueryEscape(name)+"="+url.QueryEscape(text)) }
	switch {
	case v.IsArray():
		for _, e := range v.Array() {
			pair(name, e.String())
		}
	case v.IsObject():
		v.ForEach(func(key, e gjson.Result) bool {
			pair(name+"["+key.String()+"]", e.String())
			return true
		})
	case v.Type == gjson.Number:
		pair(name, v.Raw)
	default:
		pair(name, v.String())
	}
	return query
}

// encodeAnswer makes the HTTP answer of an sdk.response.
func encodeAnswer(f Frame) (*HTTPMessage, error) {
	parts := gjson.GetManyBytes(f.Raw, "data", "error", "status", "contentType")
	data, fail, status, kind := parts[0], parts[1], parts[2], parts[3]
	m := &HTTPMessage{}
	r := routes().byName[f.Method]
	switch {
	case fail.Exists():
		m.Status, m.Body = errorStatus([]byte(fail.Raw)), json.RawMessage(fail.Raw)
	case r != nil && r.answer == eventStream:
		return openStream(f.Method), nil
	case !data.Exists() || data.Type == gjson.Null && r != nil && r.answer == noContent:
		m.Status = 204
	default:
		m.Status, m.Body = 200, json.RawMessage(data.Raw)
	}
	if status.Exists() {
		m.Status = int(status.Int())
	}
	if m.Status < 200 || m.Status > 599 {
		return nil, fmt.Errorf("status %s of the answer to %s: want 200 to 599", status.Raw, f.Method)
	}
	if m.Status == 204 {
		m.Body = nil
	}
	if m.Body != nil {
		t := jsonType
		if kind.Exists() && data.Type == gjson.String {
			t, m.Text, m.Body = kind.String(), data.String(), nil
		}
		m.Headers = append(m.Headers, Header{contentType, t})
	}
	return m, nil
}

// statusOf gives the HTTP status of errors by a word in their name. The rest
// are 500; what the real server answers otherwise stands in the frame.
var statusOf = []struct {
	word   string
	status int
}{
	{"NotFound", 404}, {"BadRequest", 400}, {"Invalid", 400}, {"ProviderAuth", 400}, {"Worktree", 400},
	{"Unauthorized", 401}, {"Forbidden", 403}, {"Busy", 409}, {"Conflict", 409}, {"Unavailable", 503},
}

func errorStatus(body []byte) int {
	name := gjson.GetBytes(body, "_tag").String() + gjson.GetBytes(body, "name").String()
	for _, s := range statusOf {
		if strings.Contains(name, s.word) {
			return s.status
		}
	}
	return 500
}
