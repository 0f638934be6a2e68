package model

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const sample = `
replies:
  - when: {user: list files}
    items:
      - reasoning: Think.
      - call: {name: exec_command, arguments: {cmd: ls, n: 1}}
  - when: {user: list files, toolResults: 1}
    items:
      - {text: "Two files.", chunks: 3, phase: final_answer}
  - when: {user: list files, agent: review}
    items: [{text: reviewed}]
  - when: {user: list}
    items: [{text: less fitting}]
  - when: {user: flaky, attempt: 1}
    error: {status: 429, code: rate_limit, message: slow down, headers: {Retry-After: "1"}}
  - when: {user: flaky, attempt: 2}
    items: [{text: par}, {cut: true}]
  - name: third
    when: {user: flaky}
    items: [{text: at last}]
  - when: {user: patch}
    items: [{custom: {name: apply_patch, input: "*** Begin", id: call_x}}, {raw: {type: web_search_call, id: ws_1}}]
  - when: {user: broken}
    items: [{text: so far}, {failed: {code: server_error, message: oh}}]
  - when: {user: wait}
    items: [{text: [one, {hold: gate}, two]}]
`

type client struct {
	t    *testing.T
	url  string
	http *http.Client
}

func serve(t *testing.T, script string, log io.Writer, note func(string)) (*Server, client) {
	t.Helper()
	s, err := Parse("model.yaml", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	m := New(s, log, note)
	srv := httptest.NewServer(m)
	t.Cleanup(srv.Close)
	return m, client{t, srv.URL + "/v1/responses", srv.Client()}
}

func (c client) post(ctx context.Context, body string, header ...string) *http.Response {
	c.t.Helper()
	req, err := http.NewRequestWithContext(ctx, "POST", c.url, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { res.Body.Close() })
	return res
}

// ask returns the answer in short: one line per event that says something.
func (c client) ask(body string, header ...string) string {
	c.t.Helper()
	res := c.post(c.t.Context(), body, header...)
	data, err := io.ReadAll(res.Body)
	if res.StatusCode != 200 {
		return res.Status + " " + gjson.GetBytes(data, "error.message").Str
	}
	var b strings.Builder
	for line := range strings.Lines(string(data)) {
		if raw, ok := strings.CutPrefix(line, "data: "); ok {
			b.WriteString(short(gjson.Parse(raw)))
		}
	}
	if err != nil {
		b.WriteString("cut\n")
	}
	return b.String()
}

func short(e gjson.Result) string {
	kind := strings.TrimPrefix(e.Get("type").Str, "response.")
	switch kind {
	case "output_text.delta":
		return "delta " + e.Get("delta").Str + "\n"
	case "output_item.done":
		i := e.Get("item")
		return "done " + strings.Join(strings.Fields(i.Get("id").Str+" "+i.Get("call_id").Str+" "+i.Get("name").Str+
			" "+i.Get("arguments").Str+i.Get("input").Str+i.Get("content.0.text").Str+i.Get("summary.0.text").Str+" "+i.Get("phase").Str), " ") + "\n"
	case "completed", "failed":
		return kind + " " + e.Get("response.id").Str + " " + e.Get("response.error.message").Str + "\n"
	}
	return ""
}

func user(text string, after ...string) string {
	const context = `{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment>list files, flaky</environment>"}]}`
	items := []string{
		`{"role":"user","content":"wait"}`, `{"type":"message","role":"assistant","content":[]}`, `{"type":"function_call_output","output":"old"}`,
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"please ` + text + `"}]}`, context,
	}
	return `{"model":"m","stream":true,"input":[` + strings.Join(append(items, after...), ",") + `]}`
}

func TestReplies(t *testing.T) {
	const output = `{"type":"function_call_output","call_id":"c","output":"x"}`
	_, c := serve(t, sample, nil, nil)
	for _, s := range []struct{ name, got, want string }{
		{"call", c.ask(user("list files")), "done rs_r1_1 Think.\ndone fc_r1_2 call_r1_2 exec_command {\"cmd\":\"ls\",\"n\":1}\ncompleted resp_r1 \n"},
		{"after one result", c.ask(user("list files", output)), "delta Two\ndelta  fi\ndelta les.\ndone msg_r2_1 Two files. final_answer\ncompleted resp_r2 \n"},
		{"again", c.ask(user("list files", output)), "delta Two\ndelta  fi\ndelta les.\ndone msg_r2_2_1 Two files. final_answer\ncompleted resp_r2_2 \n"},
		{"subagent", c.ask(user("list files"), "x-openai-subagent", "review"), "delta reviewed\ndone msg_r3_1 reviewed\ncompleted resp_r3 \n"},
		{"plain string", c.ask(`{"stream":true,"input":"list all"}`), "delta less fitting\ndone msg_r4_1 less fitting\ncompleted resp_r4 \n"},
		{"first attempt", c.ask(user("flaky")), "429 Too Many Requests slow down"},
		{"second attempt", c.ask(user("flaky")), "delta par\ndone msg_r6_1 par\ncut\n"},
		{"third attempt", c.ask(user("flaky")), "delta at last\ndone msg_third_1 at last\ncompleted resp_third \n"},
		{"custom and raw", c.ask(user("patch")), "done ctc_r8_1 call_x apply_patch *** Begin\ndone ws_1\ncompleted resp_r8 \n"},
		{"failed", c.ask(user("broken")), "delta so far\ndone msg_r9_1 so far\nfailed resp_r9 oh\n"},
	} {
		if diff := cmp.Diff(s.want, s.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s.name, diff)
		}
	}
}

func TestUnmatchedIsToldAndLogged(t *testing.T) {
	var log bytes.Buffer
	var notes []string
	_, c := serve(t, sample, &log, func(s string) { notes = append(notes, s) })
	want := `scripted model: no reply for user message "please list files" with 2 tool results`
	got := c.ask(user("list files", `{"type":"function_call_output"}`, `{"type":"custom_tool_call_output"}`), "Authorization", "Bearer secret")
	if got != "500 Internal Server Error "+want {
		t.Errorf("answer %q", got)
	}
	if len(notes) != 1 || notes[0] != want {
		t.Errorf("notes %q", notes)
	}
	if l := gjson.Parse(log.String()); l.Get("n").Int() != 1 || l.Get("error").Str != want || l.Get("body.model").Str != "m" {
		t.Errorf("log %s", log.String())
	}
	if strings.Contains(log.String(), "secret") {
		t.Error("the log holds a credential")
	}
}

func TestHold(t *testing.T) {
	m, c := serve(t, sample, nil, nil)
	ask := func(ctx context.Context) *bufio.Reader {
		r := bufio.NewReader(c.post(ctx, user("wait")).Body)
		for {
			line, err := r.ReadString('\n')
			if err != nil || strings.Contains(line, `"delta":"one"`) {
				return r
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ask(ctx)
	cancel() // a client that goes ends its reply: goleak tells
	r := ask(t.Context())
	if n := r.Buffered(); n > 2 {
		t.Errorf("%d bytes came through the hold", n)
	}
	m.Release("gate")
	m.Release("gate")
	rest, err := io.ReadAll(r)
	if err != nil || !strings.Contains(string(rest), `"delta":"two"`) || !strings.Contains(string(rest), "onetwo") {
		t.Errorf("after the release: %s, %v", rest, err)
	}
}

func TestScriptErrors(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"", "m:1: empty model script"},
		{"replies: []", "m:1: script has no replies"},
		{"replies:\n  - items: [", "m:2: did not find expected node content"},
		{"replies:\n  - items:\n      - {txt: x}", "m:3: unknown field \"txt\""},
		{"replies:\n  - items:\n      - text: x\n        hold: y", "m:3: an item wants one of"},
		{"replies:\n  - items:\n      - text: 5", "m:3: want a string: put it in quotes"},
		{"replies:\n  - items:\n      - {hold: y, chunks: 2}", "m:3: chunks and phase belong to text"},
		{"replies:\n  - when: {user: a}", "m:2: a reply wants items or an error"},
		{"replies:\n  - error: {}\n    items: []", "m:2: a reply has items or an error"},
		{"replies:\n  - error: {status: 200}", "m:2: want a whole number, 400 or more"},
		{"replies:\n  - items: [{delay: 5}]", "m:2: want a duration such as 200ms"},
		{"replies:\n  - items: [{call: {arguments: {}}}]", "m:2: a call wants a name"},
		{"replies:\n  - items: []\n  - when: {}\n    items: []", "m:3: the reply in line 2 is for the same requests"},
		{"replies:\n  - items:\n      - text: [a, {hold: x, cut: true}]", "m:3: want a string, a delay, a hold or a cut"},
		{"replies:\n  - when: {tools: maybe}\n    items: []", "m:2: cannot unmarshal"},
		{"replies:\n  - items: []\n---\nmore: 1", "m:3: a script is one document"},
		{`{"replies":[{"items":[{"text":"JSON"}],"items":[]}]}`, "m:1: field \"items\" twice"},
	} {
		s, err := Parse("m", []byte(c.script))
		if s != nil || err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q:\nwant %s\ngot  %v", c.script, c.want, err)
		}
	}
}
