package flavors

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

func TestClassifyACP(t *testing.T) {
	tests := []struct {
		dir        envelope.Direction
		raw        string
		method, id string
		kind       Kind
		err        string
	}{
		{raw: `{"kind":"request","method":"m","params":{}}`, kind: Request, method: "m"},
		{raw: `{"kind":"request","id":null,"method":"m","params":"<any>"}`, kind: Request, method: "m", id: "null"},
		{raw: `{"method":"m","kind":"request","id":"\u0061"}`, kind: Request, method: "m", id: `"\u0061"`},
		{raw: `{"kind":"notification","method":"m"}`, kind: Notification, method: "m"},
		{raw: `{"kind":"response","method":"m","result":null}`, kind: Response, method: "m"},
		{raw: `{"kind":"response","id":-1,"method":"m","error":"<any>"}`, kind: Response, method: "m", id: "-1"},
		{dir: envelope.In, raw: `{"kind":"response","error":{}}`, kind: Response},
		{dir: envelope.In, raw: `{"kind":"response","id":null,"error":{}}`, kind: Response, id: "null"},
		{dir: envelope.In, raw: `{"kind":"response","id":9,"result":{}}`, kind: Response, id: "9"},

		{raw: `{"kind":"response","id":9,"result":{}}`, err: "a client's response without a method answers nothing"},
		{dir: envelope.In, raw: `{"kind":"response","result":{}}`, err: "a response without method and id wants an error"},
		{raw: `{"kind":"response","method":"m"}`, err: "a response wants exactly one of result and error"},
		{raw: `{"kind":"response","method":"m","result":1,"error":{}}`, err: "a response wants exactly one of result and error"},
		{raw: `{"kind":"response","method":"m","result":1,"params":{}}`, err: "a response has params"},
		{raw: `{"kind":"request","params":{}}`, err: "request without a method"},
		{raw: `{"kind":"request","method":"m","result":1}`, err: "request m has a result or error"},
		{raw: `{"kind":"notification","method":"m","id":1}`, err: "notification m has an id"},
		{raw: `{"kind":"request","method":"m","id":1.0}`, err: "request id 1.0: want a string, an integer of 64 bits or null"},
		{raw: `{"kind":"request","method":"m","id":9223372036854775808}`, err: "request id 9223372036854775808: want a string, an integer of 64 bits or null"},
		{raw: `{"kind":"call","method":"m"}`, err: "kind: want request, notification or response"},
		{raw: `{"method":"m","id":1}`, err: "kind: want request, notification or response"},
		{raw: `{"kind":"request","method":"m","jsonrpc":"2.0"}`, err: `unknown key "jsonrpc" in a message`},
		{raw: `{"kind":"request","method":"m","method":"n"}`, err: `two members "method" in one message`},
		{raw: `{"kind":"request","method":1}`, err: "method is not a string"},
		{raw: `[]`, err: "a batch array: send one message per line"},
		{raw: `{`, err: "not JSON"},
		{raw: `1`, err: "not a JSON object"},
	}
	for _, c := range tests {
		f, err := ACP.Classify(c.dir, json.RawMessage(c.raw))
		switch {
		case c.err != "":
			if err == nil || err.Error() != c.err {
				t.Errorf("%s: got %v, want %s", c.raw, err, c.err)
			}
		case err != nil:
			t.Errorf("%s: %v", c.raw, err)
		case f.Kind != c.kind || f.Method != c.method || string(f.ID) != c.id || string(f.Raw) != c.raw:
			t.Errorf("%s: got %s %q %s", c.raw, f.Kind, f.Method, f.ID)
		}
	}
}

// wireStep is one message on the wire and the logical frame it is.
type wireStep struct {
	dir         envelope.Direction
	wire, frame string
}

