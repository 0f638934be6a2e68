package envelope

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestUnquote(t *testing.T) {
	tests := []struct{ quoted, want string }{
		{`""`, ""}, {`"a"`, "a"}, {`"\"\\\/\b\f\n\r\t"`, "\"\\/\b\f\n\r\t"},
		{`"\u00e9\u00E9\u00Ff\u00aF"`, "\u00e9\u00e9\u00ff\u00af"}, {`"\ud83d\ude00x"`, "\U0001f600x"},
		{`"\u2028"`, "\u2028"}, {"\"\xff\"", "\xff"},
		{`"\ud800"`, "\xed\xa0\x80"}, {`"\udfffa"`, "\xed\xbf\xbfa"}, {`"\ud800\n"`, "\xed\xa0\x80\n"},
		{`"\ud800\ud83d\ude00"`, "\xed\xa0\x80\U0001f600"},
	}
	for _, c := range tests {
		if got := Unquote([]byte(c.quoted)); got != c.want {
			t.Errorf("Unquote(%s) = %q: want %q", c.quoted, got, c.want)
		}
	}
}

// A lone surrogate has no UTF-8 form, so it is written as the escape it was.
func TestAppendStringKeepsLoneSurrogates(t *testing.T) {
	for _, quoted := range []string{`"\ud800"`, `"a\udbff b"`, `"\udfff\ud800"`, `"\ud800\n\udc00"`} {
		got := AppendString(nil, Unquote([]byte(quoted)))
		if string(got) != quoted || !utf8.Valid(got) {
			t.Errorf("%s became %s", quoted, got)
		}
	}
}

func TestStringsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		quoted := AppendString(nil, s)
		if !json.Valid(quoted) {
			t.Fatalf("AppendString(%q) is not JSON: %s", s, quoted)
		}
		if got := Unquote(quoted); got != s {
			t.Fatalf("%q became %q", s, got)
		}
		std, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := Unquote(std); got != s {
			t.Fatalf("Unquote(%s) = %q", std, got)
		}
	})
}

func FuzzUnquote(f *testing.F) {
	for _, s := range []string{`""`, `"\ud800\udc00"`, `"\ud800\ud800"`, `"\\u0041"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, quoted []byte) {
		if !json.Valid(quoted) || quoted[0] != '"' || quoted[len(quoted)-1] != '"' {
			return
		}
		got := Unquote(quoted)
		if again := Unquote(AppendString(nil, got)); again != got {
			t.Errorf("%s is %q, and %q when written and read again", quoted, got, again)
		}
		var std string
		if json.Unmarshal(quoted, &std) == nil && utf8.ValidString(got) && got != std {
			t.Errorf("Unquote(%s) = %q: encoding/json says %q", quoted, got, std)
		}
	})
}

func FuzzSkipValue(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2.5e3,"\"]"],"b":{}}`, `[[],{},true,false,null]`, `12`, ` {"a" : 1 } `} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if !json.Valid(b) {
			return
		}
		start := SkipSpace(b, 0)
		end := SkipValue(b, start)
		if !json.Valid(b[start:end]) {
			t.Errorf("value of %q is %q", b, b[start:end])
		}
		var v any
		if err := json.Unmarshal(b[end:], &v); err == nil {
			t.Errorf("a value is left of %q: %q", b, b[end:])
		}
	})
}
