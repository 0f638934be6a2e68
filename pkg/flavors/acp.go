package flavors

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// ACP is the Agent Client Protocol on stdio: JSON-RPC 2.0, one message per
// line, both sides asking, in version 1 and the draft of version 2. A logical
// frame is
//
//	{"kind":"request","id":7,"method":"session/prompt","params":{…}}
//
// without "jsonrpc", and with an id only where a recorder wrote one.
// docs/flavor-acp.md lists all forms. Measured on seven agents.
var ACP = &Flavor{
	Providers:   acpProviders(),
	Protocol:    "acp.ndjson-jsonrpc",
	Metadata:    "acp",
	Transport:   Stdio,
	Classify:    fromBytes(classifyACP),
	OnTape:      fromTape(classifyACP),
	IDKey:       "id",
	CheckID:     checkACPID,
	NewCodec:    func(Launch) Codec { return newACPCodec() },
	Refusal:     refuseACP,
	VersionArgs: []string{"--version"},
	Label:       labelACP,
	Probe:       probeACP,
	Version:     acpVersion,
	Chosen: []Place{
		{envelope.Out, "terminal/create", "result.terminalId"},
		{envelope.Out, "mcp/connect", "result.connectionId"},
	},
	// In version 2 the response comes at once and ends no turn, so that this
	// holds there as well.
	Exclusive: []Place{{envelope.Out, "session/prompt", "params.sessionId"}},
	// A session's id is no reference: a client may bring one from an earlier
	// process with session/load or session/resume.
	References: []Place{
		{envelope.Out, "tool_call/cancel", "params.toolCallId"},
		{envelope.Out, "terminal/cancel", "params.terminalId"},
	},
	Streams: []Stream{{
		Dir: envelope.In, Method: "session/update", Path: "params.update.content.text",
		Key: []string{"params.sessionId", "params.update.sessionUpdate"},
	}},
	Threads: acpThreads,
	VendorText: []Place{
		{envelope.In, "session/update", "params.update.availableCommands.*.description"},
		{envelope.In, "session/update", "params.update.availableCommands.*.input.hint"},
		{envelope.In, "session/update", "params.update.availableCommands.*._meta.argumentHint"},
		{envelope.In, "session/update", "params.update._meta.availableSkillDetails.*.description"},
		{envelope.In, "session/update", "params.update._meta.availableSkillDetails.*.body"},
		{envelope.In, "*", "result.models.availableModels.*.description"},
		{envelope.In, "*", "result.modes.availableModes.*.description"},
		{envelope.In, "*", "result.configOptions.*.description"},
		{envelope.In, "*", "result.configOptions.*.options.*.description"},
	},
	// What a session offers, is called and has used is told beside its turns.
	States: []Place{
		{envelope.In, "available_commands_update", ""},
		{envelope.In, "config_option_update", ""},
		{envelope.In, "session_info_update", ""},
		{envelope.In, "usage_update", ""},
	},
	Volatile: []Place{
		{envelope.In, "*", "id"}, // a UUID with some agents
		{envelope.In, "*", "**.sessionId"},
		{envelope.In, "*", "**.parentSessionId"},
		{envelope.In, "*", "**.messageId"},
		{envelope.In, "*", "**.toolCallId"},
		{envelope.In, "*", "**.elicitationId"},
		{envelope.In, "*", "**.updatedAt"},
		{envelope.In, "*", "**.timestamp"},
		{envelope.In, "*", "**.startedAt"},
		{envelope.In, "*", "**.durationMs"},
		{envelope.In, "*", "**.totalDurationMs"},
		{envelope.In, "*", "**.qwen.session.recordId"},
		{envelope.In, "*", "**.qwenTranscript"},
		{envelope.In, "*", "**.qwen.branchPoint"},
		{envelope.In, "*", "**.turnId"},
		{envelope.In, "*", "**.sourceTurnId"},
		{envelope.In, "*", "**.promptId"},
		{envelope.In, "*", "**.agentId"},
		{envelope.In, "*", "**.runId"},
		{envelope.In, "*", "**.outputFile"},
		{envelope.In, "*", "**.rawOutput.pid"},
		{envelope.In, "*", "**.turn_id"},
		{envelope.In, "*", "**.process_id"},
		{envelope.In, "*", "**.started_at_ms"},
		{envelope.In, "*", "**.completed_at_ms"},
		{envelope.In, "*", "**.duration"},
		// With what the agent asked for itself, if that was answered in time.
		{envelope.In, "*", "**.quota.model_usage"},
		{envelope.In, "*", "**.cost.amount"},
		// The client's counter, and what it only echoes.
		{envelope.Out, "*", "id"},
		{envelope.Out, "*", "params.sessionId"},
		{envelope.Out, "*", "params.toolCallId"},
		{envelope.Out, "*", "params.requestId"},
	},
}