var acpConversation = []wireStep{
	{envelope.Out, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2}}`,
		`{"kind":"request","id":0,"method":"initialize","params":{"protocolVersion":2}}`},
	{envelope.In, `{"jsonrpc":"2.0","id":0,"method":"_x/ask","params":[ 1.0 ]}`, // the agent's 0 is another one
		`{"kind":"request","id":0,"method":"_x/ask","params":[ 1.0 ]}`},
	{envelope.In, `{"jsonrpc":"2.0","id":0,"result":{"b":1,"a":2,"a":3}}`,
		`{"kind":"response","id":0,"method":"initialize","result":{"b":1,"a":2,"a":3}}`},
	{envelope.Out, `{"jsonrpc":"2.0","id":"0","method":"session\/prompt"}`,
		`{"kind":"request","id":"0","method":"session\/prompt"}`},
	{envelope.Out, `{"jsonrpc":"2.0","id":null,"method":"session/prompt","params":null}`,
		`{"kind":"request","id":null,"method":"session/prompt","params":null}`},
	{envelope.Out, `{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"no","data":null}}`,
		`{"kind":"response","id":0,"method":"_x/ask","error":{"code":-32601,"message":"no","data":null}}`},
	{envelope.Out, `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"\u0030"}}`,
		`{"kind":"notification","method":"$/cancel_request","params":{"requestId":"\u0030"}}`},
	{envelope.In, `{"jsonrpc":"2.0","id":null,"result":null}`,
		`{"kind":"response","id":null,"method":"session/prompt","result":null}`},
	{envelope.In, `{"jsonrpc":"2.0","id":"\u0030","error":{"code":1,"message":""}}`,
		`{"kind":"response","id":"\u0030","method":"session/prompt","error":{"code":1,"message":""}}`},
	{envelope.In, `{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}`,
		`{"kind":"response","error":{"code":1,"message":"m"}}`},
	{envelope.In, `{"jsonrpc":"2.0","id":0,"result":1}`, // answered before
		`{"kind":"response","id":0,"result":1}`},
	{envelope.In, `{"jsonrpc":"2.0","method":"craft/drain","params":{}}`,
		`{"kind":"notification","method":"craft/drain","params":{}}`},
}

func TestACPCodec(t *testing.T) {
	decoder, encoder := ACP.NewCodec(Launch{}), ACP.NewCodec(Launch{})
	for _, s := range acpConversation {
		frames, err := decoder.Decode(s.dir, []byte(s.wire))
		if err != nil || len(frames) != 1 || string(frames[0].Raw) != s.frame {
			t.Fatalf("%s\n got %s %v\nwant %s", s.wire, frames, err, s.frame)
		}
		again, err := ACP.Classify(s.dir, frames[0].Raw)
		if err != nil || again.Kind != frames[0].Kind || !bytes.Equal(again.ID, frames[0].ID) || again.Method != frames[0].Method {
			t.Errorf("%s: classified as %v, %v", s.frame, again, err)
		}
		wire, err := encoder.Encode(nil, s.dir, again, nil)
		if want := s.wire; err != nil || strings.TrimSuffix(string(wire), "\n") != want {
			t.Errorf("%s\n got %s %v\nwant %s", s.frame, wire, err, want)
		}
	}
	for _, raw := range []string{`{"kind":"request","method":"m"}`, `{"kind":"response","method":"m","result":1}`} {
		f, err := ACP.Classify(envelope.In, json.RawMessage(raw))
		if err != nil {
			t.Fatal(err)
		}
		if out, err := encoder.Encode(nil, envelope.In, f, nil); err == nil || len(out) != 0 {
			t.Errorf("%s without an id became %s", raw, out)
		}
	}
}

// TestACPRoundTrip: what a frame of the corpus becomes on the wire is read as
// the same frame, but for the id that it then has.
func TestACPRoundTrip(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join("..", "..", "..", "shared", "corpus", "*", "grok.ndjson"))
	if len(files) == 0 {
		t.Skip("no corpus beside the repository")
	}
	for _, file := range files {
		encoder, decoder := ACP.NewCodec(Launch{}), ACP.NewCodec(Launch{})
		open := map[string]int{}
		n := 0
		eachFrame(t, file, func(dir envelope.Direction, raw json.RawMessage) {
			raw = bytes.ReplaceAll(raw, []byte(`"<any>"`), []byte(`[]`))
			f, err := ACP.Classify(dir, raw)
			if err != nil {
				t.Fatalf("%s: %v: %s", file, err, raw)
			}
			var id json.RawMessage
			switch f.Kind {
			case Request:
				n++
				open[f.Method] = n
				fallthrough
			case Response:
				id, _ = json.Marshal(open[f.Method])
			}
			wire, err := encoder.Encode(nil, dir, f, id)
			if err != nil {
				t.Fatalf("%s: %v: %s", file, err, raw)
			}
			frames, err := decoder.Decode(dir, bytes.TrimSuffix(wire, []byte("\n")))
			if err != nil || len(frames) != 1 {
				t.Fatalf("%s: %v: %s", file, err, wire)
			}
			got := frames[0]
			if !bytes.Equal(got.ID, id) || got.Kind != f.Kind || got.Method != f.Method {
				t.Errorf("%s\nbecame %s", raw, got.Raw)
			}
			if back := strings.Replace(string(got.Raw), `"id":`+string(id)+`,`, "", 1); back != string(raw) {
				t.Errorf("%s\nbecame %s", raw, back)
			}
		})
	}
}

func TestRetarget(t *testing.T) {
	grok := &envelope.Header{Protocol: ACP.Protocol, Provider: "grok"}
	frame := func(raw string) Frame {
		f, err := ACP.Classify(envelope.In, json.RawMessage(raw))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	ask := `{"kind":"request","method":"_x.ai/ask","params":{}}`
	tests := []struct {
		h       *envelope.Header
		as, raw string
		err     string
	}{
		{grok, "registry", `{"kind":"request","method":"session/new","params":{"_meta":{"x.ai":1}}}`, ""},
		{grok, "registry", `{"kind":"response","method":"session/elicitation","result":{}}`, ""},
		{grok, "registry", `{"kind":"response","error":{}}`, ""},
		{grok, "grok", ask, ""},
		{&envelope.Header{Protocol: ACP.Protocol, Provider: "registry"}, "grok", ask, ""},
		{grok, "registry", ask, "_x.ai/ask is an extension of grok: a transcript that holds it can't be played as registry"},
		{grok, "qwen", `{"kind":"response","method":"_x.ai/ask","result":{}}`, "_x.ai/ask is an extension of grok: a transcript that holds it can't be played as qwen"},
		{grok, "qwen", `{"kind":"notification","method":"qwen/notify/session/mode-update"}`, ""},
		{grok, "gemini", `{"kind":"request","method":"craft/drainMidTurnQueue"}`, "craft/drainMidTurnQueue is an extension of qwen: a transcript that holds it can't be played as gemini"},
		{grok, "claude-acp", `{"kind":"notification","method":"_auth/status_update"}`, ""},
		{grok, "registry", `{"kind":"notification","method":"_auth/status_update"}`, "_auth/status_update is an extension of codex-acp and claude-acp: a transcript that holds it can't be played as registry"},
		{grok, "registry", `{"kind":"notification","method":"no/underscore"}`, "no/underscore is an extension of grok: a transcript that holds it can't be played as registry"},
		{grok, "registry", `{"kind":"notification","method":"session/update","params":{"update":{"sessionUpdate":"_x"}}}`, "_x is an extension of grok: a transcript that holds it can't be played as registry"},
	}
	for _, c := range tests {
		check, err := Retarget(c.h, c.as)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := check(frame(c.raw)); err != nil {
			got = err.Error()
		}
		if got != c.err {
			t.Errorf("%s as %s: got %q, want %q", c.raw, c.as, got, c.err)
		}
	}
	for as, want := range map[string]string{
		"":    `unknown agent "": want registry, grok, gemini, qwen, opencode, codex-acp, claude-acp`,
		"vim": `unknown agent "vim": want registry, `,
	} {
		if _, err := Retarget(grok, as); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("as %q: %v", as, err)
		}
	}
	if _, err := Retarget(&envelope.Header{Protocol: "codex.app-server"}, "grok"); err == nil ||
		err.Error() != "a codex.app-server transcript can't be played as grok: only one of acp.ndjson-jsonrpc can be retargeted" {
		t.Errorf("codex: %v", err)
	}
}

// TestACPMethods: the data about agents and methods does not contradict itself.
func TestACPMethods(t *testing.T) {
	for i, m := range acpStandard {
		if owners := extensionOwners(m); owners != nil {
			t.Errorf("%s is standard and owned by %v", m, owners)
		}
		if i > 0 && acpStandard[i-1] >= m {
			t.Errorf("%s is not in order", m)
		}
	}
}

func TestProbeACP(t *testing.T) {
	for raw, want := range map[string]string{
		`{"kind":"response","method":"initialize","result":{"protocolVersion":1,"agentInfo":{"name":"a","version":"1.2"}}}`:                                                           "protocolVersion=1 providerVersion=1.2",
		`{"kind":"response","method":"initialize","result":{"protocolVersion":2,"info":{"name":"a","version":"1.3"}}}`:                                                                "protocolVersion=2 providerVersion=1.3",
		`{"kind":"response","method":"session/new","result":{"sessionId":"s","models":{"currentModelId":"m1"}}}`:                                                                      "model=m1",
		`{"kind":"response","method":"session/load","result":{"configOptions":[{"id":"x","category":"mode","currentValue":"no"},{"id":"m","category":"model","currentValue":"m2"}]}}`: "model=m2",
		`{"kind":"response","method":"session/prompt","result":{"models":{"currentModelId":"m1"}}}`:                                                                                   "",
		`{"kind":"response","error":{"code":1,"message":"m"}}`:                                                                                                                        "",
	} {
		f, err := ACP.Classify(envelope.In, json.RawMessage(raw))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		facts := ACP.Probe(envelope.In, f)
		for _, k := range []string{"model", "protocolVersion", "providerVersion"} {
			if facts[k] != "" {
				got = append(got, k+"="+facts[k])
			}
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("%s: got %q, want %q", raw, g, want)
		}
	}
}

func TestLabelACP(t *testing.T) {
	for raw, want := range map[string]string{
		`{"kind":"notification","method":"session/cancel","params":{}}`:                                                         "session/cancel",
		`{"kind":"notification","method":"session/update","params":{"update":{"sessionUpdate":"tool_call","state":"x"}}}`:       "tool_call",
		`{"kind":"notification","method":"session/update","params":{"update":{"sessionUpdate":"state_update","state":"idle"}}}`: "state_update/idle",
		`{"kind":"notification","method":"session/update","params":{}}`:                                                         "session/update",
	} {
		f, err := ACP.Classify(envelope.In, json.RawMessage(raw))
		if err != nil {
			t.Fatal(err)
		}
		if got := ACP.Label(f); got != want {
			t.Errorf("%s is labelled %q: want %q", raw, got, want)
		}
	}
}

func TestRefuseACP(t *testing.T) {
	got := ACP.Refusal(Frame{Kind: Request, ID: json.RawMessage(`"a"`)}, "no\n\"x\"")
	if want := `{"jsonrpc":"2.0","id":"a","error":{"code":-32603,"message":"no\n\"x\""}}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// FuzzACPDecode: what is read is a legal frame, and written and read again it
