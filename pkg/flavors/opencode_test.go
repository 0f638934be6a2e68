package flavors

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

func TestClassifyOpenCode(t *testing.T) {
	tests := []struct {
		dir         envelope.Direction
		raw, method string
		kind        Kind
		err         string
	}{
		{dir: envelope.Out, raw: `{"type":"event.subscribe"}`, kind: Request, method: "event.subscribe"},
		{dir: envelope.Out, raw: `{"type":"session.abort","input":{"sessionID":"a"}}`, kind: Request, method: "session.abort"},
		{dir: envelope.Out, raw: `{"type":"http.GET /x","input":{}}`, kind: Request, method: "http.GET /x"},
		{dir: envelope.In, raw: `{"type":"sdk.response","operation":"a","data":null}`, kind: Response, method: "a"},
		{dir: envelope.In, raw: `{"type":"sdk.response","operation":"a","error":{}}`, kind: Response, method: "a"},
		{dir: envelope.In, raw: `{"type":"sdk.event","event":{"type":"session.idle"}}`, kind: Notification, method: "session.idle"},
		{dir: envelope.In, raw: `{"type":"sdk.event","event":{"payload":{"type":"x"}}}`, kind: Notification, method: "x"},
		{dir: envelope.Out, raw: `[]`, err: "not a JSON object"},
		{dir: envelope.Out, raw: `{"type":"a"`, err: "not JSON"},
		{dir: envelope.Out, raw: `{}`, err: "no type: want a string that is not empty"},
		{dir: envelope.Out, raw: `{"type":"a","type":"b"}`, err: `two members "type" in one frame`},
		{dir: envelope.Out, raw: `{"type":"a","input":1}`, err: "input of a is no object"},
		{dir: envelope.Out, raw: `{"type":"a","id":1}`, err: `call of a has a member "id": want type and input`},
		{dir: envelope.Out, raw: `{"type":"postSessionIdPermissionsPermissionId"}`, err: "operation postSessionIdPermissionsPermissionId is written permission.respond"},
		{dir: envelope.In, raw: `{"type":"sdk.response"}`, err: "no operation: want a string that is not empty"},
		{dir: envelope.In, raw: `{"type":"sdk.response","operation":"a","data":1,"error":2}`, err: "answer to a has both data and error"},
		{dir: envelope.In, raw: `{"type":"sdk.event","event":1}`, err: "event is no object"},
		{dir: envelope.In, raw: `{"type":"sdk.event","event":{}}`, err: "event without a type"},
		{dir: envelope.In, raw: `{"type":"session.abort"}`, err: `inbound frame of type "session.abort": want sdk.response or sdk.event`},
	}
	for _, c := range tests {
		f, err := OpenCode.Classify(c.dir, json.RawMessage(c.raw))
		switch {
		case c.err != "":
			if err == nil || err.Error() != c.err {
				t.Errorf("%s: got %v, want %s", c.raw, err, c.err)
			}
		case err != nil:
			t.Errorf("%s: %v", c.raw, err)
		case f.Kind != c.kind || f.Method != c.method || f.ID != nil:
			t.Errorf("%s: got %s %q %s", c.raw, f.Kind, f.Method, f.ID)
		}
	}
}

