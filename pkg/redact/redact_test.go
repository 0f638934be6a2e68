package redact

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// token36 has the shape of a GitHub token.
func token36(c string) string { return "ghp_" + strings.Repeat(c+"7x", 12) }

var deltas = []Stream{{
	Dir: envelope.In, Method: "delta", Path: "params.delta", Key: []string{"params.item"}, Ends: [][2]string{{"done", "params.item"}},
}}

func in(frame string) envelope.Entry  { return &envelope.EmitInbound{Frame: json.RawMessage(frame)} }
func out(frame string) envelope.Entry { return &envelope.ExpectOutbound{Frame: json.RawMessage(frame)} }
func stderr(text string) envelope.Entry {
	return &envelope.EmitInbound{Channel: envelope.Stderr, Frame: envelope.AppendString(nil, text)}
}

func delta(item, text string) envelope.Entry {
	return in(fmt.Sprintf(`{"method":"delta","params":{"item":%q,"delta":%s}}`, item, envelope.AppendString(nil, text)))
}

// run redacts all entries and returns the frames.
func run(t testing.TB, r *Redactor, entries ...envelope.Entry) []string {
	t.Helper()
	var frames []string
	put := func(list []envelope.Entry, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			switch e := e.(type) {
			case *envelope.ExpectOutbound:
				frames = append(frames, string(e.Frame))
			case *envelope.EmitInbound:
				frames = append(frames, string(e.Frame))
			case *envelope.RuntimeExit:
				frames = append(frames, string(e.Error))
			}
		}
	}
	for _, e := range entries {
		put(r.Add(e))
	}
	put(r.Flush())
	return frames
}

