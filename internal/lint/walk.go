package lint

import (
	"bytes"
	"slices"
	"sort"
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

// texts returns the strings of the frame that may interest a rule. The slice
// is valid until the next entry.
func (s *step) texts() []stringAt {
	if !s.ready.walked {
		s.ready.walked = true
		s.strings = s.strings[:0]
		if s.onTape.Tape != nil {
			s.strings = walk(s.strings, "frame", s.onTape)
		}
	}
	return s.strings
}

// walk appends the strings of a value that may hold a placeholder or a home
// directory, keys among them. Most values have none. Paths begin with root.
func walk(dst []stringAt, root string, v envelope.Value) []stringAt {
	raw := v.Bytes()
	mark, escape, users, home := nextMark(raw), nextEscape(raw), nextUsers(raw), nextHome(raw)
	if mark < 0 && escape < 0 && users < 0 && home < 0 {
		return dst
	}
	tokens := v.Tape.Tokens[v.Index:v.Tape.Tokens[v.Index].Next]
	origin := int(tokens[0].At)
	var room [16]int
	hits := room[:0] // indexes of tokens
	// look takes up what next finds from i on, where the first is.
	look := func(next func([]byte) int, i int) {
		for i >= 0 {
			// No token begins within a string: the last one before is it.
			n := sort.Search(len(tokens), func(n int) bool { return int(tokens[n].At)-origin > i }) - 1
			hits = append(hits, n)
			at := int(tokens[n].End) - origin
			if i = next(raw[at:]); i >= 0 {
				i += at
			}
		}
	}
	look(nextMark, mark)
	look(nextEscape, escape)
	look(nextUsers, users)
	look(nextHome, home)
	slices.Sort(hits)
	for _, n := range slices.Compact(hits) {
		t := tokens[n]
		dst = append(dst, stringAt{v.Tape.Word(v.Tape.Bytes(t)), t.Kind == envelope.Key, root, raw, int(t.At) - origin})
	}
	return dst
}

// What one of must be in a string that may hold a mark or a home directory;
// escapes may hide either. Each returns the offset of the next one in b, less
// than 0 for none; none can stand outside of strings.

func nextMark(b []byte) int { return bytes.IndexByte(b, '<') }

func nextUsers(b []byte) int {
	if at := bytes.IndexByte(b, 'U'); at >= 0 {
		if i := bytes.Index(b[at:], []byte("Users")); i >= 0 {
			return at + i
		}
	}
	return -1
}

func nextEscape(b []byte) int {
	for at := 0; ; at += 2 {
		i := bytes.IndexByte(b[at:], '\\')
		if i < 0 {
			return -1
		}
		if at += i; b[at+1] == 'u' || b[at+1] == '/' {
			return at
		}
	}
}

// nextHome looks for the letter of "home" that is the rarest in frames.
func nextHome(b []byte) int {
	for at := 0; ; at++ {
		i := bytes.IndexByte(b[at:], 'h')
		if i < 0 {
			return -1
		}
		if at += i; isHome(b, at) {
			return at
		}
	}
}

// isHome says whether the name of home directories' parent begins at b[i].
func isHome(b []byte, i int) bool {
	return i > 0 && i+4 < len(b) && string(b[i:i+4]) == "home" && (b[i+4] == '/' || b[i+4] == '-')
}

// scanned is a value that is no frame on a tape of its own, in which all
// strings can be seen.
func scanned(tape *envelope.Tape, raw []byte) (v envelope.Value, ok bool) {
	return envelope.Value{Tape: tape}, tape.Scan(raw)
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
