package flavors

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// permissionNames are the members of can_use_tool under the names that the
// SDK's permission callback has for them.
var permissionNames = [][2]string{
	{"permission_suggestions", "suggestions"},
	{"blocked_path", "blockedPath"},
	{"mcp_server", "mcpServer"},
	{"decision_reason", "decisionReason"},
	{"decision_reason_type", "decisionReasonType"},
	{"decision_reason_code", "decisionReasonCode"},
	{"server_policy_ask_only", "serverPolicyAskOnly"},
	{"display_name", "displayName"},
	{"default_to_no", "defaultToNo"},
	{"suppress_always_allow_rule", "suppressAlwaysAllowRule"},
	{"tool_use_id", "toolUseID"},
	{"agent_id", "agentID"},
	{"requires_user_interaction", "requiresUserInteraction"},
	{"server_prompt", "serverPrompt"},
	{"computer_folder", "computerFolder"},
	{"matched_ask_rule", "matchedAskRule"},
	{"classifier_approvable", "classifierApprovable"},
}

// hookNames and mcpNames are those of hook_callback and mcp_message.
var (
	hookNames = [][2]string{{"callback_id", "callbackID"}, {"tool_use_id", "toolUseID"}}
	mcpNames  = [][2]string{{"server_name", "server"}}
)

// rename returns o with the keys on one side of the table replaced by those on
// the other. ok is false when that gives one key twice.
func rename(o object, table [][2]string, from int) (renamed object, ok bool) {
	for _, m := range o {
		for _, pair := range table {
			if m.key == pair[from] {
				m.key = pair[1-from]
				break
			}
		}
		if renamed.get(m.key) != nil {
			return nil, false
		}
		renamed = append(renamed, m)
	}
	return renamed, true
}

// wireID returns the request_id on the wire for an id of frames: a string is
// itself, a number of the player becomes a UUID that counts up.
func wireID(dir envelope.Direction, id json.RawMessage) string {
	switch {
	case id[0] == '"':
		return envelope.Unquote(id)
	case dir == envelope.In:
		const zero = "00000000-0000-4000-8000-000000000000"
		return zero[:max(len(zero)-len(id), 24)] + string(id)
	}
	return string(id)
}

// requestID reads a message's own id.
func requestID(o object) (string, error) {
	id, ok := o.str("request_id")
	if o.get("request_id") == nil {
		return "", errors.New("control message without a request_id")
	}
	if !ok || id == "" {
		return "", fmt.Errorf("request_id %s: want a string that is not empty", o.get("request_id"))
	}
	return id, nil
}

// decodeControl reads a message of the control protocol.
func (c *claudeCodec) decodeControl(dir envelope.Direction, o object) (Frame, error) {
	switch typ, _ := o.str("type"); typ {
	case "control_request":
		return c.decodeRequest(dir, o)
	case "control_response":
		return c.decodeAnswer(dir, o)
	}
	id, err := requestID(o)
	if err != nil {
		return Frame{}, err
	}
	f := object{}
	switch call := c.of(dir).byWire[id]; {
	case dir == envelope.Out:
		f = f.withString("type", "query.cancel")
		if call != nil {
			f = f.withString("method", call.method)
		}
	case call != nil && call.toolUse != "":
		f = f.withString("type", "permission.aborted").withString("toolUseID", call.toolUse)
	case call != nil:
		f = f.withString("type", "control.aborted").withString("method", call.method)
	default:
		f = f.withString("type", "control.aborted")
	}
	if call := c.of(dir).byWire[id]; call != nil {
		call.done = true
	}
	return classifyClaude(dir, withWire(f, o.without("type", "request_id")).json())
}

// withWire keeps members of the wire that a frame has no place for.
func withWire(f, rest object) object {
	if len(rest) == 0 {
		return f
	}
	return f.with("wire", rest.json())
}

func (c *claudeCodec) decodeRequest(dir envelope.Direction, o object) (Frame, error) {
	id, err := requestID(o)
	if err != nil {
		return Frame{}, err
	}
	body, ok := o.inner("request")
	if !ok {
		return Frame{}, errors.New("control_request without a request, or with a member twice")
	}
	subtype, ok := body.str("subtype")
	if !ok || subtype == "" {
		return Frame{}, errors.New("control_request without a subtype")
	}
	var logical object
	if dir == envelope.Out {
		logical = c.clientRequest(subtype, body)
	} else {
		logical = providerRequest(subtype, body)
	}
	f, err := classifyClaude(dir, withWire(logical, o.without("type", "request_id", "request")).json())
	if err != nil {
		return f, err // unreachable: the frame was made here
	}
	call := claudeCall{id: quoted(id), wire: id, method: f.Method}
	if f.Method == "permission.request" && f.ID != nil {
		call.toolUse = envelope.Unquote(f.ID)
	}
	f.ID = call.id
	c.of(dir).add(call)
	return f, nil
}

