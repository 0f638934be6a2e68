package scenario

import (
	"encoding/json"
	"strings"
	"testing"
)

const projection = `{"thread":{"id":"thread:1","branch":null},"runs":[{"ordinal":1,"status":"completed"},{"ordinal":2,"status":"failed"}],
	"messages":[{"role":"user","text":"say ok"},{"role":"assistant","text":"ok\nthen"}]}`

func TestHold(t *testing.T) {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	raws := func(s ...string) (out []json.RawMessage) {
		for _, v := range s {
			out = append(out, raw(v))
		}
		return out
	}
	n := func(i int) *int { return &i }
	tests := []struct {
		name string
		a    Assertion
		want string // part of the failure; "" holds
	}{
		{"equals", Assertion{Path: "runs.#.status", Equals: raw(`["completed","failed"]`)}, ""},
		{"equals by value", Assertion{Path: "runs.#", Equals: raw(`2.0`)}, ""},
		{"equals null", Assertion{Path: "thread.branch", Equals: raw(`null`)}, ""},
		{"null is not nothing", Assertion{Path: "thread.nope", Equals: raw(`null`)}, "got  nothing: no such path"},
		{"equals, order", Assertion{Path: "runs.#.status", Equals: raw(`["failed","completed"]`)}, "+"},
		{"equals, type", Assertion{Path: "runs.0.ordinal", Equals: raw(`"1"`)}, `want "1"`},
		{"length", Assertion{Path: "runs", Length: n(2)}, ""},
		{"length of object", Assertion{Path: "thread", Length: n(2)}, ""},
		{"length of string", Assertion{Path: "messages.0.text", Length: n(6)}, ""},
		{"length of nothing", Assertion{Path: "nope", Length: n(0)}, "want length 0"},
		{"contains text", Assertion{Path: "messages.0.text", Contains: raw(`"ok"`)}, ""},
		{"contains element", Assertion{Path: "runs.#.status", Contains: raw(`"failed"`)}, ""},
		{"contains no part of an element", Assertion{Path: "runs.#.status", Contains: raw(`"fail"`)}, "something that contains"},
		{"matches", Assertion{Path: "messages.1.text", Matches: `ok.*`}, ""},
		{"matches is anchored", Assertion{Path: "messages.1.text", Matches: `ok`}, "a string like ok"},
		{"matches alternatives whole", Assertion{Path: "messages.0.text", Matches: `say|x`}, "a string like"},
		{"matches no number", Assertion{Path: "runs.0.ordinal", Matches: `1`}, "a string like"},
		{"exists", Assertion{Path: "thread.id", Exists: true}, ""},
		{"null does not exist", Assertion{Path: "thread.branch", Exists: true}, "want a value"},
		{"absent", Assertion{Path: "thread.nope", Absent: true}, ""},
		{"null is absent", Assertion{Path: "thread.branch", Absent: true}, ""},
		{"not absent", Assertion{Path: "thread.id", Absent: true}, `got  "thread:1"`},
		{"one of", Assertion{Path: "runs.1.status", OneOf: raws(`"failed"`, `"cancelled"`)}, ""},
		{"none of", Assertion{Path: "runs.0.status", OneOf: raws(`"failed"`, `"cancelled"`)}, `one of ["failed","cancelled"]`},
		{"ordered", Assertion{Path: "messages.#.role", Ordered: raws(`"user"`, `"assistant"`)}, ""},
		{"ordered with gap", Assertion{Path: "runs.#.ordinal", Ordered: raws(`2`)}, ""},
		{"out of order", Assertion{Path: "messages.#.role", Ordered: raws(`"assistant"`, `"user"`)}, "in this order"},
		{"same as", Assertion{Path: "runs.1.ordinal", SameAs: "runs.#"}, ""},
		{"not the same", Assertion{Path: "runs.0.ordinal", SameAs: "runs.#"}, "want 2, as at runs.#"},
		{"same as nothing", Assertion{Path: "nope", SameAs: "runs.7"}, "where nothing is"},
		{"ordered wants an array", Assertion{Path: "thread", Ordered: raws(`1`)}, "in this order"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.a.hold("f.yaml", []byte(projection))
			if (f == nil) != (tt.want == "") || f != nil && !strings.Contains(f.Error(), tt.want) {
				t.Errorf("got %v, want %q", f, tt.want)
			}
		})
	}
}

func TestFailureText(t *testing.T) {
	a := Assertion{Line: 7, Path: "runs.#.status", Equals: json.RawMessage(`["completed"]`)}
	got := a.hold("t/scenario.yaml", []byte(projection)).Error()
	for _, want := range []string{
		"t/scenario.yaml:7: runs.#.status\n  want [\"completed\"]\n  got  [\"completed\",\"failed\"]\n  diff (-want +got)\n",
		`+ 	string("failed"),`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
}
