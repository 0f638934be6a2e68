package scenario

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// operators are the keys of an assertion that hold what is wanted.
var operators = []string{"equals", "length", "contains", "matches", "exists", "absent", "one_of", "ordered", "same_as"}

// FailedAssertion is one assertion that did not hold.
type FailedAssertion struct {
	File   string
	Line   int // 0 for an assertion shared by all scenarios
	Path   string
	Wanted string
	Got    string
	Diff   string // lines of - wanted and + got; "" where it would say nothing more
}

// Error returns the failure over several lines.
func (f *FailedAssertion) Error() string {
	var b strings.Builder
	if f.Line > 0 {
		fmt.Fprintf(&b, "%s:%d: ", f.File, f.Line)
	}
	fmt.Fprintf(&b, "%s\n  want %s\n  got  %s", f.Path, f.Wanted, f.Got)
	if f.Diff != "" {
		b.WriteString("\n  diff (-want +got)\n    ")
		b.WriteString(strings.ReplaceAll(strings.TrimRight(f.Diff, "\n"), "\n", "\n    "))
	}
	return b.String()
}

// concerns tells whether the assertion is held for a provider.
func (a *Assertion) concerns(provider string) bool {
	return len(a.For) == 0 || slices.Contains(a.For, provider)
}

// hold returns nil when the assertion holds on a JSON document, and what
// failed otherwise. doc must be valid JSON.
func (a *Assertion) hold(file string, doc []byte) *FailedAssertion {
	got := gjson.GetBytes(doc, a.Path)
	wanted, ok, diff := a.judge(got, doc)
	if ok {
		return nil
	}
	f := &FailedAssertion{File: file, Line: a.Line, Path: a.Path, Wanted: wanted, Got: "nothing: no such path", Diff: diff}
	if got.Exists() {
		f.Got = compact([]byte(got.Raw))
	}
	return f
}

func (a *Assertion) judge(got gjson.Result, doc []byte) (wanted string, ok bool, diff string) {
	switch {
	case a.Equals != nil:
		if ok := got.Exists() && equal(a.Equals, got.Raw); ok {
			return "", true, ""
		}
		return compact(a.Equals), false, difference(a.Equals, got)
	case a.Length != nil:
		return fmt.Sprintf("length %d", *a.Length), length(got) == *a.Length, ""
	case a.Contains != nil:
		return "something that contains " + compact(a.Contains), contains(a.Contains, got), ""
	case a.Matches != "":
		re := regexp.MustCompile(anchored(a.Matches)) // compiled when it was loaded
		return "a string like " + a.Matches, got.Type == gjson.String && re.MatchString(got.Str), ""
	case a.Exists:
		return "a value", got.Exists() && got.Type != gjson.Null, ""
	case a.Absent:
		return "no value", !got.Exists() || got.Type == gjson.Null, ""
	case a.OneOf != nil:
		return "one of " + list(a.OneOf), got.Exists() && slices.ContainsFunc(a.OneOf, func(w json.RawMessage) bool { return equal(w, got.Raw) }), ""
	case a.Ordered != nil:
		return "in this order " + list(a.Ordered), ordered(a.Ordered, got), ""
	case a.SameAs != "":
		other := gjson.GetBytes(doc, a.SameAs)
		if !other.Exists() {
			return "what stands at " + a.SameAs + ", where nothing is", false, ""
		}
		return compact([]byte(other.Raw)) + ", as at " + a.SameAs, got.Exists() && equal([]byte(other.Raw), got.Raw), ""
	default:
		return "an operator", false, "" // unreachable unless the schema lets one through
	}
}

// anchored makes a pattern match whole strings only.
func anchored(pattern string) string { return `^(?s:` + pattern + `)$` }

// length counts elements, members or characters; -1 where there is nothing
// to count.
func length(v gjson.Result) int {
	switch {
	case v.IsArray():
		return len(v.Array())
	case v.IsObject():
		return len(v.Map())
	case v.Type == gjson.String:
		return utf8.RuneCountInString(v.Str)
	}
	return -1
}

func contains(want json.RawMessage, got gjson.Result) bool {
	if got.IsArray() {
		return slices.ContainsFunc(got.Array(), func(v gjson.Result) bool { return equal(want, v.Raw) })
	}
	w := gjson.ParseBytes(want)
	return w.Type == gjson.String && got.Type == gjson.String && strings.Contains(got.Str, w.Str)
}

func ordered(want []json.RawMessage, got gjson.Result) bool {
	if !got.IsArray() {
		return false
	}
	for _, v := range got.Array() {
		if len(want) > 0 && equal(want[0], v.Raw) {
			want = want[1:]
		}
	}
	return len(want) == 0
}

func equal(want json.RawMessage, got string) bool {
	return string(want) == got || cmp.Equal(plain(want), plain([]byte(got)))
}

// difference is a diff where both sides have parts.
func difference(want json.RawMessage, got gjson.Result) string {
	if w := gjson.ParseBytes(want); got.Type != gjson.JSON && w.Type != gjson.JSON {
		return ""
	}
	if !got.Exists() || string(want) == got.Raw {
		return ""
	}
	return tidy(cmp.Diff(plain(want), plain([]byte(got.Raw))))
}

// tidy takes the non-breaking spaces out of a go-cmp diff.
func tidy(diff string) string { return strings.ReplaceAll(diff, "\u00a0", " ") }

// plain decodes JSON; numbers become float64, so that 1 equals 1.0.
func plain(data []byte) any {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return string(data) // unreachable unless the caller passed bad JSON
	}
	return v
}

func compact(data []byte) string {
	var b bytes.Buffer
	if err := json.Compact(&b, data); err != nil {
		return string(data) // unreachable unless the caller passed bad JSON
	}
	return shorten(b.String(), 600)
}

// shorten cuts long text for a message.
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

func list(values []json.RawMessage) string {
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = compact(v)
	}
	return "[" + strings.Join(parts, ",") + "]"
}
