package replay

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// node is one value of a compiled expectation.
type node struct {
	kind  nodeKind
	raw   []byte          // the value as recorded
	at    int             // its offset in the frame
	str   string          // decoded string, for nodeString and nodeText
	parts []envelope.Part // for nodeText
	keys  []field         // for nodeObject, in recorded order
	// byName finds keys of objects too large to search; nil for small ones.
	byName  map[string][]int
	twice   bool    // a key occurs more than once
	items   []*node // for nodeArray
	ignored bool    // left out of comparison; may be absent
	present bool    // any value, but there must be one (request ids)
}

type field struct {
	name  string
	value *node
}

type nodeKind uint8

const (
	nodeLiteral nodeKind = iota // number, true, false, null
	nodeString
	nodeText // a string with placeholders
	nodeObject
	nodeArray
)

// pattern is a compiled expectation: what an outbound frame must look like.
type pattern struct {
	raw []byte
	// exact is true when equal bytes mean a match: no placeholder, nothing
	// ignored or bound.
	exact bool
	root  *node // built on first need
	rules *rules
	sites []place // of client-chosen values in this frame
	// bare is true for a request or response recorded without an id: the
	// actual one's is then no difference.
	bare bool
}

// rules are what relaxes comparison for a whole transcript.
type rules struct {
	ignore    []place
	idKey     string // top-level key of request ids; "" for none
	workspace string
}

// compile prepares an expectation. The tree is built later, when bytes alone
// do not decide.
func compile(raw json.RawMessage, r *rules, sites []place) *pattern {
	p := &pattern{raw: raw, rules: r, sites: sites}
	p.exact = len(r.ignore) == 0 && len(sites) == 0 && bytes.IndexByte(raw, '<') < 0 && !bytes.Contains(raw, []byte(`\u003`))
	return p
}

// tree returns the compiled tree. skipID leaves the request id out of
// comparison.
func (p *pattern) tree(skipID bool) *node {
	if p.root != nil {
		return p.root
	}
	p.root, _ = parseNode(p.raw, envelope.SkipSpace(p.raw, 0))
	p.root.resolveKeys(p.rules.workspace)
	if skipID && p.rules.idKey != "" {
		for _, f := range p.root.keys {
			if f.name == p.rules.idKey {
				f.value.present = true
			}
		}
	}
	p.root.finish(places(p.raw, p.rules.ignore))
	return p.root
}

// withID adds the place of a frame's request id to what is ignored. Which id
// it is, and whether there must be one, is checked apart from the comparison.
func (r *rules) withID(ignored map[int]bool, frame []byte) map[int]bool {
	i := envelope.SkipSpace(frame, 0)
	if r.idKey == "" || frame[i] != '{' {
		return ignored
	}
	object := frame[i:]
	_ = envelope.EachMember(object, func(key, value []byte) error {
		if envelope.Unquote(key) == r.idKey {
			if ignored == nil {
				ignored = map[int]bool{}
			}
			ignored[i+cap(object)-cap(value)] = true // value is a slice of object
		}
		return nil
	})
	return ignored
}

// idPath is the path under which a difference of request ids is reported.
func (r *rules) idPath() string {
	if r.idKey == "" {
		return "id"
	}
	return r.idKey
}

// parseNode reads the value at i of valid JSON and returns the index after it.
func parseNode(b []byte, i int) (*node, int) {
	switch b[i] {
	case '{':
		n := &node{kind: nodeObject, at: i}
		start := i
		i = envelope.SkipSpace(b, i+1)
		for b[i] != '}' {
			end := envelope.SkipString(b, i)
			name := envelope.Unquote(b[i:end])
			i = envelope.SkipSpace(b, envelope.SkipSpace(b, end)+1)
			var v *node
			v, i = parseNode(b, i)
			n.keys = append(n.keys, field{name, v})
			if i = envelope.SkipSpace(b, i); b[i] == ',' {
				i = envelope.SkipSpace(b, i+1)
			}
		}
		n.raw = b[start : i+1]
		return n, i + 1
	case '[':
		n := &node{kind: nodeArray, at: i}
		start := i
		i = envelope.SkipSpace(b, i+1)
		for b[i] != ']' {
			var v *node
			v, i = parseNode(b, i)
			n.items = append(n.items, v)
			if i = envelope.SkipSpace(b, i); b[i] == ',' {
				i = envelope.SkipSpace(b, i+1)
			}
		}
		n.raw = b[start : i+1]
		return n, i + 1
	case '"':
		end := envelope.SkipString(b, i)
		n := &node{kind: nodeString, at: i, raw: b[i:end], str: envelope.Unquote(b[i:end])}
		if parts, plain := envelope.ParseText(n.str); !plain {
			n.kind, n.parts = nodeText, parts
		}
		return n, end
	default:
		end := envelope.SkipValue(b, i)
		return &node{kind: nodeLiteral, at: i, raw: b[i:end]}, end
	}
}

// resolveKeys puts the workspace into keys.
func (n *node) resolveKeys(workspace string) {
	for k := range n.keys {
		n.keys[k].name = keyName(n.keys[k].name, workspace)
		n.keys[k].value.resolveKeys(workspace)
	}
	for _, v := range n.items {
		v.resolveKeys(workspace)
	}
}

// finish marks the nodes that start at the given offsets and prepares objects
// for searching.
func (n *node) finish(ignored map[int]bool) {
	n.ignored = ignored[n.at]
	const large = 16
	if len(n.keys) > large {
		n.byName = make(map[string][]int, len(n.keys))
	}
	for k, f := range n.keys {
		f.value.finish(ignored)
		if n.byName != nil {
			n.byName[f.name] = append(n.byName[f.name], k)
			n.twice = n.twice || len(n.byName[f.name]) > 1
			continue
		}
		for _, before := range n.keys[:k] {
			n.twice = n.twice || before.name == f.name
		}
	}
	for _, v := range n.items {
		v.finish(ignored)
	}
}

// keyName resolves the workspace and escapes in a recorded key. Other
// placeholders mean nothing in keys.
func keyName(name, workspace string) string {
	parts, plain := envelope.ParseText(name)
	if plain {
		return name
	}
	var b strings.Builder
	for _, p := range parts {
		switch p.Kind {
		case envelope.PartText:
			b.WriteString(p.Text)
		case envelope.PartWorkspace:
			b.WriteString(workspace)
		default:
			return name
		}
	}
	return b.String()
}
