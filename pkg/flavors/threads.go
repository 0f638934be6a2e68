package flavors

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// Where frames say which conversation thread they belong to.
var (
	codexThreads = []Place{
		{envelope.In, "*", "params.threadId"}, {envelope.In, "*", "params.thread.id"},
		{envelope.In, "*", "result.thread.id"}, {envelope.Out, "*", "params.threadId"},
	}

	claudeThreads = []Place{{envelope.In, "*", "parent_tool_use_id"}}

	acpThreads = []Place{
		{envelope.In, "*", "params.sessionId"}, {envelope.In, "*", "result.sessionId"}, {envelope.Out, "*", "params.sessionId"},
	}

	openCodeThreads = []Place{
		{envelope.In, "*", "event.properties.sessionID"}, {envelope.In, "*", "event.properties.info.sessionID"},
		{envelope.In, "*", "event.properties.part.sessionID"}, {envelope.Out, "*", "input.sessionID"},
	}
)

// Spans returns where in the raw frame the piece of the stream stands, none
// where the frame has none.
func (s Stream) Spans(dir envelope.Direction, f Frame) [][2]int {
	if !s.Fits(f) {
		return nil
	}
	return Spans([]Place{s.Place()}, dir, f)
}

// Place is where the piece stands in a frame that fits.
func (s Stream) Place() Place { return Place{s.Dir, "*", s.Path} }

// Fits says whether frames of this kind have a piece of the stream.
func (s Stream) Fits(f Frame) bool {
	return s.Method == "*" || s.Method == f.Method || s.Method == gjson.GetBytes(f.Raw, "type").Str
}

// Name tells the frame's text apart from others of the stream.
func (s Stream) Name(f Frame) string {
	var name strings.Builder
	for _, path := range s.Key {
		name.WriteString(gjson.GetBytes(f.Raw, path).Raw)
		name.WriteByte(0)
	}
	return name.String()
}