// A request of either SDK is the same call.
func TestOpenCodeCalls(t *testing.T) {
	tests := []struct {
		request HTTPMessage
		want    string
	}{
		{HTTPMessage{Method: "GET", Path: "/event"}, `{"type":"event.subscribe"}`},
		{HTTPMessage{Method: "GET", Path: "/event", Query: "directory=%2Fp%20q"}, `{"type":"event.subscribe","input":{"directory":"/p q"}}`},
		{HTTPMessage{Method: "GET", Path: "/event", Headers: []Header{{"x-opencode-directory", "%2Fp"}}}, `{"type":"event.subscribe","input":{"directory":"/p"}}`},
		{HTTPMessage{Method: "POST", Path: "/session"}, `{"type":"session.create","input":{}}`},
		{HTTPMessage{Method: "POST", Path: "/session", Body: []byte(`{"title":1.0, "x":"ü"}`)}, `{"type":"session.create","input":{"title":1.0,"x":"ü"}}`},
		{HTTPMessage{Method: "GET", Path: "/session/status"}, `{"type":"session.status","input":{}}`},
		{HTTPMessage{Method: "GET", Path: "/session/ses%2F1"}, `{"type":"session.get","input":{"sessionID":"ses/1"}}`},
		{HTTPMessage{Method: "GET", Path: "/session/s/message", Query: "limit=80&before=a"}, `{"type":"session.messages","input":{"sessionID":"s","limit":80,"before":"a"}}`},
		{HTTPMessage{Method: "GET", Path: "/session", Query: "roots=true&limit=x"}, `{"type":"session.list","input":{"roots":true,"limit":"x"}}`},
		{HTTPMessage{Method: "POST", Path: "/session/s/abort", Headers: []Header{{"x-opencode-directory", "%2Fp"}, {"x-other", "1"}}}, `{"type":"session.abort","input":{"sessionID":"s","directory":"/p"}}`},
		{HTTPMessage{Method: "POST", Path: "/session/s/permissions/p", Body: []byte(`{"response":"once"}`)}, `{"type":"permission.respond","input":{"sessionID":"s","permissionID":"p","response":"once"}}`},
		{HTTPMessage{Method: "PATCH", Path: "/config", Body: []byte(`{"model":"a"}`)}, `{"type":"config.update","input":{"config":{"model":"a"}}}`},
		{HTTPMessage{Method: "POST", Path: "/sync/replay", Query: "directory=%2Fa", Body: []byte(`{"directory":"/b","events":[]}`)}, `{"type":"sync.replay","input":{"directory":"/a","body_directory":"/b","events":[]}}`},
		{HTTPMessage{Method: "POST", Path: "/session/s/fork", Query: "debug=1"}, `{"type":"session.fork","input":{"sessionID":"s","query_debug":"1"}}`},
		{HTTPMessage{Method: "GET", Path: "/api/agent", Query: "location[directory]=%2Fp&location%5Bworkspace%5D=w"}, `{"type":"v2.agent.list","input":{"location":{"directory":"/p","workspace":"w"}}}`},
		{HTTPMessage{Method: "GET", Path: "/api/fs/read/a/b%20c"}, `{"type":"v2.fs.read","input":{"path":"a/b c"}}`},
		{HTTPMessage{Method: "GET", Path: "/x", Query: "a=1&a=2"}, `{"type":"http.GET /x","input":{"query":{"a":["1","2"]}}}`},
		{HTTPMessage{Method: "POST", Path: "/session//abort", Body: []byte(`[1]`)}, `{"type":"http.POST /session//abort","input":{"body":[1]}}`},
		{HTTPMessage{Method: "PUT", Path: "/x", Text: "plain"}, `{"type":"http.PUT /x","input":{"text":"plain"}}`},
	}
	for _, c := range tests {
		codec := OpenCode.NewCodec(Launch{})
		c.request.ID = "7"
		frames, err := codec.Decode(envelope.Out, c.request.Append(nil))
		if err != nil || len(frames) != 1 {
			t.Errorf("%s %s: %v, %v", c.request.Method, c.request.Path, frames, err)
			continue
		}
		f := frames[0]
		if string(f.Raw) != c.want || string(f.ID) != "7" || f.Kind != Request {
			t.Errorf("%s %s:\n got %s\nwant %s", c.request.Method, c.request.Path, f.Raw, c.want)
		}
		checkRoundTrip(t, f)
	}
}

// checkRoundTrip says that the request made of a call is read as that call.
func checkRoundTrip(t *testing.T, f Frame) {
	t.Helper()
	want := string(f.Raw)
	codec := OpenCode.NewCodec(Launch{})
	wire, err := codec.Encode(nil, envelope.Out, f, json.RawMessage("8"))
	if err != nil {
		t.Errorf("%s: %v", want, err)
		return
	}
	frames, err := codec.Decode(envelope.Out, wire)
	if err != nil || len(frames) != 1 || !sameJSON(want, string(frames[0].Raw)) {
		t.Errorf("%s became %s\nand that %s, %v", want, wire, frames, err)
	}
}

func sameJSON(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return string(p) == string(q)
}

