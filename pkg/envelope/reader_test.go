package envelope

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const testHeader = `{"type":"transcript_start","provider":"codex","protocol":"codex.app-server","version":"0.171.0","scenario":"simple"}`

// canonical is a transcript in canonical form with everything the format has.
var canonical = strings.Join([]string{
	`{"type":"transcript_start","provider":"codex","protocol":"codex.app-server","version":"0.171.0","scenario":"simple","metadata":{"model" : "gpt","n":1.0},"future":[1,{"a":null}],"\u006fther":"x"}`,
	`{"type":"expect_outbound","label":"initialize","group":"g","optional":true,"repeat":true,"frame":{"id":1,"method":"initialize"},"note":"kept","` + "\u00e9" + `":1e5}`,
	`{"type":"expect_outbound","frame":null}`,
	`{"type":"emit_inbound","label":"initialize","frame":{"id":9007199254740993,"a":1,"a":1.0,"a":1e0},"afterMs":12}`,
	`{"type":"emit_inbound","channel":"stderr","frame":"warning: \u0000 ` + "\u2028\u2029\xff\xfe" + `","afterMs":0}`,
	`{"type":"emit_inbound","channel":"stdout","frame":""}`,
	`{"type":"emit_inbound","label":"odd","frame":[ -0, 0.10, "\ud800", "\/" ,{"":{}} ]}`,
	`{"type":"runtime_exit","label":"x","afterMs":9223372036854775807,"status":"error","error":{"exitCode":1,"stderr":"no\n"}}`,
	`{"type":"runtime_exit","status":"cancelled"}`,
	`{"type":"runtime_exit","status":"success","error":null,"zzz":0}`,
}, "\n") + "\n"

func readString(text string) (*Transcript, error) { return Read("t", strings.NewReader(text)) }

func writeString(t *testing.T, tr *Transcript) string {
	t.Helper()
	var out strings.Builder
	if err := tr.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestCanonicalIsUnchanged(t *testing.T) {
	tr, err := readString(canonical)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(canonical, writeString(t, tr)); d != "" {
		t.Errorf("read and written (-want +got):\n%s", d)
	}
}

func TestReadEntries(t *testing.T) {
	tr, err := readString(canonical)
	if err != nil {
		t.Fatal(err)
	}
	twelve, most, zero := int64(12), int64(9223372036854775807), int64(0)
	want := []Entry{
		&ExpectOutbound{Label: "initialize", Group: "g", Optional: true, Repeat: true, Frame: []byte(`{"id":1,"method":"initialize"}`), Line: 2,
			Extra: []Member{{Name: "note", Value: []byte(`"kept"`)}, {Name: "\u00e9", Value: []byte("1e5")}}},
		&ExpectOutbound{Frame: []byte("null"), Line: 3},
		&EmitInbound{Label: "initialize", Frame: []byte(`{"id":9007199254740993,"a":1,"a":1.0,"a":1e0}`), AfterMs: &twelve, Line: 4},
		&EmitInbound{Channel: Stderr, Frame: []byte(`"warning: \u0000 ` + "\u2028\u2029\xff\xfe" + `"`), AfterMs: &zero, Line: 5},
		&EmitInbound{Channel: Stdout, Frame: []byte(`""`), Line: 6},
		&EmitInbound{Label: "odd", Frame: []byte(`[ -0, 0.10, "\ud800", "\/" ,{"":{}} ]`), Line: 7},
		&RuntimeExit{Label: "x", AfterMs: &most, Status: Failed, Error: []byte(`{"exitCode":1,"stderr":"no\n"}`), Line: 8},
		&RuntimeExit{Status: Cancelled, Line: 9},
		&RuntimeExit{Status: Success, Error: []byte("null"), Line: 10, Extra: []Member{{Name: "zzz", Value: []byte("0")}}},
	}
	if d := cmp.Diff(want, tr.Entries, cmpopts.IgnoreUnexported(Member{})); d != "" {
		t.Errorf("entries (-want +got):\n%s", d)
	}
	for i, e := range tr.Entries {
		if line, _ := e.Position(); line != i+2 {
			t.Errorf("entry %d is at line %d: want %d", i, line, i+2)
		}
	}
	if _, label := tr.Entries[6].Position(); label != "x" {
		t.Errorf("label of the exit is %q: want x", label)
	}
	if h := tr.Header; h.Provider != "codex" || h.Scenario != "simple" || h.Line != 1 || len(h.Extra) != 2 || string(h.Metadata) != `{"model" : "gpt","n":1.0}` {
		t.Errorf("header is %+v", h)
	}
}

func TestReadForgives(t *testing.T) {
	want := testHeader + "\n" + `{"type":"expect_outbound","label":"a","frame":{"a":1}}` + "\n" + `{"type":"runtime_exit","status":"success"}` + "\n"
	tests := map[string]struct {
		text string
		crlf int
	}{
		"CRLF":              {strings.ReplaceAll(want, "\n", "\r\n"), 3},
		"no final newline":  {strings.TrimSuffix(want, "\n"), 0},
		"CR at the end":     {strings.TrimSuffix(want, "\n") + "\r", 1},
		"blank lines":       {"\n \t\n" + strings.ReplaceAll(want, "\n", "\n\n"), 0},
		"blank CRLF lines":  {strings.Replace(want, "\n", "\n\r\n", 1), 1},
		"defaults spelled":  {strings.Replace(want, `"label"`, `"optional":false,"repeat":false,"group":"","label"`, 1), 0},
		"order and spaces":  {strings.Replace(want, `{"type":"expect_outbound","label":"a","frame":{"a":1}}`, ` { "frame" : {"a":1} , "label":"\u0061" , "type" : "expect_outbound" } `, 1), 0},
		"escaped key":       {strings.Replace(want, `"type":"expect`, `"t\u0079pe":"expect`, 1), 0},
		"white space lines": {want + " \t\r\r\n", 1},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			r := NewReader("t", iotest.OneByteReader(strings.NewReader(c.text)))
			h, err := r.Header()
			if err != nil {
				t.Fatal(err)
			}
			tr := &Transcript{Header: *h}
			for {
				e, err := r.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				tr.Entries = append(tr.Entries, e)
			}
			if d := cmp.Diff(want, writeString(t, tr)); d != "" {
				t.Errorf("written (-want +got):\n%s", d)
			}
			if r.CRLF() != c.crlf {
				t.Errorf("CRLF is %d: want %d", r.CRLF(), c.crlf)
			}
		})
	}
}

