package flavors

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

func TestProjectExec(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"exec --experimental-json", "exec --experimental-json"},
		{"exec --json -m gpt -s=read-only -C/ws --add-dir /a --skip-git-repo-check resume T -", "exec --json --model gpt --sandbox read-only --cd /ws --add-dir /a --skip-git-repo-check resume T -"},
		{"--model=gpt e --image a.png", "exec --model gpt --image a.png"},
		{`exec -c model_reasoning_effort="high" --config features.x=true --config sandbox_workspace_write.network_access=true`,
			`exec --config model_reasoning_effort="high" --config features.x=true --config sandbox_workspace_write.network_access=true`},
		{"exec --config openai_base_url=http://secret --config model_providers.x.env_key=K --config modelx=1",
			"exec --config openai_base_url=<omitted> --config model_providers.x.env_key=<omitted> --config modelx=<omitted>"},
		{"exec --output-schema /tmp/x/schema.json -o last --remote-auth-token-env T", "exec --output-schema <omitted> --output-last-message <omitted> --remote-auth-token-env <omitted>"},
		{"exec --api-key secret resume T", "exec --api-key <omitted> resume T"},
		{"exec --api-key=secret --new -x resume T", "exec --api-key <omitted> --new -x resume T"},
		{"exec resume --last -- --prompt", "exec resume --last --prompt"},
		{"dist/codex.js exec hello", "exec dist/codex.js hello"},
		{"exec --model", "exec --model"},
		{"exec --json=secret", "exec --json <omitted>"},
	} {
		if got := strings.Join(projectExec(strings.Fields(c.args)), " "); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.args, got, c.want)
		}
	}
}

func TestCodexArgs(t *testing.T) {
	for args, ok := range map[string][2]bool{ // app-server, exec
		"app-server":             {true, false},
		"-c model=x app-server":  {true, false},
		"":                       {true, false},
		"mcp list":               {true, false},
		"exec --json":            {false, true},
		"e":                      {false, true},
		"--model exec exec":      {false, true},
		"--model exec app-serve": {true, false},
		"-- exec":                {false, true},
	} {
		for i, f := range []*Flavor{Codex, CodexExec} {
			if err := f.CheckArgs(strings.Fields(args)); (err == nil) != ok[i] {
				t.Errorf("%s started as codex %s: %v", f.Protocol, args, err)
			}
		}
	}
	if err := CodexExec.CheckArgs([]string{"app-server"}); err == nil ||
		err.Error() != "codex app-server does not speak codex.exec-jsonl: the transcript is one of codex exec" {
		t.Error(err)
	}
	if err := Codex.CheckArgs([]string{"exec"}); err == nil ||
		err.Error() != "codex exec does not speak codex.app-server: the transcript is one of codex app-server" {
		t.Error(err)
	}
}

func TestExecCodec(t *testing.T) {
	c := CodexExec.NewCodec(Launch{Args: []string{"exec", "--json"}})
	for _, piece := range []string{"two\n", "\n", "lin\xff", "es \"x\"\r\n"} {
		if frames, err := c.Decode(envelope.Out, []byte(piece)); frames != nil || err != nil {
			t.Fatalf("%q gave %v, %v", piece, frames, err)
		}
	}
	frames, err := c.End(envelope.Out)
	want := `{"type":"exec.start","args":["exec","--json"],"prompt":"two\n\nlin` + "\ufffd" + `es \"x\"\r\n"}`
	if err != nil || len(frames) != 1 || string(frames[0].Raw) != want || frames[0].Method != "exec.start" {
		t.Fatalf("got %s, %v, want %s", frames, err, want)
	}
	f, err := CodexExec.Classify(envelope.Out, frames[0].Raw)
	if err != nil || f.Kind != Notification || f.ID != nil {
		t.Errorf("classified as %v, %v", f, err)
	}
	if text, err := c.Encode(nil, envelope.Out, f, nil); err != nil || string(text) != "two\n\nlin\ufffdes \"x\"\r\n" {
		t.Errorf("on the wire: %q, %v", text, err)
	}
	event := `{ "type":"turn.completed" , "usage":{"input_tokens":1.0}}`
	frames, err = c.Decode(envelope.In, []byte(event))
	if err != nil || string(frames[0].Raw) != event || frames[0].Method != "turn.completed" {
		t.Errorf("got %v, %v", frames, err)
	}
	if line, err := c.Encode(nil, envelope.In, frames[0], nil); err != nil || string(line) != event+"\n" {
		t.Errorf("on the wire: %q, %v", line, err)
	}
	if frames, err := c.End(envelope.In); frames != nil || err != nil {
		t.Errorf("the end of output gave %v, %v", frames, err)
	}
	for raw, want := range map[string]string{
		`[]`:                              "a batch array: send one message per line",
		`x`:                               "not JSON",
		`{}`:                              "an event wants one type, a string",
		`{"type":1}`:                      "an event wants one type, a string",
		`{"type":"a","type":"b"}`:         "an event wants one type, a string",
		`{"type":"exec.start","args":[]}`: `inbound frame of type "exec.start"`,
	} {
		if _, err := CodexExec.Classify(envelope.In, json.RawMessage(raw)); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", raw, err, want)
		}
	}
	for raw, want := range map[string]string{
		`{"type":"turn.started"}`: `outbound frame of type "turn.started"`,
		`{"type":"exec.start"}`:   "exec.start without args",
	} {
		if _, err := CodexExec.Classify(envelope.Out, json.RawMessage(raw)); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", raw, err, want)
		}
	}
}
