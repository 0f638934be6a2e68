package replay

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pair is an expectation, a frame, and whether they match in workspace /ws.
type pair struct {
	want, got string
	match     bool
}

func checkPairs(t *testing.T, m matching, pairs []pair) {
	t.Helper()
	for _, c := range pairs {
		m.bound = nil
		if got := m.match(t, c.want, c.got); got != c.match {
			t.Errorf("want %s\ngot  %s\nmatch is %v: want %v", c.want, c.got, got, c.match)
		}
	}
}

func TestMatchAny(t *testing.T) {
	checkPairs(t, matching{}, []pair{
		{`"<any>"`, `"x"`, true},
		{`"<any>"`, `{"a":[1,null]}`, true},
		{`{"a":"<any>"}`, `{"a":null}`, true},
		{`{"a":"<any>"}`, `{}`, false},
		{`"a<any>"`, `"a"`, true},
		{`"a<any>"`, `"abc"`, true},
		{`"a<any>"`, `"ba"`, false},
		{`"<any>a"`, `"xa"`, true},
		{`"<any>a"`, `"ab"`, false},
		{`"a<any>"`, `1`, false},
		{`"a<any>b<any>c"`, `"abc"`, true},
		{`"a<any>b<any>c"`, `"a b b c c"`, true},
		{`"a<any>b<any>c"`, `"acb"`, false},
		{`"a<any>b<any>c"`, `"abcd"`, false},
		{`"<any>b<any>"`, `"abc"`, true},
		{`"<any>b<any>"`, `"ac"`, false},
		{`"aba<any>aba"`, `"aba"`, false},
		{`"aba<any>aba"`, `"ababa"`, false},
		{`"aba<any>aba"`, `"abaaba"`, true},
		{`"a<any><any>b"`, `"ab"`, true},
		{`"<any> \u00e9<any>"`, "\"caf\u00e9 \u00e9\"", true},
		{`"line<any>"`, `"line\none\u2028two"`, true},
	})
}

func TestMatchTyped(t *testing.T) {
	const uuid, stamp = `"019DADEA-f49b-7012-aa03-534f1bfc3181"`, `"2025-01-02T03:04:05.678+02:00"`
	checkPairs(t, matching{}, []pair{
		{`"<string>"`, `""`, true}, {`"<string>"`, `1`, false}, {`"<string>"`, `null`, false},
		{`"<int>"`, `-12`, true}, {`"<int>"`, `9007199254740993`, true},
		{`"<int>"`, `1.0`, false}, {`"<int>"`, `1e2`, false}, {`"<int>"`, `"1"`, false},
		{`"<number>"`, `1e2`, true}, {`"<number>"`, `-0.5`, true}, {`"<number>"`, `true`, false},
		{`"<bool>"`, `true`, true}, {`"<bool>"`, `false`, true}, {`"<bool>"`, `"true"`, false}, {`"<bool>"`, `null`, false},
		{`"<uuid>"`, uuid, true}, {`"<uuid>"`, `"019dadea-f49b-7012-aa03-534f1bfc318"`, false},
		{`"<uuid>"`, `"019dadea-f49b-7012-aa03-534f1bfc31812"`, false},
		{`"<uuid>"`, `"019dadeaxf49b-7012-aa03-534f1bfc3181"`, false}, {`"<uuid>"`, `"g19dadea-f49b-7012-aa03-534f1bfc3181"`, false},
		{`"<timestamp>"`, stamp, true}, {`"<timestamp>"`, `"2025-01-02T03:04:05Z"`, true},
		{`"<timestamp>"`, `"2025-01-02"`, false}, {`"<timestamp>"`, `1735787045`, false},
		{`"<path>"`, `"/a"`, true}, {`"<path>"`, `"C:\\a"`, true}, {`"<path>"`, `"\\\\host\\share"`, true}, {`"<path>"`, `"a/b"`, false}, {`"<path>"`, `"C:a"`, false},
		// As whole strings only.
		{`"n <int>"`, `"n 1"`, false}, {`"n <int>"`, `"n <int>"`, true},
		{`"<int> n"`, `"<int> n"`, true}, {`"<int><int>"`, `"<int><int>"`, true},
		{`"<int><any>"`, `"<int>1"`, true}, {`"<int><any>"`, `"1"`, false},
		{`"<unknown>"`, `"<unknown>"`, true}, {`"<unknown>"`, `"x"`, false}, {`"<Any>"`, `"x"`, false},
	})
}

