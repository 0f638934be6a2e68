package review

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// value is one JSON value as far as its meaning goes: members have no order,
// strings are decoded, numbers stay literals.
type value struct {
	kind  byte // '{', '[', '"', '0' for another literal, 'v' for one set aside, 'p' for a piece of a stream
	text  string
	keys  []string // as recorded
	inner []*value // of the keys, or the items
}

// aside tells what to do with the value at an offset of a frame.
type aside map[int]byte

// parse reads the value at i of valid JSON and returns the index after it.
func parse(raw []byte, i int, a aside, piece *string) (*value, int) {
	if kind := a[i]; kind != 0 {
		end := envelope.SkipValue(raw, i)
		switch {
		case kind == 'd':
			return nil, end
		case kind == 'p' && raw[i] == '"':
			*piece += envelope.Unquote(raw[i:end])
			return &value{kind: 'p'}, end
		case string(raw[i:end]) != "null":
			return &value{kind: 'v'}, end
		}
	}
	switch raw[i] {
	case '{', '[':
		return parseInner(raw, i, a, piece)
	case '"':
		end := envelope.SkipString(raw, i)
		return &value{kind: '"', text: envelope.Unquote(raw[i:end])}, end
	}
	end := envelope.SkipValue(raw, i)
	return &value{kind: '0', text: string(raw[i:end])}, end
}

func parseInner(raw []byte, i int, a aside, piece *string) (*value, int) {
	v := &value{kind: raw[i]}
	for i = envelope.SkipSpace(raw, i+1); raw[i] != '}' && raw[i] != ']'; {
		key := ""
		if v.kind == '{' {
			end := envelope.SkipString(raw, i)
			key = envelope.Unquote(raw[i:end])
			i = envelope.SkipSpace(raw, envelope.SkipSpace(raw, end)+1)
		}
		var in *value
		if in, i = parse(raw, i, a, piece); in != nil {
			if v.kind == '{' {
				v.keys = append(v.keys, key)
			}
			v.inner = append(v.inner, in)
		}
		if i = envelope.SkipSpace(raw, i); raw[i] == ',' {
			i = envelope.SkipSpace(raw, i+1)
		}
	}
	return v, i + 1
}

// chance finds what is drawn or read from a clock, wherever it stands.
var chance = regexp.MustCompile(`(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?|duration_ms: \d+`)

// settle replaces ids in texts: those that stand at volatile places, and all
// that look like one.
func (v *value) settle(ids *strings.Replacer) {
	fix := func(s string) string {
		if len(s) < 8 {
			return s
		}
		return chance.ReplaceAllString(ids.Replace(s), "<id>")
	}
	if v.kind == '"' {
		v.text = fix(v.text)
	}
	for i := range v.keys {
		v.keys[i] = fix(v.keys[i])
	}
	for _, in := range v.inner {
		in.settle(ids)
	}
}

// get returns a member, nil when there is none.
func (v *value) get(key string) *value {
	for i, k := range v.keys {
		if k == key {
			return v.inner[i]
		}
	}
	return nil
}

// same compares two values by meaning.
func same(a, b *value) bool {
	if a.kind != b.kind || a.text != b.text || len(a.inner) != len(b.inner) {
		return false
	}
	if a.kind != '{' {
		for i := range a.inner {
			if !same(a.inner[i], b.inner[i]) {
				return false
			}
		}
		return true
	}
	for i, k := range a.keys {
		if b.keys[i] == k {
			if !same(a.inner[i], b.inner[i]) {
				return false
			}
		} else if other := b.get(k); other == nil || !same(a.inner[i], other) {
			return false
		}
	}
	return true
}

// sorted is the value with its members by name: values that are the same are
// then written the same.
func (v *value) sorted() *value {
	out := &value{kind: v.kind, text: v.text, keys: slices.Sorted(slices.Values(v.keys))}
	for _, key := range out.keys {
		out.inner = append(out.inner, v.get(key).sorted())
	}
	if v.kind == '[' {
		for _, in := range v.inner {
			out.inner = append(out.inner, in.sorted())
		}
	}
	return out
}

// json writes the value, "…" for what was set aside.
func (v *value) json() json.RawMessage { return v.append(nil) }

func (v *value) append(dst []byte) []byte {
	switch v.kind {
	case '"':
		return envelope.AppendString(dst, v.text)
	case '0':
		return append(dst, v.text...)
	case 'v', 'p':
		return append(dst, `"…"`...)
	}
	dst = append(dst, v.kind)
	for i, in := range v.inner {
		if i > 0 {
			dst = append(dst, ',')
		}
		if v.kind == '{' {
			dst = append(envelope.AppendString(dst, v.keys[i]), ':')
		}
		dst = in.append(dst)
	}
	return append(dst, v.kind+2) // '}' and ']' stand two after their opening
}

// delta is one place where two values differ.
type delta struct {
	op       string // "added", "removed" or "changed"
	path     string // indexes are #
	old, new *value
}

// compare lists where two values differ.
func compare(path string, a, b *value, add func(delta)) {
	switch {
	case same(a, b):
	case a.kind == '{' && b.kind == '{':
		for i, k := range a.keys {
			if other := b.get(k); other != nil {
				compare(join(path, k), a.inner[i], other, add)
			} else {
				add(delta{"removed", join(path, k), a.inner[i], nil})
			}
		}
		for i, k := range b.keys {
			if a.get(k) == nil {
				add(delta{"added", join(path, k), nil, b.inner[i]})
			}
		}
	case a.kind == '[' && b.kind == '[':
		at := join(path, "#")
		align(a.inner, b.inner, same, kin, func(x, y *value) {
			switch {
			case x == nil:
				add(delta{"added", at, nil, y})
			case y == nil:
				add(delta{"removed", at, x, nil})
			default:
				compare(at, x, y, add)
			}
		})
	default:
		add(delta{"changed", path, a, b})
	}
}

// kin says whether two items of a list may be one, changed.
func kin(a, b *value) bool {
	if a.kind != b.kind {
		return false
	}
	for _, key := range []string{"type", "kind"} {
		x, y := a.get(key), b.get(key)
		if x != nil && y != nil && !same(x, y) {
			return false
		}
	}
	return true
}

func join(path, key string) string {
	if key != "#" {
		key = strings.NewReplacer(`\`, `\\`, ".", `\.`).Replace(key)
		if _, err := strconv.Atoi(key); err == nil {
			key = "#"
		}
	}
	if path == "" {
		return key
	}
	return path + "." + key
}
