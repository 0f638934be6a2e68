package replay

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

func header(metadata string) string {
	return strings.TrimSuffix(testHeader, "}") + `,"metadata":` + metadata + "}"
}

func TestLoadErrors(t *testing.T) {
	const method = `{"method":"a"}`
	bind := func(label, params string) string { return out(label, `{"method":"a","params":`+params+`}`) }
	use := func(params string) string { return in("use", `{"method":"b","params":`+params+`}`) }
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"unknown protocol": {[]string{strings.Replace(testHeader, "codex.app-server", "none", 1), out("a", method)}, `:1: unknown protocol "none": want `},
		"no header":        {[]string{`{"x":"transcript_start"}`}, `:1: first line is line without a type`},
		"no entries":       {[]string{testHeader}, `:1: transcript has no entries: nothing to play`},
		"bad entry":        {[]string{out("a", method), `{"type":"expect"}`}, `:3: type "expect": want`},
		"bad outbound":     {[]string{out("a", method), "", out("a", `{"result":1}`)}, `:4: outbound frame: neither method nor id`},
		"bad inbound":      {[]string{in("a", `[]`)}, `:2: inbound frame: a batch array`},
		"ignore no list":   {[]string{header(`{"match":{"ignore":"a"}}`), out("a", method)}, `:1: metadata.match.ignore: want a list of paths`},
		"ignore no text":   {[]string{header(`{"match":{"ignore":["a",1]}}`), out("a", method)}, `:1: metadata.match.ignore: 1 is not a path`},
		"ignore no place":  {[]string{header(`{"match":{"ignore":["a","a|@reverse"]}}`), out("a", method)}, `:1: metadata.match.ignore: path "a|@reverse": `},
		"bind too late":    {[]string{use(`"<bind:x>"`), bind("a", `"<bind:x>"`)}, `:2: <bind:x> is used before an outbound frame captures it`},
		"bind in text":     {[]string{bind("a", `"<bind:y>"`), use(`["a \u003Cbind:x>"]`)}, `:3: <bind:x> is used before an outbound frame captures it`},
		"capture in text":  {[]string{bind("a", `["x<bind:x>","<bind:x>"]`)}, `:2: <bind:x> inside a string before it is captured: capture it as a whole value first`},
		"bind in a key":    {[]string{bind("a", `"<bind:x>"`), bind("a", `{"<bind:x>":1}`)}, `:3: <bind:x> in an outbound key`},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeScript(t, c.lines...)
			s, err := Load(path, 0)
			var syn *envelope.SyntaxError
			if s != nil || !errors.As(err, &syn) || !strings.HasPrefix(err.Error(), path+c.want) {
				t.Errorf("%v, %v: want an error that starts %q", s, err, path+c.want)
			}
		})
	}
	if _, err := Load("nowhere.ndjson", 0); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "read transcript: ") {
		t.Errorf("no file gives %v", err)
	}
	path := writeScript(t, out("a", method), out("a", `{"method":"`+strings.Repeat("a", 400)+`"}`))
	if _, err := Load(path, 300); err == nil || err.Error() != path+":3: line is longer than 300 bytes: raise the line limit" {
		t.Errorf("a long line gives %v", err)
	}
}

func TestLoadCounts(t *testing.T) {
	s := load(t,
		out("a", `{"method":"a","params":["<bind:x>","<bind:x>","-<bind:x>","<<bind:y>"]}`),
		in("b", `{"method":"b","params":{"<bind:x>":"<<bind:y>"}}`), in("", `"<bind:free>"`, `"channel":"stderr"`), exit("success"))
	if d := cmp.Diff([]int{4, 1, 0, 64}, []int{s.Total, s.Outbound, s.CRLF, len(s.SHA256)}); d != "" {
		t.Errorf("total, outbound, CRLF, length of the hash (-want +got):\n%s", d)
	}
	p := perform(t, load(t, out("a", `{"method":"a"}`)+"\r"), Options{}, State{}, []turn{{`send {"method":"a"}`, "closing"}})
	if d := cmp.Diff([]string{"the transcript has lines that end in CR LF"}, p.Report().Warnings); d != "" {
		t.Errorf("warnings (-want +got):\n%s", d)
	}
}

// TestLargeFileIsStreamed plays a file above the limit.
func TestLargeFileIsStreamed(t *testing.T) {
	fill := `{"method":"fill","params":"` + strings.Repeat("x", 1<<20) + `"}`
	entries := []string{ask(1, "go")}
	for range inMemory>>20 + 1 {
		entries = append(entries, in("fill", fill))
	}
	entries = append(entries, exit("success"), out("b", `{"method":"b"}`), exit("success"))
	s := load(t, entries...)
	if s.entries != nil {
		t.Fatalf("%d entries are kept of a large file", len(s.entries))
	}
	s.Path = writeScript(t, entries...)
	p := newPlayer(t, s, Options{}, State{})
	stg := &stage{p: p}
	stg.do(start)
	st := p.State()
	p.Stop() // what was read ahead is dropped, and reading ends
	p.Stop()
	p = perform(t, s, Options{}, st, []turn{{`send {"method":"b"}`, "closing"}})
	wantCounts(t, p, "passed entries 13+0/13 outbound 2+0/2 inbound 9")
	p = perform(t, s, Options{}, State{}, []turn{{`send {"method":"b"}`, "fail mismatch frame"}})
	if n := p.Report().Failure.Nearest; n == nil || n.Line != 13 {
		t.Errorf("nearest is %+v: want line 13", n)
	}
}

// TestStreamedFileChanges removes or breaks the file while it is played.
func TestStreamedFileChanges(t *testing.T) {
	lines := []string{ask(1, "go"), in("a", `{"method":"a"}`), ask(2, "b"), exit("success"), out("c", `{"method":"c"}`)}
	s, err := Load(writeScript(t, lines...), 0)
	if err != nil {
		t.Fatal(err)
	}
	s.entries = nil
	if err := os.WriteFile(s.Path, []byte(strings.Join([]string{testHeader, lines[0], "oops"}, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := New(s, Options{}, State{Version: 1, Cursor: 3}); err == nil || !strings.HasPrefix(err.Error(), s.Path+":3: not JSON") {
		t.Errorf("a later launch gives %v, %v", p, err)
	}
	p := perform(t, s, Options{}, State{}, []turn{{"", "fail invalid transcript"}})
	if got := p.Report().Headline(); !strings.HasPrefix(got, s.Path+":3: not JSON") {
		t.Errorf("headline is %q", got)
	}
	if err := os.Remove(s.Path); err != nil {
		t.Fatal(err)
	}
	if p, err := New(s, Options{}, State{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a removed file gives %v, %v", p, err)
	}
}
