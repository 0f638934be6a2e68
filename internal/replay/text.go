package replay

import "strings"

// A string in a transcript may hold placeholders. This file reads them.
//
//	"<any>"            any value; inside a longer string, any run of characters
//	"<string>" …       a value of that type, as a whole string only
//	"<workspace>"      the replay's workspace directory, also inside strings
//	"<bind:NAME>"      the value captured at the name's first use
//	"<<any>"           the literal text "<any>"

// partKind is one kind of piece of a string.
type partKind uint8

const (
	partText partKind = iota
	partAny
	partWorkspace
	partBind
	partTyped
)

// part is one piece: literal text, or a placeholder.
type part struct {
	kind partKind
	text string // the literal text, the bind's name, or the type's name
}

// parseText splits a decoded string. plain is true when it holds neither
// placeholder nor escape, and parts is then nil.
func parseText(s string) (parts []part, plain bool) {
	if strings.IndexByte(s, '<') < 0 {
		return nil, true
	}
	plain = true
	start := 0
	text := func(upto int) {
		if upto > start {
			parts = append(parts, part{partText, s[start:upto]})
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
		if n == 0 || p.kind == partTyped && n != len(s) {
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
func merge(parts []part) []part {
	out := parts[:0]
	for _, p := range parts {
		if n := len(out); n > 0 && p.kind == partText && out[n-1].kind == partText {
			out[n-1].text += p.text
			continue
		}
		out = append(out, p)
	}
	return out
}

// placeholder reads one placeholder at the start of s and returns its length,
// 0 when there is none.
func placeholder(s string, typed bool) (part, int) {
	end := 1
	for end < len(s) && (s[end] == ':' || nameByte(s[end])) {
		end++
	}
	if end == len(s) || s[end] != '>' {
		return part{}, 0
	}
	name := s[1:end]
	switch name {
	case "any":
		return part{kind: partAny}, end + 1
	case "workspace":
		return part{kind: partWorkspace}, end + 1
	case "string", "int", "number", "bool", "uuid", "timestamp", "path":
		if typed {
			return part{partTyped, name}, end + 1
		}
	}
	if rest, ok := strings.CutPrefix(name, "bind:"); ok && bindName(rest) {
		return part{partBind, rest}, end + 1
	}
	return part{}, 0
}

func bindName(s string) bool {
	for i := 0; i < len(s); i++ {
		if !nameByte(s[i]) {
			return false
		}
	}
	return s != ""
}

// nameByte says whether c may stand in a name: of a bind, or in a path.
func nameByte(c byte) bool {
	return c == '_' || c == '-' || c == '.' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// matchParts says whether actual is the parts in order, anchored at both
// ends, with value giving the text of a workspace or bind part. A workspace
// before a wildcard ends at a path boundary.
func matchParts(parts []part, actual string, value func(part) (string, bool)) bool {
	type piece struct {
		text     string
		boundary bool // what follows must not go on with the path's last name
	}
	var pieces []piece // texts between wildcards
	cur := piece{}
	for i, p := range parts {
		switch p.kind {
		case partText:
			cur.text += p.text
			cur.boundary = false
		case partAny:
			pieces = append(pieces, cur)
			cur = piece{}
		default:
			v, ok := value(p)
			if !ok {
				return false
			}
			cur.text += v
			cur.boundary = p.kind == partWorkspace && v != "" && i+1 < len(parts)
		}
	}
	if len(pieces) == 0 {
		return actual == cur.text
	}
	first, last := pieces[0], cur
	if !strings.HasPrefix(actual, first.text) || first.boundary && !atBoundary(actual, len(first.text)) {
		return false
	}
	from, to := len(first.text), len(actual)-len(last.text)
	if to < from || actual[to:] != last.text {
		return false
	}
	for _, p := range pieces[1:] {
		for {
			i := strings.Index(actual[from:to], p.text)
			if i < 0 {
				return false
			}
			end := from + i + len(p.text)
			if !p.boundary || atBoundary(actual, end) {
				from = end
				break
			}
			from += i + 1
		}
	}
	return true
}

// atBoundary says whether a path that ends before s[i] ends there as a whole:
// "/tmp/ws" does in "/tmp/ws/a" and not in "/tmp/ws2".
func atBoundary(s string, i int) bool {
	return i >= len(s) || s[i] < 0x80 && !nameByte(s[i])
}

// typed says whether a raw JSON value is of a placeholder's type.
func typed(name string, raw []byte, decode func([]byte) string) bool {
	str := raw[0] == '"'
	switch name {
	case "string":
		return str
	case "bool":
		return raw[0] == 't' || raw[0] == 'f'
	case "number":
		return isNumber(raw)
	case "int":
		return isNumber(raw) && strings.IndexAny(string(raw), ".eE") < 0
	case "uuid":
		return str && isUUID(decode(raw))
	case "timestamp":
		return str && isTimestamp(decode(raw))
	case "path":
		return str && isPath(decode(raw))
	}
	return false
}

func isNumber(raw []byte) bool { return raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' }