func TestOpenCodeAnswers(t *testing.T) {
	tests := []struct{ call, frame, want string }{
		{"session.abort", `{"type":"sdk.response","operation":"session.abort","data":true}`, `"status":200,"headers":{"content-type":"application/json"},"body":true`},
		{"session.promptAsync", `{"type":"sdk.response","operation":"session.promptAsync","data":null}`, `"status":204`},
		{"session.get", `{"type":"sdk.response","operation":"session.get","data":null}`, `"status":200,"headers":{"content-type":"application/json"},"body":null`},
		{"session.get", `{"type":"sdk.response","operation":"session.get","error":{"name":"NotFoundError"}}`, `"status":404,"headers":{"content-type":"application/json"},"body":{"name":"NotFoundError"}`},
		{"permission.reply", `{"type":"sdk.response","operation":"permission.reply","error":{"_tag":"PermissionNotFoundError"}}`, `"status":404,"headers":{"content-type":"application/json"},"body":{"_tag":"PermissionNotFoundError"}`},
		{"session.get", `{"type":"sdk.response","operation":"session.get","status":418,"error":"tea"}`, `"status":418,"headers":{"content-type":"application/json"},"body":"tea"`},
		{"http.GET /x", `{"type":"sdk.response","operation":"http.GET /x","contentType":"text/html","data":"<p>"}`, `"status":200,"headers":{"content-type":"text/html"},"text":"<p>"`},
		{"session.abort", `{"type":"sdk.response","operation":"session.abort","error":{"message":"?"}}`, `"status":500,"headers":{"content-type":"application/json"},"body":{"message":"?"}`},
	}
	for _, c := range tests {
		codec := newOpenCodeCodec()
		codec.calls["3"] = c.call
		f, err := OpenCode.Classify(envelope.In, json.RawMessage(c.frame))
		if err != nil {
			t.Error(err)
			continue
		}
		wire, err := codec.Encode(nil, envelope.In, f, json.RawMessage("3"))
		if want := `{"id":"3",` + c.want + `}`; err != nil || string(wire) != want {
			t.Errorf("%s:\n got %s, %v\nwant %s", c.frame, wire, err, want)
			continue
		}
		frames, err := codec.Decode(envelope.In, wire)
		if err != nil || len(frames) != 1 || string(frames[0].Raw) != c.frame && c.call != "session.get" || string(frames[0].ID) != "3" {
			t.Errorf("%s came back as %s, %v", c.frame, frames, err)
		}
	}
	codec := newOpenCodeCodec()
	f, _ := OpenCode.Classify(envelope.In, json.RawMessage(`{"type":"sdk.response","operation":"a","status":42,"data":1}`))
	if _, err := codec.Encode(nil, envelope.In, f, json.RawMessage("3")); err == nil {
		t.Error("status 42 was accepted")
	}
}

