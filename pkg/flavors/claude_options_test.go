package flavors

import (
	"encoding/json"
	"testing"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

func TestClaudeOptions(t *testing.T) {
	full := envelope.Header{Protocol: Claude.Protocol, Metadata: json.RawMessage(`{"optionsProjection":"full"}`)}
	core := envelope.Header{Protocol: Claude.Protocol, Metadata: json.RawMessage(`{"model":"m"}`)}
	const initialize = `{"subtype":"initialize"}`
	tests := []struct {
		name   string
		header envelope.Header
		args   []string
		init   string
		want   string
	}{
		{"nothing", full, nil, initialize, `{}`},
		{"wire flags", full, []string{"--output-format", "stream-json", "--verbose", "--input-format", "stream-json", "-p", "--await-initialize", "--debug"}, initialize, `{}`},
		{"values after a space or an equals sign", full, []string{"--model", "a", "--effort=low", "--max-turns", "3", "--max-budget-usd=1.50"}, initialize,
			`{"model":"a","effort":"low","maxTurns":3,"maxBudgetUsd":1.50}`},
		{"the last one counts", full, []string{"--model=a", "--model=b"}, initialize, `{"model":"b"}`},
		{"a flag that lacks its value", full, []string{"--model", "--continue"}, initialize, `{"model":"","continue":true}`},
		{"no number", full, []string{"--max-turns=x", "--task-budget={}"}, initialize, `{"maxTurns":"x","taskBudget":"{}"}`},
		{"lists", full, []string{"--allowedTools=Read,Bash(git log:*, x)", "--disallowed-tools", "A", "B,C", "--betas=", "--tools="}, initialize,
			`{"tools":[],"allowedTools":["Read","Bash(git log:*, x)"],"disallowedTools":["A","B","C"],"betas":[]}`},
		{"preset", full, []string{"--tools=default"}, initialize, `{"tools":{"type":"preset","preset":"claude_code"}}`},
		{"session", full, []string{"--resume", "r", "--fork-session", "--resume-session-at=u"}, initialize, `{"resume":"r","resumeSessionAt":"u","forkSession":true}`},
		{"short flags", full, []string{"-c", "-r", "r"}, initialize, `{"resume":"r","continue":true}`},
		{"settings", full, []string{"--settings", `{"fast":true,"n":1.0,"x":null,"model":"m","language":["l"],"env":{"K":"v"},"helper":"h"}`}, initialize,
			`{"settings":{"fast":true,"n":1.0,"x":null,"model":"m","language":true,"env":true,"helper":true}}`},
		{"a settings file", full, []string{"--settings=/etc/x.json"}, initialize, `{"settings":true}`},
		{"servers", full, []string{"--mcp-config", `{"mcpServers":{"a":{},"b":{}}}`}, initialize, `{"mcpServers":["a","b"]}`},
		{"a servers file", full, []string{"--mcp-config=x.json"}, initialize, `{"mcpServers":true}`},
		{"flags nobody knows", full, []string{"--zeta=1", "--alpha", "v", "--zeta"}, initialize, `{"otherFlags":["alpha","zeta"]}`},
		{"only there", full, []string{"--permission-prompt-tool=stdio", "--add-dir=/x", "--no-session-persistence", "--json-schema={}"}, `{"subtype":"initialize","jsonSchema":{}}`,
			`{"persistSession":false,"canUseTool":true,"outputFormat":true,"additionalDirectories":true}`},
		{"initialize", full, nil, `{"subtype":"initialize","hooks":{"Stop":[{"hookCallbackIds":["a","b"]},{"hookCallbackIds":["c"]}],"Odd":1},"agents":{"x":{}},"systemPrompt":["s"],` +
			`"appendSystemPrompt":"s","sdkMcpServers":["m"],"sdkMcpServerManifests":{"m":{}},"skills":[1],"title":"t","forwardSubagentText":true,"future":{"a":1},"budget":2}`,
			`{"hooks":{"Stop":3,"Odd":0},"agents":["x"],"systemPrompt":true,"appendSystemPrompt":true,"sdkMcpServers":["m"],"skills":true,"title":true,"forwardSubagentText":true,"future":true,"budget":2}`},
		{"no system prompt", full, nil, `{"subtype":"initialize","systemPrompt":[""]}`, `{}`},
		{"core", core, []string{"--model=a", "--effort=low", "--zeta", "--permission-mode=plan", "--include-partial-messages", "--allow-dangerously-skip-permissions"},
			`{"subtype":"initialize","title":"t","disallowedTools":["A"],"settings":{"a":1}}`,
			`{"model":"a","permissionMode":"plan","allowDangerouslySkipPermissions":true,"disallowedTools":["A"],"settings":{"a":1}}`},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			codec := Claude.NewCodec(Launch{Args: c.args, Header: c.header})
			frames, err := codec.Decode(envelope.Out, []byte(`{"type":"control_request","request_id":"a","request":`+c.init+`}`))
			want := `{"type":"query.open","options":` + c.want + `}`
			if err != nil || len(frames) != 1 || !same(frames[0].Raw, []byte(want)) {
				t.Errorf("got %s, %v\nwant %s", frames[0].Raw, err, want)
			}
		})
	}
}

