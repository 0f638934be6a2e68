package flavors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// OpenCode is `opencode serve`: HTTP, and server-sent events on connections of
// their own. Its logical frames are what an SDK's user sees: calls with their
// input, results, events. They carry no ids: an answer belongs to the oldest
// open call of its operation. Measured on OpenCode 1.18.33 with
// @opencode-ai/sdk 1.19.3.
//
// The stream operations are requests that are answered when the stream opens,
// which nobody records: Minimal stands in for that.
var OpenCode = &Flavor{
	Providers:   []string{"opencode"},
	Protocol:    "opencode-sdk.sse",
	Transport:   HTTP,
	Classify:    fromBytes(classifyOpenCode),
	OnTape:      fromTape(classifyOpenCode),
	CheckID:     checkScalarID,
	NewCodec:    func(Launch) Codec { return newOpenCodeCodec() },
	Minimal:     openCodeStream,
	Unordered:   true,
	Refusal:     refuseOpenCode,
	Address:     openCodeAddress,
	Serve:       openCodeServe,
	Ready:       "opencode server listening on %s",
	VersionArgs: []string{"--version"},
	Probe:       probeOpenCode,
	Version:     openCodeVersion,
	Label:       labelOpenCode,
	// Plugins load with the first request that needs them, one event each. The
	// watcher sees git's lock files when it happens to look while they are there.
	Noise: []string{"plugin.added", "catalog.updated", "reference.updated", "integration.updated", "file.watcher.updated"},
	Chosen: []Place{
		{envelope.Out, "session.prompt", "input.messageID"},
		{envelope.Out, "session.promptAsync", "input.messageID"},
		{envelope.Out, "session.command", "input.messageID"},
		{envelope.Out, "session.shell", "input.messageID"},
		{envelope.Out, "session.prompt", "input.parts.*.id"},
		{envelope.Out, "session.promptAsync", "input.parts.*.id"},
		{envelope.Out, "v2.session.create", "input.id"},
		{envelope.Out, "v2.session.prompt", "input.id"},
	},
	References: []Place{
		{envelope.Out, "*", "input.sessionID"},
		{envelope.Out, "*", "input.requestID"},
		{envelope.Out, "*", "input.permissionID"},
		{envelope.Out, "session.revert", "input.messageID"},
		{envelope.Out, "session.fork", "input.messageID"},
		{envelope.Out, "session.message", "input.messageID"},
	},
	Ends: []Place{
		{envelope.In, "permission.replied", "event.properties.requestID"},
		{envelope.In, "question.replied", "event.properties.requestID"},
		{envelope.In, "question.rejected", "event.properties.requestID"},
		{envelope.In, "session.deleted", "event.properties.info.id"},
	},
	Streams: []Stream{{
		Dir: envelope.In, Method: "sdk.event", Path: "event.properties.delta",
		Key: []string{"event.properties.partID", "event.properties.field"}, Ends: [][2]string{{"sdk.event", "event.properties.part.id"}},
	}},
	Threads: openCodeThreads,
	// What a prompt changed is summed up beside the turn, once or twice, and the
	// session, its diff and the prompt's message are told again each time. A
	// tool's progress and a session's being busy are told beside the turn, too.
	States: []Place{
		{envelope.In, "session.updated", ""},
		{envelope.In, "session.diff", ""},
		{envelope.In, "session.status", ""},
		{envelope.In, "message.updated", "event.properties.info.summary"},
		{envelope.In, "message.part.updated/running", "event.properties.part.state.metadata"},
	},
	Volatile: []Place{
		// Ids: a prefix, the time, and chance.
		{envelope.In, "*", "**.id"},
		{envelope.In, "*", "**.sessionID"},
		{envelope.In, "*", "**.sessionId"},
		{envelope.In, "*", "**.parentSessionId"},
		{envelope.In, "*", "**.messageID"},
		{envelope.In, "*", "**.partID"},
		{envelope.In, "*", "**.parentID"},
		{envelope.In, "*", "**.requestID"},
		{envelope.In, "*", "**.aggregateID"},
		{envelope.In, "*", "**.callID"},
		{envelope.In, "*", "**.slug"},
		// Clocks; a default title is one, too.
		{envelope.In, "*", "**.time"},
		{envelope.In, "*", "**.timestamp"},
		{envelope.In, "*", "**.info.title"},
		{envelope.In, "session.create", "data.title"},
		{envelope.In, "*", "**.status.next"},
		// Read from git when the turn may go on, or be over, already.
		{envelope.In, "message.updated", "event.properties.info.summary.diffs"},
		// Headers and stacks of errors.
		{envelope.In, "*", "**.responseHeaders"},
		{envelope.In, "*", "**.stack"},
		// The client only echoes these.
		{envelope.Out, "*", "input.sessionID"},
		{envelope.Out, "*", "input.requestID"},
		{envelope.Out, "*", "input.permissionID"},
		{envelope.Out, "*", "input.messageID"},
		{envelope.Out, "*", "input.partID"},
	},
}

