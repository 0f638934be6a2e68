package model

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// dialect is how a test speaks one API.
type dialect struct {
	name string
	// request makes a path and a body. after is what follows the user message:
	// the call and so many results.
	request func(r ask) (path, body string)
	error   string // path of the message in an error
}

type ask struct {
	user    string
	results int
	tools   bool
	stream  bool
	most    int // tokens wanted; 0 means many
}

func (a ask) json(tools, most string) string {
	out := ""
	if a.tools {
		out += "," + tools
	}
	if a.most > 0 {
		out += fmt.Sprintf(`,%s`, fmt.Sprintf(most, a.most))
	}
	return out
}

var dialects = []dialect{
	{"responses", func(a ask) (string, string) {
		return "/v1/responses", fmt.Sprintf(`{"model":"m","stream":%t,"input":[{"role":"user","content":%q}%s]%s}`, a.stream, a.user,
			strings.Repeat(`,{"type":"function_call_output","output":"x"}`, a.results), a.json(`"tools":[{}]`, `"max_output_tokens":%d`))
	}, "error.message"},
	{"chat", func(a ask) (string, string) {
		return "/v1/chat/completions", fmt.Sprintf(`{"model":"m","stream":%t,"messages":[{"role":"system","content":"look"},{"role":"user","content":"cut"},{"role":"tool","content":"old"},`+
			`{"role":"user","content":[{"type":"text","text":%q},{"type":"text","text":"<reminder>cut</reminder>"}]},{"role":"assistant","tool_calls":[]}%s]%s}`, a.stream, a.user,
			strings.Repeat(`,{"role":"tool","content":"x"}`, a.results), a.json(`"tools":[{}],"stream_options":{"include_usage":true}`, `"max_tokens":%d`))
	}, "error.message"},
	{"messages", func(a ask) (string, string) {
		return "/v1/messages?beta=true", fmt.Sprintf(`{"model":"m","stream":%t,"messages":[{"role":"user","content":"cut"},`+
			`{"role":"user","content":[{"type":"text","text":"broken"},{"type":"text","text":%q},{"type":"text","text":"<system-reminder>cut</system-reminder>"}]},`+
			`{"role":"assistant","content":[]},{"role":"user","content":[%s]},{"role":"system","content":"hang"}]%s}`, a.stream, a.user,
			strings.TrimPrefix(strings.Repeat(`,{"type":"tool_result","content":"x"}`, a.results), ","), a.json(`"tools":[{}]`, `"max_tokens":%d`))
	}, "error.message"},
	{"gemini", func(a ask) (string, string) {
		method := "generateContent"
		if a.stream {
			method = "streamGenerateContent?alt=sse"
		}
		return "/v1beta/models/m:" + method, fmt.Sprintf(`{"systemInstruction":{"parts":[{"text":"hang"}]},"contents":[{"role":"user","parts":[{"text":"cut"},{"text":%q}]},{"role":"model","parts":[{"text":"look"}]},`+
			`{"role":"user","parts":[%s]}]%s}`, a.user,
			strings.TrimPrefix(strings.Repeat(`,{"functionResponse":{"name":"ls"}}`, a.results), ","), a.json(`"tools":[{"functionDeclarations":[{}]}]`, `"generationConfig":{"maxOutputTokens":%d}`))
	}, "error.message"},
}

func (c client) call(ctx context.Context, d dialect, a ask) *http.Response {
	c.t.Helper()
	path, body := d.request(a)
	if !gjson.Valid(body) {
		c.t.Fatalf("not JSON: %s", body)
	}
	c.url = strings.TrimSuffix(c.url, "/v1/responses") + path
	return c.post(ctx, body, "Authorization", "Bearer secret", "X-Api-Key", "secret", "X-Goog-Api-Key", "secret")
}

// say returns an answer in one line whatever the API: its texts, its calls
// and why it ends.
func (c client) say(d dialect, a ask) string {
	c.t.Helper()
	res := c.call(c.t.Context(), d, a)
	data, err := io.ReadAll(res.Body)
	if res.StatusCode != 200 {
		return fmt.Sprint(res.StatusCode, " ", gjson.GetBytes(data, d.error))
	}
	if err != nil {
		return "cut after " + strings.TrimSpace(told(d.name, eventsOf(c.t, string(data))))
	}
	if a.stream != strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		c.t.Errorf("%s: stream %t is answered as %s", d.name, a.stream, res.Header.Get("Content-Type"))
	}
	if !a.stream {
		return wholeOf(d.name, gjson.ParseBytes(data))
	}
	return strings.TrimSpace(told(d.name, eventsOf(c.t, string(data))))
}