func TestMatchWorkspace(t *testing.T) {
	checkPairs(t, matching{}, []pair{
		{`"<workspace>"`, `"/ws"`, true},
		{`"<workspace>"`, `"\/w\u0073"`, true},
		{`"<workspace>"`, `"/ws/"`, false},
		{`"<workspace>"`, `"/other"`, false},
		{`"<workspace>/a"`, `"/ws/a"`, true},
		{`"<workspace>/a"`, `"/ws/b"`, false},
		{`"cd <workspace> && ls"`, `"cd /ws && ls"`, true},
		{`"<workspace>:<workspace>"`, `"/ws:/ws"`, true},
		{`"<workspace><any>"`, `"/ws"`, true},
		{`"<workspace><any>"`, `"/ws/a"`, true},
		{`"<workspace><any>"`, `"/ws\\a"`, true},
		{`"<workspace><any>"`, `"/ws2/a"`, false},
		{`"<workspace><any>"`, `"/ws-old"`, false},
		{`"<workspace><any>"`, `"/ws.bak"`, false},
		{`"<workspace><any>"`, "\"/ws\u00e9\"", false},
		{`"<any><workspace><any>"`, `"in /ws2 and /ws, too"`, true},
		{`"<any><workspace><any>"`, `"in /ws2"`, false},
		{`"<any><workspace><any>2"`, `"/ws2"`, false},
		{`"<any><workspace><any>2"`, `"/ws 2"`, true},
		{`"<any><workspace>"`, `"in /ws"`, true},
		{`{"<workspace>":1}`, `{"/ws":1}`, true},
		{`{"<workspace>/a":1,"b":2}`, `{"b":2,"/ws/a":1}`, true},
		{`{"<workspace>":1}`, `{"<workspace>":1}`, false},
		{`{"<any>":1}`, `{"<any>":1}`, true},
		{`{"<any>":1}`, `{"x":1}`, false},
		{`{"<<workspace>":1}`, `{"<workspace>":1}`, true},
	})
}

// TestMatchNoWorkspace has a replay without a workspace directory.
func TestMatchNoWorkspace(t *testing.T) {
	m := matching{bound: State{}.bindings("")}
	for _, c := range []pair{{`"<any><workspace><any>2"`, `"12"`, true}, {`"<any><workspace><any>2"`, `"1"`, false}, {`"<workspace>"`, `""`, true}} {
		if got := m.match(t, c.want, c.got); got != c.match {
			t.Errorf("want %s\ngot  %s\nmatch is %v: want %v", c.want, c.got, got, c.match)
		}
	}
}

func TestMatchEscapes(t *testing.T) {
	checkPairs(t, matching{}, []pair{
		{`"<<any>"`, `"<any>"`, true},
		{`"<<any>"`, `"x"`, false},
		{`"<<any>"`, `"<<any>"`, false},
		{`"<<<any>"`, `"<<any>"`, true},
		{`"<<any><any>"`, `"<any>x"`, true},
		{`"<<any><any>"`, `"y"`, false},
		{`"a <<workspace> b"`, `"a <workspace> b"`, true},
		{`"<<bind:x>"`, `"<bind:x>"`, true},
		{`"<<int>"`, `"<int>"`, true},
		{`"<<int>"`, `1`, false},
		{`"a <<int>"`, `"a <int>"`, true},
		{`"<bind:>"`, `"<bind:>"`, true},
		{`"<bind:a b>"`, `"<bind:a b>"`, true},
		{`"a << b"`, `"a << b"`, true},
		{`"\u003cany\u003E"`, `"x"`, true},
		{`"\u003c<any>"`, `"<any>"`, true},
		{`"<an<any>"`, `"<anything"`, true},
	})
}

