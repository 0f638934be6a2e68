package flavors

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

func TestLookup(t *testing.T) {
	for _, f := range All {
		if got, err := ByProtocol(f.Protocol); err != nil || got != f {
			t.Errorf("ByProtocol(%q): %v", f.Protocol, err)
		}
		if f.Classify == nil || f.NewCodec == nil || len(f.Providers) == 0 {
			t.Errorf("%s lacks Classify, NewCodec or a provider", f.Protocol)
		}
		for _, p := range f.Providers {
			if _, err := ByProvider(p); err != nil {
				t.Errorf("ByProvider(%q): %v", p, err)
			}
		}
	}
	if f, err := ByProtocol("x"); f != nil || err == nil || !strings.HasPrefix(err.Error(), `unknown protocol "x": want codex.app-server, `) {
		t.Errorf("ByProtocol(x): %v", err)
	}
	if f, err := ByProvider("x"); f != nil || err == nil || !strings.HasPrefix(err.Error(), `unknown provider "x": want codex`) {
		t.Errorf("ByProvider(x): %v", err)
	}
}

func TestClassifyCodex(t *testing.T) {
	tests := []struct {
		raw, method, id string
		kind            Kind
		err             string
	}{
		{raw: `{"id":1,"method":"initialize","params":{}}`, kind: Request, method: "initialize", id: "1"},
		{raw: ` {"method":"a","id":"x"}`, kind: Request, method: "a", id: `"x"`},
		{raw: `{"id":9007199254740993,"method":"a"}`, kind: Request, method: "a", id: "9007199254740993"},
		{raw: `{"id":null,"method":"a"}`, kind: Request, method: "a", id: "null"},
		{raw: `{"method":"initialized"}`, kind: Notification, method: "initialized"},
		{raw: `{"method":"a","emittedAtMs":1}`, kind: Notification, method: "a"},
		{raw: `{"id":0,"result":null}`, kind: Response, id: "0"},
		{raw: `{"error":{"code":1},"id":0}`, kind: Response, id: "0"},
		{raw: `[]`, err: "a batch array: send one message per line"},
		{raw: ` [{"id":1}]`, err: "a batch array: send one message per line"},
		{raw: `"x"`, err: "not a JSON object"},
		{raw: `"{"`, err: "not a JSON object"},
		{raw: `{}`, err: "neither method nor id: not a request, notification or response"},
		{raw: `{"result":1}`, err: "neither method nor id: not a request, notification or response"},
		{raw: `{"id":1}`, err: "response 1 wants exactly one of result and error"},
		{raw: `{"id":1,"result":1,"error":2}`, err: "response 1 wants exactly one of result and error"},
		{raw: `{"id":1,"method":"a","result":1}`, err: "a has both a method and a result or error"},
		{raw: `{"method":1}`, err: "method is not a string"},
		{raw: `{"id":1,"id":2,"method":"a"}`, err: "two ids in one frame"},
		{raw: `{"method":"a","method":"b"}`, err: "two methods in one frame"},
	}
	for _, c := range tests {
		f, err := Codex.Classify(envelope.Out, json.RawMessage(c.raw))
		switch {
		case c.err != "":
			if err == nil || err.Error() != c.err {
				t.Errorf("%s: got %v, want %s", c.raw, err, c.err)
			}
		case err != nil:
			t.Errorf("%s: %v", c.raw, err)
		case f.Kind != c.kind || f.Method != c.method || string(f.ID) != c.id || string(f.Raw) != c.raw:
			t.Errorf("%s: got %s %q %s", c.raw, f.Kind, f.Method, f.ID)
		}
	}
}

func TestCheckID(t *testing.T) {
	for id, ok := range map[string]bool{
		`1`: true, `0`: true, `-1`: true, `"a"`: true, `""`: true, `9007199254740993`: true, `"1.5e"`: true,
		`null`: false, `true`: false, `false`: false, `1.0`: false, `1e3`: false, `{}`: false, `[1]`: false, ``: false,
	} {
		if err := Codex.CheckID(json.RawMessage(id)); (err == nil) != ok {
			t.Errorf("CheckID(%s): %v", id, err)
		}
	}
}