// The types of logical frames that come in.
const (
	sdkResponse = "sdk.response"
	sdkEvent    = "sdk.event"
)

// classifyOpenCode reads
//
//	{"type":"session.abort","input":{"sessionID":"ses_1"}}                   a request
//	{"type":"sdk.response","operation":"session.abort","data":true}          its answer, or with "error"
//	{"type":"sdk.event","event":{"type":"session.idle","properties":{…}}}    a notification
func classifyOpenCode(dir envelope.Direction, s source) (Frame, error) {
	f := Frame{Raw: s.raw}
	if !isObject(s.raw) {
		return f, errors.New("not a JSON object")
	}
	var room [4]member
	members := object(room[:0])
	ok, err := s.members(func(key, value []byte) error {
		name := openCodeKey(key)
		if members.get(name) != nil {
			return fmt.Errorf("two members %s in one frame", key)
		}
		members = append(members, member{name, value})
		return nil
	})
	if err == nil && !ok {
		err = errors.New("not JSON")
	}
	if err != nil {
		return f, err
	}
	kind, err := stringMember(s, members, "type")
	switch {
	case err != nil:
		return f, err
	case dir == envelope.Out:
		f.Kind, f.Method = Request, kind
		err = checkCall(kind, members)
	case kind == sdkResponse:
		f.Kind = Response
		f.Method, err = checkAnswer(s, members)
	case kind == sdkEvent:
		f.Kind = Notification
		f.Method, err = eventType(s, members.get("event"))
	default:
		err = fmt.Errorf("inbound frame of type %q: want %s or %s", kind, sdkResponse, sdkEvent)
	}
	return f, err
}

// openCodeKey decodes a key, without an allocation for the usual ones.
func openCodeKey(quoted []byte) string {
	for _, name := range [...]string{"type", "event", "operation", "data", "error", "input", "stream"} {
		if string(quoted[1:len(quoted)-1]) == name {
			return name
		}
	}
	return envelope.Unquote(quoted)
}

func stringMember(s source, members object, name string) (string, error) {
	v := members.get(name)
	if len(v) == 0 || v[0] != '"' || len(v) == 2 {
		return "", fmt.Errorf("no %s: want a string that is not empty", name)
	}
	return s.text(v), nil
}

func checkCall(name string, members object) error {
	if to := renamed[name]; to != "" {
		return fmt.Errorf("operation %s is written %s", name, to)
	}
	for _, m := range members {
		if m.key != "type" && m.key != "input" {
			return fmt.Errorf("call of %s has a member %q: want type and input", name, m.key)
		}
	}
	if in := members.get("input"); in != nil && in[0] != '{' {
		return fmt.Errorf("input of %s is no object", name)
	}
	return nil
}

func checkAnswer(s source, members object) (string, error) {
	name, err := stringMember(s, members, "operation")
	if err == nil && members.get("data") != nil && members.get("error") != nil {
		err = fmt.Errorf("answer to %s has both data and error", name)
	}
	if err == nil && renamed[name] != "" {
		err = fmt.Errorf("operation %s is written %s", name, renamed[name])
	}
	return name, err
}

// eventType finds an event's type: its own, or that of the payload in which
// global.event wraps it.
func eventType(s source, event json.RawMessage) (string, error) {
	if len(event) == 0 || event[0] != '{' {
		return "", errors.New("event is no object")
	}
	if v := valueAt(event, "type"); len(v) > 2 && v[0] == '"' && bytes.IndexByte(v, '\\') < 0 {
		return s.text(v), nil
	}
	for _, path := range []string{"type", "payload.type"} {
		if v := gjson.GetBytes(event, path); v.Type == gjson.String && v.Str != "" {
			return v.Str, nil
		}
	}
	return "", errors.New("event without a type")
}

