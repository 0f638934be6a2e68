package flavors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// claudeArgs are the arguments that a client passes for the options of a
// query.open, the way the Agent SDK spells them.
func claudeArgs(t testing.TB, raw json.RawMessage) []string {
	t.Helper()
	args := []string{"--output-format", "stream-json", "--verbose", "--input-format", "stream-json"}
	var options map[string]json.RawMessage
	if err := json.Unmarshal([]byte(gjson.GetBytes(raw, "options").Raw), &options); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	for key, value := range options {
		text := gjson.ParseBytes(value)
		joined := func() string {
			var all []string
			for _, v := range text.Array() {
				all = append(all, v.Str)
			}
			return strings.Join(all, ",")
		}
		switch key {
		case "model", "resume":
			args = append(args, "--"+key+"="+text.Str)
		case "permissionMode":
			args = append(args, "--permission-mode="+text.Str)
		case "sessionId":
			args = append(args, "--session-id", text.Str)
		case "resumeSessionAt":
			args = append(args, "--resume-session-at="+text.Str)
		case "allowDangerouslySkipPermissions":
			args = append(args, "--allow-dangerously-skip-permissions")
		case "forkSession":
			args = append(args, "--fork-session")
		case "allowedTools", "disallowedTools":
			args = append(args, "--"+key+"="+joined())
		case "tools":
			if text.IsArray() {
				args = append(args, "--tools="+joined())
			} else {
				args = append(args, "--tools=default")
			}
		default:
			t.Fatalf("no argument for option %s", key)
		}
	}
	return args
}

// same says whether two frames mean the same JSON, numbers as literals.
func same(a, b []byte) bool {
	read := func(raw []byte) (v any) {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if d.Decode(&v) != nil {
			return errors.New(string(raw))
		}
		return v
	}
	return reflect.DeepEqual(read(a), read(b))
}

// claudeCorpus lists the transcripts of the public corpus, where it lies
// beside the repository, or those in TRANSCRIPT_CORPUS.
func claudeCorpus(t testing.TB) []string {
	dir := os.Getenv("TRANSCRIPT_CORPUS")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "corpus")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "claude.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// pair is a client and a provider on one wire.
type pair struct {
	client, provider Codec
	ids              map[string]json.RawMessage // request ids by method, in use on the wire
	next             int
}

func newPair(l Launch) *pair {
	return &pair{client: Claude.NewCodec(l), provider: Claude.NewCodec(l), ids: map[string]json.RawMessage{}}
}

// send encodes a frame at one end and decodes it at the other.
func (p *pair) send(dir envelope.Direction, raw json.RawMessage) (frames []Frame, wire string, err error) {
	f, err := Claude.Classify(dir, raw)
	if err != nil {
		return nil, "", err
	}
	from, to := p.client, p.provider
	if dir == envelope.In {
		from, to = to, from
	}
	id := f.ID
	switch {
	case f.Kind == Request && dir == envelope.Out:
		p.next++
		id = fmt.Appendf(nil, `"c%d"`, p.next)
	case f.Kind == Request && id == nil:
		id = fmt.Appendf(nil, "%d", p.next)
		p.next++
	case f.Kind == Response:
		id = p.ids[dir.Opposite().String()+f.Method]
	}
	b, err := from.Encode(nil, dir, f, id)
	if err != nil {
		return nil, "", err
	}
	for line := range strings.Lines(string(b)) {
		got, err := to.Decode(dir, []byte(strings.TrimSuffix(line, "\n")))
		if err != nil {
			return nil, string(b), err
		}
		frames = append(frames, got...)
	}
	for _, g := range frames {
		if g.Kind == Request {
			p.ids[dir.String()+g.Method] = g.ID
		}
	}
	return frames, string(b), nil
}

// What one codec encodes, the other decodes to the same frame, whichever side
// it came from.
func TestClaudeCorpusRoundTrip(t *testing.T) {
	files := claudeCorpus(t)
	if len(files) == 0 {
		t.Skip("no corpus beside the repository")
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			r := envelope.NewReader(file, f)
			h, err := r.Header()
			if err != nil {
				t.Fatal(err)
			}
			var p *pair
			for {
				e, err := r.Next()
				if err == io.EOF {
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				dir, raw := envelope.Out, json.RawMessage(nil)
				switch e := e.(type) {
				case *envelope.ExpectOutbound:
					raw = e.Frame
				case *envelope.EmitInbound:
					dir, raw = envelope.In, e.Frame
				default:
					continue
				}
				if gjson.GetBytes(raw, "type").Str == "query.open" {
					p = newPair(Launch{Args: claudeArgs(t, raw), Header: *h})
				}
				want, err := Claude.Classify(dir, raw)
				if err != nil {
					t.Fatal(err)
				}
				frames, wire, err := p.send(dir, raw)
				if err != nil || len(frames) != 1 || !same(frames[0].Raw, raw) {
					t.Fatalf("%s\nwire %s\ngot  %s, %v", raw, wire, frames, err)
				}
				if got := frames[0]; got.Kind != want.Kind || got.Method != want.Method {
					t.Errorf("%s %s: want %s %s", got.Kind, got.Method, want.Kind, want.Method)
				}
				if want.Kind == Notification && dir == envelope.In && wire != string(raw)+"\n" {
					t.Errorf("wire %s: want %s", wire, raw)
				}
			}
		})
	}
}

