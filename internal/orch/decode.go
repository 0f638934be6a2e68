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

// layout is the fields of an entity's type, in their order.
type layout struct {
	fields []fieldLayout
	index  map[string]int // by key; nil when the type has fields of another sort
}

type fieldLayout struct {
	key   string
	index int     // in the struct
	time  int     // 1: time.Time, 2: *time.Time, 0: neither
	inner *layout // of the struct that the field points to
}

var layouts sync.Map // *layout by reflect.Type

func layoutOf(t reflect.Type) *layout {
	if known, ok := layouts.Load(t); ok {
		return known.(*layout)
	}
	l := &layout{index: map[string]int{}}
	for i := range t.NumField() {
		f := t.Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || key == "" || key == "-" {
			l = &layout{}
			break
		}
		field := fieldLayout{key: key, index: i}
		switch f.Type {
		case reflect.TypeFor[time.Time]():
			field.time = 1
		case reflect.TypeFor[*time.Time]():
			field.time = 2
		default:
			if f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct {
				field.inner = layoutOf(f.Type.Elem())
			}
		}
		l.index[key] = len(l.fields)
		l.fields = append(l.fields, field)
	}
	layouts.Store(t, l)
	return l
}

// decoder decodes one entity after the other.
type decoder struct {
	literal string // of the last time
	time    time.Time
}

// decode fills a zero struct; false when raw is not in the known form.
func (d *decoder) decode(l *layout, raw string, into reflect.Value) bool {
	if l.index == nil || len(raw) < 2 || raw[0] != '{' || raw[len(raw)-1] != '}' {
		return false
	}
	rest := raw[1:]
	for next := 0; rest != "}"; {
		if rest[0] != '"' {
			return false
		}
		end := strings.IndexByte(rest[1:], '"') + 1
		if end < 1 || end+2 >= len(rest) || rest[end+1] != ':' {
			return false
		}
		key := rest[1:end]
		rest = rest[end+2:]
		size := valueSize(rest)
		if size < 1 || size >= len(rest) {
			return false
		}
		value := rest[:size]
		switch rest = rest[size:]; {
		case rest[0] == ',' && rest[1:] != "}":
			rest = rest[1:]
		case rest != "}":
			return false
		}
		at := next
		if at == len(l.fields) || l.fields[at].key != key {
			var known bool
			if at, known = l.index[key]; !known {
				return false
			}
		}
		next = at + 1
		if !d.set(&l.fields[at], into, value) {
			return false
		}
	}
	return true
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

// set decodes a value into a field of a struct.
func (d *decoder) set(f *fieldLayout, into reflect.Value, value string) bool {
	field := into.Field(f.index)
	if value == "null" && field.Type() != reflect.TypeFor[json.RawMessage]() {
		return true // it is zero
	}
	if f.time > 0 {
		if value != d.literal { // what happens at once is stored with one time
			d.literal = ""
			if d.time.UnmarshalJSON([]byte(value)) != nil {
				return false
			}
			d.literal = value
		}
		t := d.time
		if f.time == 1 {
			*field.Addr().Interface().(*time.Time) = t
		} else {
			*field.Addr().Interface().(**time.Time) = &t
		}
		return true
	}
	switch field.Kind() {
	case reflect.String:
		if text, ok := unquote(value); ok {
			field.SetString(text)
			return true
		}
	case reflect.Slice:
		if field.Type() == reflect.TypeFor[json.RawMessage]() && (value[0] == '{' || value[0] == '[') && json.Valid([]byte(value)) {
			field.SetBytes([]byte(value))
			return true
		}
	case reflect.Pointer:
		if f.inner != nil {
			inner := reflect.New(field.Type().Elem())
			if d.decode(f.inner, value, inner.Elem()) {
				field.Set(inner)
				return true
			}
		}
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(value, 10, 64)
		field.SetInt(n)
		return err == nil
	case reflect.Bool:
		field.SetBool(value == "true")
		return value == "true" || value == "false"
	}
	return json.Unmarshal([]byte(value), field.Addr().Interface()) == nil
}

// unquote reads a string literal, but for characters that take two escapes.
func unquote(literal string) (string, bool) {
	if literal[0] != '"' {
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
