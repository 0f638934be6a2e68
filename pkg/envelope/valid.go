package envelope

import (
	"encoding/binary"
	"math/bits"
)

// maxDepth is how deep arrays and objects may nest, as in encoding/json.
const maxDepth = 10000

// Valid says whether b is one valid JSON value, white space around it allowed.
// It accepts what encoding/json's Valid accepts, and is several times faster:
// every frame passes here at least once.
func Valid(b []byte) bool {
	ok, _ := ValidMembers(b, nil)
	return ok
}

// ValidMembers is Valid and EachMember in one pass: where b is an object, fn
// gets its members while they are checked. What fn got counts only when ok is
// true. It stops at fn's first error.
func ValidMembers(b []byte, fn func(key, value []byte) error) (ok bool, err error) {
	i, ok, err := validEnd(b, fn)
	if !ok || err != nil {
		return false, err
	}
	return afterSpace(b, i) == len(b), nil
}

var isSpace = [256]bool{' ': true, '\t': true, '\r': true, '\n': true}

// plain marks the bytes that stand for themselves inside a string.
var plain = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return t
}()

// special marks, of eight bytes, the first that is not plain: the lowest bit set
// is the high bit of that byte.
func special(x uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, slash := x^(ones*'"'), x^(ones*'\\')
	// The high bit of a byte is set where the byte is below ' ', or zero after
	// the xor. A borrow can only set bits above the first true one.
	return ((x-ones*' ')&^x | (quote-ones)&^quote | (slash-ones)&^slash) & highs
}

// skipPlain returns the index of the first byte at or after i that is not
// plain, or len(b). It looks at eight bytes at a time.
func skipPlain(b []byte, i int) int {
	for i+8 <= len(b) {
		if m := special(binary.LittleEndian.Uint64(b[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
		i += 8
	}
	for i < len(b) && plain[b[i]] {
		i++
	}
	return i
}

// validEnd returns the index after the first value. It keeps the kinds of the
// open arrays and objects on a stack of its own instead of recursing, so that
// deep nesting costs bytes and not stack frames. fn, when not nil, gets the
// members of an outermost object.
func validEnd(b []byte, fn func(key, value []byte) error) (int, bool, error) {
	var room [64]bool
	stack := room[:0] // true for an object
	i := 0
	var key []byte        // of the outermost object's member being read
	value := 0            // where its value starts
	next := func() bool { // reads a key
		start := i
		var end int
		var ok bool
		if i, end, ok = validKey(b, i); ok && len(stack) == 1 && fn != nil {
			key, value = b[start:end], afterSpace(b, i)
		}
		return ok
	}
	for {
		for i < len(b) && isSpace[b[i]] {
			i++
		}
		if i >= len(b) {
			return i, false, nil
		}
		ok := true
		switch c := b[i]; {
		case c == '"':
			i, _ = scanString(b, i)
			ok = i >= 0
		case c == '{' || c == '[':
			if len(stack) == maxDepth {
				return i, false, nil
			}
			i = afterSpace(b, i+1)
			if i < len(b) && b[i] == c+2 { // '{' to '}' and '[' to ']'
				i++
				break
			}
			stack = append(stack, c == '{')
			if c == '{' && !next() {
				return i, false, nil
			}
			continue
		case c == '-' || c >= '0' && c <= '9':
			i, ok = validNumber(b, i)
		case c == 't':
			i, ok = literal(b, i, "true")
		case c == 'f':
			i, ok = literal(b, i, "false")
		case c == 'n':
			i, ok = literal(b, i, "null")
		default:
			ok = false
		}
		if !ok {
			return i, false, nil
		}
		// After a value: close what ends here, until a comma asks for more.
		for {
			if len(stack) == 0 {
				return i, true, nil
			}
			if len(stack) == 1 && key != nil {
				if err := fn(key, b[value:i]); err != nil {
					return i, false, err
				}
				key = nil
			}
			if i = afterSpace(b, i); i >= len(b) {
				return i, false, nil
			}
			object := stack[len(stack)-1]
			if b[i] == ',' {
				i = afterSpace(b, i+1)
				if object && !next() {
					return i, false, nil
				}
				break
			}
			if object && b[i] != '}' || !object && b[i] != ']' {
				return i, false, nil
			}
			stack = stack[:len(stack)-1]
			i++
		}
	}
}

func afterSpace(b []byte, i int) int {
	for i < len(b) && isSpace[b[i]] {
		i++
	}
	return i
}

// validKey reads a key and its colon; end is the index after the key.
func validKey(b []byte, i int) (next, end int, ok bool) {
	if i >= len(b) || b[i] != '"' {
		return i, 0, false
	}
	if end, _ = scanString(b, i); end < 0 {
		return i, end, false
	}
	if i = afterSpace(b, end); i >= len(b) || b[i] != ':' {
		return i, end, false
	}
	return i + 1, end, true
}

// scanString returns the index after the string that starts at i, less than 0
// where it is none, and whether a backslash is in it.
func scanString(b []byte, i int) (end int, escaped bool) {
	i++
	for {
		for i+8 <= len(b) { // as skipPlain, which is too big to be put in here
			if m := special(binary.LittleEndian.Uint64(b[i:])); m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				goto special
			}
			i += 8
		}
		for i < len(b) && plain[b[i]] {
			i++
		}
		if i >= len(b) {
			return -1, escaped
		}
	special:
		switch {
		case b[i] == '"':
			return i + 1, escaped
		case b[i] != '\\':
			return -1, escaped // a control character
		}
		escaped = true
		n := validEscape(b, i)
		if n == 0 {
			return -1, escaped
		}
		i += n
	}
}

// validEscape returns the length of the escape that starts at i, 0 where it is
// none.
func validEscape(b []byte, i int) int {
	if i+1 >= len(b) {
		return 0
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if i+5 < len(b) && isHex(b[i+2]) && isHex(b[i+3]) && isHex(b[i+4]) && isHex(b[i+5]) {
			return 6
		}
	}
	return 0
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func validNumber(b []byte, i int) (int, bool) {
	if b[i] == '-' {
		i++
	}
	switch start := i; {
	case i < len(b) && b[i] == '0':
		i++
	default:
		if i = afterDigits(b, i); i == start {
			return i, false
		}
	}
	if i >= len(b) || b[i] != '.' && b[i]|0x20 != 'e' {
		return i, true
	}
	if b[i] == '.' {
		start := i + 1
		if i = afterDigits(b, start); i == start {
			return i, false
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		start := i
		if i = afterDigits(b, start); i == start {
			return i, false
		}
	}
	return i, true
}

func afterDigits(b []byte, i int) int {
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i
}