// eventsOf checks the grammar of server-sent events and returns their data.
func eventsOf(t *testing.T, text string) (events []gjson.Result) {
	t.Helper()
	for block := range strings.SplitSeq(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		if block == "" {
			continue
		}
		lines := strings.Split(block, "\n")
		data, ok := strings.CutPrefix(lines[len(lines)-1], "data: ")
		if !ok || len(lines) > 2 {
			t.Errorf("no event: %q", block)
		}
		if data == "[DONE]" {
			continue
		}
		e := gjson.Parse(data)
		if !gjson.Valid(data) {
			t.Errorf("event data %q", data)
		}
		if len(lines) == 2 && lines[0] != "event: "+e.Get("type").Str {
			t.Errorf("%s with data of type %s", lines[0], e.Get("type").Str)
		}
		events = append(events, e)
	}
	return events
}

// told puts a stream together again.
func told(api string, events []gjson.Result) string {
	var b strings.Builder
	for _, e := range events {
		switch api {
		case "responses":
			switch strings.TrimPrefix(e.Get("type").Str, "response.") {
			case "reasoning_summary_text.delta":
				fmt.Fprintf(&b, "(%s)", e.Get("delta").Str)
			case "output_text.delta":
				b.WriteString(e.Get("delta").Str + "|")
			case "output_item.done":
				if i := e.Get("item"); i.Get("arguments").Exists() {
					fmt.Fprintf(&b, " %s %s %s", i.Get("call_id").Str, i.Get("name").Str, i.Get("arguments").Str)
				} else if i.Get("odd").Exists() {
					b.WriteString(i.Raw)
				}
			case "completed", "failed":
				b.WriteString(" " + e.Get("response.status").Str + e.Get("response.error.message").Str)
			}
		case "chat":
			delta := e.Get("choices.0.delta")
			if delta.Get("reasoning_content").Exists() {
				fmt.Fprintf(&b, "(%s)", delta.Get("reasoning_content").Str)
			}
			if text := delta.Get("content").Str; text != "" {
				b.WriteString(text + "|")
			}
			for _, call := range delta.Get("tool_calls").Array() {
				b.WriteString(strings.TrimRight(" "+call.Get("id").Str+" "+call.Get("function.name").Str, " ") + call.Get("function.arguments").Str)
			}
			if delta.Get("odd").Exists() {
				b.WriteString(delta.Raw)
			}
			b.WriteString(" " + e.Get("choices.0.finish_reason").Str + e.Get("error.message").Str)
			if n := e.Get("usage.total_tokens"); n.Exists() {
				b.WriteString(n.Raw)
			}
		case "messages":
			switch e.Get("type").Str {
			case "content_block_start":
				if block := e.Get("content_block"); block.Get("name").Exists() {
					fmt.Fprintf(&b, " %s %s ", block.Get("id").Str, block.Get("name").Str)
				} else if block.Get("odd").Exists() {
					b.WriteString(block.Raw)
				}
			case "content_block_delta":
				d := e.Get("delta")
				b.WriteString(d.Get("partial_json").Str)
				if d.Get("thinking").Exists() {
					fmt.Fprintf(&b, "(%s)", d.Get("thinking").Str)
				}
				if d.Get("text").Exists() {
					b.WriteString(d.Get("text").Str + "|")
				}
			case "message_delta":
				b.WriteString(" " + e.Get("delta.stop_reason").Str)
			case "error":
				b.WriteString(" " + e.Get("error.type").Str + e.Get("error.message").Str)
			}
		case "gemini":
			for _, part := range e.Get("candidates.0.content.parts").Array() {
				switch text, call := part.Get("text").Str, part.Get("functionCall"); {
				case part.Get("thought").Bool():
					fmt.Fprintf(&b, "(%s)", text)
				case text != "":
					b.WriteString(text + "|")
				case call.Exists():
					fmt.Fprintf(&b, " %s %s %s", call.Get("id").Str, call.Get("name").Str, call.Get("args").Raw)
				case part.Get("odd").Exists():
					b.WriteString(part.Raw)
				}
			}
			b.WriteString(" " + e.Get("candidates.0.finishReason").Str + e.Get("error.message").Str)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// wholeOf is the same of an answer that is not streamed.
func wholeOf(api string, v gjson.Result) string {
	paths := map[string][]string{
		"responses": {"status", "output.#.summary.0.text", "output.#.content.0.text", "output.#.call_id", "output.#.arguments"},
		"chat":      {"choices.0.finish_reason", "choices.0.message.reasoning_content", "choices.0.message.content", "choices.0.message.tool_calls.#.id", "choices.0.message.tool_calls.#.function.arguments"},
		"messages":  {"stop_reason", "content.#.thinking", "content.#.text", "content.#.id", "content.#.input"},
		"gemini":    {"candidates.0.finishReason", "candidates.0.content.parts.#.text", "candidates.0.content.parts.#.functionCall.id", "candidates.0.content.parts.#.functionCall.args"},
	}
	var parts []string
	for _, p := range paths[api] {
		parts = append(parts, v.Get(p).Raw)
	}
	return strings.Join(parts, " ")
}
