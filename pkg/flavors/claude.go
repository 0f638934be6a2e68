package flavors

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// Claude is the `claude` executable as the Agent SDK starts it: one JSON
// message per line and a control protocol with request_ids on the wire, the
// SDK's own query() boundary in transcripts. docs/flavor-claude.md lists the
// frames. Measured on Claude Code 2.1.332 and Agent SDK 0.3.332.
var Claude = &Flavor{
	Providers:   []string{"claude", "claudeAgent"},
	Protocol:    "claude-agent-sdk.query",
	Transport:   Stdio,
	Classify:    classifyClaude,
	OnTape:      fromTape(claudeFrame),
	CheckID:     checkScalarID,
	NewCodec:    func(l Launch) Codec { return newClaudeCodec(l) },
	Minimal:     minimalClaude,
	EndsAlone:   true,
	Refusal:     refuseClaude,
	VersionArgs: []string{"--version"},
	VersionLine: "%s (Claude Code)",
	Probe:       probeClaude,
	Version:     claudeVersion,
	Chosen: []Place{
		{envelope.Out, "query.open", "options.sessionId"},
		{envelope.Out, "prompt.offer", "message.uuid"},
	},
	References: []Place{
		{envelope.Out, "query.open", "options.resumeSessionAt"},
		{envelope.Out, "permission.request", "result.toolUseID"},
		{envelope.Out, "query.stop_task", "task_id"},
	},
	Streams: []Stream{claudeStream("text"), claudeStream("thinking"), claudeStream("partial_json")},
	Threads: claudeThreads,
	Volatile: []Place{
		{envelope.In, "*", "**.uuid"},
		{envelope.In, "*", "**.session_id"},
		{envelope.In, "*", "**.timestamp"},
		{envelope.In, "*", "**.user_message_uuid"},
		{envelope.In, "*", "**.user_message_uuids"},
		{envelope.In, "*", "**.command_uuid"},
		{envelope.In, "*", "**.request_id"},
		{envelope.In, "*", "**.prompt_id"},
		{envelope.In, "*", "**.pid"},
		// Places of the machine.
		{envelope.In, "*", "**.cwd"},
		{envelope.In, "*", "**.original_cwd"},
		{envelope.In, "*", "**.memory_paths"},
		{envelope.In, "*", "**.transcript_path"},
		{envelope.In, "*", "**.output_file"},
		{envelope.In, "*", "**.outputFile"},
		{envelope.In, "*", "**.messaging_socket_path"},
		// Clocks and durations.
		{envelope.In, "*", "**.duration_ms"},
		{envelope.In, "*", "**.duration_api_ms"},
		{envelope.In, "*", "**.thinking_duration_ms"},
		{envelope.In, "*", "**.totalDurationMs"},
		{envelope.In, "*", "**.ttft_ms"},
		{envelope.In, "*", "**.ttft_stream_ms"},
		{envelope.In, "*", "**.time_to_request_ms"},
		{envelope.In, "*", "**.first_content_frame_ms"},
		{envelope.In, "*", "**.request_sent_wall_ms"},
		{envelope.In, "*", "**.retry_delay_ms"},
		{envelope.In, "*", "**.end_time"},
		// Ids of models' messages, tasks and agents.
		{envelope.In, "*", "message.id"},
		{envelope.In, "*", "**.task_id"},
		{envelope.In, "*", "**.run_id"},
		{envelope.In, "*", "**.runId"},
		{envelope.In, "*", "**.agent_id"},
		{envelope.In, "*", "**.agentId"},
		{envelope.In, "*", "**.agentID"},
		// The client only chooses or echoes these.
		{envelope.Out, "*", "options.sessionId"},
		{envelope.Out, "*", "options.resume"},
		{envelope.Out, "*", "options.resumeSessionAt"},
		{envelope.Out, "*", "message.uuid"},
		{envelope.Out, "*", "user_message_id"},
	},
}

// claudeStream is a member of the deltas of a model's message, which whole
// messages end.
func claudeStream(member string) Stream {
	return Stream{
		Dir: envelope.In, Method: "stream_event", Path: "event.delta." + member,
		Key: []string{"parent_tool_use_id", "session_id", "event.index"}, Ends: [][2]string{{"assistant", "parent_tool_use_id"}},
	}
}

// claudeHead is what classification reads of a frame.
type claudeHead struct {
	typ, subtype, method, options, request, result json.RawMessage
	hasResponse, hasError                          bool
}

