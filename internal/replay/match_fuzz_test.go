package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// agree checks one pair: the compiled matcher, the reference and diff say the
// same.
func agree(t testing.TB, want, got, ignore, idKey string) {
	t.Helper()
	if !fitForReference([]byte(want), []byte(got)) {
		return
	}
	m := matching{idKey: idKey}
	var paths []place
	if p, err := parsePlace(ignore); err == nil {
		m.ignore, paths = []string{ignore}, []place{p}
	}
	ok := m.match(t, want, got)
	if ref := referenceMatch([]byte(want), []byte(got), paths, idKey, "/ws"); ok != ref {
		t.Errorf("want %s\ngot  %s\nignored %q, id %q: match is %v, the reference says %v", want, got, ignore, idKey, ok, ref)
	}
}

func FuzzMatch(f *testing.F) {
	for _, s := range [][3]string{
		{`{"id":1,"a":["<any>","x<any>y",{"<workspace>":1}]}`, `{"a":[1,"xy",{"/ws":1}],"id":2}`, "a.0"},
		{`{"a":"<bind:x>","b":"-<bind:x>-<any>","c":"<bind:x>"}`, `{"b":"-q-","a":"q","c":"q"}`, "c"},
		{`{"a":1,"a":2,"b":"<<any>"}`, `{"b":"<any>","a":1,"a":2}`, "a"},
		{`"<any><workspace><any>2"`, `"/ws2"`, ""},
		{`["\ud800","\/",1.0,-0]`, `["\uD800","/",1.0,-0]`, "#.x"},
		{`["<uuid>","<timestamp>","<path>","<int>","<number>","<bool>","<string>"]`, `["019dadea-f49b-7012-aa03-534f1bfc3181","2025-01-02T03:04:05Z","/x",1,1e2,true,""]`, "3"},
	} {
		f.Add(s[0], s[1], s[2], true)
		f.Add(s[0], s[0], s[2], false)
	}
	f.Fuzz(func(t *testing.T, want, got, ignore string, request bool) {
		idKey := ""
		if request {
			idKey = "id"
		}
		agree(t, want, got, ignore, idKey)
	})
}

// generator makes expectations and frames that match them, or nearly.
type generator struct {
	*rand.Rand
	wrong int      // one in so many values is changed, 0 for none
	keys  []string // what keys are made of
}

func (g *generator) pick(list ...string) string { return list[g.IntN(len(list))] }

// pair returns an expectation and a frame for it.
func (g *generator) pair(depth int) (want, got string) {
	kind := g.IntN(8)
	if depth == 0 {
		kind = 2 + g.IntN(6)
	}
	switch kind {
	case 0:
		return g.list("[", "]", depth, func() (string, string) { return "", "" }, false)
	case 1:
		return g.list("{", "}", depth, g.key, true)
	case 2:
		lit := g.pick("1", "1.0", "-0", "0", "1e2", "100", "9007199254740993", "true", "false", "null")
		return lit, g.change(lit)
	case 3:
		p := g.pick("<any>", "<string>", "<int>", "<number>", "<bool>", "<bind:a>", "<bind:b>", "<workspace>", "<<any>", "<path>")
		return `"` + p + `"`, g.change(g.pick(`"/ws"`, "1", `"<any>"`, "true", `"x"`, "1.5"))
	}
	return g.text()
}

// key returns a key as recorded and as sent, each with its colon.
func (g *generator) key() (want, got string) {
	k := g.pick(g.keys...)
	sent := strings.ReplaceAll(k, "<workspace>", "/ws")
	return quote(k) + ":", g.pick(quote(sent), `"`+escapeAll(sent)+`"`) + ":"
}