func TestEncodeReplacesTheIDAlone(t *testing.T) {
	tests := []struct{ raw, id, want string }{
		{`{"id":1,"method":"a","params":{"id":1}}`, `"x"`, `{"id":"x","method":"a","params":{"id":1}}`},
		{`{"params":{"id":1},"method":"a", "id" : 1 }`, `2`, `{"params":{"id":1},"method":"a", "id" : 2 }`},
		{`{"id":"a.b","result":{}}`, `9007199254740993`, `{"id":9007199254740993,"result":{}}`},
		{`{"\u0069d":1,"method":"a"}`, `2`, `{"\u0069d":2,"method":"a"}`},
		{`{"id":1,"method":"a"}`, ``, `{"id":1,"method":"a"}`},
	}
	for _, c := range tests {
		f, err := Codex.Classify(envelope.In, json.RawMessage(c.raw))
		if err != nil {
			t.Fatal(err)
		}
		var id json.RawMessage
		if c.id != "" {
			id = json.RawMessage(c.id)
		}
		got, err := Codex.NewCodec(Launch{}).Encode([]byte("before\n"), envelope.In, f, id)
		if err != nil || string(got) != "before\n"+c.want+"\n" {
			t.Errorf("%s with id %s: got %s, %v", c.raw, c.id, got, err)
		}
	}
}

func TestDecode(t *testing.T) {
	c := Codex.NewCodec(Launch{})
	for _, wire := range []string{"", "x", `{"id":1,`, `[]`, `{}`} {
		if frames, err := c.Decode(envelope.Out, []byte(wire)); err == nil || frames != nil {
			t.Errorf("Decode(%q) = %v, %v", wire, frames, err)
		}
	}
	frames, err := c.Decode(envelope.Out, []byte(`{"id":1,"method":"a"}`))
	if err != nil || len(frames) != 1 || frames[0].Method != "a" {
		t.Errorf("Decode: %v, %v", frames, err)
	}
}

func TestRefusal(t *testing.T) {
	f, err := Codex.Classify(envelope.Out, json.RawMessage(`{"id":"a\n","method":"m"}`))
	if err != nil {
		t.Fatal(err)
	}
	got := Codex.Refusal(f, `line "1"`+"\n")
	if want := `{"id":"a\n","error":{"code":-32603,"message":"line \"1\"\n"}}`; string(got) != want {
		t.Errorf("Refusal is %s: want %s", got, want)
	}
}

func TestProbe(t *testing.T) {
	tests := []struct {
		dir  envelope.Direction
		raw  string
		want map[string]string
	}{
		{envelope.In, `{"id":1,"result":{"userAgent":"client/0.171.0 (Linux; x) dumb"}}`, map[string]string{"providerVersion": "0.171.0"}},
		{envelope.In, `{"id":2,"result":{"thread":{"id":"t"},"model":"gpt-5.5"}}`, map[string]string{"model": "gpt-5.5"}},
		{envelope.In, `{"id":2,"result":{"model":"gpt-5.5"}}`, nil},
		{envelope.In, `{"method":"x","params":{"userAgent":"a/1"}}`, nil},
		{envelope.Out, `{"id":1,"result":{"userAgent":"a/1 x"}}`, nil},
	}
	for _, c := range tests {
		f, err := Codex.Classify(c.dir, json.RawMessage(c.raw))
		if err != nil {
			t.Fatal(err)
		}
		got := Codex.Probe(c.dir, f)
		if len(got) != len(c.want) {
			t.Errorf("%s: got %v, want %v", c.raw, got, c.want)
		}
		for k, v := range c.want {
			if got[k] != v {
				t.Errorf("%s: %s is %q, want %q", c.raw, k, got[k], v)
			}
		}
	}
}

func TestCorpusIsLegal(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join("..", "..", "..", "shared", "corpus", "*", "codex.ndjson"))
	if len(files) == 0 {
		t.Skip("no corpus beside the repository")
	}
	for _, file := range files {
		eachFrame(t, file, func(dir envelope.Direction, raw json.RawMessage) {
			f, err := Codex.Classify(dir, raw)
			if err != nil {
				t.Errorf("%s: %v: %s", file, err, raw)
			} else if f.ID != nil && Codex.CheckID(f.ID) != nil {
				t.Errorf("%s: id %s", file, f.ID)
			}
		})
	}
}

func eachFrame(t testing.TB, file string, fn func(envelope.Direction, json.RawMessage)) {
	tr, err := envelope.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range tr.Entries {
		switch e := e.(type) {
		case *envelope.ExpectOutbound:
			fn(envelope.Out, e.Frame)
		case *envelope.EmitInbound:
			fn(envelope.In, e.Frame)
		}
	}
}

