package flavors

import (
	"encoding/json"
	"slices"
	"strconv"
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

// Applies says whether a place is looked for in frames of the method.
func (p Place) Applies(dir envelope.Direction, method string) bool {
	return p.Dir == dir && (p.Method == "*" || p.Method == method)
}

// Spans returns where in the raw frame the piece of the stream stands, none
// where the frame has none.
func (s Stream) Spans(dir envelope.Direction, f Frame) [][2]int {
	if s.Method != "*" && s.Method != f.Method && s.Method != gjson.GetBytes(f.Raw, "type").Str {
		return nil
	}
	return Spans([]Place{{s.Dir, "*", s.Path}}, dir, f)
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

// Spans returns where in the raw frame the places stand, as offsets [from,
// to), in order; a span within another is left out.
func Spans(places []Place, dir envelope.Direction, f Frame) [][2]int {
	var found [][2]int
	for _, p := range places {
		if !p.Applies(dir, f.Method) {
			continue
		}
		rest, deep := strings.CutPrefix(p.Path, "**.")
		spans(f.Raw, envelope.SkipSpace(f.Raw, 0), strings.Split(rest, "."), deep, &found)
	}
	if len(found) < 2 {
		return found
	}
	slices.SortFunc(found, func(a, b [2]int) int {
		if a[0] != b[0] {
			return a[0] - b[0]
		}
		return b[1] - a[1]
	})
	kept := found[:1]
	for _, s := range found[1:] {
		if s[0] >= kept[len(kept)-1][1] {
			kept = append(kept, s)
		}
	}
	return kept
}

// spans walks the value at offset at of valid JSON.
func spans(raw json.RawMessage, at int, path []string, deep bool, found *[][2]int) {
	if len(path) == 0 {
		*found = append(*found, [2]int{at, envelope.SkipValue(raw, at)})
		return
	}
	object := raw[at] == '{'
	if !object && raw[at] != '[' {
		return
	}
	i := envelope.SkipSpace(raw, at+1)
	for k := 0; raw[i] != '}' && raw[i] != ']'; k++ {
		fits := path[0] == "*"
		if object {
			end := envelope.SkipString(raw, i)
			fits = fits || string(raw[i+1:end-1]) == path[0]
			i = envelope.SkipSpace(raw, envelope.SkipSpace(raw, end)+1)
		} else {
			fits = fits || strconv.Itoa(k) == path[0]
		}
		if fits {
			spans(raw, i, path[1:], false, found)
		}
		if deep {
			spans(raw, i, path, true, found)
		}
		if i = envelope.SkipSpace(raw, envelope.SkipValue(raw, i)); raw[i] == ',' {
			i = envelope.SkipSpace(raw, i+1)
		}
	}
}
