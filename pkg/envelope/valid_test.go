package envelope

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// Valid must agree with encoding/json on every input.
func FuzzValid(f *testing.F) {
	for _, s := range []string{
		``, ` `, `{}`, `[]`, `{"a":[1,-2.5e+3,true,false,null,"\u00e9\n"]}`, `[1,]`, `{"a"}`, `{"a":1,}`, `01`, `-`, `1.`, `1e`, `"\x"`,
		"\"\x01\"", "\"\xff\"", `{"a":{"b":[[],{}]}} `, `tru`, `nulll`, `[}`, `{]`, `"\ud800"`, `{"a" : 1 , "b":2}`, `1 2`,
		strings.Repeat("[", 100) + strings.Repeat("]", 100),
		strings.Repeat("[", 10001) + strings.Repeat("]", 10001),
		strings.Repeat("[", 10000) + strings.Repeat("]", 10000),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, want := Valid(b), json.Valid(b); got != want {
			t.Fatalf("Valid(%q) = %v, encoding/json says %v", b, got, want)
		}
		// Both ways of reading members agree.
		var one, two []string
		collect := func(to *[]string) func(k, v []byte) error {
			return func(k, v []byte) error { *to = append(*to, string(k), string(v)); return nil }
		}
		ok, err := ValidMembers(b, collect(&one))
		if err != nil {
			t.Fatal(err)
		}
		if b = bytes.TrimSpace(b); !ok || b[0] != '{' {
			return
		}
		if err := EachMember(b, collect(&two)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(one, two) {
			t.Fatalf("members of %q: %q and %q", b, one, two)
		}
	})
}

func BenchmarkValid(b *testing.B) {
	frame := []byte(`{"id":7,"method":"turn/start","params":{"threadId":"019dadea-f49b-7012-aa03-534f1bfc3181","cwd":"/work","input":[{"type":"text","text":"` + strings.Repeat("Respond with exactly this text. ", 6) + `"}],"n":[1,2,3.5,true,null]}}`)
	if !Valid(frame) {
		b.Fatal("not valid")
	}
	b.Run("ours", func(b *testing.B) {
		b.SetBytes(int64(len(frame)))
		for b.Loop() {
			Valid(frame)
		}
	})
	b.Run("encoding/json", func(b *testing.B) {
		b.SetBytes(int64(len(frame)))
		for b.Loop() {
			json.Valid(bytes.TrimSpace(frame))
		}
	})
}
