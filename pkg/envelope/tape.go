package envelope

import (
	"bytes"
	"math"
)

// Tape is a JSON text that was checked and cut into its keys and values in one
// pass, for whoever looks at all of them. The zero value is ready; a Tape that
// scans one text after the other allocates nothing once it has grown.
//
//	{"a":[1,"b"]}   is   {  "a"  [  1  "b"
type Tape struct {
	Text   []byte  // what was scanned
	Tokens []Token // in the order of the text; brackets that close have none
	names  *names
	words  [64]string // decoded before, by what they begin and end with
}

// Token is a key or a value, Text[At:End], with its quotes or brackets.
type Token struct {
	At, End int32
	// Next is the index of the token after this one and all within it; after
	// a key comes its value.
	Next    int32
	Kind    byte // Key, or the first byte of the value: one of {["-0123456789tfn
	Escaped bool // a string or key with a backslash in it
	// Name is a number below MostNames of a key: equal keys of one tape have
	// the same as long as the tape lives. 0 is a key without one, which a tape
	// has no room for, or which is long or escaped.
	Name uint16
}

// MostNames is above every number of a key.
const MostNames = 1 << 10

// Key is the kind of an object's keys.
const Key = ':'

// Value is a value on a tape.
type Value struct {
	Tape  *Tape
	Index int // in Tape.Tokens
}

// Bytes returns the value as it stands.
func (v Value) Bytes() []byte { return v.Tape.Bytes(v.Tape.Tokens[v.Index]) }

// Members calls fn with the raw key (quotes included) and the raw value of each
// member, and stops at fn's first error. A value that is no object has none.
func (v Value) Members(fn func(key, value []byte) error) error {
	tokens := v.Tape.Tokens
	t := tokens[v.Index]
	if t.Kind != '{' {
		return nil
	}
	for i := v.Index + 1; i < int(t.Next); i = int(tokens[i+1].Next) {
		if err := fn(v.Tape.Bytes(tokens[i]), v.Tape.Bytes(tokens[i+1])); err != nil {
			return err
		}
	}
	return nil
}

// Bytes returns a token of the tape as it stands in the text.
func (t *Tape) Bytes(k Token) []byte { return t.Text[k.At:k.End:k.End] }

// Word is Unquote of a string of the tape. A short one that comes again and again
// is mostly decoded once.
func (t *Tape) Word(quoted []byte) string {
	s := quoted[1 : len(quoted)-1]
	const most = 64
	if len(s) == 0 || len(s) > most {
		return Unquote(quoted)
	}
	known := &t.words[(len(s)^int(s[0])<<2^int(s[len(s)-1])<<1)%len(t.words)]
	if *known == string(s) {
		return *known
	}
	word := Unquote(quoted)
	if len(word) == len(s) { // it has no escapes
		*known = word
	}
	return word
}

// Scan puts a text on the tape in place of what was there, and says whether it
// is one valid JSON value as Valid has it; the tokens count only then. A text
// of 2 GiB or more is refused. The tape points into b.
func (t *Tape) Scan(b []byte) bool {
	t.Text = b
	if len(b) > math.MaxInt32 {
		t.Tokens = t.Tokens[:0]
		return false
	}
	if t.names == nil {
		t.names = newNames()
	}
	var end int
	t.Tokens, end = scanValue(b, t.Tokens[:0], t.names)
	return end >= 0 && afterSpace(b, end) == len(b)
}

// scanValue scans the first value and returns the index after it, less than 0
// where it is none. The stack of what is open is in the tokens themselves: Next
// of one that is open is the index of the one around it.
func scanValue(b []byte, tokens []Token, names *names) ([]Token, int) {
	i, depth := 0, 0
	open, inObject := -1, false // the innermost token that is open, whether it is an object
	before := uint(0)           // a hash of the latest keys
	for {
		if i < len(b) && b[i] <= ' ' {
			i = afterSpace(b, i)
		}
		if inObject { // a key, then a colon
			if i >= len(b) || b[i] != '"' {
				return tokens, -1
			}
			end, name := names.scan(b, i+1, before)
			escaped := false
			if end == 0 {
				if end, escaped = scanString(b, i); end < 0 {
					return tokens, -1
				}
				if !escaped {
					name = names.of(b[i+1 : end-1])
				}
			}
			before = before<<4 ^ uint(name)
			var t *Token
			tokens, t = another(tokens, i, end, Key)
			t.Escaped, t.Name = escaped, name
			i = end
			if i >= len(b) || b[i] != ':' {
				if i = afterSpace(b, i); i >= len(b) || b[i] != ':' {
					return tokens, -1
				}
			}
			if i++; i < len(b) && b[i] <= ' ' {
				i = afterSpace(b, i)
			}
		}
		if i >= len(b) {
			return tokens, -1
		}
		start, c := i, b[i]
		ok, escaped := true, false
		switch c {
		case '"':
			i, escaped = scanString(b, i)
			ok = i >= 0
		case '{', '[':
			if depth == maxDepth {
				return tokens, -1
			}
			if i++; i < len(b) && b[i] <= ' ' {
				i = afterSpace(b, i)
			}
			if i >= len(b) || b[i] != c+2 { // '{' to '}' and '[' to ']'
				var t *Token
				tokens, t = another(tokens, start, 0, c)
				t.Next = int32(open)
				open, inObject = len(tokens)-1, c == '{'
				before = before<<1 + 1
				depth++
				continue
			}
			i++ // empty
		case 't':
			i, ok = literal(b, i, "true")
		case 'f':
			i, ok = literal(b, i, "false")
		case 'n':
			i, ok = literal(b, i, "null")
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			i, ok = validNumber(b, i)
		default:
			ok = false
		}
		if !ok {
			return tokens, -1
		}
		var t *Token
		tokens, t = another(tokens, start, i, c)
		t.Escaped = escaped
		// After a value: close what ends here, until a comma asks for more.
		for {
			if open < 0 {
				return tokens, i
			}
			if i < len(b) && b[i] <= ' ' {
				i = afterSpace(b, i)
			}
			if i >= len(b) {
				return tokens, -1
			}
			if b[i] == ',' {
				i++
				break
			}
			top := &tokens[open]
			if b[i] != top.Kind+2 {
				return tokens, -1
			}
			i++
			open = int(top.Next)
			top.End, top.Next = int32(i), int32(len(tokens))
			inObject = open >= 0 && tokens[open].Kind == '{'
			before = before<<1 + 3
			depth--
		}
	}
}

// another appends a token that nothing is within. It is written where it stands:
// one that is put together first and copied as a whole waits for its parts.
func another(tokens []Token, at, end int, kind byte) ([]Token, *Token) {
	tokens = append(tokens, Token{})
	t := &tokens[len(tokens)-1]
	t.At, t.End, t.Next, t.Kind = int32(at), int32(end), int32(len(tokens)), kind
	return tokens, t
}

func literal(b []byte, i int, word string) (int, bool) {
	return i + len(word), bytes.HasPrefix(b[i:], []byte(word))
}
