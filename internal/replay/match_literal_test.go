package replay

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMatchLiterals(t *testing.T) {
	const big = 9007199254740993 // 2^53+1
	checkPairs(t, matching{}, []pair{
		{`1`, `1`, true}, {`1`, `1.0`, false}, {`100`, `1e2`, false}, {`1e2`, `1E2`, false}, {`0`, `-0`, false}, {`-0`, `-0`, true},
		{fmt.Sprint(big), fmt.Sprint(big), true}, {fmt.Sprint(big), fmt.Sprint(big - 1), false},
		{`1`, `"1"`, false}, {`true`, `true`, true}, {`true`, `false`, false}, {`null`, `null`, true}, {`null`, `0`, false}, {`null`, `{}`, false},
		{`{}`, `{}`, true}, {`{}`, `[]`, false}, {`[]`, `{}`, false}, {`{}`, `{"a":null}`, false}, {`{"a":null}`, `{}`, false},
		{`[1,2]`, `[1,2]`, true}, {`[1,2]`, `[2,1]`, false}, {`[1]`, `[1,2]`, false}, {`[1,2]`, `[1]`, false}, {`[[]]`, `[[[]]]`, false},
		{`{"a":1,"b":{"c":2,"d":3}}`, `{"b":{"d":3,"c":2},"a":1}`, true},
		{` { "a" : [ 1 , 2 ] } `, "\t{\"a\":[1,\r\n2]}", true},
		{`[true , null,1 ]`, `[true,null,1]`, true},
		{`{"A":1}`, `{"a":1}`, false},
	})
}

func TestMatchDuplicateKeys(t *testing.T) {
	checkPairs(t, matching{}, []pair{
		{`{"a":1,"a":2}`, `{"a":1,"a":2}`, true},
		{`{"a":1,"a":2}`, `{"a":2,"a":1}`, false},
		{`{"a":1,"a":2}`, `{"a":2}`, false},
		{`{"a":2}`, `{"a":1,"a":2}`, false},
		{`{"a":1,"b":0,"a":2}`, `{"a":1,"a":2,"b":0}`, true},
		{`{"a":1,"\u0061":2}`, `{"a":1,"a":2}`, true},
	})
}

// TestMatchLargeObjects covers objects beyond the size that is searched
// member by member.
func TestMatchLargeObjects(t *testing.T) {
	object := func(n, from int, more string) string {
		var members []string
		for i := range n {
			k := (i + from) % n
			members = append(members, fmt.Sprintf(`"k%d":%d`, k, k))
		}
		return "{" + strings.Join(members, ",") + more + "}"
	}
	for _, n := range []int{15, 16, 17, 40} {
		checkPairs(t, matching{}, []pair{
			{object(n, 0, ""), object(n, 0, " "), true},
			{object(n, 0, ""), object(n, 7, ""), true},
			{object(n, 0, `,"d":1,"d":2`), object(n, 3, `,"d":1,"d":2`), true},
			{object(n, 0, `,"d":1,"d":2`), object(n, 3, `,"d":2,"d":1`), false},
			{object(n, 0, ""), object(n, 3, `,"k3":3`), false},
			{object(n, 0, ""), object(n-1, 0, ""), false},
			{object(n-1, 0, ""), object(n, 0, ""), false},
		})
	}
}

func TestMatchStrings(t *testing.T) {
	checkPairs(t, matching{}, []pair{
		{`"A"`, `"\u0041"`, true}, {`"\u0041"`, `"A"`, true}, {`"/"`, `"\/"`, true}, {`"\n"`, `"\u000a"`, true}, {`"\u000A"`, `"\u000a"`, true},
		{`"\u00e9"`, "\"\u00e9\"", true}, {"\"e\u0301\"", "\"\u00e9\"", false},
		{`"\ud83d\ude00"`, "\"\U0001f600\"", true},
		{`"\ud800"`, `"\ud801"`, false}, {`"\ud800"`, `"\uD800"`, true}, {`"\ud800"`, `"\ufffd"`, false}, {`"\ude00\ud83d"`, `"\ud83d\ude00"`, false},
		{"\"\xff\"", "\"\xff\"", true}, {"\"\xff\"", "\"\xfe\"", false}, {"\"\xff\"", "\"\ufffd\"", false},
		{"\"a\u2028b\"", `"a\u2028b"`, true}, {"\"a\u2028b\"", `"a\nb"`, false},
		{`{"\u0061":1}`, `{"a":1}`, true}, {`{"a":1}`, `{"\u0061":1}`, true}, {`{"\ud800":1}`, `{"\ud801":1}`, false},
		{`""`, `""`, true}, {`""`, `" "`, false}, {`""`, `null`, false},
	})
}