func TestPlaceholders(t *testing.T) {
	a, b := token36("A"), token36("B")
	for _, c := range []struct {
		name    string
		entries []envelope.Entry
		want    []string
	}{
		{"the same, and another", []envelope.Entry{in(`["` + a + `","` + b + `","x ` + a + `"]`)},
			[]string{`["<redacted:github-token:1>","<redacted:github-token:2>","x <redacted:github-token:1>"]`}},
		{"sent whole, then echoed", []envelope.Entry{out(`{"k":"` + a + `"}`), in(`"you said ` + a + `"`), out(`"again ` + a + `"`), out(`"` + b + ` and ` + b + `"`)},
			[]string{`{"k":"<bind:redacted.github-token.1>"}`, `"you said <bind:redacted.github-token.1>"`, `"again <bind:redacted.github-token.1>"`, `"<any> and <any>"`}},
		{"shown, then sent", []envelope.Entry{in(`"` + a + `"`), out(`"` + a + `"`), out(`"x ` + a + `"`), in(`"` + a + `"`)},
			[]string{`"<redacted:github-token:1>"`, `"<string>"`, `"x <any>"`, `"<redacted:github-token:1>"`}},
		{"sent in text, then whole", []envelope.Entry{out(`"x ` + a + `"`), out(`"` + a + `"`)}, []string{`"x <any>"`, `"<string>"`}},
		{"an encoded form is not captured", []envelope.Entry{out(`"` + base64.StdEncoding.EncodeToString([]byte(a)) + `"`), out(`"x ` + a + `"`)},
			[]string{`"<string>"`, `"x <any>"`}},
		{"an optional frame captures nothing", []envelope.Entry{&envelope.ExpectOutbound{Optional: true, Frame: json.RawMessage(`"` + a + `"`)}, in(`"` + a + `"`)},
			[]string{`"<string>"`, `"<redacted:github-token:1>"`}},
		{"keys", []envelope.Entry{in(`{"` + a + `":1,"` + b + `":2}`), out(`{"` + a + `":1}`)},
			[]string{`{"<redacted:github-token:1>":1,"<redacted:github-token:2>":2}`, `{"<redacted:github-token:1>":1}`}},
		{"after a bracket", []envelope.Entry{out(`"<` + a + `>"`), in(`"<` + a + `>"`)}, []string{`"<string>"`, `"<<redacted:github-token:1>>"`}},
		{"stderr knows no binds", []envelope.Entry{out(`"` + a + `"`), stderr(a + "\n"), &envelope.RuntimeExit{Error: json.RawMessage(`{"stderr":"` + a + `"}`)}},
			[]string{`"<bind:redacted.github-token.1>"`, `"<redacted:github-token:1>\n"`, `{"stderr":"<redacted:github-token:1>"}`}},
		{"ids and methods stay", []envelope.Entry{in(`{"id":"` + a + `","method":"` + a + `","params":{"id":"` + a + `"}}`)},
			[]string{`{"id":"` + a + `","method":"` + a + `","params":{"id":"<redacted:github-token:1>"}}`}},
		{"limits and plans", []envelope.Entry{in(`{"rateLimits":{"planType":"pro","primary":{"usedPercent":12.5,"resetsAt":1776748632,"windowDurationMins":300,"limitId":"codex"}},"n":7}`), out(`{"rateLimits":{"usedPercent":3}}`)},
			[]string{`{"rateLimits":{"planType":"unknown","primary":{"usedPercent":0.0,"resetsAt":0,"windowDurationMins":300,"limitId":"codex"}},"n":7}`, `{"rateLimits":{"usedPercent":3}}`}},
		{"accounts", []envelope.Entry{in(`{"account":{"email":"jo@corp.io","accountId":"8c6f","plan_type":"team"},"accountId":"8c6f"}`)},
			[]string{`{"account":{"email":"<redacted:email:1>","accountId":"<redacted:account:1>","plan_type":"unknown"},"accountId":"<redacted:account:1>"}`}},
		{"members", []envelope.Entry{in(`{"password":"pw","apiKey":"abcd1234","token":"string","Authorization":"Bearer ` + a + `","nextPageToken":"abcd1234abcd","schema":{"password":{"type":"string"}}}`)},
			[]string{`{"password":"<redacted:secret:1>","apiKey":"<redacted:secret:2>","token":"string","Authorization":"Bearer <redacted:github-token:1>","nextPageToken":"abcd1234abcd","schema":{"password":{"type":"string"}}}`}},
		{"bytes beside stay", []envelope.Entry{in(`{ "n":1.0 ,"n":9007199254740993,"s":"\u00e9\/ ` + a + ` \ud83d\ude00" }`)},
			[]string{`{ "n":1.0 ,"n":9007199254740993,"s":"\u00e9\/ <redacted:github-token:1> \ud83d\ude00" }`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := run(t, New(Config{}), c.entries...)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLiteralPlaceholders: text that only looks like a placeholder never
// becomes one.
func TestLiteralPlaceholders(t *testing.T) {
	a, literal := token36("A"), "<redacted:github-token:1>"
	got := run(t, New(Config{Wire: true}), in(`"`+literal+` `+a+` <any>"`), out(`"`+literal+`"`))
	want := []string{`"<redacted:literal:1> <redacted:github-token:1> <<any>"`, `"<string>"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("from the wire (-want +got):\n%s", diff)
	}
	r := New(Config{})
	line := `"` + literal + ` ` + a + ` <any>"`
	r.Reserve([]byte(line))
	if diff := cmp.Diff([]string{`"` + literal + ` <redacted:github-token:2> <any>"`}, run(t, r, in(line))); diff != "" {
		t.Errorf("from a transcript (-want +got):\n%s", diff)
	}
}

func TestEncodings(t *testing.T) {
	config := Config{Home: "/home/jola.k", Users: []string{"jola.k"}, Hosts: []string{"zeph-7.corp.lan"}, Env: []string{"MY_TOKEN=se/cret val+ue"}}
	for in, want := range map[string]string{
		`x=%2Fhome%2Fjola.k%2Fwork`:                                 `x=<home>%2Fwork`,
		`.claude/projects/-home-jola-k-work`:                        `.claude/projects/<home>-work`,
		`file:///home/jola.k/a`:                                     `file://<home>/a`,
		`{"cwd":"\/home\/jola.k\/a"}`:                               `{"cwd":"<home>\/a"}`,
		`/srv/jola.k/x jola.k@zeph-7 zeph-7:`:                       `/srv/<redacted:user:1>/x <redacted:user:1>@<redacted:host:1> <redacted:host:1>:`,
		`jola.kim xjola.k`:                                          `jola.kim xjola.k`,
		`se/cret val+ue`:                                            `<redacted:secret:1>`,
		`q=se%2Fcret%20val%2Bue`:                                    `q=<redacted:secret:1>`,
		`{\"a\":\"se\/cret val+ue\"}`:                               `{\"a\":\"<redacted:secret:1>\"}`,
		`c2UvY3JldCB2YWwrdWU=`:                                      `<redacted:secret:1>`,
		`data:x;base64,` + `eyJhIjoic2UvY3JldCB2YWwrdWUifQ==` + `;`: `data:x;base64,<redacted:secret:1>;`,
		"\x1b[1mse/cr\x1b[0met val+ue\x1b[0m":                       "\x1b[1m<redacted:secret:1>\x1b[0m",
		strings.Repeat("-", 70) + " ghp_" + strings.Repeat("A7x", 6) + "\r\n" + strings.Repeat("B7x", 6): strings.Repeat("-", 70) + " <redacted:github-token:1>",
		`C:\Users\jola.k\x`: `C:\Users\<redacted:user:1>\x`,
	} {
		if got := New(config).Text(in); got != want {
			t.Errorf("%q\nbecomes %q\nwant    %q", in, got, want)
		}
	}
}

func TestNamesThatAreWords(t *testing.T) {
	r := New(Config{Users: []string{"will", "mark"}, Hosts: []string{"forest"}})
	in := "mark will walk in the forest, will@home; /home/mark/x, uid=will, ssh a@forest"
	want := "mark will walk in the forest, <redacted:user:1>@home; /home/<redacted:user:2>/x, uid=<redacted:user:1>, ssh a@<redacted:host:1>"
	if got := r.Text(in); got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
}

func TestStreams(t *testing.T) {
	a := token36("A")
	for n := 1; n < len(a); n++ {
		got := run(t, New(Config{Streams: deltas}), delta("1", "it is "+a[:n]), delta("2", "other"), delta("1", a[n:]+" ok"))
		want := []string{"it is <redacted:github-token:1>", "other", " ok"}
		for i, frame := range got {
			if text := gjson.Get(frame, "params.delta").Str; text != want[i] {
				t.Fatalf("cut after %d bytes: piece %d is %q, want %q", n, i, text, want[i])
			}
		}
	}
	home := run(t, New(Config{Streams: deltas, Home: "/home/jola"}), delta("1", "in /ho"), delta("1", "me/jo"), delta("1", "la"), delta("1", "/x"))
	if got := strings.Join(home, ""); !strings.Contains(got, `"in <home>"`) || strings.Contains(got, "jo") {
		t.Errorf("home in pieces: %s", got)
	}
}

// TestWindowKeepsSecretsWhole moves a secret along a text that is let go in
// small windows.
func TestWindowKeepsSecretsWhole(t *testing.T) {
	a := token36("A")
	for at := range 300 {
		text := strings.Repeat("word and ", 60)
		text = text[:at] + " " + a + " " + text[at:]
		var entries []envelope.Entry
		for i := 0; i < len(text); i += 7 {
			entries = append(entries, delta("1", text[i:min(i+7, len(text))]))
		}
		joined := ""
		for _, frame := range run(t, New(Config{Streams: deltas, Hold: 64}), entries...) {
			joined += gjson.Get(frame, "params.delta").Str
		}
		if want := strings.Replace(text, a, "<redacted:github-token:1>", 1); joined != want {
			t.Fatalf("at %d:\n%s", at, joined)
		}
	}
}

// TestWindow: entries go in order, at the latest when enough came after them,
// and not before a secret in them is whole.
func TestWindow(t *testing.T) {
	clear := func(list []envelope.Entry, err error) int {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	t.Run("other entries do not wait", func(t *testing.T) {
		if n := clear(New(Config{Streams: deltas}).Add(in(`{"method":"x"}`))); n != 1 {
			t.Error(n)
		}
	})
	t.Run("until the end of the item", func(t *testing.T) {
		r := New(Config{Streams: deltas})
		if n := clear(r.Add(delta("1", "a"))) + clear(r.Add(in(`{"method":"done","params":{"item":"2"}}`))); n != 0 {
			t.Error(n)
		}
		if n := clear(r.Add(in(`{"method":"done","params":{"item":"1"}}`))); n != 3 {
			t.Error(n)
		}
	})
	t.Run("until enough text came", func(t *testing.T) {
		r := New(Config{Streams: deltas, Hold: 64})
		n := 0
		for range 100 {
			n += clear(r.Add(delta("1", "some text ")))
		}
		if n < 80 || n > 94 {
			t.Error(n)
		}
	})
	t.Run("until enough else came", func(t *testing.T) {
		r := New(Config{Streams: deltas})
		n := clear(r.Add(delta("1", "a")))
		for range maxQueue {
			n += clear(r.Add(in(`{"method":"x"}`)))
		}
		if n == 0 {
			t.Error("all is held")
		}
	})
	t.Run("a key that has begun", func(t *testing.T) {
		r := New(Config{})
		n := clear(r.Add(stderr("reading\n")))
		n += clear(r.Add(stderr("-----BEGIN PRIVATE KEY-----\n")))
		for range 20 {
			n += clear(r.Add(stderr(strings.Repeat("Ab3d", 16) + "\n")))
		}
		if n != 1 {
			t.Error(n)
		}
		n += clear(r.Add(stderr("-----END PRIVATE KEY-----\n"))) + clear(r.Add(stderr("done\n")))
		if n != 24 {
			t.Error(n)
		}
	})
	t.Run("a secret goes on after its beginning was let go", func(t *testing.T) {
		r := New(Config{Streams: deltas})
		a := token36("A")
		clear(r.Add(delta("1", "it is "+a[:20])))
		for range maxQueue + 1 {
			clear(r.Add(in(`{"method":"x"}`)))
		}
		_, err := r.Add(delta("1", a[20:]))
		if err == nil {
			_, err = r.Flush()
		}
		var leak *LeakError
		if !errors.As(err, &leak) || leak.Rule != "github-token" {
			t.Errorf("error %v", err)
		}
	})
}

// TestLearned: once its surroundings gave a value away, it is looked for
// everywhere.
func TestLearned(t *testing.T) {
	got := run(t, New(Config{}), in(`{"log":"using quiet7lake9","env":{"DB_PASSWORD":"quiet7lake9"}}`), in(`"connected with quiet7lake9"`), in(`"quiet7lake99"`))
	want := []string{
		`{"log":"using <redacted:secret:1>","env":{"DB_PASSWORD":"<redacted:secret:1>"}}`, `"connected with <redacted:secret:1>"`, `"quiet7lake99"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHeader(t *testing.T) {
	r := New(Config{})
	r.Text(token36("A"))
	for in, want := range map[string]string{
		``:           `{"redaction":{"ruleSet":"replaypeer/1","counts":{"github-token":1}}}`,
		`{}`:         `{"redaction":{"ruleSet":"replaypeer/1","counts":{"github-token":1}}}`,
		`{"a": 1.0}`: `{"a": 1.0,"redaction":{"ruleSet":"replaypeer/1","counts":{"github-token":1}}}`,
		`{"redaction":{"ruleSet":"old","counts":{"home":2}}, "z":1}`: `{"redaction":{"ruleSet":"replaypeer/1","counts":{"github-token":1,"home":2}}, "z":1}`,
	} {
		var raw json.RawMessage
		if in != "" {
			raw = json.RawMessage(in)
		}
		got, err := r.Header(envelope.Header{Metadata: raw})
		if err != nil || string(got.Metadata) != want {
			t.Errorf("%s becomes %s, %v", in, got.Metadata, err)
		}
	}
}

func TestCheckFindsWhatIsLeft(t *testing.T) {
	a := token36("A")
	header := `{"type":"transcript_start","provider":"p","protocol":"p","version":"1","scenario":"s"}` + "\n"
	for line, want := range map[string]string{
		`{"type":"emit_inbound","frame":{"params":["` + a + `"]}}`:                       "f:2: github-token at frame.params.0",
		`{"type":"emit_inbound","label":"` + a + `","frame":{}}`:                         "f:2: github-token at label",
		`{"type":"emit_inbound","frame":{"id":"` + a + `"}}`:                             "f:2: github-token at frame.id",
		`{"type":"runtime_exit","status":"success","x":{"` + a + `":1}}`:                 "f:2: github-token at x." + a,
		`{"type":"emit_inbound","channel":"stderr","frame":"` + a + `"}`:                 "f:2: github-token at frame",
		`{"type":"emit_inbound","frame":{"params":["<redacted:github-token:1> <any>"]}}`: "",
	} {
		err := New(Config{}).Check("f", strings.NewReader(header+line))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

func TestSameStructure(t *testing.T) {
	for _, c := range []struct {
		before, after string
		same          bool
	}{
		{`{"a":"x secret y"}`, `{"a":"x <redacted:k:1> y"}`, true},
		{`{"a":"x secret y"}`, `{"a":"x  y"}`, true}, // a piece of a stream
		{`{"a":"secret"}`, `{"a":"<bind:redacted.k.1>"}`, true},
		{`{"secret":1}`, `{"<redacted:k:1>":1}`, true},
		{`{"a":12}`, `{"a":0}`, true},
		{`{"a":"x"}`, `{"a":"z"}`, false},
		{`{"a":"x y"}`, `{"a":"y x"}`, false},
		{`{"a":12}`, `{"a":13}`, false},
		{`{"a":12}`, `{"a":"<any>"}`, false},
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`, false},
		{`{"a":1}`, `{"a":1,"b":2}`, false},
		{`{"id":"secret"}`, `{"id":"<redacted:k:1>"}`, false},
		{`{"id":1}`, `{"id":0}`, false},
		{`{"a":"x"}`, `{"a":"x"`, false},
	} {
		if err := sameFrame([]byte(c.before), []byte(c.after)); (err == nil) != c.same {
			t.Errorf("%s and %s: %v", c.before, c.after, err)
		}
	}
}
