package model

import (
	"fmt"
	"net/http"

	"github.com/tidwall/gjson"
)

// OpenAI Chat Completions. All text of a reply is one message; its calls
// follow it. A stream is nameless chunks and ends in [DONE].

func readChat(_ *http.Request, req gjson.Result) (prompt, error) {
	p := prompt{
		model: req.Get("model").Str, stream: req.Get("stream").Bool(),
		usage: req.Get("stream_options.include_usage").Bool(),
	}
	p.tools = len(req.Get("tools").Array()) > 0
	p.probe = req.Get("max_tokens").Int() == 1 || req.Get("max_completion_tokens").Int() == 1
	for _, m := range req.Get("messages").Array() {
		switch m.Get("role").Str {
		case "user":
			p.hear(messageText(m.Get("content")))
		case "tool":
			p.toolResults++
		}
	}
	return p, nil
}

// failOpenAI is the form of OpenAI's errors.
func failOpenAI(_ int, code, message, _ string) any {
	return map[string]any{"error": map[string]any{"message": message, "type": code, "code": code, "param": nil}}
}

// chat writes one completion.
type chat struct {
	s      *stream
	p      prompt
	text   string
	reason string
	calls  []any
}

func replyChat(s *stream, p prompt, r *Reply) {
	c := &chat{s: s, p: p}
	c.delta(map[string]any{"role": "assistant", "content": ""}, nil)
	for i, it := range r.Items {
		switch {
		case s.between(it):
		case it.Failed != nil:
			if s.whole {
				s.failWhole(it.Failed)
			} else {
				s.send("", failOpenAI(0, it.Failed.Code, it.Failed.Message, ""))
			}
			return
		default:
			c.item(it, fmt.Sprintf("%s_%d", s.id, i+1))
		}
		if s.gone {
			return
		}
	}
	c.end()
}

func (c *chat) item(it Item, id string) {
	switch {
	case it.Text != nil:
		c.s.pieces(it.Text, func(delta string) {
			c.text += delta
			c.delta(map[string]any{"content": delta}, nil)
		})
	case it.Reasoning != "":
		c.reason += it.Reasoning
		c.delta(map[string]any{"reasoning_content": it.Reasoning}, nil)
	case it.Call != nil:
		call := func(arguments string) map[string]any {
			return map[string]any{
				"id": callID(it.Call, "call_", id), "type": "function",
				"function": map[string]any{"name": it.Call.Name, "arguments": arguments},
			}
		}
		head := call("")
		head["index"] = len(c.calls)
		c.delta(map[string]any{"tool_calls": []any{head}}, nil)
		c.delta(map[string]any{"tool_calls": []any{map[string]any{
			"index": len(c.calls), "function": map[string]any{"arguments": it.Call.Input},
		}}}, nil)
		c.calls = append(c.calls, call(it.Call.Input))
	default: // a delta of the API's own
		c.delta(it.Raw, nil)
	}
}

func (c *chat) head(object string) map[string]any {
	return map[string]any{"id": "chatcmpl-" + c.s.id, "object": object, "created": created, "model": c.p.model}
}

func (c *chat) delta(delta any, finish any) {
	v := c.head("chat.completion.chunk")
	v["choices"] = []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}
	if c.p.usage {
		v["usage"] = nil
	}
	c.s.send("", v)
}

func (c *chat) end() {
	finish := "stop"
	message := map[string]any{"role": "assistant", "content": c.text}
	if c.reason != "" {
		message["reasoning_content"] = c.reason
	}
	if c.calls != nil {
		finish = "tool_calls"
		message["tool_calls"] = c.calls
		if c.text == "" {
			message["content"] = nil
		}
	}
	usage := map[string]any{"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
	c.delta(map[string]any{}, finish)
	if c.p.usage {
		v := c.head("chat.completion.chunk")
		v["choices"], v["usage"] = []any{}, usage
		c.s.send("", v)
	}
	c.s.raw("data: [DONE]\n\n")
	v := c.head("chat.completion")
	v["choices"], v["usage"] = []any{map[string]any{"index": 0, "message": message, "finish_reason": finish}}, usage
	c.s.finish(v)
}