// The recorder sees each event once, with the stream's name where it is not
// the usual one, and never what the server says to keep a stream alive.
func TestOpenCodeEvents(t *testing.T) {
	codec := newOpenCodeCodec()
	feed := func(dir envelope.Direction, m HTTPMessage) string {
		frames, err := codec.Decode(dir, m.Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		if len(frames) == 0 {
			return ""
		}
		return string(frames[0].Raw)
	}
	for id, path := range map[string]string{"1": "/event", "2": "/event", "3": "/global/event"} {
		feed(envelope.Out, HTTPMessage{ID: id, Method: "GET", Path: path})
	}
	for _, id := range []string{"1", "2", "3"} {
		if got := feed(envelope.In, HTTPMessage{ID: id, Status: 200}); got != "" {
			t.Errorf("a stream that opens is the frame %s", got)
		}
	}
	idle := json.RawMessage(`{"type":"session.idle"}`)
	for _, c := range []struct{ id, event, want string }{
		{"1", `{"type":"server.connected"}`, ""},
		{"1", `{"type":"server.heartbeat"}`, ""},
		{"1", string(idle), `{"type":"sdk.event","event":{"type":"session.idle"}}`},
		{"2", string(idle), ""},
		{"3", string(idle), `{"type":"sdk.event","stream":"global.event","event":{"type":"session.idle"}}`},
	} {
		if got := feed(envelope.In, HTTPMessage{ID: c.id, Event: json.RawMessage(c.event)}); got != c.want {
			t.Errorf("event %s of stream %s is %s, want %s", c.event, c.id, got, c.want)
		}
	}
}

func TestLabelOpenCode(t *testing.T) {
	for event, want := range map[string]string{
		`{"type":"session.status","properties":{"status":{"type":"idle"}}}`:                                        "session.status/idle",
		`{"type":"session.status","properties":{}}`:                                                                "session.status",
		`{"type":"message.updated","properties":{"info":{"role":"assistant","time":{"created":1,"completed":2}}}}`: "message.updated/completed",
		`{"type":"message.updated","properties":{"info":{"role":"assistant","time":{"created":1}}}}`:               "message.updated",
		`{"type":"message.part.updated","properties":{"part":{"type":"tool","state":{"status":"running"}}}}`:       "message.part.updated/running",
		`{"type":"message.part.updated","properties":{"part":{"type":"text"}}}`:                                    "message.part.updated",
		`{"type":"session.idle","properties":{}}`:                                                                  "session.idle",
	} {
		f, err := OpenCode.Classify(envelope.In, json.RawMessage(`{"type":"sdk.event","event":`+event+`}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := OpenCode.Label(f); got != want {
			t.Errorf("%s is labelled %q: want %q", event, got, want)
		}
	}
}

func TestOpenCodeAddress(t *testing.T) {
	for args, want := range map[string]string{
		"serve":                                "127.0.0.1:0",
		"":                                     "127.0.0.1:0",
		"serve --hostname=0.0.0.0 --port=4096": "0.0.0.0:4096",
		"serve --hostname ::1 --port 4096 --print-logs":    "[::1]:4096",
		"--log-level DEBUG serve --port 1 --cors http://x": "127.0.0.1:1",
		"serve --port":     "",
		"run hello":        "",
		"acp --hostname x": "",
	} {
		got, err := OpenCode.Address(strings.Fields(args))
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v: want %q", args, got, err, want)
		}
	}
}

// The table has no route twice, and the documentation every operation.
func TestOpenCodeOperations(t *testing.T) {
	doc, err := os.ReadFile("../../docs/flavor-opencode.md")
	if err != nil {
		t.Fatal(err)
	}
	names, seen := map[string]bool{}, map[string]string{}
	for _, op := range operations {
		shape := []string{op.method}
		for s := range strings.SplitSeq(op.path, "/") {
			if parameter(s) != "" {
				s = "{}"
			}
			shape = append(shape, s)
		}
		key := strings.Join(shape, "/")
		if seen[key] != "" || names[op.name] {
			t.Errorf("%s: %s is there already, for %q", op.name, key, seen[key])
		}
		seen[key], names[op.name] = op.name, true
		if !strings.Contains(string(doc), "| `"+op.name+"` | "+op.method+" | `"+op.path+"` |") {
			t.Errorf("docs/flavor-opencode.md lacks %s %s %s", op.name, op.method, op.path)
		}
	}
	for from, to := range renamed {
		if names[from] || !names[to] {
			t.Errorf("%s is renamed %s", from, to)
		}
	}
}

func FuzzOpenCodeRoutes(f *testing.F) {
	for _, op := range operations {
		f.Add(op.method, op.path, "directory=/p&limit=1", `{"a":1}`)
	}
	f.Add("GET", "/session/%zz", "a[b]=1&a=2&=&[", "")
	f.Add("POST", "//", "%", `{"a":1,"a":2}`)
	f.Add("DELETE", "/session/\xff", "\xff=\xff", "\xff")
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		m := HTTPMessage{ID: "1", Method: method, Path: path, Query: query}
		if envelope.Valid([]byte(body)) {
			m.Body = json.RawMessage(body)
		} else {
			m.Text = strings.ToValidUTF8(body, "\uFFFD")
		}
		wire := m.Append(nil)
		if !envelope.Valid(wire) {
			t.Fatalf("%q is not JSON", wire)
		}
		codec := newOpenCodeCodec()
		frames, err := codec.Decode(envelope.Out, wire)
		if err != nil {
			if frames != nil {
				t.Fatal("frames and an error")
			}
			return
		}
		for _, frame := range frames {
			raw := string(frame.Raw)
			if !envelope.Valid(frame.Raw) {
				t.Fatalf("frame %q is not JSON", raw)
			}
			if _, err := codec.Encode(nil, envelope.Out, frame, json.RawMessage("2")); err != nil {
				t.Fatalf("%s has no request: %v", raw, err)
			}
		}
	})
}
