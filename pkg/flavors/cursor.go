package flavors

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// Cursor is the Cursor Agent SDK in local mode, behind a bridge: a process
// that speaks newline-delimited JSON objects on stdio, told apart by "type",
// and calls the SDK. The frames are those of the public transcripts; nobody
// numbers requests, so that order alone correlates:
//
//	out  agent.open  run.start  run.cancel  agent.messages.list  agent.close
//	in   agent.opened  run.started  interaction.update  run.completed
//	     agent.messages  call.failed  runtime.exit  bridge.fatal
//
// A client sends the SDK's real options. What is recorded and compared is
// their logged form (cursor_options.go). bridge.ready, the first line, and
// bridge.end are on the wire only. Measured on @cursor/sdk 1.0.32; the bridge
// is scripts/bridges/cursor-bridge.mjs.
var Cursor = &Flavor{
	Providers: []string{"cursor"},
	Protocol:  cursorProtocol,
	Transport: Stdio,
	Classify:  fromBytes(classifyCursor),
	OnTape:    fromTape(classifyCursor),
	NewCodec:  func(l Launch) Codec { return &cursorCodec{launch: l} },
	Label:     labelCursor,
	Probe:     probeCursor,
	Version:   noVersion, // only bridge.ready tells it, which is no frame
	Chosen: []Place{
		{envelope.Out, "agent.open", "options.agentId"},
		{envelope.Out, "agent.open", "options.idempotencyKey"},
		{envelope.Out, "run.start", "options.idempotencyKey"},
	},
	References: []Place{
		{envelope.Out, "run.cancel", "runId"},
		{envelope.Out, "run.steer", "runId"},
		{envelope.Out, "agent.open", "agentId"},
		{envelope.Out, "agent.messages.list", "agentId"},
		{envelope.Out, "agent.close", "agentId"},
	},
	Ends: []Place{{envelope.In, "run.completed", "result.id"}},
	Streams: []Stream{{
		Dir: envelope.In, Method: "interaction.update", Path: "update.text",
		Key: []string{"runId", "update.type"}, Ends: [][2]string{{"run.completed", "result.id"}},
	}},
	Volatile: []Place{
		{envelope.In, "*", "agentId"},
		{envelope.In, "*", "runId"},
		{envelope.In, "run.completed", "result.id"},
		{envelope.In, "run.completed", "result.requestId"},
		{envelope.In, "run.completed", "result.durationMs"},
		{envelope.In, "run.completed", "result.usage"},
		{envelope.In, "call.failed", "error.message"}, // it names the agent
		{envelope.In, "interaction.update", "**.callId"},
		{envelope.In, "interaction.update", "**.modelCallId"},
		{envelope.In, "interaction.update", "**.durationMs"},
		{envelope.In, "interaction.update", "**.executionTime"},
		{envelope.In, "interaction.update", "**.localExecutionTimeMs"},
		{envelope.In, "interaction.update", "update.stepDurationMs"},
		{envelope.In, "interaction.update", "update.thinkingDurationMs"},
		{envelope.In, "interaction.update", "update.tokens"},
		{envelope.In, "interaction.update", "update.usage"},
		// The client only echoes these.
		{envelope.Out, "*", "agentId"},
		{envelope.Out, "*", "runId"},
	},
}

const (
	cursorProtocol = "cursor-agent-sdk.local"
	cursorSDK      = "@cursor/sdk"
	bridgeReady    = "bridge.ready"
	bridgeEnd      = "bridge.end"
)

// classifyCursor reads an object with a "type". An outbound frame must be in
// the logged form: another one can't match, and may hold what must not be in a
// transcript.
func classifyCursor(dir envelope.Direction, s source) (Frame, error) {
	f, err := typedFrame(s)
	if err != nil {
		return f, err
	}
	if f.Method == bridgeReady || f.Method == bridgeEnd {
		return f, fmt.Errorf("%s is on the wire only, it is no frame of a transcript", f.Method)
	}
	if dir == envelope.Out {
		if _, changed := logOptions(f); changed != "" {
			return f, fmt.Errorf("%s: %s is not in its logged form", f.Method, changed)
		}
	}
	return f, nil
}

