package envelope

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// EachMember calls fn with the raw key (quotes included) and the raw value of
// each member of the object, which must be valid JSON and start with '{', and
// stops at fn's first error. The slices point into object.
func EachMember(object []byte, fn func(key, value []byte) error) error {
	i := SkipSpace(object, 1)
	for object[i] != '}' {
		keyEnd := SkipString(object, i)
		start := SkipSpace(object, SkipSpace(object, keyEnd)+1) // past the colon
		end := SkipValue(object, start)
		if err := fn(object[i:keyEnd], object[start:end]); err != nil {
			return err
		}
		if i = SkipSpace(object, end); object[i] == ',' {
			i = SkipSpace(object, i+1)
		}
	}
	return nil
}

// SkipSpace returns the index of the first byte at or after i that is not JSON
// white space. b must be valid JSON and i not past its last value.
func SkipSpace(b []byte, i int) int {
	for isSpace[b[i]] {
		i++
	}
	return i
}

// SkipString returns the index after the string that starts at i of valid JSON.
func SkipString(b []byte, i int) int {
	for i++; ; i++ {
		if i = skipPlain(b, i); b[i] == '"' {
			return i + 1
		}
		i++ // the escaped byte
	}
}

// SkipValue returns the index after the value that starts at i of valid JSON.
func SkipValue(b []byte, i int) int {
	depth := 0
	for {
		switch b[i] {
		case '"':
			i = SkipString(b, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\t', '\r', '\n':
			i++
		default: // number, true, false, null
			for i < len(b) && !delimiter(b[i]) {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
}

func delimiter(c byte) bool {
	switch c {
	case ',', ':', ']', '}', ' ', '\t', '\r', '\n':
		return true
	}
	return false
}

// Unquote decodes a valid JSON string, quotes included. Nothing is lost: bytes
// that are not UTF-8 stay as they are, and a lone surrogate escape becomes its
// three-byte form, so that two different escapes stay different.
func Unquote(quoted []byte) string {
	s := quoted[1 : len(quoted)-1]
	for _, c := range s {
		if c == '\\' {
			return string(AppendUnquoted(make([]byte, 0, len(s)), quoted))
		}
	}
	return string(s)
}

// AppendUnquoted is Unquote that appends to dst.
func AppendUnquoted(dst, quoted []byte) []byte {
	s := quoted[1 : len(quoted)-1]
	for {
		i := bytes.IndexByte(s, '\\')
		if i < 0 {
			return append(dst, s...)
		}
		dst = append(dst, s[:i]...)
		s = s[i:]
		n := 2
		switch c := s[1]; c {
		case 'u':
			dst, n = appendEscape(dst, s)
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		default:
			dst = append(dst, c)
		}
		s = s[min(n, len(s)):]
	}
}

// appendEscape appends the character that s begins with the \u of, and returns
// how long its one or two escapes are.
func appendEscape(dst, s []byte) ([]byte, int) {
	r := hex4(s[2:])
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(dst, r), 6
	}
	if len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
		if pair := utf16.DecodeRune(r, hex4(s[8:])); pair != utf8.RuneError {
			return utf8.AppendRune(dst, pair), 12
		}
	}
	return append(dst, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f), 6
}

func hex4(s []byte) rune {
	var r rune
	for _, c := range s[:4] {
		r <<= 4
		switch {
		case c <= '9':
			r |= rune(c - '0')
		case c <= 'F':
			r |= rune(c-'A') + 10
		default:
			r |= rune(c-'a') + 10
		}
	}
	return r
}

// written marks the bytes that are always written as they stand: the plain ones
// but for the one that a surrogate begins with.
var written = func() [256]bool {
	t := plain
	t[0xed] = false
	return t
}()

// AppendString appends s as a JSON string, escaping only what must be, which
// what Unquote made of a lone surrogate is.
func AppendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0 // of what stands for itself
	for i := 0; i < len(s); i++ {
		c := s[i]
		if written[c] {
			continue
		}
		dst = append(dst, s[start:i]...)
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		case c == 0xed && i+2 < len(s) && s[i+1]&0xe0 == 0xa0 && s[i+2]&0xc0 == 0x80:
			r := 0xd000 | int(s[i+1]&0x3f)<<6 | int(s[i+2]&0x3f)
			dst = append(dst, '\\', 'u', 'd', hex[r>>8&15], hex[r>>4&15], hex[r&15])
			i += 2
		default:
			dst = append(dst, c)
		}
		start = i + 1
	}
	return append(append(dst, s[start:]...), '"')
}

func kindOf(value []byte) string {
	switch value[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// jsonError returns the decoder's complaint about b, with its byte offset.
func jsonError(b []byte) string {
	var v json.RawMessage
	err := json.Unmarshal(b, &v)
	var syn *json.SyntaxError
	if errors.As(err, &syn) {
		return fmt.Sprintf("%v at byte %d", err, syn.Offset)
	}
	return fmt.Sprint(err)
}
