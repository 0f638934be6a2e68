package flavors

import (
	"fmt"
	"strings"
	"testing"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// TestEventStreams decodes what a recorder sees of several streams: an event
// is one frame, whichever stream brings it first.
func TestEventStreams(t *testing.T) {
	c := OpenCode.NewCodec(Launch{})
	decode := func(dir envelope.Direction, wire string) int {
		t.Helper()
		frames, err := c.Decode(dir, []byte(wire))
		if err != nil {
			t.Fatal(err)
		}
		return len(frames)
	}
	open := func(id, path string) {
		decode(envelope.Out, fmt.Sprintf(`{"id":%q,"method":"GET","path":%q}`, id, path))
		decode(envelope.In, fmt.Sprintf(`{"id":%q,"status":200,"headers":{"content-type":"text/event-stream"}}`, id))
	}
	event := func(id, event string) int {
		return decode(envelope.In, fmt.Sprintf(`{"id":%q,"event":%s}`, id, event))
	}
	open("1", "/event")
	open("2", "/event")
	open("3", "/global/event")
	for i, step := range []struct {
		stream, event string
		frames        int
	}{
		{"1", `{"id":"a","type":"x"}`, 1},
		{"2", `{"id":"a","type":"x"}`, 0},
		{"2", `{"id":"b","type":"x"}`, 1}, // the first stream is behind, or dead
		{"1", `{"id":"b","type":"x"}`, 0},
		{"1", `{"id":"b","type":"x"}`, 0},
		{"2", `{"id":"b","type":"x"}`, 1}, // said twice
		{"3", `{"payload":{"id":"b","type":"x"}}`, 1},
		{"1", `{"type":"x"}`, 1}, // without an id
		{"2", `{"type":"x"}`, 0},
		{"1", `{"id":"c","type":"server.heartbeat"}`, 0},
	} {
		if n := event(step.stream, step.event); n != step.frames {
			t.Errorf("step %d: %d frames, want %d", i, n, step.frames)
		}
	}
	if n := decode(envelope.In, `{"id":"1","ended":true}`); n != 0 {
		t.Errorf("%d frames at the end of a stream", n)
	}
	if n := event("2", `{"type":"x"}`); n != 1 {
		t.Errorf("the stream that is left: %d frames", n)
	}
	for i := range seenLimit + 1 {
		event("2", fmt.Sprintf(`{"id":"n%d","type":"x"}`, i))
	}
	if n := len(c.(*openCodeCodec).seen.first); n != seenLimit {
		t.Errorf("%d events are remembered", n)
	}
}

func TestOpenCodeServe(t *testing.T) {
	for in, want := range map[string]string{
		"[]": "[serve --hostname=127.0.0.1 --port=0]",
		"[serve --port 4096 --print-logs --hostname=0.0.0.0]": "[serve --print-logs --hostname=127.0.0.1 --port=0]",
		"[cli.js serve --port=1]":                             "[cli.js serve --hostname=127.0.0.1 --port=0]",
	} {
		if got := fmt.Sprint(OpenCode.Serve(strings.Fields(strings.Trim(in, "[]")))); got != want {
			t.Errorf("%s: %s: want %s", in, got, want)
		}
	}
}