// A client that speaks without initialize opens its query all the same.
func TestClaudeWithoutInitialize(t *testing.T) {
	c := Claude.NewCodec(Launch{Args: []string{"--model=m"}})
	if frames, err := c.Decode(envelope.Out, []byte(`{"type":"keep_alive"}`)); frames != nil || err != nil {
		t.Fatalf("keep_alive: %v, %v", frames, err)
	}
	frames, err := c.Decode(envelope.Out, []byte(`{"type":"user","message":{"role":"user","content":"hi"}}`))
	if err != nil || len(frames) != 2 || string(frames[0].Raw) != `{"type":"query.open","initialize":false,"options":{"model":"m"}}` || frames[1].Method != "prompt.offer" {
		t.Fatalf("got %s, %v", frames, err)
	}
	if err := Claude.CheckID(frames[0].ID); err != nil || Claude.Refusal(frames[0], "no") != nil {
		t.Errorf("id %s: %v", frames[0].ID, err)
	}
	answer, err := Claude.Classify(envelope.In, Claude.Minimal(frames[0]))
	if err != nil {
		t.Fatal(err)
	}
	if wire, err := c.Encode(nil, envelope.In, answer, frames[0].ID); len(wire) > 0 || err != nil {
		t.Errorf("the answer to what is not on the wire: %s, %v", wire, err)
	}
	// initialize is then a request like any other.
	frames, err = c.Decode(envelope.Out, []byte(`{"type":"control_request","request_id":"a","request":{"subtype":"initialize","title":"t"}}`))
	if err != nil || string(frames[0].Raw) != `{"type":"query.initialize","options":{"title":true}}` {
		t.Errorf("got %s, %v", frames, err)
	}
}

func TestClaudeIllegalMessages(t *testing.T) {
	tests := []struct {
		dir        envelope.Direction
		wire, want string
	}{
		{envelope.Out, ``, "not JSON"},
		{envelope.Out, `hello`, "not JSON"},
		{envelope.Out, `[]`, "not a JSON object"},
		{envelope.Out, `{"message":1}`, "message has no type"},
		{envelope.Out, `{"type":"user","type":"user"}`, `two members "type"`},
		{envelope.Out, `{"type":"control_request","request_id":1,"request":{"subtype":"interrupt"}}`, "request_id 1: want a string that is not empty"},
		{envelope.Out, `{"type":"control_request","request":{"subtype":"interrupt"}}`, "control message without a request_id"},
		{envelope.Out, `{"type":"control_request","request_id":"a"}`, "control_request without a request, or with a member twice"},
		{envelope.Out, `{"type":"control_request","request_id":"a","request":{}}`, "control_request without a subtype"},
		{envelope.Out, `{"type":"control_response"}`, "control_response without a response, or with a member twice"},
		{envelope.Out, `{"type":"control_response","response":{"request_id":"a","subtype":"maybe"}}`, `control_response of subtype "maybe": want success or error`},
		{envelope.Out, `{"type":"control_response","response":{"request_id":"a","subtype":"error"}}`, "control_response is an error without one"},
		{envelope.Out, `{"type":"control_cancel_request"}`, "control message without a request_id"},
		{envelope.In, `{"type":"control_response","response":{"request_id":"a","subtype":"success"}}`, `control_response to request_id "a", which the client has not sent`},
		{envelope.In, `{"type":"permission.request"}`, `message of type "permission.request": that is a frame, not a message of the wire`},
		{envelope.In, `1`, "not a JSON object"},
		{envelope.In, `{"type":1}`, "frame has no type"},
	}
	for _, c := range tests {
		frames, err := Claude.NewCodec(Launch{}).Decode(c.dir, []byte(c.wire))
		if err == nil || err.Error() != c.want || frames != nil {
			t.Errorf("%s %s: got %v, %v, want %s", c.dir, c.wire, frames, err, c.want)
		}
	}
}

