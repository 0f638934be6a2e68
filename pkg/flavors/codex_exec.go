package flavors

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// CodexExec is `codex exec --json`: one turn per process. The prompt is all of
// stdin; out come events as JSON lines. Its one outbound frame is
//
//	{"type":"exec.start","args":["exec","--json"],"prompt":"…"}
//
// docs/flavor-codex-exec.md has the details. Measured with the SDK 0.163.0,
// whose name for --json is --experimental-json.
var CodexExec = &Flavor{
	Providers:   []string{"codex"},
	Protocol:    "codex.exec-jsonl",
	Metadata:    "codex-exec",
	Transport:   Stdio,
	CheckArgs:   checkExecArgs,
	Prose:       true,
	EndsAlone:   true,
	Classify:    fromBytes(classifyExec),
	OnTape:      fromTape(classifyExec),
	NewCodec:    func(l Launch) Codec { return &execCodec{args: l.Args} },
	VersionArgs: []string{"--version"},
	VersionLine: "codex-cli %s",
	Probe:       probeExec,
	Version:     noVersion,
	Volatile:    []Place{{envelope.In, "thread.started", "thread_id"}},
}

// execStart is the type of the outbound frame.
const execStart = "exec.start"

func classifyExec(dir envelope.Direction, s source) (Frame, error) {
	raw := s.raw
	f := Frame{Raw: raw}
	typed := 0
	ok, err := s.members(func(key, value []byte) error {
		if string(unescaped(key)) == `"type"` && value[0] == '"' {
			f.Method = envelope.Unquote(value)
			typed++
		}
		return nil
	})
	if err == nil {
		err = objectError(raw, ok)
	}
	switch {
	case err != nil:
		return f, err
	case typed != 1:
		return f, errors.New("an event wants one type, a string")
	case (f.Method == execStart) != (dir == envelope.Out):
		return f, fmt.Errorf("%s frame of type %q", dir, f.Method)
	case dir == envelope.Out && !gjson.GetBytes(raw, "args").Exists():
		return f, errors.New("exec.start without args")
	}
	return f, nil
}

// execCodec gathers the prompt until its end.
type execCodec struct {
	args   []string
	prompt []byte
	frame  [1]Frame // what Decode or End returned last
}

// Greeting writes nothing: Codex reads the prompt first.
func (c *execCodec) Greeting(dst []byte) []byte { return dst }

func (c *execCodec) Decode(dir envelope.Direction, wire []byte) ([]Frame, error) {
	if dir == envelope.Out {
		c.prompt = append(c.prompt, wire...)
		if len(c.prompt) > envelope.MaxLine {
			return nil, fmt.Errorf("the prompt is longer than %d bytes", envelope.MaxLine)
		}
		return nil, nil
	}
	f, err := classifyExec(dir, source{raw: wire})
	if err != nil {
		return nil, err
	}
	c.frame[0] = f
	return c.frame[:], nil
}

// End returns exec.start when the client's input is complete.
func (c *execCodec) End(dir envelope.Direction) ([]Frame, error) {
	if dir != envelope.Out {
		return nil, nil
	}
	raw := []byte(`{"type":"exec.start","args":[`)
	for i, arg := range projectExec(c.args) {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = envelope.AppendString(raw, validText(arg))
	}
	raw = append(raw, `],"prompt":`...)
	raw = append(envelope.AppendString(raw, validText(string(c.prompt))), '}')
	c.frame[0] = Frame{Method: execStart, Raw: raw}
	return c.frame[:], nil
}

// validText is text as JSON can hold it.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

func (c *execCodec) Encode(dst []byte, dir envelope.Direction, f Frame, _ json.RawMessage) ([]byte, error) {
	if dir == envelope.Out {
		return append(dst, gjson.GetBytes(f.Raw, "prompt").String()...), nil
	}
	return append(append(dst, f.Raw...), '\n'), nil
}

// noVersion is for protocols whose frames do not tell it.
func noVersion(envelope.Direction, Frame) string { return "" }

// probeExec takes the model from the arguments.
func probeExec(_ envelope.Direction, f Frame) map[string]string {
	if f.Method != execStart {
		return nil
	}
	facts := map[string]string{}
	for i, args := 1, gjson.GetBytes(f.Raw, "args").Array(); i < len(args); i++ {
		if args[i-1].String() == "--model" {
			facts["model"] = args[i].String()
		}
	}
	return facts
}
