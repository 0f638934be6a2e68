package envelope

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// A tape must agree with encoding/json on what is valid, and on every key and
// value of it.
func FuzzTape(f *testing.F) {
	for _, s := range []string{
		``, `{}`, `[]`, ` {"a" : [ 1 , -2.5e+3,true ,false,null,"\u00e9\n" ] , "b\\":{ } } `, `[1,]`, `{"a"}`, `{"a":1,}`, `01`, `"\x"`, `"\u12"`,
		"\"\x01\"", `{"a":{"b":[[],{}]},"a":2}`, `tru`, `[}`, `{]`, `1 2`, `{"a":1}}`, `"eight by\"te"`, `{"aaaaaaaa1bbbbbbbb":0,"aaaaaaaa2bbbbbbbb":0,"aaaaaaa1bbbbbbbb":0,"aaaaaaa2bbbbbbbb":0,"a\u0000":0,"a":0}`, `{"":0,"a":"word","last":1}`, `{"last":{"a":"wyrd"},"":"","a":"word"}`, `"\ud83d\ude00"`,
		strings.Repeat("[", 10001) + strings.Repeat("]", 10001),
		strings.Repeat("[", 10000) + strings.Repeat("]", 10000),
	} {
		f.Add([]byte(s))
	}
	files, _ := filepath.Glob("../../transcripts/simple/*.ndjson")
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for line := range bytes.Lines(b) {
			f.Add(line)
		}
	}
	var tape Tape // one for all: nothing of the text before may be left
	numbered := map[uint16]string{}
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, want := tape.Scan(b), json.Valid(b); got != want {
			t.Fatalf("Scan(%q) = %v, encoding/json says %v", b, got, want)
		} else if !got {
			return
		}
		if got, want := onTape(t, &tape, numbered), decoded(t, b); !slices.Equal(got, want) {
			t.Fatalf("%q\ntape          %q\nencoding/json %q", b, got, want)
		}
	})
}

// onTape lists what is on a tape: keys and strings decoded, numbers and words
// as they stand, brackets with how much is in them. numbered gets the keys.
func onTape(t *testing.T, tape *Tape, numbered map[uint16]string) (list []string) {
	for i, k := range tape.Tokens {
		raw := tape.Bytes(k)
		switch k.Kind {
		case Key, '"':
			if k.Name != 0 {
				if k.Kind != Key || k.Name >= MostNames {
					t.Fatalf("token %s: has number %d", raw, k.Name)
				}
				if known, ok := numbered[k.Name]; ok && known != string(raw) {
					t.Fatalf("keys %s and %s have the same number", known, raw)
				}
				numbered[k.Name] = string(raw)
			} else if k.Kind == Key && !k.Escaped {
				for n, known := range numbered {
					if known == string(raw) {
						t.Fatalf("key %s has no number: it had %d", raw, n)
					}
				}
			}
			if word, want := tape.Word(raw), Unquote(raw); word != want {
				t.Fatalf("string %s is %q: want %q", raw, word, want)
			}
			if k.Escaped != bytes.Contains(raw, []byte{'\\'}) {
				t.Fatalf("token %s: escaped is %v", raw, k.Escaped)
			}
			list = append(list, jsonText(raw))
		case '{', '[':
			if raw[len(raw)-1] != k.Kind+2 {
				t.Fatalf("token %s: does not end in its bracket", raw)
			}
			list = append(list, fmt.Sprintf("%c%d", k.Kind, int(k.Next)-i-1))
			continue
		default:
			list = append(list, string(raw))
		}
		if int(k.Next) != i+1 {
			t.Fatalf("token %s: next is %d, want %d", raw, k.Next, i+1)
		}
	}
	return list
}

// jsonText decodes a string as encoding/json does, which puts a sign for what
// Unquote keeps.
func jsonText(raw []byte) string {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return err.Error()
	}
	if own := Unquote(raw); own != s && utf8.ValidString(own) {
		return fmt.Sprintf("%q: want %q", own, s)
	}
	return s
}

// decoded is the same list by encoding/json.
func decoded(t *testing.T, b []byte) (list []string) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var open []int
	for {
		token, err := d.Token()
		if err != nil {
			return list
		}
		switch v := token.(type) {
		case json.Delim:
			if v == '{' || v == '[' {
				open = append(open, len(list))
				list = append(list, string(v))
				continue
			}
			at := open[len(open)-1]
			open = open[:len(open)-1]
			list[at] += fmt.Sprint(len(list) - at - 1)
		case nil:
			list = append(list, "null")
		default:
			list = append(list, fmt.Sprint(v))
		}
	}
}

func BenchmarkTape(b *testing.B) {
	frame := []byte(`{"id":7,"method":"turn/start","params":{"threadId":"019dadea-f49b-7012-aa03-534f1bfc3181","cwd":"/work","input":[{"type":"text","text":"` + strings.Repeat("Respond with exactly this text. ", 6) + `"}],"n":[1,2,3.5,true,null]}}`)
	var tape Tape
	b.SetBytes(int64(len(frame)))
	for b.Loop() {
		if !tape.Scan(frame) {
			b.Fatal("not valid")
		}
	}
}