func TestProtocolChannelIsTheDefault(t *testing.T) {
	tr, err := readString(testHeader + "\n" + `{"type":"emit_inbound","channel":"protocol","frame":1}`)
	if err != nil {
		t.Fatal(err)
	}
	want := testHeader + "\n" + `{"type":"emit_inbound","frame":1}` + "\n"
	if d := cmp.Diff(want, writeString(t, tr)); d != "" {
		t.Errorf("written (-want +got):\n%s", d)
	}
}

func TestHeaderErrors(t *testing.T) {
	head := func(fields string) string { return `{"type":"transcript_start",` + fields + `}` }
	tests := []struct{ text, want string }{
		{"", `t:1: empty transcript: want a transcript_start line`},
		{"\n\n", `t:2: empty transcript: want a transcript_start line`},
		{"\xef\xbb\xbf" + testHeader, `t:1: byte order mark before the header: remove it`},
		{"{", `t:1: not JSON: unexpected end of JSON input at byte 1`},
		{"\n" + `{"type":"transcript_start"`, `t:2: not JSON: unexpected end of JSON input at byte 26`},
		{"[]", `t:1: line is an array: want an object`},
		{"{}", `t:1: first line is line without a type: want type "transcript_start"`},
		{`{"type":1}`, `t:1: type is a number: want a string`},
		{`{"type":"runtime_exit","status":"success"}`, `t:1: first line is type "runtime_exit": want type "transcript_start"`},
		{head(`"provider":1`), `t:1: provider is a number: want a string`},
		{head(`"provider":"a","protocol":"b","version":"c"`), `t:1: header has no scenario: want a non-empty string`},
		{head(`"provider":"a","protocol":"","version":"c","scenario":"d"`), `t:1: header has no protocol: want a non-empty string`},
		{head(`"provider":"a","provider":"b"`), `t:1: duplicate field "provider"`},
		{head(`"provider":"a","provid\u0065r":"b"`), `t:1: duplicate field "provider"`},
		{head(`"type":"transcript_start"`), `t:1: duplicate field "type"`},
		{head(`"metadata":null`), `t:1: metadata is null: want an object`},
		{head(`"metadata":[]`), `t:1: metadata is an array: want an object`},
	}
	for _, c := range tests {
		tr, err := readString(c.text)
		if tr != nil {
			t.Errorf("%s: a transcript came with the error", c.text)
		}
		var syn *SyntaxError
		if !errors.As(err, &syn) || err.Error() != c.want {
			t.Errorf("%s\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}

func TestEntryErrors(t *testing.T) {
	tests := []struct{ line, want string }{
		{`{"type":"expect_outbound"}`, `expect_outbound without a frame`},
		{`{"type":"emit_inbound","label":"x"}`, `emit_inbound without a frame`},
		{`{"type":"emit_inbound","channel":"stderr"}`, `emit_inbound without a frame`},
		{`{"type":"emit_inbound","channel":"stderr","frame":{}}`, `frame on channel stderr is an object: want a string`},
		{`{"type":"emit_inbound","channel":"tty","frame":""}`, `channel "tty": want protocol, stderr or stdout`},
		{`{"type":"emit_inbound","frame":1,"afterMs":1.5}`, `afterMs is 1.5: want a whole number of milliseconds, 0 or more`},
		{`{"type":"emit_inbound","frame":1,"afterMs":-1}`, `afterMs is -1: want a whole number of milliseconds, 0 or more`},
		{`{"type":"emit_inbound","frame":1,"afterMs":"1"}`, `afterMs is "1": want a whole number of milliseconds, 0 or more`},
		{`{"type":"expect_outbound","frame":1,"optional":"yes"}`, `optional is a string: want true or false`},
		{`{"type":"expect_outbound","frame":1,"repeat":null}`, `repeat is null: want true or false`},
		{`{"type":"expect_outbound","frame":1,"frame":2}`, `duplicate field "frame"`},
		{`{"type":"expect_outbound","frame":1,"x":1,"x":1}`, `duplicate field "x"`},
		{`{"type":"runtime_exit"}`, `runtime_exit status "": want success, error or cancelled`},
		{`{"type":"runtime_exit","status":"ok"}`, `runtime_exit status "ok": want success, error or cancelled`},
		{`{"type":"exit"}`, `type "exit": want expect_outbound, emit_inbound or runtime_exit`},
		{`{"label":"x"}`, `line without a type: want expect_outbound, emit_inbound or runtime_exit`},
		{testHeader, `second transcript_start: a file holds one transcript`},
		{`{"type":"expect_outbound","frame":{}} {}`, `not JSON: invalid character '{' after top-level value at byte 39`},
		{`nonsense`, `not JSON: invalid character 'o' in literal null (expecting 'u') at byte 2`},
		{`"x"`, `line is a string: want an object`},
	}
	for _, c := range tests {
		r := NewReader("dir/t", strings.NewReader(testHeader+"\r\n\n"+c.line+"\n"+`{"type":"runtime_exit","status":"success"}`))
		if _, err := r.Header(); err != nil {
			t.Fatal(err)
		}
		e, err := r.Next()
		var syn *SyntaxError
		if want := "dir/t:3: " + c.want; e != nil || !errors.As(err, &syn) || err.Error() != want {
			t.Errorf("%s\n got %v, %v\nwant %s", c.line, e, err, want)
			continue
		}
		if e, err := r.Next(); err != nil || e.(*RuntimeExit).Line != 4 {
			t.Errorf("%s: reading went on with %v, %v", c.line, e, err)
		}
		if e, err := r.Next(); err != io.EOF || e != nil {
			t.Errorf("%s: the end is %v, %v", c.line, e, err)
		}
	}
}

func TestLineLimit(t *testing.T) {
	long := `{"type":"emit_inbound","frame":"` + strings.Repeat("x", 200<<10) + `"}`
	exit := `{"type":"runtime_exit","status":"success"}`
	for _, c := range []struct {
		limit int
		ok    bool
	}{{len(long), true}, {len(long) - 1, false}, {len(testHeader), false}} {
		r := NewReader("t", strings.NewReader(testHeader+"\n"+long+"\n"+exit+"\n"+long))
		r.MaxLine = c.limit
		if _, err := r.Header(); err != nil {
			t.Fatal(err)
		}
		tooLong := fmt.Sprintf("t:%%d: line is longer than %d bytes: raise the line limit", c.limit)
		_, err := r.Next()
		if c.ok != (err == nil) || err != nil && err.Error() != fmt.Sprintf(tooLong, 2) {
			t.Errorf("limit %d: %v", c.limit, err)
		}
		if e, err := r.Next(); err != nil || e.(*RuntimeExit).Line != 3 {
			t.Errorf("limit %d: the line after is %v, %v", c.limit, e, err)
		}
		if _, err := r.Next(); c.ok != (err == nil) || err != nil && err.Error() != fmt.Sprintf(tooLong, 4) {
			t.Errorf("limit %d, last line not terminated: %v", c.limit, err)
		}
		if _, err := r.Next(); err != io.EOF {
			t.Errorf("limit %d: the end is %v", c.limit, err)
		}
	}
}

func TestDefaultLineLimit(t *testing.T) {
	const rest = `{"type":"emit_inbound","frame":""}`
	line := strings.Replace(rest, `""`, `"`+strings.Repeat("x", MaxLine-len(rest))+`"`, 1)
	if tr, err := readString(testHeader + "\n" + line); err != nil || len(tr.Entries) != 1 {
		t.Errorf("a line of 64 MiB: %v", err)
	}
	if _, err := readString(testHeader + "\n" + line + " "); err == nil || err.Error() != "t:2: line is longer than 67108864 bytes: raise the line limit" {
		t.Errorf("a line of 64 MiB and a byte: %v", err)
	}
}

func TestReadErrorIsKept(t *testing.T) {
	broken := errors.New("disk on fire")
	tr, err := Read("t", io.MultiReader(strings.NewReader(testHeader+"\n{"), iotest.ErrReader(broken)))
	if tr != nil || !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "t:2: ") {
		t.Errorf("Read: %v, %v", tr, err)
	}
	if _, err := ReadFile("testdata/none.ndjson"); err == nil || !strings.HasPrefix(err.Error(), "read transcript: open testdata/none.ndjson") {
		t.Errorf("ReadFile: %v", err)
	}
}

// A frame must stay as it was when the reader goes on.
func TestEntriesDoNotAlias(t *testing.T) {
	r := NewReader("t", strings.NewReader(canonical))
	if _, err := r.Header(); err != nil {
		t.Fatal(err)
	}
	e, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	before, _ := AppendEntry(nil, e)
	for {
		if _, err := r.Next(); err != nil {
			break
		}
	}
	after, _ := AppendEntry(nil, e)
	if string(before) != string(after) {
		t.Errorf("the first entry changed from %s to %s", before, after)
	}
}

// FuzzBorrow: entries that are borrowed are those that are kept, error by error,
// with their frames on the tape.
func FuzzBorrow(f *testing.F) {
	f.Add(canonical)
	f.Add(canonical[:len(canonical)-1])
	for _, line := range []string{
		`{"type":"expect_outbound","label":"x","frame":{"a":[1]},"type":"x"}`, `{"frame":1,"type":"expect_outbound"}`, ` {"type":"emit_inbound", "frame":"x" } `,
		`{"x":1,"frame":{},"x":2,"type":1`, `{"type":"emit_inbound","frame":{},"afterMs":7,"z":{}}`, "", "\r", "[1]", "{}", "  ",
	} {
		f.Add(testHeader + "\r\n\n" + line + "\n" + `{"type":"runtime_exit","status":"success"}`)
		f.Add(testHeader + "\n" + line)
	}
	long := strings.Repeat("x", 100<<10)
	f.Add(testHeader + "\n" + long)
	f.Add(testHeader + "\n" + long + "\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		kept, lent := NewReader("t", strings.NewReader(text)), NewReader("t", strings.NewReader(text))
		lent.Borrow = true
		kept.MaxLine, lent.MaxLine = 1000, 1000
		_, want := kept.Header()
		if _, err := lent.Header(); fmt.Sprint(err) != fmt.Sprint(want) {
			t.Fatalf("header: %v, and kept %v", err, want)
		}
		for want != io.EOF {
			var e, l Entry
			var err error
			e, want = kept.Next()
			if l, err = lent.Next(); fmt.Sprint(err) != fmt.Sprint(want) {
				t.Fatalf("%v, and kept %v", err, want)
			}
			if kept.Lines() != lent.Lines() || kept.Terminated() != lent.Terminated() || kept.CRLF() != lent.CRLF() {
				t.Fatalf("line %d, kept %d", lent.Lines(), kept.Lines())
			}
			if e == nil {
				continue
			}
			one, _ := AppendEntry(nil, e)
			two, _ := AppendEntry(nil, l)
			if string(one) != string(two) {
				t.Fatalf("%s, and kept %s", two, one)
			}
			if got, want := lent.Canonical(l), string(lent.Line())+"\n" == string(one); got != want {
				t.Fatalf("%s is canonical: %v, want %v", lent.Line(), got, want)
			}
			frame := []byte(nil)
			switch e := e.(type) {
			case *ExpectOutbound:
				frame = e.Frame
			case *EmitInbound:
				frame = e.Frame
			}
			if tape, at := lent.Tape(); (at >= 0) != (frame != nil) || at >= 0 && string(tape.Bytes(tape.Tokens[at])) != string(frame) {
				t.Fatalf("%s: the frame is token %d", lent.Line(), at)
			}
		}
		lines := strings.Count(text, "\n")
		if text != "" && !strings.HasSuffix(text, "\n") {
			lines++
		}
		if kept.Lines() != lines || kept.Terminated() != (text == "" || strings.HasSuffix(text, "\n")) {
			t.Fatalf("%d lines, terminated %v", kept.Lines(), kept.Terminated())
		}
	})
}
