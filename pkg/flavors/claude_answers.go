package flavors

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// answerKeys names, for each kind of answer, the frame's member that holds the
// payload.
var answerKeys = map[string]string{
	"query.response":      "response",
	"permission.response": "result",
	"hook.response":       "output",
	"mcp.response":        "message",
	"control.response":    "response",
}

// answerType is the type of the frame that answers a method.
func answerType(dir envelope.Direction, method string) string {
	switch {
	case dir == envelope.In:
		return "query.response"
	case method == "permission.request":
		return "permission.response"
	case method == "hook.request":
		return "hook.response"
	case method == "mcp.request":
		return "mcp.response"
	}
	return "control.response"
}

func (c *claudeCodec) decodeAnswer(dir envelope.Direction, o object) (Frame, error) {
	in, ok := o.inner("response")
	if !ok {
		return Frame{}, errors.New("control_response without a response, or with a member twice")
	}
	id, err := requestID(in)
	if err != nil {
		return Frame{}, err
	}
	call := c.of(dir.Opposite()).byWire[id]
	if call == nil && dir == envelope.In {
		return Frame{}, fmt.Errorf("control_response to request_id %q, which the client has not sent", id)
	}
	method := "control.request"
	if call != nil {
		method = call.method
	}
	typ := answerType(dir, method)
	f := object{}.withString("type", typ)
	switch typ {
	case "query.response":
		f = f.withString("method", method)
	case "control.response":
		if len(method) > len("control.request/") {
			f = f.withString("subtype", method[len("control.request/"):])
		}
	}
	switch outcome, _ := in.str("subtype"); outcome {
	case "success":
		f = payload(f, typ, method, in.get("response"))
	case "error":
		if in.get("error") == nil {
			return Frame{}, errors.New("control_response is an error without one")
		}
		f = f.with("error", in.get("error"))
	default:
		return Frame{}, fmt.Errorf("control_response of subtype %s: want success or error", in.get("subtype"))
	}
	for _, m := range in.without("subtype", "request_id", "response", "error") {
		if f.get(m.key) != nil || m.key == "wire" || m.key == answerKeys[typ] {
			return Frame{}, fmt.Errorf("control_response with a member %q", m.key)
		}
		f = append(f, m)
	}
	raw := withWire(f, o.without("type", "response")).json()
	if call == nil {
		return Frame{Kind: Response, Method: method, ID: quoted(id), Raw: raw}, nil
	}
	call.done = true
	answer, err := classifyClaude(dir, raw)
	answer.ID = call.id
	return answer, err
}

// payload adds what a successful answer says. Some say nothing.
func payload(f object, typ, method string, value json.RawMessage) object {
	switch {
	case typ == "permission.response" && value == nil:
		value = json.RawMessage("null")
	case value == nil:
		return f
	case typ == "mcp.response":
		in, err := readObject(value)
		if err != nil || len(in) != 1 || in.get("mcp_response") == nil {
			return f.with("response", value)
		}
		value = in.get("mcp_response")
	case typ == "query.response" && method == "query.open":
		value = trimmed(value, false)
	}
	return f.with(answerKeys[typ], value)
}

// encodeAnswer is decodeAnswer the other way round.
func (c *claudeCodec) encodeAnswer(dir envelope.Direction, method, typ string, o object, id json.RawMessage) (json.RawMessage, error) {
	asked := c.of(dir.Opposite())
	call := asked.answer(id, method)
	if call == nil && method == "permission.request" {
		call = asked.answer(nil, method) // the frame's own id is no request's
	}
	switch {
	case call == nil:
		return nil, fmt.Errorf("%s answers no request of %s", typ, method)
	case call.wire == "":
		call.done = true
		return nil, nil // to a query.open that no initialize carried
	}
	call.done = true
	outcome, key := "success", answerKeys[typ]
	if o.get("error") != nil {
		outcome = "error"
	}
	in := object{}.withString("subtype", outcome).withString("request_id", call.wire)
	switch value := o.get(key); {
	case typ == "mcp.response" && value != nil:
		in = in.with("response", object{}.with("mcp_response", value).json())
	case typ == "mcp.response" && o.get("response") != nil:
		in = in.with("response", o.get("response"))
	case value != nil:
		in = in.with("response", value)
	}
	in = append(in, o.without("type", "method", "subtype", "wire", "response", key)...)
	extra, _ := o.inner("wire")
	wire := object{}.withString("type", "control_response").with("response", in.json())
	return append(wire, extra...).json(), nil
}

// trimmedText stands in recorded answers for text that is the vendor's or tells
// who the user is.
const trimmedText = "[trimmed]"

// trimmed returns an answer to initialize without the vendor's prose and the
// account's particulars.
func trimmed(raw json.RawMessage, account bool) json.RawMessage {
	switch raw[0] {
	case '[':
		out := []byte{'['}
		gjson.ParseBytes(raw).ForEach(func(_, v gjson.Result) bool {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(out, trimmed(json.RawMessage(v.Raw), account)...)
			return true
		})
		return append(out, ']')
	case '{':
		o, err := readObject(raw)
		if err != nil {
			return raw
		}
		for i, m := range o {
			if m.value[0] == '"' && len(m.value) > 2 && trims(m.key, account) {
				o[i].value = quoted(trimmedText)
			} else {
				o[i].value = trimmed(m.value, account || m.key == "account")
			}
		}
		return o.json()
	}
	return raw
}

func trims(key string, account bool) bool {
	switch key {
	case "description", "argumentHint", "whenToUse":
		return true
	case "apiKeySource", "apiProvider", "subscriptionType", "tokenSource":
		return false
	}
	return account
}

// minimalClaude is the least that the SDK accepts as the answer to a control
// request. Where it reads a value, it is the one asked for.
func minimalClaude(request Frame) json.RawMessage {
	response := object{}
	asked := func(key string) {
		if v := gjson.GetBytes(request.Raw, key); v.Exists() {
			response = response.with(key, json.RawMessage(v.Raw))
		}
	}
	none := json.RawMessage("[]")
	switch request.Method {
	case "session.fork":
		return nil
	case "query.open", "query.initialize":
		styles := list([]string{"default"})
		response = response.with("commands", none).with("agents", none).withString("output_style", "default").
			with("available_output_styles", styles).with("models", none).with("account", []byte("{}"))
	case "query.interrupt":
		response = response.with("still_queued", none)
	case "query.set_model":
		asked("model")
	case "query.set_permission_mode":
		asked("mode")
	case "query.mcp_status":
		response = response.with("mcpServers", none)
	case "query.rewind_files":
		response = response.with("canRewind", []byte("false"))
	case "query.set_max_thinking_tokens", "query.apply_flag_settings", "query.rename_session", "query.end_session":
		response = nil
	}
	f := object{}.withString("type", "query.response").withString("method", request.Method)
	if response != nil {
		f = f.with("response", response.json())
	}
	return f.json()
}
