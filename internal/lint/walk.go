package lint

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// stringAt is one string of a line, with where it stands.
type stringAt struct {
	text string
	key  bool // an object's key, not a value

	root string // of the path
	raw  []byte // the value it stands in
	at   int    // offset of its opening quote
}

// path is where the string stands, such as "frame.params.cwd".
func (t stringAt) path() string { return pathOf(t.root, t.raw, t.at) }

// texts returns the strings of the frame that may interest a rule.
func (s *step) texts() []stringAt {
	if !s.walked {
		s.walked = true
		if s.raw != nil {
			s.strings = walk("frame", s.raw)
		}
	}
	return s.strings
}

// walk returns the strings of a valid JSON value that may hold a placeholder
// or a home directory. Most values have none, which one look tells; escapes may
// hide what is looked for. Paths begin with root.
func walk(root string, raw []byte) (found []stringAt) {
	var marks [][]byte
	for _, mark := range [][]byte{[]byte("<"), []byte("/home/"), []byte("-home-"), []byte("Users"), []byte(`\u`), []byte(`\/`)} {
		if bytes.Contains(raw, mark) {
			marks = append(marks, mark)
		}
	}
	for i := 0; i < len(raw) && len(marks) > 0; {
		if raw[i] != '"' {
			i++
			continue
		}
		end := envelope.SkipString(raw, i)
		for _, mark := range marks {
			if bytes.Contains(raw[i:end], mark) {
				found = append(found, stringAt{envelope.Unquote(raw[i:end]), colon(raw, end) > 0, root, raw, i})
				break
			}
		}
		i = end
	}
	return found
}

// walker reads one value to find a string's path. Each method takes the index
// where its part starts and returns the index after it.
type walker struct {
	b    []byte
	path []byte
	want int    // offset of the string whose path is asked for; 0 is none
	hit  []byte // its path
}

func (w *walker) value(i int) int {
	b := w.b
	switch b[i] {
	case '"':
		end := envelope.SkipString(b, i)
		w.look(i)
		return end
	case '{':
		for i = envelope.SkipSpace(b, i+1); b[i] != '}'; {
			end := envelope.SkipString(b, i)
			n := len(w.path)
			w.path = append(append(w.path, '.'), pathKey(envelope.Unquote(b[i:end]))...)
			w.look(i)
			i = w.comma(w.value(envelope.SkipSpace(b, envelope.SkipSpace(b, end)+1)))
			w.path = w.path[:n]
		}
		return i + 1
	case '[':
		n := len(w.path)
		k := int64(0)
		for i = envelope.SkipSpace(b, i+1); b[i] != ']'; k++ {
			w.path = strconv.AppendInt(append(w.path[:n], '.'), k, 10)
			i = w.comma(w.value(i))
		}
		w.path = w.path[:n]
		return i + 1
	default:
		return envelope.SkipValue(b, i)
	}
}

// comma goes past the comma after a value, or to the bracket that closes.
func (w *walker) comma(i int) int {
	if i = envelope.SkipSpace(w.b, i); w.b[i] == ',' {
		i = envelope.SkipSpace(w.b, i+1)
	}
	return i
}

// look keeps the path of the string that is asked for.
func (w *walker) look(i int) {
	if w.want > 0 && i == w.want {
		w.hit = append([]byte(nil), w.path...)
	}
}

// pathKey escapes what separates the keys of a path.
func pathKey(key string) string {
	if !strings.ContainsAny(key, `.\`) {
		return key
	}
	return strings.NewReplacer(`\`, `\\`, `.`, `\.`).Replace(key)
}

// lines is "1 line is" or "3 lines are".
func lines(n int, one, many string) string {
	if n == 1 {
		return "1 line " + one
	}
	return strconv.Itoa(n) + " lines " + many
}
