package model

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// neutral is one script for all APIs.
const neutral = `
replies:
  - name: look
    when: {user: look}
    items:
      - reasoning: Think.
      - {text: "I look.", chunks: 2}
      - call: {name: ls, arguments: {dir: "<a>"}}
      - call: {name: cat, arguments: {}, id: mine}
  - name: done
    when: {user: look, toolResults: 2}
    items: [{text: "Two files."}]
  - {name: title, when: {tools: false}, items: [{text: A title}]}
  - {name: limit, when: {user: limited}, error: {status: 429, message: slow down, headers: {Retry-After: "7"}}}
  - {name: broken, when: {user: broken}, items: [{text: so far}, {failed: {message: oh}}]}
  - {name: cut, when: {user: cut}, items: [{text: [one, {cut: true}, two]}]}
  - {name: hang, when: {user: hang}, items: [{text: [begin, {hold: never}]}]}
  - {name: gone, when: {user: Hi, probe: true}, error: {status: 404, message: no such model}}
  - {name: custom, when: {user: patch}, items: [{custom: {name: apply_patch, input: x}}]}
  - {name: raw, when: {user: raw}, items: [{raw: {odd: 1}}]}
`

func TestEveryAPI(t *testing.T) {
	user := func(text string) ask { return ask{user: text, tools: true, stream: true} }
	results := ask{user: "look", results: 2, tools: true, stream: true}
	whole := ask{user: "look", tools: true}
	steps := []struct {
		name string
		ask  ask
		want [4]string // responses, chat, messages, gemini
	}{
		{"calls", user("look"), [4]string{
			`(Think.)I l|ook.| call_look_3 ls {"dir":"<a>"} mine cat {} completed`,
			`(Think.) I l| ook.| call_look_3 ls {"dir":"<a>"} mine cat {} tool_calls 110`,
			`(Think.)I l|ook.| toolu_look_3 ls {"dir":"<a>"} mine cat {} tool_use`,
			`(Think.) I l| ook.| call_look_3 ls {"dir":"<a>"} mine cat {} STOP`,
		}},
		{"whole", whole, [4]string{
			`"completed" ["Think."] ["I look."] ["call_look_2_3","mine"] ["{\"dir\":\"<a>\"}","{}"]`,
			`"tool_calls" "Think." "I look." ["call_look_2_3","mine"] ["{\"dir\":\"<a>\"}","{}"]`,
			`"tool_use" ["Think."] ["I look."] ["toolu_look_2_3","mine"] [{"dir":"<a>"},{}]`,
			`"STOP" ["Think.","I look."] ["call_look_2_3","mine"] [{"dir":"<a>"},{}]`,
		}},
		{"after the results", results, [4]string{"Two files.| completed", "Two files.| stop 110", "Two files.| end_turn", "Two files.| STOP"}},
		{"without tools", ask{user: "look", stream: true}, [4]string{"A title| completed", "A title| stop", "A title| end_turn", "A title| STOP"}},
		{"a probe", ask{user: "anything", most: 1}, [4]string{
			`"completed" [] ["ok"] [] []`, `"stop"  "ok"  `, `"end_turn" [] ["ok"] [] []`, `"STOP" ["ok"] [] []`,
		}},
		{"a scripted probe", ask{user: "Hi", most: 1}, [4]string{"404 no such model", "404 no such model", "404 no such model", "404 no such model"}},
		{"an error", user("limited"), [4]string{"429 slow down", "429 slow down", "429 slow down", "429 slow down"}},
		{"a failing stream", user("broken"), [4]string{"so far| failedoh", "so far| oh", "so far| api_erroroh", "so far| oh"}},
		{"a failing whole", ask{user: "broken", tools: true}, [4]string{"500 oh", "500 oh", "500 oh", "500 oh"}},
		{"a cut", user("cut"), [4]string{"cut after one|", "cut after one|", "cut after one|", "cut after one|"}},
		{"the API's own", user("raw"), [4]string{`{"odd":1} completed`, `{"odd":1} stop 110`, `{"odd":1} end_turn`, `{"odd":1} STOP`}},
	}
	for i, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			_, c := serve(t, neutral, nil, func(s string) { t.Error(s) })
			for _, s := range steps {
				if diff := cmp.Diff(squeeze(s.want[i]), squeeze(c.say(d, s.ask))); diff != "" {
					t.Errorf("%s (-want +got):\n%s", s.name, diff)
				}
			}
		})
	}
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

// A hang lasts until the client goes; goleak tells that it ended.
func TestHangEverywhere(t *testing.T) {
	for _, d := range dialects {
		_, c := serve(t, neutral, nil, nil)
		ctx, cancel := context.WithCancel(t.Context())
		res := c.call(ctx, d, ask{user: "hang", tools: true, stream: true})
		gone := time.AfterFunc(100*time.Millisecond, cancel)
		data, err := io.ReadAll(res.Body)
		gone.Stop()
		cancel()
		if err == nil || !strings.Contains(string(data), "begin") {
			t.Errorf("%s: %s, %v", d.name, data, err)
		}
	}
}

