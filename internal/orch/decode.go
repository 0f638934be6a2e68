package orch

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf16"
)

// A large thread is tens of thousands of rows, each an entity in the very form
// that encoding/json gave it. layout decodes that form, several times faster:
// members in a known order, no blanks, strings that mostly need no copy. What
// looks otherwise in any way is left to encoding/json.

// layout is the fields of an entity's type, in their order; nil when the type
// has fields of another sort.
type layout []fieldLayout

type fieldLayout struct {
	key   string // as a member begins: "id":
	index int    // in the struct
	sort  sort
	inner layout // of the struct that the field points to
}

// sort is how a field is decoded.
type sort int

const (
	sortOther sort = iota // by encoding/json
	sortString
	sortInt
	sortBool
	sortRaw // json.RawMessage
	sortTime
	sortTimePointer
	sortStruct // a pointer to one
)

var layouts sync.Map // layout by reflect.Type

func layoutOf(t reflect.Type) layout {
	if known, ok := layouts.Load(t); ok {
		return known.(layout)
	}
	var l layout
	for i := range t.NumField() {
		f := t.Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || key == "" || key == "-" {
			l = nil
			break
		}
		field := fieldLayout{key: `"` + key + `":`, index: i, sort: sortOf(f.Type)}
		if field.sort == sortStruct {
			field.inner = layoutOf(f.Type.Elem())
		}
		l = append(l, field)
	}
	layouts.Store(t, l)
	return l
}

func sortOf(t reflect.Type) sort {
	switch t {
	case reflect.TypeFor[time.Time]():
		return sortTime
	case reflect.TypeFor[*time.Time]():
		return sortTimePointer
	case reflect.TypeFor[json.RawMessage]():
		return sortRaw
	}
	switch t.Kind() {
	case reflect.String:
		return sortString
	case reflect.Int, reflect.Int64:
		return sortInt
	case reflect.Bool:
		return sortBool
	case reflect.Pointer:
		if t.Elem().Kind() == reflect.Struct {
			return sortStruct
		}
	}
	return sortOther
}

// find is the field whose member s begins with, most likely the next one or,
// where members were left out, one after that; nil for none.
func (l layout) find(s string, next int) (field *fieldLayout, after int) {
	for range l {
		if next == len(l) {
			next = 0
		}
		if f := &l[next]; strings.HasPrefix(s, f.key) {
			return f, next + 1
		}
		next++
	}
	return nil, 0
}

// decoder decodes one entity after the other.
type decoder struct {
	literal string // of the last time
	time    time.Time
}

// decode fills a zero struct; false when raw is not in the known form.
func (d *decoder) decode(l layout, raw string, into reflect.Value) bool {
	return raw != "" && d.object(l, raw, into) == len(raw)
}

// object decodes the object that s begins with into a zero struct. It returns
// the object's length, 0 when it is not in the known form.
func (d *decoder) object(l layout, s string, into reflect.Value) int {
	if l == nil || len(s) < 2 || s[0] != '{' {
		return 0
	}
	if s[1] == '}' {
		return 2
	}
	for i, next := 1, 0; ; {
		var f *fieldLayout
		if f, next = l.find(s[i:], next); f == nil {
			return 0
		}
		i += len(f.key)
		n := d.value(f, s[i:], into.Field(f.index))
		if n == 0 || i+n >= len(s) {
			return 0
		}
		i += n + 1
		switch s[i-1] {
		case ',':
		case '}':
			return i
		default:
			return 0
		}
	}
}

