package envelope

import (
	"encoding/json"
	"testing"
)

func TestSeal(t *testing.T) {
	sum := func(entries ...Entry) string {
		var s Seal
		for _, e := range entries {
			s.Add(e)
		}
		return s.Sum()
	}
	in := func(frame string) *EmitInbound { return &EmitInbound{Label: "l", Frame: json.RawMessage(frame)} }
	base := sum(in(`{"a":1}`), &RuntimeExit{Status: Success})
	ms := int64(3)
	same := sum(&ExpectOutbound{Frame: json.RawMessage(`{}`)}, &EmitInbound{Channel: Protocol, Frame: json.RawMessage(`{"a":1}`), AfterMs: &ms}, &RuntimeExit{Status: Success})
	if base != same {
		t.Errorf("labels, pace or expectations count: %s, %s", base, same)
	}
	for name, other := range map[string]string{
		"frame":  sum(in(`{"a":2}`), &RuntimeExit{Status: Success}),
		"spaces": sum(in(`{"a": 1}`), &RuntimeExit{Status: Success}),
		"exit":   sum(in(`{"a":1}`), &RuntimeExit{Status: Failed}),
		"none":   sum(),
		"order":  sum(&RuntimeExit{Status: Success}, in(`{"a":1}`)),
		"raw":    sum(&EmitInbound{Channel: Stderr, Frame: json.RawMessage(`{"a":1}`)}, &RuntimeExit{Status: Success}),
	} {
		if other == base {
			t.Errorf("%s does not change the seal", name)
		}
	}
}
