package flavors

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// claudeWire is traffic with one of everything, a message a line: "> " is the
// client's, "< " the provider's.
const claudeWire = `> {"type":"control_request","request_id":"a","request":{"subtype":"initialize","hooks":{"Stop":[{"hookCallbackIds":["hook_0"]}]},"agents":{"x":{"prompt":"secret"}},"settings":{"a":true,"env":{"KEY":"secret"}}}}
> {"type":"user","message":{"role":"user","content":"hi"},"parent_tool_use_id":null,"session_id":""}
< {"type":"control_response","response":{"subtype":"success","request_id":"a","response":{"commands":[{"name":"c","description":"prose"}],"account":{"email":"secret"}}}}
< {"type":"system","subtype":"init"}
< {"type":"control_request","request_id":"b","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{},"tool_use_id":"t","toolUseID":"u"}}
< {"type":"control_request","request_id":"c","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{},"tool_use_id":"t"}}
> {"type":"control_response","response":{"subtype":"success","request_id":"c","response":{"behavior":"allow"}}}
< {"type":"control_cancel_request","request_id":"b"}
> {"type":"control_response","response":{"subtype":"error","request_id":"b","error":"gone","error_code":"x"}}
< {"type":"control_request","request_id":"d","request":{"subtype":"hook_callback","callback_id":"hook_0","input":{},"tool_use_id":null},"trace":1}
> {"type":"control_response","response":{"subtype":"success","request_id":"d","response":{}}}
< {"type":"control_request","request_id":"e","request":{"subtype":"mcp_message","server_name":"s","message":{"id":1}}}
> {"type":"control_response","response":{"subtype":"success","request_id":"e","response":{"mcp_response":{"id":1}}}}
< {"type":"control_request","request_id":"f","request":{"subtype":"elicitation","message":"?"}}
> {"type":"control_response","response":{"subtype":"success","request_id":"f","response":{"action":"decline"}}}
> {"type":"control_request","request_id":"g","request":{"subtype":"set_model","model":"m"}}
> {"type":"control_cancel_request","request_id":"g"}
< {"type":"control_response","response":{"subtype":"success","request_id":"g"}}
> {"type":"control_request","request_id":"h","request":{"subtype":"open","type":1}}
> {"type":"control_request","request_id":"i","request":{"subtype":"x","type":1,"wire":2}}
> {"type":"control_request","request_id":"j","request":{"subtype":"initialize","title":"t"}}
> {"type":"control_request","request_id":"k","request":{"subtype":"mcp_set_servers","servers":{"s":{"env":{"K":"secret"}}}}}
> {"type":"control_response","response":{"subtype":"success","request_id":"nobody"}}
> {"type":"update_environment_variables","variables":{"K":"secret"}}
> {"type":"keep_alive"}
> {"type":"future"}
< {"type":"keep_alive"}
< {"type":"transcript_mirror","entries":[]}
< {"type":"new.event","a":1,"a":2}
< {"type":"control_request","request_id":"l","request":{"subtype":"can_use_tool","tool_name":"Bash"}}
< {"type":"control_request","request_id":"l","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{},"tool_use_id":"v"}}
< {"type":"control_request","request_id":"m","request":{"subtype":"can_use_tool","tool_name":"Bash"}}
< {"type":"control_cancel_request","request_id":"m"}
< {"type":"control_request","request_id":"n","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{}}}
< {"type":"control_cancel_request","request_id":"n"}`

// Whatever comes over the wire: no panic, an error or legal frames, no value
// of an option that is left out, and frames that survive the way back.
func FuzzClaudeDecode(f *testing.F) {
	f.Add(claudeWire)
	f.Add(strings.Join(strings.Split(claudeWire, "\n")[1:], "\n")) // without initialize
	for _, file := range claudeCorpus(f) {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add("< " + strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n< "))
	}
	f.Fuzz(func(t *testing.T, text string) {
		tap, from, to := Claude.NewCodec(Launch{}), Claude.NewCodec(Launch{}), Claude.NewCodec(Launch{})
		for line := range strings.SplitSeq(text, "\n") {
			dir := envelope.Out
			if strings.HasPrefix(line, "<") {
				dir = envelope.In
			}
			wire := []byte(strings.TrimLeft(line, "<> "))
			frames, err := tap.Decode(dir, wire)
			if err != nil && frames != nil {
				t.Fatalf("%s: both frames and error %v", wire, err)
			}
			for _, g := range frames {
				c, err := Claude.Classify(dir, g.Raw)
				if err != nil || c.Kind != g.Kind || c.Method != g.Method {
					t.Fatalf("%s: %s %s, classified as %s %s, %v", g.Raw, g.Kind, g.Method, c.Kind, c.Method, err)
				}
				if (g.ID == nil) != (g.Kind == Notification) {
					t.Fatalf("%s: id %s", g.Raw, g.ID)
				}
				backAndForth(t, from, to, dir, g)
			}
		}
	})
}

// backAndForth wants a frame to survive Encode and Decode.
func backAndForth(t *testing.T, from, to Codec, dir envelope.Direction, g Frame) {
	t.Helper()
	g.Raw, g.ID = append(json.RawMessage(nil), g.Raw...), append(json.RawMessage(nil), g.ID...)
	if g.Kind == Notification {
		g.ID = nil
	}
	wire, err := from.Encode(nil, dir, g, g.ID)
	if err != nil {
		// What withdraws or answers nothing has no place to go.
		if g.Kind != Request && (strings.Contains(err.Error(), "answers no request") || strings.Contains(err.Error(), "withdraws no open request")) {
			return
		}
		t.Fatalf("%s: %v", g.Raw, err)
	}
	if string(wire) == "" {
		// A query.open that no initialize carries. The message it came with may
		// have no place to go.
		if _, err := to.Decode(dir, []byte(`{"type":"user"}`)); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := to.Decode(dir, wire[:len(wire)-1])
	if err != nil || len(got) == 0 {
		t.Fatalf("%s\nwire %s\ngot %v, %v", g.Raw, wire, got, err)
	}
	last := got[len(got)-1]
	if string(last.Raw) != string(g.Raw) && !same(last.Raw, g.Raw) || string(last.ID) != string(g.ID) {
		t.Fatalf("%s id %s\nwire %s\ngot %s id %s", g.Raw, g.ID, wire, last.Raw, last.ID)
	}
}

// None of what a client keeps to itself is in a frame.
func TestClaudeKeepsSecrets(t *testing.T) {
	args := []string{
		"--settings", `{"env":{"K":"secret"},"apiKeyHelper":"/secret","model":"m","fast":true}`, "--mcp-config", `{"mcpServers":{"s":{"env":{"K":"secret"}}}}`,
		"--add-dir=/secret", "--append-system-prompt=secret", "--unknown-flag", "secret", "--other=secret", "--json-schema={\"secret\":1}",
		"--plugin-dir=/secret", "--debug-file=/secret", "--managed-settings", `{"secret":1}`, "secret",
	}
	c := Claude.NewCodec(Launch{Args: args})
	for line := range strings.SplitSeq(claudeWire, "\n") {
		dir := envelope.Out
		if line[0] == '<' {
			dir = envelope.In
		}
		frames, err := c.Decode(dir, []byte(line[2:]))
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		for _, f := range frames {
			if strings.Contains(string(f.Raw), "secret") || strings.Contains(string(f.Raw), "prose") {
				t.Errorf("%s becomes %s", line, f.Raw)
			}
		}
	}
}
