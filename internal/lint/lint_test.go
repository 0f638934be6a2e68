package lint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

const header = `{"type":"transcript_start","provider":"codex","protocol":"codex.app-server","version":"0.171.0","scenario":"simple","metadata":{"capturedAt":"2026-01-02T03:04:05Z","providerVersion":"0.171.0","model":"gpt-5.5","cwdPolicy":"workspace","source":"hand-written","recorder":{"name":"editor","version":"1"},"redaction":{"ruleSet":"none","counts":{}}}}` + "\n"

func rulesOf(found []Finding) string {
	var ids []string
	for _, f := range found {
		ids = append(ids, fmt.Sprintf("%d:%s", f.Line, f.Rule))
	}
	return strings.Join(ids, " ")
}

// The corpus was recorded by another tool, with metadata of its own: that is
// all there is to say about it, and it is said of every key and every leak. Claude
// transcripts have the SDK's version in the header, not the provider's.
func TestCorpus(t *testing.T) {
	root := filepath.Join("..", "..", "..", "shared", "corpus")
	files, err := Find([]string{root})
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no corpus beside the repository")
	}
	if err != nil {
		t.Fatal(err)
	}
	leak := regexp.MustCompile(`"(?:/Users|/home)/`)
	allowed := map[string]bool{"TL003": true, "TL004": true, "TL007": true, "TL009": true, "TL033": true, "TL035": true}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		found, err := Check(file, f, Options{Now: now})
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		missing := map[string]bool{}
		homes := 0
		for _, f := range found {
			if key, ok := strings.CutPrefix(f.Message, "missing "); ok && f.Rule == "TL003" {
				missing[key] = true
			}
			if f.Rule == "TL033" {
				homes++
			}
			if !allowed[f.Rule] {
				t.Errorf("unexpected: %s", f)
			}
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		head, _, _ := bytes.Cut(b, []byte("\n"))
		for _, key := range []string{"capturedAt", "cwdPolicy", "model"} {
			if missing[key] == bytes.Contains(head, []byte(`"`+key+`":`)) {
				t.Errorf("%s: %s is said to be missing: %t", file, key, missing[key])
			}
		}
		if leak.Match(b) != (homes > 0) {
			t.Errorf("%s: %d home paths found, and a plain search finds some: %t", file, homes, leak.Match(b))
		}
	}
}

// What codex was seen to do, and a transcript may therefore hold.
func TestLegalOddities(t *testing.T) {
	tests := map[string]string{
		"item started and never completed": `
{"type":"emit_inbound","label":"l","frame":{"method":"item/started","params":{"item":{"id":"msg"}},"emittedAtMs":1}}`,
		"server ids from 0, beside client ids": `
{"type":"expect_outbound","label":"l","frame":{"id":0,"method":"turn/start"}}
{"type":"emit_inbound","label":"l","frame":{"id":0,"method":"item/tool/call"}}
{"type":"emit_inbound","label":"l","frame":{"id":0,"result":{}}}
{"type":"expect_outbound","label":"l","frame":{"id":0,"error":{"code":1,"message":"no"}}}`,
		"string ids, escaped differently": `
{"type":"expect_outbound","label":"l","frame":{"id":"a","method":"turn/start"}}
{"type":"emit_inbound","label":"l","frame":{"id":"\u0061","result":{}}}`,
		"two calls of one method at a time, answered the other way round": `
{"type":"expect_outbound","label":"l","frame":{"id":1,"method":"model/list"}}
{"type":"expect_outbound","label":"l","frame":{"id":2,"method":"model/list"}}
{"type":"emit_inbound","label":"l","frame":{"id":2,"result":{}}}
{"type":"emit_inbound","label":"l","frame":{"id":1,"error":{"code":-32600,"message":"x"}}}`,
		"unknown method": `
{"type":"expect_outbound","label":"l","frame":{"id":1,"method":"thread/rollback"}}
{"type":"emit_inbound","label":"l","frame":{"id":1,"error":{"code":-32600,"message":"unknown variant"}}}`,
	}
	for name, lines := range tests {
		t.Run(name, func(t *testing.T) {
			text := header + `{"type":"expect_outbound","label":"initialized","frame":{"method":"initialized"}}` + lines + "\n" + `{"type":"runtime_exit","status":"success"}` + "\n"
			found, err := Check("t", strings.NewReader(text), Options{Now: now})
			if err != nil || len(found) > 0 {
				t.Errorf("Check: %v, %v", found, err)
			}
		})
	}
}