func (g *generator) list(open, end string, depth int, key func() (string, string), shuffle bool) (string, string) {
	var want, got []string
	for range g.IntN(4) {
		wk, gk := key()
		w, v := g.pair(depth - 1)
		w, v = wk+w, gk+v
		want = append(want, w)
		if g.wrong == 0 || g.IntN(g.wrong) > 0 {
			got = append(got, v)
		}
		if g.wrong > 0 && g.IntN(g.wrong) == 0 {
			got = append(got, v)
		}
	}
	if shuffle && g.IntN(2) == 0 {
		g.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
	}
	space := g.pick("", "", " ", "\t")
	return open + strings.Join(want, ",") + end, open + space + strings.Join(got, space+","+space) + end
}

// text makes a string of pieces and one that it may match.
func (g *generator) text() (string, string) {
	want, got := "", ""
	for range g.IntN(5) {
		switch g.IntN(6) {
		case 0:
			want += "<any>"
			got += g.pick("", "a", "ab", "/ws", "/ws2", "<any>")
		case 1:
			want += "<workspace>"
			got += "/ws"
		case 2:
			want += "<<any>"
			got += "<any>"
		default:
			s := g.pick("a", "b", "ab", "/", "2", "<", "/ws", "<int>", "é", "\u2028")
			want, got = want+s, got+s
		}
	}
	return quote(want), g.change(g.pick(quote(got), `"`+escapeAll(got)+`"`))
}

func (g *generator) change(v string) string {
	if g.wrong > 0 && g.IntN(g.wrong) == 0 {
		return g.pick(`"a"`, `""`, "1", "null", "[]", "{}", `"/ws/b"`, `"ab"`)
	}
	return v
}

func quote(s string) string { return string(envelope.AppendString(nil, s)) }

// escapeAll spells a text in \u escapes.
func escapeAll(s string) string {
	out := ""
	for _, r := range s {
		out += fmt.Sprintf(`\u%04x`, r)
	}
	return out
}

func TestMatchAgreesWithReference(t *testing.T) {
	keys := []string{"a", "b", "id", "a", "<workspace>", "<workspace>/x", "<any>", "é"}
	ignores := []string{"", "a", "id", "a.b", "0", "#.a", "a.#.b", "*.b", "1.0"}
	matched := 0
	const rounds = 30000
	for seed := range uint64(rounds) {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), wrong: []int{0, 8, 3}[seed%3], keys: keys}
		want, got := g.pair(3)
		idKey := g.pick("", "id")
		agree(t, want, got, g.pick(ignores...), idKey)
		m := matching{idKey: idKey}
		if fitForReference([]byte(want), []byte(got)) && m.match(t, want, got) {
			matched++
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if matched < rounds/4 || matched > rounds*3/4 {
		t.Errorf("%d of %d pairs match: the generator says little", matched, rounds)
	}
}

// TestDiffPathsExist looks up every difference in the frames it is about.
func TestDiffPathsExist(t *testing.T) {
	keys := []string{"a", "b.c", "d*e", "f|g", "#", "@this", "0", "é", " ", "!", "{", "[x]", `q"`, `b\s`, "<any>", "\u2028", "~", "a=b", "(", "%"}
	seen := map[string]int{}
	for seed := range uint64(20000) {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 2)), wrong: 3, keys: keys}
		want, got := g.pair(3)
		if !fitForReference([]byte(want), []byte(got)) || twice(want) || twice(got) {
			continue
		}
		m := matching{}
		p := m.compile(want)
		for _, d := range m.bound.diff(p, []byte(got), false) {
			seen[d.Kind]++
			checkPlace(t, d, "expected", want, d.Expected, d.Kind != "extra")
			checkPlace(t, d, "actual", got, d.Actual, d.Kind != "missing")
		}
		if t.Failed() {
			t.Fatalf("seed %d\nwant %s\ngot  %s", seed, want, got)
		}
	}
	for _, kind := range []string{"changed", "missing", "extra"} {
		if seen[kind] < 100 {
			t.Errorf("%d differences are %s: the generator says little", seen[kind], kind)
		}
	}
}