// labelOpenCode tells the events apart that begin and end work:
// `session.status/idle`, `message.updated/completed` for the message of an
// assistant that has its end, `message.part.updated/running` for a tool call.
func labelOpenCode(f Frame) string {
	switch f.Method {
	case "session.status":
		if status := gjson.GetBytes(f.Raw, "event.properties.status.type").Str; status != "" {
			return f.Method + "/" + status
		}
	case "message.updated":
		if gjson.GetBytes(f.Raw, "event.properties.info.time.completed").Exists() {
			return f.Method + "/completed"
		}
	case "message.part.updated":
		if status := gjson.GetBytes(f.Raw, "event.properties.part.state.status").Str; status != "" {
			return f.Method + "/" + status
		}
	}
	return f.Method
}

// openCodeStream answers what opens an event stream; no other call is
// answered unless the transcript says how.
func openCodeStream(request Frame) json.RawMessage {
	if r := routes().byName[request.Method]; r == nil || r.answer != eventStream {
		return nil
	}
	return bytes.Join([][]byte{[]byte(`{"type":"sdk.response","operation":`), quote(request.Method), {'}'}}, nil)
}

// refuseOpenCode is how the server says that something went wrong inside it.
func refuseOpenCode(request Frame, message string) []byte {
	if request.ID == nil {
		return nil // unreachable unless called for something else than a request
	}
	body := append([]byte(`{"name":"UnknownError","data":{"message":`), quote(strings.ToValidUTF8(message, "\uFFFD"))...)
	m := HTTPMessage{
		ID: string(request.ID), Status: 500, Body: append(body, "}}"...),
		Headers: []Header{{contentType, jsonType}},
	}
	return m.Append(nil)
}

// openCodeAddress reads the arguments of `opencode serve`.
func openCodeAddress(args []string) (string, error) {
	host, port, serve := "127.0.0.1", "0", len(args) == 0
	for i := 0; i < len(args); i++ {
		name, value, inline := strings.Cut(args[i], "=")
		switch name {
		case "serve":
			serve = true
		case "--hostname", "--port":
			if !inline && i+1 < len(args) {
				i++
				value = args[i]
			}
			if value == "" {
				return "", fmt.Errorf("%s without a value", name)
			}
			if name == "--port" {
				port = value
			} else {
				host = value
			}
		}
	}
	if !serve {
		return "", fmt.Errorf("this provider plays `opencode serve`, and was started with %q", args)
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + port, nil
}

// openCodeServe takes the address out of the arguments.
func openCodeServe(args []string) []string {
	var list []string
	for i := 0; i < len(args); i++ {
		name, _, inline := strings.Cut(args[i], "=")
		switch name {
		case "--hostname", "--port":
			if !inline {
				i++ // its value
			}
		default:
			list = append(list, args[i])
		}
	}
	if len(args) == 0 {
		list = append(list, "serve")
	}
	return append(list, "--hostname=127.0.0.1", "--port=0")
}

// openCodeVersion takes the version from a session.
func openCodeVersion(dir envelope.Direction, f Frame) string {
	if dir != envelope.In || f.Method != "session.create" && f.Method != "session.created" && f.Method != "session.get" {
		return ""
	}
	if version := gjson.GetBytes(f.Raw, "event.properties.info.version").Str; version != "" {
		return version
	}
	return gjson.GetBytes(f.Raw, "data.version").Str
}

// probeOpenCode takes the version from a session and the model from the
// message of an assistant.
func probeOpenCode(dir envelope.Direction, f Frame) map[string]string {
	if dir != envelope.In {
		return nil
	}
	facts := map[string]string{}
	switch f.Method {
	case "session.create", "session.created", "session.get":
		if v := openCodeVersion(dir, f); v != "" {
			facts["providerVersion"] = v
		}
	case "message.updated":
		info := gjson.GetBytes(f.Raw, "event.properties.info")
		if provider, model := info.Get("providerID").Str, info.Get("modelID").Str; model != "" {
			facts["model"] = strings.TrimPrefix(provider+"/"+model, "/")
		}
	}
	if len(facts) == 0 {
		return nil
	}
	return facts
}