// FuzzClassify: no panic, and the parts it names are those that encoding/json
// finds.
func FuzzClassify(f *testing.F) {
	for _, s := range []string{`{"id":1,"method":"a"}`, `{"method":"a"}`, `{"id":"x","result":{}}`, `[{}]`, `{"\u0069d":1,"error":{}}`, `{"id":1,"id":2}`, ``, `{`} {
		f.Add([]byte(s))
	}
	files, _ := filepath.Glob(filepath.Join("..", "..", "..", "shared", "corpus", "simple", "codex.ndjson"))
	for _, file := range files {
		if _, err := os.Stat(file); err == nil {
			eachFrame(f, file, func(_ envelope.Direction, raw json.RawMessage) { f.Add([]byte(raw)) })
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, flavor := range All {
			if !json.Valid(raw) {
				return
			}
			got, err := flavor.Classify(envelope.Out, raw)
			if err != nil {
				continue
			}
			if string(got.Raw) != string(raw) {
				t.Fatalf("%s: raw frame changed", flavor.Protocol)
			}
			if got.ID != nil && !json.Valid(got.ID) {
				t.Fatalf("%s: id %q of %q", flavor.Protocol, got.ID, raw)
			}
			if got.Kind == Notification && got.ID != nil {
				t.Fatalf("%s: %s with id %q", flavor.Protocol, got.Kind, got.ID)
			}
			if flavor.CheckID != nil && got.ID != nil {
				_ = flavor.CheckID(got.ID)
			}
			if flavor.Probe != nil {
				flavor.Probe(envelope.In, got)
			}
		}
	})
}

// FuzzOnTape: a frame that was scanned is classified as its bytes are, and tells
// the same version and names.
func FuzzOnTape(f *testing.F) {
	for _, s := range []string{`{"id":1,"method":"a"}`, `{"\u0069d":1,"error":{}}`, `{"id":1,"id":2}`, `[{}]`, `"x"`, `{"type":"a","type":"b"}`} {
		f.Add([]byte(s))
	}
	files, _ := filepath.Glob("../../transcripts/[s-t]*/*.ndjson")
	for _, file := range files {
		n := 0
		eachFrame(f, file, func(_ envelope.Direction, raw json.RawMessage) {
			if n++; n < 4 {
				f.Add([]byte(raw))
			}
		})
	}
	volatile := map[*Flavor]*Matcher{}
	for _, flavor := range All {
		volatile[flavor] = NewMatcher(flavor.Volatile...)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		line := append(append([]byte(`{"frame":`), raw...), '}')
		var tape envelope.Tape
		if !json.Valid(raw) || !tape.Scan(line) {
			return
		}
		v := envelope.Value{Tape: &tape, Index: 2}
		raw = v.Bytes()
		for _, flavor := range All {
			for _, dir := range []envelope.Direction{envelope.Out, envelope.In} {
				want, wantErr := flavor.Classify(dir, raw)
				got, err := flavor.OnTape(dir, v)
				if d := cmp.Diff(want, got); d != "" || fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Fatalf("%s: %s frame %s\n%v, by its bytes %v\n%s", flavor.Protocol, dir, raw, err, wantErr, d)
				}
				if err != nil {
					continue
				}
				if version := flavor.Version(dir, got); version != flavor.Probe(dir, got)["providerVersion"] {
					t.Fatalf("%s: %s frame %s tells version %q, and %v", flavor.Protocol, dir, raw, version, flavor.Probe(dir, got))
				}
				for _, s := range flavor.Streams {
					if one, two := string(s.AppendName(nil, &got, v)), s.Name(got); one != two {
						t.Fatalf("%s: frame %s names %q and %q", flavor.Protocol, raw, one, two)
					}
				}
				m := volatile[flavor]
				if one, two := slices.Clone(m.OnTape(dir, got.Method, v)), m.Find(dir, got); !slices.Equal(one, two) {
					t.Fatalf("%s: places in frame %s: %v and %v", flavor.Protocol, raw, one, two)
				}
			}
		}
	})
}

// FuzzReplaceID: the frame that comes out is the one that went in but for its
// id, byte for byte.
func FuzzReplaceID(f *testing.F) {
	f.Add([]byte(`{"id":1,"method":"a","params":{"id":1}}`), `"x"`)
	f.Add([]byte(`{ "params" : {"id":1}, "\u0069d" : "1" , "result":{}}`), `2`)
	f.Fuzz(func(t *testing.T, raw []byte, text string) {
		if !json.Valid(raw) {
			return
		}
		was, err := Codex.Classify(envelope.In, raw)
		if err != nil || was.ID == nil {
			return
		}
		id, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		out := replaceID(nil, was, id)
		is, err := Codex.Classify(envelope.In, out)
		if err != nil {
			t.Fatalf("%q became %q: %v", raw, out, err)
		}
		if string(is.ID) != string(id) || is.Kind != was.Kind || is.Method != was.Method {
			t.Fatalf("%q became %q", raw, out)
		}
		if back := replaceID(nil, is, was.ID); string(back) != string(raw) {
			t.Fatalf("%q came back as %q", raw, back)
		}
	})
}