func checkPlace(t *testing.T, d Difference, what, frame string, value json.RawMessage, exists bool) {
	t.Helper()
	there := gjson.Result{Raw: strings.TrimSpace(frame)}
	if d.Path != "" {
		there = gjson.Get(frame, d.Path)
	}
	if exists != (value != nil) || exists && there.Raw != string(value) || !exists && there.Exists() {
		t.Errorf("%s %q: %s is %s, but the frame has %s there", d.Kind, d.Path, what, value, there.Raw)
	}
}

// twice says whether an object has a key twice, which paths can't tell apart.
func twice(raw string) bool {
	n, _ := parseNode([]byte(raw), envelope.SkipSpace([]byte(raw), 0))
	n.finish(nil)
	var walk func(*node) bool
	walk = func(n *node) bool {
		found := n.twice
		for _, f := range n.keys {
			found = found || walk(f.value)
		}
		for _, v := range n.items {
			found = found || walk(v)
		}
		return found
	}
	return walk(n)
}

func TestDiffLists(t *testing.T) {
	m := matching{ignore: []string{"free"}, idKey: "id"}
	p := m.compile(`{"id":1,"m":"x","p":{"a":1,"gone":[2]},"l":[1,2,3],"free":1}`)
	got := m.bound.diff(p, []byte(`{"id":9,"p":{"new":null,"a":1.0},"m":"x","l":[1,3],"free":2,"more":{}}`), true)
	want := []Difference{
		{Path: "p.a", Kind: "changed", Expected: json.RawMessage("1"), Actual: json.RawMessage("1.0")},
		{Path: "p.gone", Kind: "missing", Expected: json.RawMessage("[2]")},
		{Path: "p.new", Kind: "extra", Actual: json.RawMessage("null")},
		{Path: "l.1", Kind: "changed", Expected: json.RawMessage("2"), Actual: json.RawMessage("3")},
		{Path: "l.2", Kind: "missing", Expected: json.RawMessage("3")},
		{Path: "more", Kind: "extra", Actual: json.RawMessage("{}")},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("differences (-want +got):\n%s", d)
	}
	many := `[` + strings.Repeat("1,", 2*maxDifferences) + `1]`
	if got := m.bound.diff(m.compile(many), []byte(`[]`), false); len(got) != maxDifferences {
		t.Errorf("%d differences: want %d at most", len(got), maxDifferences)
	}
}

// FuzzParseText reads any text as placeholders: nothing is lost, and a literal
// that was escaped comes back.
func FuzzParseText(f *testing.F) {
	for _, s := range []string{"", "<any>", "<<any>", "<<<any>x", "a<workspace>/b<bind:n.1>", "<int>", " <int>", "<bind:>", "<<", "<an<any>", "<\xff>", "<bind:x><int>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		parts, plain := envelope.ParseText(s)
		if plain != (parts == nil) {
			t.Fatalf("%q: plain is %v with parts %v", s, plain, parts)
		}
		for i, p := range parts {
			if p.Kind == envelope.PartText && (p.Text == "" || i > 0 && parts[i-1].Kind == envelope.PartText) {
				t.Errorf("%q: parts %+v have an empty or a split text", s, parts)
			}
		}
		escaped := refToken.ReplaceAllStringFunc(s, func(p string) string { return "<" + p })
		if back := parsedLiteral(escaped); back != s {
			t.Errorf("%q, escaped %q, comes back as %q", s, escaped, back)
		}
		b := State{}.bindings("/ws")
		if raw, err := b.render([]byte(quote(escaped))); err != nil || !bytes.Equal(raw, []byte(quote(s))) {
			t.Errorf("%q is sent as %s, error %v", s, raw, err)
		}
	})
}

// parsedLiteral is the text of a string without placeholders.
func parsedLiteral(s string) string {
	parts, plain := envelope.ParseText(s)
	if plain {
		return s
	}
	text := ""
	for _, p := range parts {
		if p.Kind != envelope.PartText {
			return fmt.Sprintf("placeholders: %+v", parts)
		}
		text += p.Text
	}
	return text
}