// clientRequest is the frame of a client's control request.
func (c *claudeCodec) clientRequest(subtype string, body object) object {
	method := "query." + subtype
	switch {
	case subtype == "initialize" && !c.opened:
		c.opened = true
		return object{}.withString("type", "query.open").with("options", c.options(body))
	case subtype == "initialize":
		return object{}.withString("type", method).with("options", initializeOptions(body).json())
	case subtype == "open" || subtype == "cancel" || subtype == "request" || subtype == "response":
		return object{}.withString("type", "query.request").with("request", body.json())
	}
	rest := body.without("subtype")
	switch subtype {
	case "apply_flag_settings":
		rest = replace(rest, "settings", keptSettings(rest.get("settings")))
	case "mcp_set_servers":
		rest = replace(rest, "servers", names(rest.get("servers")))
	}
	if rest.get("type") != nil || rest.get("request") != nil || rest.get("wire") != nil {
		return object{}.withString("type", method).with("request", rest.json())
	}
	return append(object{}.withString("type", method), rest...)
}

// providerRequest is the frame of a control request of the provider. One that
// does not fit its own frame has the general one.
func providerRequest(subtype string, body object) object {
	rest, ok := body.without("subtype"), false
	switch subtype {
	case "can_use_tool":
		var options object
		if options, ok = rename(rest.without("tool_name", "input"), permissionNames, 0); ok && rest.get("tool_name") != nil && rest.get("input") != nil {
			return object{}.withString("type", "permission.request").with("toolName", rest.get("tool_name")).
				with("input", rest.get("input")).with("options", options.json())
		}
	case "hook_callback":
		if rest, ok = rename(rest, hookNames, 0); ok && fits(rest, "type", "wire") {
			return append(object{}.withString("type", "hook.request"), rest...)
		}
	case "mcp_message":
		if rest, ok = rename(rest, mcpNames, 0); ok && fits(rest, "type", "wire") {
			return append(object{}.withString("type", "mcp.request"), rest...)
		}
	}
	return object{}.withString("type", "control.request").with("request", body.json())
}

func fits(o object, reserved ...string) bool { return len(o.without(reserved...)) == len(o) }

// replace puts another value in a member's place, if there is one.
func replace(o object, key string, value json.RawMessage) object {
	o = append(object(nil), o...)
	for i := range o {
		if o[i].key == key {
			o[i].value = value
		}
	}
	return o
}

// encodeRequest is decodeRequest the other way round.
func (c *claudeCodec) encodeRequest(dir envelope.Direction, method, typ string, o object, id json.RawMessage) (json.RawMessage, error) {
	rest := o.without("type", "wire")
	var body object
	call := claudeCall{method: method}
	switch typ {
	case "query.open", "query.initialize":
		if string(o.get("initialize")) == "false" {
			c.opened = true
			c.of(dir).add(claudeCall{id: json.RawMessage(impliedID), method: method})
			return nil, nil
		}
		options, _ := rest.inner("options")
		body = append(body.withString("subtype", "initialize"), initializeOf(options, c.args)...)
		c.opened = true
	case "permission.request":
		options, _ := rest.inner("options")
		call.toolUse, _ = options.str("toolUseID")
		options, _ = rename(options, permissionNames, 1)
		body = body.withString("subtype", "can_use_tool").with("tool_name", o.get("toolName")).with("input", o.get("input"))
		body = append(body, options...)
	case "hook.request":
		rest, _ = rename(rest, hookNames, 1)
		body = append(body.withString("subtype", "hook_callback"), rest...)
	case "mcp.request":
		rest, _ = rename(rest, mcpNames, 1)
		body = append(body.withString("subtype", "mcp_message"), rest...)
	case "control.request", "query.request":
		body, _ = o.inner("request")
	default:
		if whole, ok := o.inner("request"); ok && !fits(whole, "type", "request", "wire") {
			rest = whole
		}
		if typ == "query.mcp_set_servers" {
			rest = replace(rest, "servers", unnames(rest.get("servers"), "{}"))
		}
		body = append(body.withString("subtype", typ[len("query."):]), rest...)
	}
	for _, m := range body {
		if m.value == nil {
			return nil, fmt.Errorf("%s lacks a member for %s", typ, m.key)
		}
	}
	if id == nil {
		id = strconv.AppendInt(nil, int64(c.of(dir).next), 10)
		c.of(dir).next++
	}
	call.id, call.wire = append(json.RawMessage(nil), id...), wireID(dir, id)
	c.of(dir).add(call)
	extra, _ := o.inner("wire")
	wire := object{}.withString("type", "control_request").withString("request_id", call.wire).with("request", body.json())
	return append(wire, extra...).json(), nil
}
