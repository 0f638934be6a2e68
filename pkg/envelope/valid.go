package envelope

import "bytes"

// maxDepth is how deep arrays and objects may nest, as in encoding/json.
const maxDepth = 10000

// Valid says whether b is one valid JSON value, white space around it allowed.
// It accepts what encoding/json's Valid accepts, and is several times faster:
// every frame passes here at least once.
func Valid(b []byte) bool {
	i, ok := validEnd(b)
	if !ok {
		return false
	}
	for ; i < len(b); i++ {
		if !isSpace[b[i]] {
			return false
		}
	}
	return true
}

var isSpace = [256]bool{' ': true, '\t': true, '\r': true, '\n': true}

// plain marks the bytes that stand for themselves inside a string.
var plain = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return t
}()

// validEnd returns the index after the first value. It keeps the kinds of the
// open arrays and objects on a stack of its own instead of recursing, so that
// deep nesting costs bytes and not stack frames.
func validEnd(b []byte) (int, bool) {
	var room [64]bool
	stack := room[:0] // true for an object
	i := 0
	for {
		for i < len(b) && isSpace[b[i]] {
			i++
		}
		if i >= len(b) {
			return i, false
		}
		ok := true
		switch c := b[i]; {
		case c == '"':
			i, ok = validString(b, i)
		case c == '{' || c == '[':
			if len(stack) == maxDepth {
				return i, false
			}
			i = afterSpace(b, i+1)
			if i < len(b) && b[i] == c+2 { // '{' to '}' and '[' to ']'
				i++
				break
			}
			stack = append(stack, c == '{')
			if c == '{' {
				if i, ok = validKey(b, i); !ok {
					return i, false
				}
			}
			continue
		case c == '-' || c >= '0' && c <= '9':
			i, ok = validNumber(b, i)
		case c == 't':
			ok = bytes.HasPrefix(b[i:], []byte("true"))
			i += 4
		case c == 'f':
			ok = bytes.HasPrefix(b[i:], []byte("false"))
			i += 5
		case c == 'n':
			ok = bytes.HasPrefix(b[i:], []byte("null"))
			i += 4
		default:
			ok = false
		}
		if !ok {
			return i, false
		}
		// After a value: close what ends here, until a comma asks for more.
		for {
			if len(stack) == 0 {
				return i, true
			}
			if i = afterSpace(b, i); i >= len(b) {
				return i, false
			}
			object := stack[len(stack)-1]
			if b[i] == ',' {
				i = afterSpace(b, i+1)
				if object {
					if i, ok = validKey(b, i); !ok {
						return i, false
					}
				}
				break
			}
			if object && b[i] != '}' || !object && b[i] != ']' {
				return i, false
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

// validKey reads a key and its colon.
func validKey(b []byte, i int) (int, bool) {
	if i >= len(b) || b[i] != '"' {
		return i, false
	}
	i, ok := validString(b, i)
	if !ok {
		return i, false
	}
	if i = afterSpace(b, i); i >= len(b) || b[i] != ':' {
		return i, false
	}
	return i + 1, true
}

func validString(b []byte, i int) (int, bool) {
	for i++; i < len(b); i++ {
		for i < len(b) && plain[b[i]] {
			i++
		}
		if i >= len(b) {
			return i, false
		}
		switch b[i] {
		case '"':
			return i + 1, true
		case '\\':
			if i++; i >= len(b) {
				return i, false
			}
			switch b[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				if i+4 >= len(b) || !isHex(b[i+1]) || !isHex(b[i+2]) || !isHex(b[i+3]) || !isHex(b[i+4]) {
					return i, false
				}
				i += 4
			default:
				return i, false
			}
		default:
			return i, false // a control character
		}
	}
	return i, false
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func validNumber(b []byte, i int) (int, bool) {
	digits := func() bool {
		start := i
		for i < len(b) && b[i] >= '0' && b[i] <= '9' {
			i++
		}
		return i > start
	}
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if !digits() {
		return i, false
	}
	if i < len(b) && b[i] == '.' {
		if i++; !digits() {
			return i, false
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return i, false
		}
	}
	return i, true
}
