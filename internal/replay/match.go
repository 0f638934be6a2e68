package replay

import (
	"bytes"
	"encoding/json"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// bindings are the values that stand for names and recorded literals.
type bindings struct {
	names     map[string]json.RawMessage // <bind:NAME> to raw JSON
	literals  map[string]string          // recorded client-chosen value to the actual one
	workspace string
}

// trial compares one actual frame with one pattern; what it captures counts
// only when the whole frame matches.
type trial struct {
	bound    *bindings
	actual   []byte
	ignored  map[int]bool
	names    map[string]json.RawMessage
	literals map[string]string
	later    []waiting
}

// waiting is a string around a name that the frame had not captured yet when
// it was compared: keys come in any order.
type waiting struct {
	want *node
	raw  []byte
}

// try returns a trial of actual, with client-chosen values captured.
func (b *bindings) try(p *pattern, actual []byte) trial {
	t := trial{bound: b, actual: actual, ignored: places(actual, p.rules.ignore)}
	if p.bare {
		t.ignored = p.rules.withID(t.ignored, actual)
	}
	for _, s := range p.sites {
		t.choose(p.raw, s)
	}
	return t
}

// choose binds the recorded literals at a place to what the client chose.
func (t *trial) choose(recorded []byte, site place) {
	var have []int
	site.find(t.actual, envelope.SkipSpace(t.actual, 0), func(i int) { have = append(have, i) })
	site.find(recorded, envelope.SkipSpace(recorded, 0), func(i int) {
		if len(have) == 0 {
			return
		}
		at := have[0]
		have = have[1:]
		if recorded[i] != '"' || t.actual[at] != '"' {
			return
		}
		lit := envelope.Unquote(recorded[i:envelope.SkipString(recorded, i)])
		if _, plain := envelope.ParseText(lit); !plain {
			return
		}
		if _, ok := t.literal(lit); !ok {
			if t.literals == nil {
				t.literals = map[string]string{}
			}
			t.literals[lit] = envelope.Unquote(t.actual[at:envelope.SkipString(t.actual, at)])
		}
	})
}

// match says whether actual is what the pattern wants, and takes over what it
// captured. skipID is true when the frame's id is left out of comparison.
func (b *bindings) match(p *pattern, actual []byte, skipID bool) bool {
	if p.exact && len(b.literals) == 0 && bytes.Equal(p.raw, actual) {
		return true
	}
	t := b.try(p, actual)
	if _, ok := t.value(p.tree(skipID), envelope.SkipSpace(actual, 0)); !ok {
		return false
	}
	for _, w := range t.later {
		if !t.parts(w.want, w.raw) {
			return false
		}
	}
	for name, v := range t.names {
		b.names[name] = bytes.Clone(v)
	}
	for lit, v := range t.literals {
		b.literals[lit] = v
	}
	return true
}

// value compares the actual value at i and returns the index after it.
func (t *trial) value(n *node, i int) (int, bool) {
	b := t.actual
	if n.ignored || n.present || t.ignored[i] {
		return envelope.SkipValue(b, i), true
	}
	switch n.kind {
	case nodeObject:
		return t.object(n, i)
	case nodeArray:
		return t.array(n, i)
	case nodeString:
		end := envelope.SkipValue(b, i)
		return end, b[i] == '"' && t.str(n, b[i:end])
	case nodeText:
		end := envelope.SkipValue(b, i)
		return end, t.text(n, b[i:end])
	default:
		end := envelope.SkipValue(b, i)
		return end, bytes.Equal(n.raw, b[i:end])
	}
}

// object compares members by name, whatever their order. Where a name occurs
// several times, its nth value is compared with the nth recorded one.
func (t *trial) object(n *node, i int) (int, bool) {
	b := t.actual
	if b[i] != '{' {
		return i, false
	}
	var small [16]bool
	var seen []bool
	if len(n.keys) <= len(small) {
		seen = small[:len(n.keys)]
	} else {
		seen = make([]bool, len(n.keys))
	}
	next := 0 // where the search starts: members mostly come in recorded order
	for i = envelope.SkipSpace(b, i+1); b[i] != '}'; {
		end := envelope.SkipString(b, i)
		at := t.find(n, b[i:end], seen, next)
		i = envelope.SkipSpace(b, envelope.SkipSpace(b, end)+1)
		ok := true
		switch {
		case at >= 0:
			seen[at] = true
			next = at + 1
			i, ok = t.value(n.keys[at].value, i)
		case t.ignored[i]:
			i = envelope.SkipValue(b, i)
		default:
			ok = false
		}
		if !ok {
			return i, false
		}
		if i = envelope.SkipSpace(b, i); b[i] == ',' {
			i = envelope.SkipSpace(b, i+1)
		}
	}
	for k, met := range seen {
		if !met && !n.keys[k].value.ignored {
			return i, false
		}
	}
	return i + 1, true
}

// find returns the index of the first member with the quoted name that was
// not seen yet, -1 when there is none.
func (t *trial) find(n *node, quoted []byte, seen []bool, next int) int {
	raw := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(raw, '\\') >= 0 {
		raw = []byte(envelope.Unquote(quoted))
	}
	if t.chosen() {
		for k := range n.keys {
			if !seen[k] && t.key(n.keys[k].name) == string(raw) {
				return k
			}
		}
		return -1
	}
	if !n.twice && next < len(n.keys) && n.keys[next].name == string(raw) && !seen[next] {
		return next
	}
	if n.byName != nil {
		for _, k := range n.byName[string(raw)] {
			if !seen[k] {
				return k
			}
		}
		return -1
	}
	for k := range n.keys {
		if !seen[k] && n.keys[k].name == string(raw) {
			return k
		}
	}
	return -1
}

// chosen says whether any client-chosen value is bound.
func (t *trial) chosen() bool { return len(t.bound.literals)+len(t.literals) > 0 }

// key is what stands for a recorded key.
func (t *trial) key(name string) string {
	if v, ok := t.literal(name); ok {
		return v
	}
	return name
}

func (t *trial) array(n *node, i int) (int, bool) {
	b := t.actual
	if b[i] != '[' {
		return i, false
	}
	k := 0
	for i = envelope.SkipSpace(b, i+1); b[i] != ']'; k++ {
		switch {
		case k < len(n.items):
			var ok bool
			if i, ok = t.value(n.items[k], i); !ok {
				return i, false
			}
		case t.ignored[i]:
			i = envelope.SkipValue(b, i)
		default:
			return i, false
		}
		if i = envelope.SkipSpace(b, i); b[i] == ',' {
			i = envelope.SkipSpace(b, i+1)
		}
	}
	for ; k < len(n.items); k++ {
		if !n.items[k].ignored {
			return i, false
		}
	}
	return i + 1, true
}

// str compares a literal string, or what the client chose in its place.
func (t *trial) str(n *node, raw []byte) bool {
	if want, ok := t.literal(n.str); ok {
		return want == envelope.Unquote(raw)
	}
	return bytes.Equal(n.raw, raw) || envelope.Unquote(raw) == n.str
}

func (t *trial) literal(recorded string) (string, bool) {
	if v, ok := t.literals[recorded]; ok {
		return v, true
	}
	v, ok := t.bound.literals[recorded]
	return v, ok
}

func (t *trial) text(n *node, raw []byte) bool {
	if len(n.parts) == 1 {
		switch p := n.parts[0]; p.Kind {
		case envelope.PartAny:
			return true
		case envelope.PartTyped:
			return typed(p.Text, raw, envelope.Unquote)
		case envelope.PartBind:
			return t.bind(p.Text, raw)
		}
	}
	if raw[0] != '"' {
		return false
	}
	for _, p := range n.parts {
		if p.Kind != envelope.PartBind {
			continue
		}
		if _, ok := t.name(p.Text); !ok {
			t.later = append(t.later, waiting{n, raw})
			return true
		}
	}
	return t.parts(n, raw)
}

func (t *trial) parts(n *node, raw []byte) bool {
	return matchParts(n.parts, envelope.Unquote(raw), func(p envelope.Part) (string, bool) {
		if p.Kind == envelope.PartWorkspace {
			return t.bound.workspace, true
		}
		v, ok := t.name(p.Text)
		if !ok {
			return "", false
		}
		return bindText(v), true
	})
}

func (t *trial) name(name string) (json.RawMessage, bool) {
	if v, ok := t.names[name]; ok {
		return v, true
	}
	v, ok := t.bound.names[name]
	return v, ok
}

func (t *trial) bind(name string, raw []byte) bool {
	if v, ok := t.name(name); ok {
		return equalValues(v, raw)
	}
	if t.names == nil {
		t.names = map[string]json.RawMessage{}
	}
	t.names[name] = raw
	return true
}

// bindText is how a bound value reads inside a string.
func bindText(raw []byte) string {
	if raw[0] == '"' {
		return envelope.Unquote(raw)
	}
	return string(raw)
}

// equalValues compares two raw values as the matcher does, with nothing in
// them taken for a placeholder.
func equalValues(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	n, _ := parseNode(a, envelope.SkipSpace(a, 0))
	n.finish(nil)
	n.plain()
	t := trial{bound: &bindings{}, actual: b}
	_, ok := t.value(n, envelope.SkipSpace(b, 0))
	return ok
}

// plain turns placeholders back into literal strings.
func (n *node) plain() {
	if n.kind == nodeText {
		n.kind, n.parts = nodeString, nil
	}
	for _, f := range n.keys {
		f.value.plain()
	}
	for _, v := range n.items {
		v.plain()
	}
}
