package flavors

import (
	"strings"
	"testing"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

func TestSpans(t *testing.T) {
	const raw = ` {"id":"a","list":[{"id":1,"x.id":2},{"other":{"id":[3]}}],"q.r.s":{"id":4}, "n" : { "list" : [ 5 ] } }`
	for path, want := range map[string]string{
		"id":          `"a"`,
		"**.id":       `"a" 1 [3] 4`,
		"list.*.id":   "1",
		"list.1.*":    `{"id":[3]}`,
		"*.list":      "[ 5 ]",
		"**.x.id":     "2",
		"q.r.s.id":    "4",
		"**.q.r.s":    `{"id":4}`,
		"**.list.0":   `{"id":1,"x.id":2} 5`,
		"list.*.id.0": "",
		"absent":      "",
	} {
		var got []string
		for _, s := range Spans([]Place{{envelope.In, "m", path}, {envelope.Out, "m", "*"}, {envelope.In, "other", "*"}}, envelope.In, Frame{Method: "m", Raw: []byte(raw)}) {
			got = append(got, raw[s[0]:s[1]])
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("%s: %s: want %s", path, g, want)
		}
	}
}

func TestSpansWithinSpans(t *testing.T) {
	f := Frame{Method: "m", Raw: []byte(`{"a":{"b":{"b":1}},"b":2}`)}
	got := Spans([]Place{{envelope.In, "*", "**.b"}, {envelope.In, "*", "a"}}, envelope.In, f)
	if len(got) != 2 || got[0] != [2]int{5, 18} || got[1] != [2]int{23, 24} {
		t.Errorf("spans %v", got)
	}
}