// What nothing is for is told in the API's own form, and logged.
func TestRefusals(t *testing.T) {
	for _, d := range dialects {
		var log bytes.Buffer
		var notes []string
		_, c := serve(t, neutral, &log, func(s string) { notes = append(notes, s) })
		got := []string{c.say(d, ask{user: "else", tools: true, stream: true}), c.say(d, ask{user: "patch", tools: true, stream: true})}
		want := []string{
			`500 scripted model: no reply for user message "else" with 0 tool results`,
			`500 scripted model: reply custom has a custom or namespaced call, which only the Responses API has`,
		}
		if d.name == "responses" {
			got, want = got[:1], want[:1]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", d.name, diff)
		}
		if len(notes) != len(want) {
			t.Errorf("%s: notes %q", d.name, notes)
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		path, _ := d.request(ask{stream: true})
		path, _, _ = strings.Cut(path, "?")
		if len(lines) != 2 || gjson.Get(lines[0], "path").Str != path || !strings.Contains(gjson.Get(lines[0], "error").Str, "no reply") {
			t.Errorf("%s: log\n%s", d.name, log.String())
		}
		if strings.Contains(log.String(), "secret") {
			t.Errorf("%s: the log holds a credential", d.name)
		}
	}
}

// Retries and side requests do not eat replies: the second attempt of a point
// is counted for that point alone.
func TestSideRequestsEatNothing(t *testing.T) {
	const script = `
replies:
  - {when: {user: go, attempt: 1}, error: {status: 529, message: busy}}
  - {when: {user: go, attempt: 2}, items: [{text: second}]}
  - {when: {tools: false}, items: [{text: title}]}
`
	for _, d := range dialects {
		_, c := serve(t, script, nil, nil)
		main := ask{user: "go", tools: true}
		got := []string{
			c.say(d, ask{user: "go"}), c.say(d, ask{user: "go", tools: true, most: 1}), c.say(d, main),
			c.say(d, ask{user: "go"}), c.say(d, main),
		}
		for i, want := range []string{"title", "ok", "529 busy", "title", "second"} {
			if !strings.Contains(got[i], want) {
				t.Errorf("%s: request %d got %s, want %s", d.name, i+1, got[i], want)
			}
		}
	}
}

func TestCountAndHeaders(t *testing.T) {
	var log bytes.Buffer
	_, c := serve(t, neutral, &log, func(s string) { t.Error(s) })
	base := strings.TrimSuffix(c.url, "/v1/responses")
	for _, s := range []struct{ path, body, want, header, id string }{
		{"/v1/messages/count_tokens?beta=true", `{"messages":[]}`, `{"input_tokens":100}`, "Request-Id", "req_count"},
		{"/v1beta/models/m:countTokens", `{"contents":[]}`, `{"totalTokens":100}`, "Request-Id", ""},
		{"/v1/messages", `{"messages":[{"role":"user","content":"limited"}],"tools":[{}]}`,
			`{"error":{"message":"slow down","type":"rate_limit_error"},"request_id":"req_limit","type":"error"}`, "Request-Id", "req_limit"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"limited"}],"tools":[{}]}`,
			`{"error":{"code":"","message":"slow down","param":null,"type":""}}`, "X-Request-Id", "req_limit_2"},
		{"/v1beta/models/m:generateContent", `{"contents":[{"parts":[{"text":"limited"}]}],"tools":[{"functionDeclarations":[{}]}]}`,
			`{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}`, "Retry-After", "7"},
	} {
		c.url = base + s.path
		res := c.post(t.Context(), s.body)
		data, err := io.ReadAll(res.Body)
		if err != nil || strings.TrimSpace(string(data)) != s.want || res.Header.Get(s.header) != s.id {
			t.Errorf("%s: %s, %s %q, %v", s.path, data, s.header, res.Header.Get(s.header), err)
		}
	}
	if n := strings.Count(log.String(), `"reply":"count"`); n != 2 {
		t.Errorf("%d counts logged:\n%s", n, log.String())
	}
}

func TestBadRequests(t *testing.T) {
	_, c := serve(t, neutral, nil, nil)
	base := strings.TrimSuffix(c.url, "/v1/responses")
	for _, s := range []struct{ path, body, header, want string }{
		{"/v1/messages", `{`, "", `"type":"scripted_model"`},
		{"/v1/chat/completions", `{}`, "gzip", "content encoding gzip is not read"},
		{"/v1beta/models/m:streamGenerateContent", `{}`, "", "alt=sse only"},
		{"/v1/other", `{}`, "", "is not served"},
	} {
		c.url = base + s.path
		res := c.post(t.Context(), s.body, "Content-Encoding", s.header)
		data, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode < 400 || !strings.Contains(string(data), s.want) {
			t.Errorf("%s: %s %s, %v", s.path, res.Status, data, err)
		}
	}
}
