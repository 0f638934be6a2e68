package accept

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// edit changes one place of a valid JSON value and leaves every other byte as
// it stands. ok is false where it does not apply: the place is not there, or
// holds something else than was recorded.
func edit(raw json.RawMessage, c *Change) (out json.RawMessage, ok bool) {
	steps := split(c.Path)
	if len(steps) == 0 {
		return nil, false
	}
	parent, found := locate(raw, steps[:len(steps)-1])
	if !found {
		return nil, false
	}
	last := steps[len(steps)-1]
	m, exists, size := member(raw, parent, last)
	switch c.Op {
	case "changed":
		if !exists || !equal(raw[m.from:m.to], c.Old) {
			return nil, false
		}
		return splice(raw, m.from, m.to, c.New), true
	case "removed":
		if !exists || !equal(raw[m.from:m.to], c.Old) {
			return nil, false
		}
		return remove(raw, m), true
	}
	if exists {
		return nil, false
	}
	text := append([]byte(nil), c.New...)
	switch {
	case raw[parent] == '{':
		text = append(append(envelope.AppendString(nil, last), ':'), text...)
	case raw[parent] != '[' || last != strconv.Itoa(size):
		return nil, false
	}
	end := envelope.SkipValue(raw, parent) - 1
	if size > 0 {
		for end > 0 && isSpace(raw[end-1]) {
			end--
		}
		text = append([]byte{','}, text...)
	}
	return splice(raw, end, end, text), true
}

// place is a member's value, and the whole of it with its key.
type place struct {
	start, from, to int
}

// member finds a key of an object or an index of an array; size counts the
// members.
func member(raw []byte, at int, name string) (p place, found bool, size int) {
	object := raw[at] == '{'
	if !object && raw[at] != '[' {
		return p, false, 0
	}
	for i := envelope.SkipSpace(raw, at+1); raw[i] != '}' && raw[i] != ']'; size++ {
		start, key := i, strconv.Itoa(size)
		if object {
			end := envelope.SkipString(raw, i)
			key = envelope.Unquote(raw[i:end])
			i = envelope.SkipSpace(raw, envelope.SkipSpace(raw, end)+1)
		}
		end := envelope.SkipValue(raw, i)
		if key == name && !found {
			p, found = place{start, i, end}, true
		}
		if i = envelope.SkipSpace(raw, end); raw[i] == ',' {
			i = envelope.SkipSpace(raw, i+1)
		}
	}
	return p, found, size
}

func locate(raw []byte, steps []string) (at int, found bool) {
	at = envelope.SkipSpace(raw, 0)
	for _, s := range steps {
		p, ok, _ := member(raw, at, s)
		if !ok {
			return 0, false
		}
		at = p.from
	}
	return at, true
}

func remove(raw []byte, p place) []byte {
	from, to := p.start, p.to
	after := envelope.SkipSpace(raw, to)
	if raw[after] == ',' {
		return splice(raw, from, envelope.SkipSpace(raw, after+1), nil)
	}
	for from > 0 && isSpace(raw[from-1]) {
		from--
	}
	if raw[from-1] == ',' {
		from--
	}
	return splice(raw, from, to, nil)
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func splice(raw []byte, from, to int, text []byte) []byte {
	out := make([]byte, 0, len(raw)+len(text))
	return append(append(append(out, raw[:from]...), text...), raw[to:]...)
}

// split reads a path of a replay report.
func split(path string) (steps []string) {
	if path == "" {
		return nil
	}
	var step strings.Builder
	for i := 0; i < len(path); i++ {
		switch {
		case path[i] == '\\' && i+1 < len(path):
			i++
			step.WriteByte(path[i])
		case path[i] == '.':
			steps = append(steps, step.String())
			step.Reset()
		default:
			step.WriteByte(path[i])
		}
	}
	return append(steps, step.String())
}

// equal compares two values as they are written, spaces apart.
func equal(a, b []byte) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// placeholder is text that a replay takes for a placeholder.
var placeholder = regexp.MustCompile(`<(?:any|workspace|bind:[A-Za-z0-9_.-]+|(string|int|number|bool|uuid|timestamp|path))>`)

// expectation turns a client's value into what is expected of it: literal text
// that reads like a placeholder is escaped, the workspace is <workspace>.
func expectation(raw json.RawMessage, workspace string) json.RawMessage {
	var out []byte
	kept := 0
	for i := 0; i < len(raw); {
		if raw[i] != '"' {
			i++
			continue
		}
		end := envelope.SkipString(raw, i)
		text := envelope.Unquote(raw[i:end])
		if fixed := expected(text, workspace); fixed != text {
			out = envelope.AppendString(append(out, raw[kept:i]...), fixed)
			kept = end
		}
		i = end
	}
	return append(out, raw[kept:]...)
}

func expected(text, workspace string) string {
	text = placeholder.ReplaceAllString(text, "<$0")
	for at := 0; len(workspace) > 1; {
		i := strings.Index(text[at:], workspace)
		if i < 0 {
			break
		}
		i += at
		at = i + len(workspace)
		if (at == len(text) || !nameByte(text[at])) && (i == 0 || !nameByte(text[i-1]) && text[i-1] != '/' && text[i-1] != '<') {
			text = text[:i] + "<workspace>" + text[at:]
			at = i + len("<workspace>")
		}
	}
	return text
}

func nameByte(c byte) bool {
	return c == '_' || c == '-' || c == '.' || c >= 0x80 || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}