// classifyTyped reads an object whose "type" says what it is. All are
// notifications.
func classifyTyped(raw json.RawMessage) (Frame, error) { return typedFrame(source{raw: raw}) }

func typedFrame(s source) (Frame, error) {
	raw := s.raw
	f := Frame{Raw: raw}
	ok, err := s.members(func(key, value []byte) error {
		switch {
		case string(unescaped(key)) != `"type"`:
		case f.Method != "":
			return errors.New("two types in one frame")
		case value[0] != '"' || len(value) == len(`""`):
			return errors.New("type is not a name")
		default:
			f.Method = s.text(value)
		}
		return nil
	})
	switch {
	case err != nil:
	case !ok:
		err = errors.New("not JSON")
	case raw[envelope.SkipSpace(raw, 0)] != '{':
		err = errors.New("not a JSON object")
	case f.Method == "":
		err = errors.New("no type: not a frame of the bridge")
	}
	return f, err
}

// labelCursor calls an update by its own type, as the public transcripts do.
func labelCursor(f Frame) string {
	if f.Method == "interaction.update" {
		return cmp.Or(gjson.GetBytes(f.Raw, "update.type").Str, f.Method)
	}
	return f.Method
}

// probeCursor takes the SDK's name and version from bridge.ready, and the
// model from what the client asks for.
func probeCursor(dir envelope.Direction, f Frame) map[string]string {
	switch {
	case dir == envelope.In && f.Method == "":
		if ready, err := classifyTyped(f.Raw); err != nil || ready.Method != bridgeReady {
			return nil
		}
		sdk := gjson.GetBytes(f.Raw, "sdk")
		return map[string]string{"providerVersion": sdk.Get("version").Str, "sdk": sdk.Get("name").Str}
	case dir == envelope.Out && (f.Method == "agent.open" || f.Method == "run.start"):
		if model := gjson.GetBytes(f.Raw, "options.model.id").Str; model != "" {
			return map[string]string{"model": model}
		}
	}
	return nil
}

// cursorCodec brings what the client sends into its logged form; anything else
// is the same on the wire and in a transcript.
type cursorCodec struct {
	launch Launch
	frame  [1]Frame // what Decode returned last
}

// Greeting appends bridge.ready. The SDK's version is the transcript's.
func (c *cursorCodec) Greeting(dst []byte) []byte {
	h := c.launch.Header
	meta := gjson.ParseBytes(h.Metadata)
	dst = append(dst, `{"type":"`+bridgeReady+`","bridge":1,"protocol":"`+cursorProtocol+`","sdk":{"name":`...)
	dst = envelope.AppendString(dst, cmp.Or(meta.Get("sdk").Str, cursorSDK))
	dst = append(dst, `,"version":`...)
	dst = envelope.AppendString(dst, cmp.Or(meta.Get("providerVersion").Str, h.Version))
	return append(dst, "}}\n"...)
}

func (c *cursorCodec) Decode(dir envelope.Direction, wire []byte) ([]Frame, error) {
	f, err := classifyTyped(wire)
	switch {
	case err != nil:
		return nil, err
	case f.Method == bridgeReady && dir == envelope.In, f.Method == bridgeEnd && dir == envelope.Out:
		return nil, nil
	case dir == envelope.Out:
		f.Raw, _ = logOptions(f)
	}
	c.frame[0] = f
	return c.frame[:], nil
}

func (c *cursorCodec) End(envelope.Direction) ([]Frame, error) { return nil, nil }

func (c *cursorCodec) Encode(dst []byte, _ envelope.Direction, f Frame, _ json.RawMessage) ([]byte, error) {
	return append(append(dst, f.Raw...), '\n'), nil
}