func TestClaudeClassifyErrors(t *testing.T) {
	for raw, want := range map[string]string{
		`{"type":"control_request"}`:                                    "control_request is a message of the wire: want the frame it stands for",
		`{"type":"query.response"}`:                                     "query.response does not name the method it answers",
		`{"type":"query.response","method":"x","response":1,"error":2}`: "query.response has both a response and an error",
		`{"subtype":"init"}`:                                            "frame has no type",
		`{"type":"a","type":"b"}`:                                       "two types in one frame",
	} {
		if _, err := Claude.Classify(envelope.In, json.RawMessage(raw)); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", raw, err, want)
		}
	}
	for raw, want := range map[string]string{
		`{"type":"assistant"}`:                                    `outbound type "assistant": want query.open, prompt.offer, query.…, permission.response or another of the protocol's`,
		`{"type":"permission.response"}`:                          "permission.response wants exactly one of result and error",
		`{"type":"permission.response","result":{},"error":"no"}`: "permission.response wants exactly one of result and error",
	} {
		if _, err := Claude.Classify(envelope.Out, json.RawMessage(raw)); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", raw, err, want)
		}
	}
}

// An answer the SDK can read, for every request of which none was recorded.
func TestClaudeMinimal(t *testing.T) {
	for request, want := range map[string]string{
		`{"type":"query.open","options":{}}`:                           `{"commands":[],"agents":[],"output_style":"default","available_output_styles":["default"],"models":[],"account":{}}`,
		`{"type":"query.interrupt"}`:                                   `{"still_queued":[]}`,
		`{"type":"query.set_model","model":"m"}`:                       `{"model":"m"}`,
		`{"type":"query.set_model"}`:                                   `{}`,
		`{"type":"query.set_permission_mode","mode":"plan"}`:           `{"mode":"plan"}`,
		`{"type":"query.mcp_status"}`:                                  `{"mcpServers":[]}`,
		`{"type":"query.rewind_files","user_message_id":"u"}`:          `{"canRewind":false}`,
		`{"type":"query.apply_flag_settings","settings":{}}`:           ``,
		`{"type":"query.nobody_knows","response":{"commands":"mine"}}`: `{}`,
	} {
		f, err := Claude.Classify(envelope.Out, json.RawMessage(request))
		if err != nil {
			t.Fatal(err)
		}
		answer := `{"type":"query.response","method":"` + f.Method + `"`
		if want != "" {
			answer += `,"response":` + want
		}
		if got := Claude.Minimal(f); string(got) != answer+"}" {
			t.Errorf("%s: got %s, want %s}", request, got, answer)
		}
	}
	if got := Claude.Minimal(Frame{Kind: Request, Method: "session.fork"}); got != nil {
		t.Errorf("session.fork: got %s", got)
	}
	refusal := Claude.Refusal(Frame{Kind: Request, ID: json.RawMessage(`"a"`)}, "no \"way\"")
	if want := `{"type":"control_response","response":{"subtype":"error","request_id":"a","error":"no \"way\""}}`; string(refusal) != want {
		t.Errorf("refusal %s: want %s", refusal, want)
	}
}

func TestClaudeProbe(t *testing.T) {
	f, err := Claude.Classify(envelope.In, json.RawMessage(`{"type":"system","subtype":"init","claude_code_version":"2.1.332","model":"m"}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := Claude.Probe(envelope.In, f); got["providerVersion"] != "2.1.332" || got["model"] != "m" {
		t.Errorf("got %v", got)
	}
	if got := Claude.Probe(envelope.Out, Frame{Kind: Request, Method: "query.open"}); got["optionsProjection"] != "full" {
		t.Errorf("got %v", got)
	}
}

func TestClaudeTrims(t *testing.T) {
	c := Claude.NewCodec(Launch{})
	if _, err := c.Decode(envelope.Out, []byte(`{"type":"control_request","request_id":"a","request":{"subtype":"initialize"}}`)); err != nil {
		t.Fatal(err)
	}
	const answer = `{"commands":[{"name":"c","description":"long","argumentHint":""}],"models":[{"value":"m","displayName":"M","description":"long"}],"account":{"email":"me@example.com","tokenSource":"none","org":{"name":"mine"}},"pid":1.0}`
	const want = `{"commands":[{"name":"c","description":"[trimmed]","argumentHint":""}],"models":[{"value":"m","displayName":"M","description":"[trimmed]"}],"account":{"email":"[trimmed]","tokenSource":"none","org":{"name":"[trimmed]"}},"pid":1.0}`
	frames, err := c.Decode(envelope.In, []byte(`{"type":"control_response","response":{"subtype":"success","request_id":"a","response":`+answer+`}}`))
	if err != nil || string(frames[0].Raw) != `{"type":"query.response","method":"query.open","response":`+want+`}` {
		t.Errorf("got %s, %v", frames[0].Raw, err)
	}
}