func TestMatchBind(t *testing.T) {
	checkPairs(t, matching{}, []pair{
		{`{"a":"<bind:x>","b":"<bind:x>"}`, `{"a":1,"b":1}`, true},
		{`{"a":"<bind:x>","b":"<bind:x>"}`, `{"a":1,"b":1.0}`, false},
		{`{"a":"<bind:x>","b":"<bind:x>"}`, `{"a":1,"b":"1"}`, false},
		{`{"a":"<bind:x>","b":"<bind:x>"}`, `{"a":{"p":1,"q":[2]},"b":{"q":[2],"p":1}}`, true},
		{`{"a":"<bind:x>","b":"<bind:x>"}`, `{"a":{"p":1},"b":{"p":2}}`, false},
		{`{"a":"<bind:x>","b":"<bind:x>"}`, `{"a":"\u0041","b":"A"}`, true},
		{`{"a":"<bind:x>","b":"<bind:y>"}`, `{"a":1,"b":2}`, true},
		// What was captured holds no placeholders, in values or keys.
		{`{"a":"<bind:x>","b":"<bind:x>"}`, `{"a":["<any>"],"b":["x"]}`, false},
		{`{"a":"<bind:x>","b":"<bind:x>"}`, `{"a":{"<<any>":1,"c":2},"b":{"c":2,"<<any>":1}}`, true},
		// Inside a string, and in whatever order the keys come.
		{`{"a":"<bind:x>","b":"id-<bind:x>!"}`, `{"a":"q","b":"id-q!"}`, true},
		{`{"a":"<bind:x>","b":"id-<bind:x>!"}`, `{"b":"id-q!","a":"q"}`, true},
		{`{"a":"<bind:x>","b":"id-<bind:x>!"}`, `{"b":"id-p!","a":"q"}`, false},
		{`{"a":"<bind:x>","b":"id-<bind:x>"}`, `{"a":12,"b":"id-12"}`, true},
		{`{"a":"<bind:x>","b":"<any><bind:x>"}`, `{"a":"q","b":"aqq"}`, true},
		{`{"a":"<bind:x>","b":"<any><bind:x>"}`, `{"a":"q","b":"aqp"}`, false},
	})
}

// TestBindStays tells what a name holds after some frames, of which only
// those that match as a whole count.
func TestBindStays(t *testing.T) {
	m := matching{}
	for _, c := range []pair{
		{`{"a":"<bind:x>","b":1}`, `{"a":"lost","b":2}`, false},
		{`{"a":"<bind:x>","b":1}`, `{"a":{"k":"v"},"b":1}`, true},
		{`["<bind:x>"]`, `[{ "k" : "v" }]`, true},
		{`["<bind:x>"]`, `["lost"]`, false},
		{`"is <bind:x>"`, `"is {\"k\":\"v\"}"`, true},
	} {
		if got := m.match(t, c.want, c.got); got != c.match {
			t.Errorf("want %s\ngot  %s\nmatch is %v: want %v", c.want, c.got, got, c.match)
		}
	}
	if d := cmp.Diff(map[string]json.RawMessage{"x": json.RawMessage(`{"k":"v"}`)}, m.bound.names); d != "" {
		t.Errorf("names (-want +got):\n%s", d)
	}
}

func TestRender(t *testing.T) {
	b := State{}.bindings("/w s")
	b.names["s"], b.names["n"], b.names["o"] = json.RawMessage(`"a\"b"`), json.RawMessage(`1.0`), json.RawMessage(`{"k":"<any>"}`)
	b.literals["recorded"] = "act\nual"
	for _, c := range []struct{ recorded, sent string }{
		{`{"a": 1.0, "b":"\/"}`, `{"a": 1.0, "b":"\/"}`},
		{`["<workspace>", "<workspace>/x", "at <workspace>"]`, `["/w s", "/w s/x", "at /w s"]`},
		{`{"<workspace>":{"<bind:n>" :1}}`, `{"/w s":{"1.0" :1}}`},
		{`["<bind:s>","<bind:n>","<bind:o>"]`, `["a\"b",1.0,{"k":"<any>"}]`},
		{`["-<bind:s>","-<bind:n>"]`, `["-a\"b","-1.0"]`},
		{`["<<bind:s>","<<any>","<any>","<int>","<<<any>"]`, `["<bind:s>","<any>","<any>","<int>","<<any>"]`},
		{`["recorded","not recorded",{"recorded":"recorded"}]`, `["act\nual","not recorded",{"act\nual":"act\nual"}]`},
		{`["\u003cworkspace>","\ud800<workspace>"]`, `["/w s","\ud800/w s"]`},
		{"\"<workspace>\xff\u2028\"", "\"/w s\xff\u2028\""},
	} {
		got, err := b.render(json.RawMessage(c.recorded))
		if d := cmp.Diff(c.sent, string(got)); d != "" || err != nil {
			t.Errorf("%s (-want +got), error %v:\n%s", c.recorded, err, d)
		}
	}
	for _, raw := range []string{`"<bind:none>"`, `["a <bind:none> b"]`} {
		if got, err := b.render(json.RawMessage(raw)); err == nil {
			t.Errorf("%s is sent as %s: want an error", raw, got)
		}
	}
}