// value decodes the value that s begins with into a field. It returns the
// value's length, 0 when it can't.
func (d *decoder) value(f *fieldLayout, s string, field reflect.Value) int {
	if f.sort != sortRaw && strings.HasPrefix(s, "null") {
		return len("null") // the field is zero
	}
	switch f.sort {
	case sortString:
		text, size := readString(s)
		field.SetString(text)
		return size
	case sortInt:
		size := numberSize(s)
		n, err := strconv.ParseInt(s[:size], 10, 64)
		if err != nil {
			return 0
		}
		field.SetInt(n)
		return size
	case sortBool:
		if strings.HasPrefix(s, "true") {
			field.SetBool(true)
			return len("true")
		}
		if strings.HasPrefix(s, "false") {
			return len("false")
		}
		return 0
	case sortTime, sortTimePointer:
		// What happens at once is stored with one time.
		if d.literal == "" || !strings.HasPrefix(s, d.literal) {
			d.literal = ""
			size := valueSize(s)
			if d.time.UnmarshalJSON([]byte(s[:size])) != nil {
				return 0
			}
			d.literal = s[:size]
		}
		if t := d.time; f.sort == sortTime {
			*field.Addr().Interface().(*time.Time) = t
		} else {
			*field.Addr().Interface().(**time.Time) = &t
		}
		return len(d.literal)
	case sortRaw:
		size := valueSize(s)
		raw := []byte(s[:size])
		if !json.Valid(raw) {
			return 0
		}
		field.SetBytes(raw)
		return size
	case sortStruct:
		inner := reflect.New(field.Type().Elem())
		if size := d.object(f.inner, s, inner.Elem()); size > 0 {
			field.Set(inner)
			return size
		}
	}
	size := valueSize(s)
	if json.Unmarshal([]byte(s[:size]), field.Addr().Interface()) != nil {
		return 0
	}
	return size
}

// valueSize is the length of the value that s begins with; 0 when there is
// none.
func valueSize(s string) int {
	if s == "" {
		return 0
	}
	switch s[0] {
	case '"':
		return stringSize(s)
	case '{', '[':
		depth := 0
		for i := 0; i < len(s); i++ {
			switch s[i] {
			case '"':
				n := stringSize(s[i:])
				if n == 0 {
					return 0
				}
				i += n - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
		return 0
	}
	return max(strings.IndexAny(s, ",}"), 0)
}

// numberSize is the length of the whole number that s begins with.
func numberSize(s string) int {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && c != '-' {
			return i
		}
	}
	return len(s)
}

// readString reads the string literal that s begins with and returns its
// length; 0 when it can't.
func readString(s string) (text string, size int) {
	if s == "" || s[0] != '"' {
		return "", 0
	}
	quote := strings.IndexByte(s[1:], '"')
	if quote < 0 {
		return "", 0
	}
	if text := s[1 : 1+quote]; strings.IndexByte(text, '\\') < 0 {
		return text, quote + 2
	}
	size = stringSize(s)
	text, ok := unquote(s[:size])
	if !ok {
		return "", 0
	}
	return text, size
}

// stringSize is the length of the string literal that s begins with.
func stringSize(s string) int {
	for i, end := 1, 0; i < len(s); {
		if end < i {
			quote := strings.IndexByte(s[i:], '"')
			if quote < 0 {
				return 0
			}
			end = i + quote
		}
		escape := strings.IndexByte(s[i:end], '\\')
		if escape < 0 {
			return end + 1
		}
		i += escape + 2
	}
	return 0
}

// unquote reads a string literal, but for characters that take two escapes.
func unquote(literal string) (string, bool) {
	if len(literal) < 2 || literal[0] != '"' {
		return "", false
	}
	text := literal[1 : len(literal)-1]
	if strings.IndexByte(text, '\\') < 0 {
		return text, true
	}
	var b strings.Builder
	b.Grow(len(text))
	for {
		at := strings.IndexByte(text, '\\')
		if at < 0 {
			b.WriteString(text)
			return b.String(), true
		}
		b.WriteString(text[:at])
		if text = text[at+1:]; text == "" {
			return "", false
		}
		escape := strings.IndexByte(`nrt"\/bfu`, text[0])
		switch {
		case escape < 0:
			return "", false
		case text[0] != 'u':
			b.WriteByte("\n\r\t\"\\/\b\f"[escape])
			text = text[1:]
			continue
		case len(text) < 5:
			return "", false
		}
		n, err := strconv.ParseUint(text[1:5], 16, 16)
		if err != nil || utf16.IsSurrogate(rune(n)) {
			return "", false
		}
		b.WriteRune(rune(n))
		text = text[5:]
	}
}
