package replay

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

const placeFrame = `{"a":{"b":[{"id":"b0","t":"x","m":[{"id":"m0"},{"id":"m1"}]},{"id":"b1","t":"y","m":[{"id":"m2"}]}],"c.d":{"id":"cd"}},
 "p1":{"id":"q1"},"p2":{"id":"q2"},"p?":{"id":"q3"},"\u0065":{"id":"e"},"d":"first","d":"second","":{"id":"none"}}`

// TestPlaceFinds compares what a path names with the values; a JSON string
// stands for itself.
func TestPlaceFinds(t *testing.T) {
	for path, want := range map[string]string{
		"a.b.0.id":                 "b0",
		"a.b.9.id":                 "",
		"a.b.id":                   "",
		"a.b.#.id":                 "b0 b1",
		"a.b.#.m.#.id":             "m0 m1 m2",
		"a.b.#.m.0.id":             "m0 m2",
		`a.b.#(t=="y").id`:         "b1",
		`a.b.#(t=="y")#.m.#.id`:    "m2",
		`a.b.#(t!="z")#.id`:        "b0 b1",
		`a.b.#(m.#(id=="m2")).id`:  "b1",
		`a.b.#(t=="z").id`:         "",
		`a.c\.d.id`:                "cd",
		"p*.id":                    "q1 q2 q3",
		"p?.id":                    "q1 q2 q3",
		`p\?.id`:                   "q3",
		`p\?*.id`:                  "q3",
		"*1.id":                    "q1",
		"p1*.id":                   "q1",
		"*.id":                     "q1 q2 q3 e none",
		"e.id":                     "e",
		"d":                        "first second",
		"d.x":                      "",
		"**.m.#.id":                "m0 m1 m2",
		"**.b.*.id":                "b0 b1",
		"**.id":                    "b0 m0 m1 b1 m2 cd q1 q2 q3 e none",
		"a.b.#(t==\"x\")#.m.1.id":  "m1",
		`a.b.#(id=="b)0\"")#.m.id`: "",
	} {
		p, err := parsePlace(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		var got []string
		p.find([]byte(placeFrame), 0, func(i int) { got = append(got, gjson.Parse(placeFrame[i:]).Str) })
		if d := cmp.Diff(want, strings.Join(got, " ")); d != "" {
			t.Errorf("%s (-want +got):\n%s", path, d)
		}
	}
}

// TestPlaceFindsWhatGjsonFinds takes gjson's word for paths where it knows the
// positions.
func TestPlaceFindsWhatGjsonFinds(t *testing.T) {
	for _, path := range []string{"a", "a.b", "a.b.0", "a.b.1.t", "a.b.#.id", "a.b.#.m.0.id", `a.b.#(t=="y")`, `a.b.#(t=="y")#.t`, "p2.id", "p2*.id", `a.c\.d.id`, "a.b.0.m.1"} {
		r := gjson.Get(placeFrame, path)
		want := r.Indexes
		if want == nil {
			want = []int{r.Index}
		}
		p, err := parsePlace(path)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		p.find([]byte(placeFrame), 0, func(i int) { got = append(got, i) })
		if !slices.Equal(want, got) {
			t.Errorf("%s is at %v: gjson has it at %v", path, got, want)
		}
	}
}

func TestPlaceErrors(t *testing.T) {
	for path, want := range map[string]string{
		"":            `path "": empty step`,
		"a.":          `path "a.": empty step`,
		"a..b":        `path "a..b": empty step`,
		"a.#":         `path "a.#": ends in a #: name what is below`,
		"a|b":         `path "a|b": "|b" after a step: want a dot`,
		"a.#x":        `path "a.#x": "x" after a step: want a dot`,
		"a.#(b":       `path "a.#(b": query "#(b" has no end`,
		"a.#(b)#c":    `path "a.#(b)#c": "c" after a step: want a dot`,
		"a.@reverse":  `path "a.@reverse": "@reverse" computes something: want keys, indexes, # and *`,
		"{a,b}":       `path "{a,b}": "{a,b}" computes something: want keys, indexes, # and *`,
		"a.[b]":       `path "a.[b]": "[b]" computes something: want keys, indexes, # and *`,
		`!"x"`:        `path "!\"x\"": "!\"x\"" computes something: want keys, indexes, # and *`,
		"a.#.m|@this": `path "a.#.m|@this": "|@this" after a step: want a dot`,
	} {
		p, err := parsePlace(path)
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, %v: want %s", path, p, err, want)
		}
	}
}

func FuzzParsePlace(f *testing.F) {
	for _, s := range []string{"a.b.0", `a\.b.*`, `a.#(t=="x")#.m.#.id`, "**.id", "p?.#.x", `\`, `*\`, "#(", `#("\`} {
		f.Add(s, placeFrame)
	}
	f.Fuzz(func(t *testing.T, path, frame string) {
		p, err := parsePlace(path)
		if err != nil || !gjson.Valid(frame) {
			return
		}
		for at := range places([]byte(frame), []place{p}) {
			if at <= 0 || at >= len(frame) || !gjson.Valid(frame[at:envelope.SkipValue([]byte(frame), at)]) {
				t.Errorf("%q in %s: offset %d is no value", path, frame, at)
			}
		}
	})
}