func (h *claudeHead) read(s source) error {
	raw := s.raw
	var twice bool
	ok, err := s.members(func(key, value []byte) error {
		switch string(unescaped(key)) {
		case `"type"`:
			twice = twice || h.typ != nil
			h.typ = value
		case `"subtype"`:
			h.subtype = value
		case `"method"`:
			h.method = value
		case `"options"`:
			h.options = value
		case `"request"`:
			h.request = value
		case `"result"`:
			h.result = value
		case `"response"`, `"output"`, `"message"`:
			h.hasResponse = true
		case `"error"`:
			h.hasError = true
		}
		return nil
	})
	switch {
	case err != nil:
		return err // unreachable: the callback gives none
	case !ok:
		return errors.New("not JSON")
	case raw[envelope.SkipSpace(raw, 0)] != '{':
		return errors.New("not a JSON object")
	case twice:
		return errors.New("two types in one frame")
	case len(h.typ) == 0 || h.typ[0] != '"' || len(h.typ) == 2:
		return errors.New("frame has no type")
	}
	return nil
}

// classifyClaude reads a logical frame by its type.
func classifyClaude(dir envelope.Direction, raw json.RawMessage) (Frame, error) {
	return claudeFrame(dir, source{raw: raw})
}

func claudeFrame(dir envelope.Direction, s source) (Frame, error) {
	f := Frame{Raw: s.raw}
	var h claudeHead
	if err := h.read(s); err != nil {
		return f, err
	}
	typ := s.text(h.typ)
	if dir == envelope.Out {
		return f, h.outbound(&f, typ)
	}
	return f, h.inbound(&f, typ)
}

func (h *claudeHead) outbound(f *Frame, typ string) error {
	f.Method = typ
	switch typ {
	case "prompt.offer", "environment.update", "host.message", "query.cancel":
	case "permission.response":
		f.Kind, f.Method = Response, "permission.request"
		if f.ID = textAt(h.result, "toolUseID"); (h.result != nil) == h.hasError {
			return errors.New("permission.response wants exactly one of result and error")
		}
	case "hook.response", "mcp.response":
		f.Kind, f.Method = Response, strings.TrimSuffix(typ, "response")+"request"
	case "control.response":
		f.Kind, f.Method = Response, genericMethod(h.subtype)
	case "session.fork":
		f.Kind = Request
	default:
		if !strings.HasPrefix(typ, "query.") || typ == "query." {
			return fmt.Errorf("outbound type %q: want query.open, prompt.offer, query.…, permission.response or another of the protocol's", typ)
		}
		f.Kind = Request
	}
	return nil
}

func (h *claudeHead) inbound(f *Frame, typ string) error {
	f.Method = typ
	switch typ {
	case "query.response":
		if len(h.method) < 3 || h.method[0] != '"' {
			return errors.New("query.response does not name the method it answers")
		}
		if h.hasResponse && h.hasError {
			return errors.New("query.response has both a response and an error")
		}
		f.Kind, f.Method = Response, envelope.Unquote(h.method)
	case "permission.request":
		f.Kind, f.ID = Request, textAt(h.options, "toolUseID")
	case "hook.request", "mcp.request":
		f.Kind = Request
	case "control.request":
		f.Kind, f.Method = Request, genericMethod(textAt(h.request, "subtype"))
	case "session.forked":
		f.Kind, f.Method = Response, "session.fork"
	case "permission.aborted", "control.aborted":
	case "control_request", "control_response", "control_cancel_request":
		return fmt.Errorf("%s is a message of the wire: want the frame it stands for", typ)
	default:
		if len(h.subtype) > 2 && h.subtype[0] == '"' {
			f.Method += "/" + envelope.Unquote(h.subtype)
		}
	}
	return nil
}

// genericMethod is the method of a request that has no frame of its own.
func genericMethod(subtype json.RawMessage) string {
	if len(subtype) < 2 || subtype[0] != '"' {
		return "control.request"
	}
	return "control.request/" + envelope.Unquote(subtype)
}

// textAt returns the literal of a string member; nil for anything else.
func textAt(object json.RawMessage, key string) json.RawMessage {
	if len(object) == 0 || object[0] != '{' {
		return nil
	}
	var text json.RawMessage
	_ = envelope.EachMember(object, func(k, value []byte) error {
		if value[0] == '"' && envelope.Unquote(k) == key {
			text = value
		}
		return nil
	})
	return text
}

// refuseClaude answers a control request with an error.
func refuseClaude(request Frame, message string) []byte {
	if len(request.ID) == 0 || request.ID[0] != '"' || string(request.ID) == impliedID {
		return nil
	}
	return fmt.Appendf(nil, `{"type":"control_response","response":{"subtype":"error","request_id":%s,"error":%s}}`, request.ID, quoted(message))
}

func claudeVersion(dir envelope.Direction, f Frame) string {
	if dir != envelope.In || f.Method != "system/init" {
		return ""
	}
	return gjson.GetBytes(f.Raw, "claude_code_version").Str
}

// probeClaude takes version and model from the session's first message.
func probeClaude(dir envelope.Direction, f Frame) map[string]string {
	switch {
	case dir == envelope.Out && f.Method == "query.open":
		return map[string]string{"optionsProjection": "full"}
	case dir == envelope.In && f.Method == "system/init":
		return map[string]string{
			"providerVersion": claudeVersion(dir, f),
			"model":           gjson.GetBytes(f.Raw, "model").Str,
		}
	}
	return nil
}