func TestMatchIgnore(t *testing.T) {
	for _, c := range []struct {
		ignore string
		pairs  []pair
	}{
		{"a.b", []pair{
			{`{"a":{"b":1,"c":2}}`, `{"a":{"b":[9],"c":2}}`, true},
			{`{"a":{"b":1,"c":2}}`, `{"a":{"c":2}}`, true},
			{`{"a":{"c":2}}`, `{"a":{"b":1,"c":2}}`, true},
			{`{"a":{"b":1,"c":2}}`, `{"a":{"b":1,"c":3}}`, false},
			{`{"a":{"b":1},"b":2}`, `{"a":{"b":1},"b":3}`, false},
			{`{"a":{"b":1}}`, `{"a":5}`, false},
			{`{"a":{"b":1}}`, `{}`, false},
			{`{"a":{"b":"<int>"}}`, `{"a":{"b":"x"}}`, true},
		}},
		{"l.1", []pair{
			{`{"l":[1,2,3]}`, `{"l":[1,9,3]}`, true},
			{`{"l":[1,2,3]}`, `{"l":[1,2,4]}`, false},
			{`{"l":[1,2]}`, `{"l":[1]}`, true},
			{`{"l":[1]}`, `{"l":[1,9]}`, true},
			{`{"l":[1]}`, `{"l":[1,9,9]}`, false},
		}},
		{"l.#.id", []pair{
			{`{"l":[{"id":1,"v":1},{"id":2,"v":2}]}`, `{"l":[{"v":1,"id":8},{"v":2}]}`, true},
			{`{"l":[{"id":1,"v":1},{"id":2,"v":2}]}`, `{"l":[{"v":1,"id":8},{"v":3}]}`, false},
			{`{"l":[{"id":1}]}`, `{"l":[{"id":1},{"id":2}]}`, false},
		}},
		{"l.#.m.#.id", []pair{
			{`{"l":[{"m":[{"id":1},{"id":2}]},{"m":[{"id":3}]}]}`, `{"l":[{"m":[{"id":7},{"id":8}]},{"m":[{"id":9}]}]}`, true},
			{`{"l":[{"m":[{"id":1,"v":1}]}]}`, `{"l":[{"m":[{"id":7,"v":2}]}]}`, false},
		}},
		{`l.#(t=="x")#.m.#.id`, []pair{
			{`{"l":[{"t":"x","m":[{"id":1}]}]}`, `{"l":[{"t":"x","m":[{"id":2}]}]}`, true},
			{`{"l":[{"t":"x","m":[{"id":1}],"v":1}]}`, `{"l":[{"t":"x","m":[{"id":1}],"v":2}]}`, false},
			{`{"l":[{"t":"y","m":[{"id":1}]}]}`, `{"l":[{"t":"y","m":[{"id":2}]}]}`, false},
		}},
		{"*.at", []pair{
			{`{"a":{"at":1,"v":1},"b":{"at":2}}`, `{"b":{"at":8},"a":{"v":1,"at":9}}`, true},
			{`{"a":{"at":1,"v":1}}`, `{"a":{"at":1,"v":2}}`, false},
		}},
		{`a\.b`, []pair{
			{`{"a.b":1,"a":{"b":1}}`, `{"a.b":2,"a":{"b":1}}`, true},
			{`{"a.b":1,"a":{"b":1}}`, `{"a.b":1,"a":{"b":2}}`, false},
		}},
		{"a", []pair{
			{`{"a":1,"a":2,"b":1}`, `{"a":3,"b":1}`, true},
			{`{"b":1}`, `{"a":1,"b":1,"a":2}`, true},
		}},
	} {
		checkPairs(t, matching{ignore: []string{c.ignore}}, c.pairs)
	}
}

// TestMatchIgnoreEitherSide has a path that names a value on one side only.
func TestMatchIgnoreEitherSide(t *testing.T) {
	checkPairs(t, matching{ignore: []string{`l.#(t=="x")#.v`, "l.#.t"}}, []pair{
		{`{"l":[{"t":"x","v":1}]}`, `{"l":[{"t":"y","v":2}]}`, true},
		{`{"l":[{"t":"y","v":1}]}`, `{"l":[{"t":"x","v":2}]}`, true},
		{`{"l":[{"t":"y","v":1}]}`, `{"l":[{"t":"z","v":2}]}`, false},
	})
}

func TestMatchRequestID(t *testing.T) {
	checkPairs(t, matching{idKey: "id"}, []pair{
		{`{"id":1,"m":2}`, `{"m":2,"id":"x"}`, true},
		{`{"id":"<any>","m":2}`, `{"m":2,"id":1}`, true},
		{`{"id":1,"m":2}`, `{"m":2}`, false},
		{`{"id":1,"p":{"id":1}}`, `{"id":2,"p":{"id":2}}`, false},
	})
	checkPairs(t, matching{}, []pair{{`{"id":1}`, `{"id":2}`, false}})
}

func TestMatchChosen(t *testing.T) {
	m := matching{sites: []string{"session", "deep.*.id"}}
	steps := []pair{
		{`{"session":"s-1","n":1}`, `{"session":"lost","n":2}`, false},
		// Wherever the literal stands in the frame, and in whatever order.
		{`{"text":"s-1","session":"s-1"}`, `{"text":"mine","session":"mine"}`, true},
		{`{"again":"s-1"}`, `{"again":"mine"}`, true},
		{`{"again":"s-1"}`, `{"again":"s-1"}`, false},
		{`{"session":"s-1"}`, `{"session":"other"}`, false},
		{`{"s-1":{"k":"about s-1"}}`, `{"mine":{"k":"about s-1"}}`, true},
		{`{"s-1":1}`, `{"s-1":1}`, false},
		{`{"session":"s-2"}`, `{"session":"second"}`, true},
		{`{"deep":{"a":{"id":"d"}},"d":"d"}`, `{"deep":{"a":{"id":"e"}},"e":"e"}`, true},
		// Not a string, or not a literal: compared as ever.
		{`{"session":"s-3"}`, `{"session":3}`, false},
		{`{"session":3}`, `{"session":"s-3"}`, false},
		{`{"session":"<any>"}`, `{"session":"free"}`, true},
	}
	for _, c := range steps {
		if got := m.match(t, c.want, c.got); got != c.match {
			t.Errorf("want %s\ngot  %s\nmatch is %v: want %v", c.want, c.got, got, c.match)
		}
	}
	if d := cmp.Diff(map[string]string{"s-1": "mine", "s-2": "second", "d": "e"}, m.bound.literals); d != "" {
		t.Errorf("literals (-want +got):\n%s", d)
	}
}