// is the same.
func FuzzACPDecode(f *testing.F) {
	for _, s := range acpConversation {
		f.Add(s.dir == envelope.In, []byte(s.wire))
	}
	f.Add(false, []byte(`[{"jsonrpc":"2.0"}]`))
	f.Add(true, []byte(` { "\u006aeth":1 , "jsonrpc":"2.0" } `))
	f.Fuzz(func(t *testing.T, in bool, wire []byte) {
		dir := envelope.Out
		if in {
			dir = envelope.In
		}
		if bytes.ContainsAny(wire, "\r\n") {
			return // not one line
		}
		was := bytes.Clone(wire)
		// A request of the other side is open under each id that may come.
		codec := newACPCodec()
		codec.ask(dir.Opposite(), json.RawMessage("0"), "asked")
		codec.asked["0"] = true
		frames, err := codec.Decode(dir, wire)
		if !bytes.Equal(was, wire) {
			t.Fatal("the input changed")
		}
		if err != nil {
			if frames != nil {
				t.Fatalf("%q gave frames and %v", wire, err)
			}
			return
		}
		got := frames[0]
		frame, err := ACP.Classify(dir, got.Raw)
		if err != nil {
			if dir == envelope.Out && got.Kind == Response && got.Method == "" {
				return // answers nothing: refused later
			}
			t.Fatalf("%q became %s: %v", wire, got.Raw, err)
		}
		if frame.Kind != got.Kind || frame.Method != got.Method || !bytes.Equal(frame.ID, got.ID) {
			t.Fatalf("%q became %s", wire, got.Raw)
		}
		out, err := newACPCodec().Encode(nil, dir, frame, nil)
		if err != nil {
			t.Fatalf("%s: %v", got.Raw, err)
		}
		codec = newACPCodec()
		codec.ask(dir.Opposite(), json.RawMessage("0"), "asked")
		codec.asked["0"] = true
		if id := frame.ID; frame.Kind == Notification && len(id) == 0 && frame.Method == "$/cancel_request" {
			return // the id it names was checked
		}
		again, err := codec.Decode(dir, bytes.TrimSuffix(out, []byte("\n")))
		if err != nil || !bytes.Equal(again[0].Raw, got.Raw) {
			t.Fatalf("%q became %s, then %s: %v", wire, got.Raw, again, err)
		}
	})
}
