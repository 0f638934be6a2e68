package envelope

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// corpus returns files of the public corpus, which stands beside the
// repository where there is one.
func corpus(t testing.TB, pattern string) []string {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "shared", "corpus", "*", pattern))
	if err != nil || len(files) == 0 {
		t.Skip("no corpus beside the repository")
	}
	return files
}

// rawFrame finds a frame's bytes by text alone: in the corpus it is the last
// field of its line.
func rawFrame(line []byte) []byte {
	_, frame, ok := bytes.Cut(line, []byte(`"frame":`))
	if !ok {
		return nil
	}
	return bytes.TrimSuffix(frame, []byte("}"))
}

func TestCorpusFramesAreUntouched(t *testing.T) {
	for _, file := range corpus(t, "*.ndjson") {
		in, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tr, err := ReadFile(file)
		if err != nil {
			t.Error(err)
			continue
		}
		var out bytes.Buffer
		if err := tr.Write(&out); err != nil {
			t.Fatal(err)
		}
		was, is := bytes.Split(in, []byte("\n")), bytes.Split(out.Bytes(), []byte("\n"))
		if len(was) != len(is) {
			t.Errorf("%s: %d lines became %d", file, len(was), len(is))
			continue
		}
		frames := 0
		for i := range was {
			if a, b := rawFrame(was[i]), rawFrame(is[i]); !bytes.Equal(a, b) {
				t.Errorf("%s:%d: the frame changed\n%s\n%s", file, i+1, a, b)
			} else if a != nil {
				frames++
			}
		}
		if frames == 0 {
			t.Errorf("%s: no frame was compared", file)
		}
	}
}

func TestWriterWritesLinesAtOnce(t *testing.T) {
	var w lineWriter
	to := NewWriter(&w)
	if err := to.WriteHeader(&Header{Provider: "p", Protocol: "q\"", Version: "1", Scenario: "s\n"}); err != nil {
		t.Fatal(err)
	}
	if err := to.WriteEntry(&ExpectOutbound{Frame: []byte("1"), Extra: []Member{{Name: "a\"b", Value: []byte("2")}}}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"type":"transcript_start","provider":"p","protocol":"q\"","version":"1","scenario":"s\n"}` + "\n",
		`{"type":"expect_outbound","frame":1,"a\"b":2}` + "\n",
	}
	if strings.Join(w, "|") != strings.Join(want, "|") {
		t.Errorf("writes are %q: want %q", w, want)
	}
}

type lineWriter []string

func (w *lineWriter) Write(p []byte) (int, error) {
	*w = append(*w, string(p))
	return len(p), nil
}

func TestWriteErrors(t *testing.T) {
	tr, err := readString(canonical)
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("disk full")
	for n := range 3 {
		if err := tr.Write(&failing{after: n, err: full}); !errors.Is(err, full) {
			t.Errorf("write %d fails, and Write returns %v", n, err)
		}
	}
	if err := NewWriter(&bytes.Buffer{}).WriteEntry(nil); err == nil {
		t.Error("a nil entry was written")
	}
}

type failing struct {
	after int
	err   error
}

func (f *failing) Write(p []byte) (int, error) {
	if f.after--; f.after < 0 {
		return 0, f.err
	}
	return len(p), nil
}

func TestDirection(t *testing.T) {
	if Out.String() != "outbound" || In.String() != "inbound" || Out.Opposite() != In || In.Opposite() != Out {
		t.Error("directions are mixed up")
	}
}

// FuzzReader: no panic; an error comes without a result; what can be read is
// the same after it was written and read again, and canonical form is final.
func FuzzReader(f *testing.F) {
	f.Add([]byte(canonical))
	f.Add([]byte(strings.ReplaceAll(canonical, "\n", "\r\n\n")))
	f.Add([]byte(testHeader))
	for _, c := range []string{`{"type":"emit_inbound","frame":1,"afterMs":-0}`, `{"type":"expect_outbound","label":"\ud800","frame":{ }}`} {
		f.Add([]byte(testHeader + "\n" + c))
	}
	files, _ := filepath.Glob(filepath.Join("..", "..", "..", "shared", "corpus", "*", "*.ndjson"))
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil && len(b) < 8<<10 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		tr, err := Read("f", bytes.NewReader(in))
		if err != nil {
			if tr != nil {
				t.Fatalf("a transcript came with %v", err)
			}
			goOn(t, in)
			return
		}
		first := writeString(t, tr)
		again, err := readString(first)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%q", err, first)
		}
		if len(again.Entries) != len(tr.Entries) {
			t.Fatalf("%d entries became %d", len(tr.Entries), len(again.Entries))
		}
		if second := writeString(t, again); second != first {
			t.Fatalf("written twice:\n%q\n%q", first, second)
		}
		for i := range tr.Entries {
			if a, b := frameOf(tr.Entries[i]), frameOf(again.Entries[i]); !bytes.Equal(a, b) || a != nil && !bytes.Contains(in, a) {
				t.Fatalf("frame %q became %q", a, b)
			}
		}
	})
}

// goOn reads past errors; it must come to an end.
func goOn(t *testing.T, in []byte) {
	r := NewReader("f", bytes.NewReader(in))
	h, err := r.Header()
	if (h == nil) == (err == nil) {
		t.Fatalf("Header returns %v, %v", h, err)
	}
	for range bytes.Count(in, []byte("\n")) + 2 {
		e, err := r.Next()
		if (e == nil) == (err == nil) {
			t.Fatalf("Next returns %v, %v", e, err)
		}
		var syn *SyntaxError
		if err != nil && !errors.As(err, &syn) {
			return // the end
		}
	}
	t.Fatal("reading does not end")
}

func frameOf(e Entry) []byte {
	switch e := e.(type) {
	case *ExpectOutbound:
		return e.Frame
	case *EmitInbound:
		return e.Frame
	}
	return nil
}