// One of every frame, with the wire message it stands for.
func TestClaudeFrames(t *testing.T) {
	p := newPair(Launch{})
	tests := []struct {
		dir         envelope.Direction
		frame, wire string // wire "" is the frame itself
		kind        Kind
		method      string
	}{
		{envelope.Out, `{"type":"query.open","options":{"promptSuggestions":true,"hooks":{"Stop":2},"agents":["a"],"forwardSubagentText":false}}`,
			`{"type":"control_request","request_id":"c1","request":{"subtype":"initialize","promptSuggestions":true,"hooks":{"Stop":[{"hookCallbackIds":["hook","hook"]}]},"agents":{"a":{}},"forwardSubagentText":false}}`, Request, "query.open"},
		{envelope.In, `{"type":"query.response","method":"query.open","response":{"commands":[]},"pending_permission_requests":[]}`,
			`{"type":"control_response","response":{"subtype":"success","request_id":"c1","response":{"commands":[]},"pending_permission_requests":[]}}`, Response, "query.open"},
		{envelope.Out, `{"type":"prompt.offer","message":{"type":"user","message":{"role":"user","content":"hi"},"parent_tool_use_id":null,"priority":"now","uuid":"u"}}`,
			`{"type":"user","message":{"role":"user","content":"hi"},"parent_tool_use_id":null,"priority":"now","uuid":"u"}`, Notification, "prompt.offer"},
		{envelope.In, `{"type":"system","subtype":"init","x":1.0}`, "", Notification, "system/init"},
		{envelope.In, `{"type":"nobody_knows","big":9007199254740993}`, "", Notification, "nobody_knows"},
		{envelope.In, `{"type":"permission.request","toolName":"Bash","input":{"command":"ls"},"options":{"suggestions":[],"toolUseID":"toolu_1","agentID":"a","new_member":1}}`,
			`{"type":"control_request","request_id":"toolu_1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"permission_suggestions":[],"tool_use_id":"toolu_1","agent_id":"a","new_member":1}}`, Request, "permission.request"},
		{envelope.Out, `{"type":"permission.response","result":{"behavior":"allow","toolUseID":"toolu_1"}}`,
			`{"type":"control_response","response":{"subtype":"success","request_id":"toolu_1","response":{"behavior":"allow","toolUseID":"toolu_1"}}}`, Response, "permission.request"},
		{envelope.In, `{"type":"permission.request","toolName":"Bash","input":{},"options":{"toolUseID":"toolu_2"}}`,
			`{"type":"control_request","request_id":"toolu_2","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{},"tool_use_id":"toolu_2"}}`, Request, "permission.request"},
		{envelope.In, `{"type":"permission.aborted","toolUseID":"toolu_2"}`,
			`{"type":"control_cancel_request","request_id":"toolu_2"}`, Notification, "permission.aborted"},
		{envelope.Out, `{"type":"permission.response","error":"gone"}`,
			`{"type":"control_response","response":{"subtype":"error","request_id":"toolu_2","error":"gone"}}`, Response, "permission.request"},
		{envelope.Out, `{"type":"query.interrupt"}`,
			`{"type":"control_request","request_id":"c2","request":{"subtype":"interrupt"}}`, Request, "query.interrupt"},
		{envelope.In, `{"type":"query.response","method":"query.interrupt","response":{"still_queued":[]}}`,
			`{"type":"control_response","response":{"subtype":"success","request_id":"c2","response":{"still_queued":[]}}}`, Response, "query.interrupt"},
		{envelope.Out, `{"type":"query.set_permission_mode","mode":"plan"}`,
			`{"type":"control_request","request_id":"c3","request":{"subtype":"set_permission_mode","mode":"plan"}}`, Request, "query.set_permission_mode"},
		{envelope.In, `{"type":"query.response","method":"query.set_permission_mode","error":"no","error_code":"invalid_mode"}`,
			`{"type":"control_response","response":{"subtype":"error","request_id":"c3","error":"no","error_code":"invalid_mode"}}`, Response, "query.set_permission_mode"},
		{envelope.Out, `{"type":"query.future","request":{"type":"x","deep":[1]},"wire":{"trace":1}}`,
			`{"type":"control_request","request_id":"c4","request":{"subtype":"future","type":"x","deep":[1]},"trace":1}`, Request, "query.future"},
		{envelope.Out, `{"type":"query.cancel","method":"query.future"}`,
			`{"type":"control_cancel_request","request_id":"c4"}`, Notification, "query.cancel"},
		{envelope.Out, `{"type":"query.request","request":{"subtype":"open"}}`,
			`{"type":"control_request","request_id":"c5","request":{"subtype":"open"}}`, Request, "query.request"},
		{envelope.In, `{"type":"query.response","method":"query.request"}`,
			`{"type":"control_response","response":{"subtype":"success","request_id":"c5"}}`, Response, "query.request"},
		{envelope.In, `{"type":"hook.request","callbackID":"hook_0","input":{"hook_event_name":"Stop"},"toolUseID":null}`,
			`{"type":"control_request","request_id":"00000000-0000-4000-8000-000000000005","request":{"subtype":"hook_callback","callback_id":"hook_0","input":{"hook_event_name":"Stop"},"tool_use_id":null}}`, Request, "hook.request"},
		{envelope.Out, `{"type":"hook.response","output":{"continue":true}}`,
			`{"type":"control_response","response":{"subtype":"success","request_id":"00000000-0000-4000-8000-000000000005","response":{"continue":true}}}`, Response, "hook.request"},
		{envelope.In, `{"type":"mcp.request","server":"s","message":{"jsonrpc":"2.0","id":1,"method":"tools/call"}}`,
			`{"type":"control_request","request_id":"00000000-0000-4000-8000-000000000006","request":{"subtype":"mcp_message","server_name":"s","message":{"jsonrpc":"2.0","id":1,"method":"tools/call"}}}`, Request, "mcp.request"},
		{envelope.Out, `{"type":"mcp.response","message":{"jsonrpc":"2.0","id":1,"result":{}}}`,
			`{"type":"control_response","response":{"subtype":"success","request_id":"00000000-0000-4000-8000-000000000006","response":{"mcp_response":{"jsonrpc":"2.0","id":1,"result":{}}}}}`, Response, "mcp.request"},
		{envelope.In, `{"type":"control.request","request":{"subtype":"elicitation","message":"?"}}`,
			`{"type":"control_request","request_id":"00000000-0000-4000-8000-000000000007","request":{"subtype":"elicitation","message":"?"}}`, Request, "control.request/elicitation"},
		{envelope.Out, `{"type":"control.response","subtype":"elicitation","response":{"action":"decline"}}`,
			`{"type":"control_response","response":{"subtype":"success","request_id":"00000000-0000-4000-8000-000000000007","response":{"action":"decline"}}}`, Response, "control.request/elicitation"},
		{envelope.In, `{"type":"control.request","request":{"subtype":"can_use_tool","input":{}}}`,
			`{"type":"control_request","request_id":"00000000-0000-4000-8000-000000000008","request":{"subtype":"can_use_tool","input":{}}}`, Request, "control.request/can_use_tool"},
		{envelope.In, `{"type":"control.aborted","method":"control.request/can_use_tool"}`,
			`{"type":"control_cancel_request","request_id":"00000000-0000-4000-8000-000000000008"}`, Notification, "control.aborted"},
		{envelope.Out, `{"type":"host.message","message":{"type":"future","x":1}}`, `{"type":"future","x":1}`, Notification, "host.message"},
		{envelope.Out, `{"type":"environment.update","names":["TOKEN"]}`,
			`{"type":"update_environment_variables","variables":{"TOKEN":""}}`, Notification, "environment.update"},
	}
	for _, c := range tests {
		frames, wire, err := p.send(c.dir, json.RawMessage(c.frame))
		if c.wire == "" {
			c.wire = c.frame
		}
		if err != nil || wire != c.wire+"\n" || len(frames) != 1 || !same(frames[0].Raw, []byte(c.frame)) {
			t.Fatalf("%s\nwire %s\nwant %s\ngot  %v, %v", c.frame, wire, c.wire, frames, err)
		}
		if f := frames[0]; f.Kind != c.kind || f.Method != c.method || (f.ID != nil) != (c.kind != Notification) {
			t.Errorf("%s: got %s %s id %s", c.frame, f.Kind, f.Method, f.ID)
		}
	}
}
