package envelope

import "strings"

// A string in a transcript may hold placeholders. This file reads them.
//
//	"<any>"            any value; inside a longer string, any run of characters
//	"<string>" …       a value of that type, as a whole string only
//	"<workspace>"      the replay's workspace directory, also inside strings
//	"<bind:NAME>"      the value captured at the name's first use
//	"<<any>"           the literal text "<any>"

// PartKind is one kind of piece of a string.
type PartKind uint8

// The kinds. A typed part is always the whole string.
const (
	PartText PartKind = iota
	PartAny
	PartWorkspace
	PartBind
	PartTyped
)

// Part is one piece: literal text, or a placeholder.
type Part struct {
	Kind PartKind
	Text string // the literal text, the bind's name, or the type's name
}

// ParseText splits a decoded string. plain is true when it holds neither
// placeholder nor escape, and parts is then nil.
func ParseText(s string) (parts []Part, plain bool) {
	if strings.IndexByte(s, '<') < 0 {
		return nil, true
	}
	plain = true
	start := 0
	text := func(upto int) {
		if upto > start {
			parts = append(parts, Part{PartText, s[start:upto]})
		}
	}
	for i := 0; i < len(s); {
		if s[i] != '<' {
			i++
			continue
		}
		if i+1 < len(s) && s[i+1] == '<' {
			if _, n := placeholder(s[i+1:], true); n > 0 { // escaped: drop one '<'
				text(i)
				start = i + 1
				i += 1 + n
				plain = false
				continue
			}
			i++
			continue
		}
		p, n := placeholder(s[i:], i == 0)
		if n == 0 || p.Kind == PartTyped && n != len(s) {
			i++
			continue
		}
		text(i)
		parts = append(parts, p)
		i += n
		start = i
		plain = false
	}
	if plain {
		return nil, true
	}
	text(len(s))
	return merge(parts), false
}

// merge joins neighbouring texts, which escapes leave behind.
func merge(parts []Part) []Part {
	out := parts[:0]
	for _, p := range parts {
		if n := len(out); n > 0 && p.Kind == PartText && out[n-1].Kind == PartText {
			out[n-1].Text += p.Text
			continue
		}
		out = append(out, p)
	}
	return out
}

// placeholder reads one placeholder at the start of s and returns its length,
// 0 when there is none.
func placeholder(s string, typed bool) (Part, int) {
	end := 1
	for end < len(s) && (s[end] == ':' || nameByte(s[end])) {
		end++
	}
	if end == len(s) || s[end] != '>' {
		return Part{}, 0
	}
	name := s[1:end]
	switch name {
	case "any":
		return Part{Kind: PartAny}, end + 1
	case "workspace":
		return Part{Kind: PartWorkspace}, end + 1
	case "string", "int", "number", "bool", "uuid", "timestamp", "path":
		if typed {
			return Part{PartTyped, name}, end + 1
		}
	}
	if rest, ok := strings.CutPrefix(name, "bind:"); ok && bindName(rest) {
		return Part{PartBind, rest}, end + 1
	}
	return Part{}, 0
}

func bindName(s string) bool {
	for i := 0; i < len(s); i++ {
		if !nameByte(s[i]) {
			return false
		}
	}
	return s != ""
}

// nameByte says whether c may stand in the name of a bind.
func nameByte(c byte) bool {
	return c == '_' || c == '-' || c == '.' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}