// The public Cursor transcripts have no runtime_exit, and that is right there.
func TestExitlessProtocol(t *testing.T) {
	text := strings.NewReplacer("codex.app-server", exitless, `"provider":"codex"`, `"provider":"cursor"`).Replace(header) +
		`{"type":"expect_outbound","label":"agent.open","frame":{"type":"agent.open","operation":"create","options":{}}}` + "\n"
	found, err := Check("t", strings.NewReader(text), Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) > 0 {
		t.Errorf("findings %v: want none", found)
	}
}

func TestFindingsAreInFileOrder(t *testing.T) {
	text := header +
		`{"type":"expect_outbound","frame":{"id":1,"method":"a"}}` + "\r\n" +
		"\n" +
		"{\n" +
		`{"type":"expect_outbound","label":"/home/ann/x","frame":{"method":"/home/ann/x"}}`
	found, err := Check("t", strings.NewReader(text), Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	want := "2:TL016 2:TL030 3:TL032 4:TL001 5:TL018 5:TL031 5:TL033"
	if d := cmp.Diff(want, rulesOf(found)); d != "" {
		t.Errorf("findings (-want +got):\n%s", d)
	}
}

func TestCheckOfNothing(t *testing.T) {
	found, err := Check("t", strings.NewReader(""), Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if got := rulesOf(found); got != "1:TL001" {
		t.Errorf("findings %s: want 1:TL001 alone", got)
	}
}

func TestCheckReturnsReadErrors(t *testing.T) {
	broken := errors.New("disk on fire")
	for _, text := range []string{"", header} {
		r := io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken))
		if found, err := Check("t", r, Options{}); !errors.Is(err, broken) || found != nil {
			t.Errorf("Check after %d bytes: %v, %v", len(text), found, err)
		}
	}
	if _, err := Check("t", strings.NewReader(header), Options{Disable: []string{"TL999"}}); err == nil {
		t.Error("an unknown rule was accepted")
	}
}

// TestStreaming checks a transcript much larger than what may be held. The
// compiled rules of gitleaks take some 20 MiB.
func TestStreaming(t *testing.T) {
	const size = 100 << 20
	entry := `{"type":"emit_inbound","label":"d","frame":{"method":"item/agentMessage/delta","params":{"delta":"` + strings.Repeat("x", 4000) + `"}}}` + "\n"
	r := io.MultiReader(strings.NewReader(header),
		strings.NewReader(`{"type":"expect_outbound","label":"i","frame":{"method":"initialized"}}`+"\n"),
		io.LimitReader(&repeater{text: entry}, int64(size/len(entry)*len(entry))),
		strings.NewReader(`{"type":"runtime_exit","status":"success"}`+"\n"))
	peak := &peakReader{r: r}
	found, err := Check("t", peak, Options{Now: now})
	if err != nil || len(found) > 0 {
		t.Fatalf("Check: %v, %v", found, err)
	}
	if peak.most > 64<<20 {
		t.Errorf("heap grew to %d MiB for a file of %d MiB", peak.most>>20, size>>20)
	}
}

type repeater struct {
	text string
	at   int
}

func (r *repeater) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		m := copy(p[n:], r.text[r.at:])
		n += m
		r.at = (r.at + m) % len(r.text)
	}
	return n, nil
}

// peakReader looks at the heap while it is read.
type peakReader struct {
	r     io.Reader
	reads int
	most  uint64
}

func (p *peakReader) Read(b []byte) (int, error) {
	if p.reads++; p.reads%256 == 0 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		p.most = max(p.most, m.HeapAlloc)
	}
	return p.r.Read(b)
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b/codex.ndjson", "a/codex.ndjson", "a/scenario.yaml", ".git/x.ndjson", "empty/x.txt", "named.txt"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Find([]string{dir, filepath.Join(dir, "named.txt")})
	want := []string{filepath.Join(dir, "a/codex.ndjson"), filepath.Join(dir, "b/codex.ndjson"), filepath.Join(dir, "named.txt")}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("Find: %v (-want +got):\n%s", err, d)
	}
	for _, path := range []string{"empty", "none"} {
		if got, err := Find([]string{filepath.Join(dir, path)}); err == nil {
			t.Errorf("Find(%s) = %v: want an error", path, got)
		}
	}
}

