package replay

import (
	"strings"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// matchParts says whether actual is the parts in order, anchored at both
// ends, with value giving the text of a workspace or bind part. A workspace
// before a wildcard ends at a path boundary.
func matchParts(parts []envelope.Part, actual string, value func(envelope.Part) (string, bool)) bool {
	type piece struct {
		text     string
		boundary bool // what follows must not go on with the path's last name
	}
	var pieces []piece // texts between wildcards
	cur := piece{}
	for i, p := range parts {
		switch p.Kind {
		case envelope.PartText:
			cur.text += p.Text
			cur.boundary = false
		case envelope.PartAny:
			pieces = append(pieces, cur)
			cur = piece{}
		default:
			v, ok := value(p)
			if !ok {
				return false
			}
			cur.text += v
			cur.boundary = p.Kind == envelope.PartWorkspace && v != "" && i+1 < len(parts)
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
	return i >= len(s) || s[i] < 0x80 && !inName(s[i])
}

// inName says whether a byte goes on with the last name of a path.
func inName(c byte) bool {
	return c == '_' || c == '-' || c == '.' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
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
		return isNumber(raw) && !strings.ContainsAny(string(raw), ".eE")
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
