package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/tidwall/gjson"
)

// Anthropic Messages. Each item is a content block: started, filled with
// deltas, stopped. message_delta tells why the message ends, message_stop ends
// the stream.

// readMessages takes every text block of a user message for a message of its
// own. A prompt whose answer failed stands in one message with the next one,
// and a message sent while tools run in one with their results; the last of
// them is what is asked. Messages in the name of the system don't count.
func readMessages(_ *http.Request, req gjson.Result) (prompt, error) {
	p := prompt{model: req.Get("model").Str, stream: req.Get("stream").Bool()}
	p.tools = len(req.Get("tools").Array()) > 0
	p.probe = req.Get("max_tokens").Int() == 1
	for _, m := range req.Get("messages").Array() {
		if m.Get("role").Str != "user" {
			continue
		}
		content := m.Get("content")
		if content.Type == gjson.String {
			p.hear(content.Str)
		}
		for _, block := range content.Array() {
			switch block.Get("type").Str {
			case "text":
				p.hear(block.Get("text").Str)
			case "tool_result":
				p.toolResults++
			}
		}
	}
	return p, nil
}

// failMessages is the form of Anthropic's errors. Their type follows from the
// status where the script names none.
func failMessages(status int, code, message, id string) any {
	kind := map[int]string{
		400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
		413: "request_too_large", 429: "rate_limit_error", 529: "overloaded_error",
	}[status]
	return map[string]any{
		"type": "error", "request_id": "req_" + id,
		"error": map[string]any{"type": cmp.Or(code, kind, "api_error"), "message": message},
	}
}

// message writes one message.
type message struct {
	s       *stream
	content []any // the blocks that are done
	stop    string
}

func replyMessages(s *stream, p prompt, r *Reply) {
	m := &message{s: s, content: []any{}, stop: "end_turn"}
	usage := map[string]any{"input_tokens": 100, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
	whole := map[string]any{
		"id": "msg_" + s.id, "type": "message", "role": "assistant", "model": p.model,
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": usage,
	}
	m.event("message_start", map[string]any{"message": whole})
	for i, it := range r.Items {
		switch {
		case s.between(it):
		case it.Failed != nil:
			if s.whole {
				s.failWhole(it.Failed)
			} else {
				s.send("error", failMessages(0, it.Failed.Code, it.Failed.Message, s.id))
			}
			return
		default:
			m.item(it, fmt.Sprintf("%s_%d", s.id, i+1))
		}
		if s.gone {
			return
		}
	}
	m.event("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": m.stop, "stop_sequence": nil},
		"usage": map[string]any{"output_tokens": 10},
	})
	m.event("message_stop", map[string]any{})
	usage["output_tokens"], whole["content"], whole["stop_reason"] = 10, m.content, m.stop
	s.finish(whole)
}

func (m *message) event(kind string, fields map[string]any) {
	fields["type"] = kind
	m.s.send(kind, fields)
}

func (m *message) item(it Item, id string) {
	switch {
	case it.Text != nil:
		m.start(map[string]any{"type": "text", "text": ""})
		whole, ok := m.s.pieces(it.Text, func(delta string) { m.delta("text_delta", "text", delta) })
		if ok {
			m.end(map[string]any{"type": "text", "text": whole})
		}
	case it.Reasoning != "":
		m.start(map[string]any{"type": "thinking", "thinking": "", "signature": ""})
		m.delta("thinking_delta", "thinking", it.Reasoning)
		m.delta("signature_delta", "signature", signature)
		m.end(map[string]any{"type": "thinking", "thinking": it.Reasoning, "signature": signature})
	case it.Call != nil:
		m.stop = "tool_use"
		block := func(input any) map[string]any {
			return map[string]any{"type": "tool_use", "id": callID(it.Call, "toolu_", id), "name": it.Call.Name, "input": input}
		}
		m.start(block(map[string]any{}))
		m.delta("input_json_delta", "partial_json", it.Call.Input)
		m.end(block(json.RawMessage(it.Call.Input)))
	default: // a block of the API's own
		m.start(it.Raw)
		m.end(it.Raw)
	}
}

// signature stands for that of every thinking block.
const signature = "c2NyaXB0ZWQ="

func (m *message) start(block any) {
	m.event("content_block_start", map[string]any{"index": len(m.content), "content_block": block})
}

func (m *message) delta(kind, field, value string) {
	m.event("content_block_delta", map[string]any{
		"index": len(m.content), "delta": map[string]any{"type": kind, field: value},
	})
}

func (m *message) end(block any) {
	m.event("content_block_stop", map[string]any{"index": len(m.content)})
	m.content = append(m.content, block)
}