// classifyACP reads a logical frame.
func classifyACP(dir envelope.Direction, s source) (Frame, error) {
	m, err := readRPC(s, `"kind"`)
	f := Frame{Raw: s.raw, ID: m.id, Method: m.name}
	if err == nil {
		f.Kind, err = m.logicalKind(dir)
	}
	if err == nil && f.ID != nil {
		err = checkACPID(f.ID)
	}
	return f, err
}

// logicalKind says what a logical frame is, and whether it has the members of
// one.
func (m *rpc) logicalKind(dir envelope.Direction) (Kind, error) {
	kind := ""
	switch string(m.version) {
	case `"request"`:
		kind = "request"
	case `"notification"`:
		kind = "notification"
	case `"response"`:
		kind = "response"
	default:
		if len(m.version) > 0 && m.version[0] == '"' {
			kind = envelope.Unquote(m.version) // it may be escaped
		}
	}
	answered := m.result != nil || m.fault != nil
	switch kind {
	case "request", "notification":
		switch {
		case m.method == nil:
			return 0, fmt.Errorf("%s without a method", kind)
		case answered:
			return 0, fmt.Errorf("%s %s has a result or error", kind, m.name)
		case kind == "request":
			return Request, nil
		case m.id != nil:
			return 0, fmt.Errorf("notification %s has an id", m.name)
		}
		return Notification, nil
	case "response":
		switch {
		case m.params != nil:
			return 0, errors.New("a response has params")
		case (m.result != nil) == (m.fault != nil):
			return 0, errors.New("a response wants exactly one of result and error")
		case m.method == nil && dir == envelope.Out:
			return 0, errors.New("a client's response without a method answers nothing")
		case m.method == nil && m.id == nil && m.fault == nil:
			return 0, errors.New("a response without method and id wants an error")
		}
		return Response, nil
	}
	return 0, errors.New("kind: want request, notification or response")
}

// checkACPID accepts a string, an integer of 64 bits, and null.
func checkACPID(id json.RawMessage) error {
	if len(id) > 0 && id[0] == '"' || string(id) == "null" {
		return nil
	}
	if _, err := strconv.ParseInt(string(id), 10, 64); err == nil {
		return nil
	}
	return fmt.Errorf("request id %s: want a string, an integer of 64 bits or null", id)
}

// refuseACP answers a request with the JSON-RPC internal error code.
func refuseACP(request Frame, message string) []byte {
	if request.ID == nil {
		return nil // unreachable unless called for something else than a request
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":%s}}`,
		request.ID, envelope.AppendString(nil, message))
}

// labelACP calls a session update by its kind, and a state by its name too.
func labelACP(f Frame) string {
	if f.Method != "session/update" {
		return f.Method
	}
	update := gjson.GetBytes(f.Raw, "params.update")
	kind, state := update.Get("sessionUpdate").String(), update.Get("state").String()
	switch {
	case kind == "":
		return f.Method
	case kind == "state_update" && state != "":
		return kind + "/" + state
	}
	return kind
}

// acpVersion takes the agent's version from its answer to initialize.
func acpVersion(dir envelope.Direction, f Frame) string {
	if dir != envelope.In || f.Kind != Response || f.Method != "initialize" {
		return ""
	}
	result := gjson.GetBytes(f.Raw, "result")
	if version := result.Get("agentInfo.version").String(); version != "" { // of version 1
		return version
	}
	return result.Get("info.version").String() // of version 2
}

// probeACP takes the negotiated protocol version and the agent's own from the
// answer to initialize, and the model from a session's settings.
func probeACP(dir envelope.Direction, f Frame) map[string]string {
	if dir != envelope.In || f.Kind != Response {
		return nil
	}
	result := gjson.GetBytes(f.Raw, "result")
	facts := map[string]string{}
	put := func(key string, v gjson.Result) {
		if text := v.String(); text != "" && facts[key] == "" {
			facts[key] = text
		}
	}
	switch f.Method {
	case "initialize":
		put("protocolVersion", result.Get("protocolVersion"))
		if version := acpVersion(dir, f); version != "" {
			facts["providerVersion"] = version
		}
	case "session/new", "session/load", "session/resume", "session/fork":
		put("model", result.Get("models.currentModelId"))
		put("model", result.Get(`configOptions.#(category=="model").currentValue`))
	}
	return facts
}
