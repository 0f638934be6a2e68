package redact

import (
	"strconv"
	"strings"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// token is a string, a key or a number of a JSON value.
type token struct {
	start, end int
	kind       tokenKind
	key        string // the key itself, or the nearest one above a value
	depth      int    // how many containers it is in
	limits     bool   // below a member that tells of limits
}

type tokenKind uint8

const (
	tokenString tokenKind = iota
	tokenKey
	tokenNumber
)

// walker visits the tokens of valid JSON in order.
type walker struct {
	raw   []byte
	visit func(token)
	path  []string // of the token visited
}

func walk(raw []byte, visit func(*walker, token)) {
	w := &walker{raw: raw}
	w.visit = func(t token) { visit(w, t) }
	w.value(envelope.SkipSpace(raw, 0), "", 0, false)
}

// value visits the value at i and returns the index after it.
func (w *walker) value(i int, key string, depth int, limits bool) int {
	switch c := w.raw[i]; {
	case c == '"':
		end := envelope.SkipString(w.raw, i)
		w.visit(token{i, end, tokenString, key, depth, limits})
		return end
	case c == '-' || c >= '0' && c <= '9':
		end := envelope.SkipValue(w.raw, i)
		w.visit(token{i, end, tokenNumber, key, depth, limits})
		return end
	case c != '{' && c != '[':
		return envelope.SkipValue(w.raw, i)
	}
	object := w.raw[i] == '{'
	i = envelope.SkipSpace(w.raw, i+1)
	w.path = append(w.path, "")
	for n := 0; w.raw[i] != '}' && w.raw[i] != ']'; n++ {
		name, below := key, limits
		if object {
			end := envelope.SkipString(w.raw, i)
			name = envelope.Unquote(w.raw[i:end])
			w.path[len(w.path)-1] = name
			w.visit(token{i, end, tokenKey, name, depth + 1, limits})
			below = limits || limitKey(name)
			i = envelope.SkipSpace(w.raw, envelope.SkipSpace(w.raw, end)+1)
		} else {
			w.path[len(w.path)-1] = strconv.Itoa(n)
		}
		i = envelope.SkipSpace(w.raw, w.value(i, name, depth+1, below))
		if w.raw[i] == ',' {
			i = envelope.SkipSpace(w.raw, i+1)
		}
	}
	w.path = w.path[:len(w.path)-1]
	return i + 1
}

// at is the path of the token visited.
func (w *walker) at() string { return strings.Join(w.path, ".") }

// fixed says whether a token is a member that correlates frames: it is never
// edited.
func (t token) fixed() bool {
	if t.kind == tokenKey || t.depth != 1 {
		return false
	}
	switch t.key {
	case "id", "method", "type", "kind", "subtype", "jsonrpc", "request_id", "requestId":
		return true
	}
	return false
}

// id says whether a token is an id by its key.
func (t token) id() bool {
	if t.kind == tokenKey {
		return false
	}
	switch t.key {
	case "id", "uuid", "method", "type":
		return true
	}
	for _, end := range []string{"Id", "ID", "_id", "Ids", "IDs", "_ids", "Uuid", "UUID", "_uuid"} {
		if strings.HasSuffix(t.key, end) {
			return true
		}
	}
	return false
}
