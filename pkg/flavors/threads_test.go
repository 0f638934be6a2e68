package flavors

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

func TestSpans(t *testing.T) {
	raw := json.RawMessage(`{ "a":{"id": 1,"b":[{"id":"x"},{"id":{"id":3}}]}, "id" : 2}`)
	f := Frame{Method: "m", Raw: raw}
	for path, want := range map[string][]string{
		"a.id":      {"1"},
		"a.b.*.id":  {`"x"`, `{"id":3}`},
		"a.b.1.id":  {`{"id":3}`},
		"**.id":     {"1", `"x"`, `{"id":3}`, "2"},
		"id":        {"2"},
		"none":      nil,
		"a.id.deep": nil,
	} {
		var got []string
		for _, s := range Spans([]Place{{envelope.In, "m", path}}, envelope.In, f) {
			got = append(got, string(raw[s[0]:s[1]]))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", path, d)
		}
	}
	if got := Spans([]Place{{envelope.Out, "*", "id"}, {envelope.In, "n", "id"}}, envelope.In, f); got != nil {
		t.Errorf("places of other frames: %v", got)
	}
}