func TestFormat(t *testing.T) {
	in := strings.TrimSuffix(header, "\n") + "\r\n\n" +
		`{ "frame":{ "b" : 1.0 , "a":9007199254740993 }, "type":"expect_outbound","x":[1 , 2],"label":"l", "optional":false}`
	want := header + `{"type":"expect_outbound","label":"l","frame":{ "b" : 1.0 , "a":9007199254740993 },"x":[1 , 2]}` + "\n"
	var out strings.Builder
	if err := Format(&out, "t", strings.NewReader(in)); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("Format (-want +got):\n%s", d)
	}
	var syn *envelope.SyntaxError
	if err := Format(io.Discard, "t", strings.NewReader(header+"{}\n")); !errors.As(err, &syn) || syn.Line != 2 {
		t.Errorf("Format of a bad line: %v", err)
	}
}

func TestNear(t *testing.T) {
	for _, c := range []struct {
		a, b string
		n    int
		want bool
	}{
		{"bind", "bind", 1, true}, {"bin", "bind", 1, true}, {"bnid", "bind", 1, true}, {"bindd", "bind", 1, true},
		{"bond", "bind", 1, true}, {"bo", "bind", 1, false}, {"", "bind", 1, false}, {"workspce", "workspace", 2, true},
		{"wrkspce", "workspace", 2, true}, {"work", "workspace", 2, false}, {"workspaces", "workspace", 2, true},
	} {
		if got := near(c.a, c.b, c.n); got != c.want {
			t.Errorf("near(%q, %q, %d) = %t", c.a, c.b, c.n, got)
		}
	}
}

// FuzzCheck wants no panic, findings in order and lines that exist.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{
		"", header, header + "\n\r\n{}\n" + `{"type":"expect_outbound","frame":"<bind:x>"}`,
		header + "\n" + `{"type":"emit_inbound","channel":"stderr","frame":"is cut off \\u"}`, // text, in which an escape need not be whole
	} {
		f.Add([]byte(s))
	}
	files, _ := filepath.Glob("testdata/bad/*.txtar")
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil {
			_, b, _ := strings.Cut(string(b), "-- transcript --\n")
			f.Add([]byte(b))
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		found, err := Check("t", strings.NewReader(string(in)), Options{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		most := max(1, strings.Count(string(in), "\n")+1)
		last := 1
		for _, f := range found {
			if f.Line < last || f.Line > most || f.Message == "" {
				t.Fatalf("finding %q after line %d of %d", f, last, most)
			}
			last = f.Line
		}
	})
}

// The example of the format's description must be what it describes.
func TestDocumentedExample(t *testing.T) {
	doc, err := os.ReadFile("../../docs/format.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "```\n")
	example, _, ok := strings.Cut(rest, "```\n")
	if !ok || strings.Count(example, "\n") < 5 {
		t.Fatalf("no example in docs/format.md")
	}
	if got, _ := checkText(t, "example", []byte(example), Options{Now: now, Disable: []string{"TL035"}}); got != "" {
		t.Errorf("the example has findings:\n%s", got)
	}
}

// marks is an expression, written out because every string is looked at.
func TestMarks(t *testing.T) {
	token := regexp.MustCompile(`(<*)<([A-Za-z]+)(:[^<>]*)?>`)
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		text := draw(r, r.IntN(12), "<<>>a:B1")
		var want []mark
		for _, at := range token.FindAllStringSubmatchIndex(text, -1) {
			if at[3] > at[2] {
				continue
			}
			m := mark{word: text[at[4]:at[5]], whole: at[0] == 0 && at[1] == len(text)}
			if at[6] >= 0 {
				m.name = text[at[6]:at[7]]
			}
			want = append(want, m)
		}
		if got := marks(text); !slices.Equal(got, want) {
			t.Fatalf("marks(%q) = %v: want %v", text, got, want)
		}
	}
}
