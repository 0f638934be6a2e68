package model

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"
)

// The OpenAI Responses API. An item is announced, its deltas follow, and
// output_item.done closes it; response.completed ends the stream and carries
// the response's id.

// agentHeader names the subagent that a request is made for.
const agentHeader = "X-Openai-Subagent"

// created stands for the time of every response.
const created = 1735689600

func readResponses(r *http.Request, req gjson.Result) (prompt, error) {
	p := prompt{model: req.Get("model").Str, stream: req.Get("stream").Bool()}
	p.agent = r.Header.Get(agentHeader)
	p.tools = len(req.Get("tools").Array()) > 0
	p.probe = req.Get("max_output_tokens").Int() == 1
	input := req.Get("input")
	if input.Type == gjson.String {
		p.user = input.Str
		return p, nil
	}
	for _, item := range input.Array() {
		kind := item.Get("type").Str
		switch {
		case item.Get("role").Str == "user" && (kind == "" || kind == "message"):
			p.hear(messageText(item.Get("content")))
		case kind == "agent_message" && p.agent != "" && strings.Contains(item.Get("content.0.text").Str, "NEW_TASK"):
			// What a subagent is asked comes from its parent, not from the user.
			p.hear(item.Get(`content.#(type=="encrypted_content").encrypted_content`).Str)
		case strings.HasSuffix(kind, "_output"):
			p.toolResults++
		}
	}
	return p, nil
}

func streamResponses(s *stream, p prompt, r *Reply) {
	response := func(status string, more map[string]any) map[string]any {
		v := map[string]any{
			"id": "resp_" + s.id, "object": "response", "created_at": created,
			"model": p.model, "status": status, "output": []any{},
		}
		for k, x := range more {
			v[k] = x
		}
		return map[string]any{"response": v}
	}
	s.event("response.created", response("in_progress", nil))
	output := []any{}
	for i, it := range r.Items {
		id := fmt.Sprintf("%s_%d", s.id, i+1)
		o := outputItem{s: s, index: len(output), id: id}
		switch {
		case s.between(it):
			continue
		case it.Failed != nil:
			if s.whole {
				s.failWhole(it.Failed)
				return
			}
			s.event("response.failed", response("failed", map[string]any{
				"error": map[string]any{"code": it.Failed.Code, "message": it.Failed.Message},
			}))
			return
		case it.Text != nil:
			output = append(output, o.message(it))
		case it.Reasoning != "":
			output = append(output, o.reasoning(it.Reasoning))
		case it.Call != nil:
			output = append(output, o.call(it.Call))
		default:
			output = append(output, o.raw(it.Raw))
		}
		if s.gone {
			return
		}
	}
	done := response("completed", map[string]any{
		"output": output,
		"usage": map[string]any{
			"input_tokens": 100, "input_tokens_details": map[string]any{"cached_tokens": 0},
			"output_tokens": 10, "output_tokens_details": map[string]any{"reasoning_tokens": 0},
			"total_tokens": 110,
		},
	})
	s.event("response.completed", done)
	s.finish(done["response"])
}

// outputItem streams one item of a response.
type outputItem struct {
	s     *stream
	index int
	id    string
}

func (o outputItem) event(kind string, fields map[string]any) {
	fields["output_index"] = o.index
	o.s.event(kind, fields)
}

// item is the item as it is announced, or as it is done.
func item(kind, id string, more map[string]any) map[string]any {
	v := map[string]any{"type": kind, "id": id}
	for k, x := range more {
		v[k] = x
	}
	return v
}

func (o outputItem) done(v any) any {
	o.event("response.output_item.done", map[string]any{"item": v})
	return v
}

func (o outputItem) message(it Item) any {
	id := "msg_" + o.id
	build := func(status string, content []any) map[string]any {
		v := item("message", id, map[string]any{"role": "assistant", "status": status, "content": content})
		if it.Phase != "" {
			v["phase"] = it.Phase
		}
		return v
	}
	part := func(text string) map[string]any {
		return map[string]any{"type": "output_text", "text": text, "annotations": []any{}}
	}
	o.event("response.output_item.added", map[string]any{"item": build("in_progress", []any{})})
	o.event("response.content_part.added", map[string]any{"item_id": id, "content_index": 0, "part": part("")})
	whole, ok := o.s.pieces(it.Text, func(delta string) {
		o.event("response.output_text.delta", map[string]any{"item_id": id, "content_index": 0, "delta": delta})
	})
	if !ok {
		return nil
	}
	o.event("response.output_text.done", map[string]any{"item_id": id, "content_index": 0, "text": whole})
	o.event("response.content_part.done", map[string]any{"item_id": id, "content_index": 0, "part": part(whole)})
	return o.done(build("completed", []any{part(whole)}))
}

func (o outputItem) reasoning(text string) any {
	id := "rs_" + o.id
	part := func(text string) map[string]any { return map[string]any{"type": "summary_text", "text": text} }
	at := func(more map[string]any) map[string]any {
		more["item_id"], more["summary_index"] = id, 0
		return more
	}
	o.event("response.output_item.added", map[string]any{"item": item("reasoning", id, map[string]any{"summary": []any{}})})
	o.event("response.reasoning_summary_part.added", at(map[string]any{"part": part("")}))
	o.event("response.reasoning_summary_text.delta", at(map[string]any{"delta": text}))
	o.event("response.reasoning_summary_text.done", at(map[string]any{"text": text}))
	o.event("response.reasoning_summary_part.done", at(map[string]any{"part": part(text)}))
	return o.done(item("reasoning", id, map[string]any{"summary": []any{part(text)}}))
}

// call streams a function call or a custom tool call: they differ in names.
func (o outputItem) call(c *Call) any {
	kind, prefix, field, delta := "function_call", "fc_", "arguments", "response.function_call_arguments"
	if c.Custom {
		kind, prefix, field, delta = "custom_tool_call", "ctc_", "input", "response.custom_tool_call_input"
	}
	id := prefix + o.id
	build := func(status, input string) map[string]any {
		v := item(kind, id, map[string]any{"call_id": callID(c, "call_", o.id), "name": c.Name, field: input, "status": status})
		if c.Namespace != "" {
			v["namespace"] = c.Namespace
		}
		return v
	}
	o.event("response.output_item.added", map[string]any{"item": build("in_progress", "")})
	o.event(delta+".delta", map[string]any{"item_id": id, "delta": c.Input})
	o.event(delta+".done", map[string]any{"item_id": id, field: c.Input})
	return o.done(build("completed", c.Input))
}

func (o outputItem) raw(v json.RawMessage) any {
	o.event("response.output_item.added", map[string]any{"item": v})
	return o.done(v)
}
