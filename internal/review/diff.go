package review

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// Diff is what changed between two transcripts.
type Diff struct {
	Version int      `json:"version"` // 1
	Old     string   `json:"old"`
	New     string   `json:"new"`
	Same    bool     `json:"same"`
	Changes []Change `json:"changes"`
}

// Change is one change, in however many frames.
type Change struct {
	// What is "header", "field", "frame" or "order".
	What string `json:"what"`
	// Op is "added", "removed", "changed" or, of an order, "moved".
	Op        string   `json:"op"`
	Direction string   `json:"direction,omitempty"`
	Methods   []string `json:"methods,omitempty"`
	Path      string   `json:"path,omitempty"` // indexes are #
	// Old and New are the values, of the first frame where they differ from
	// frame to frame; Values counts the different ones.
	Old    json.RawMessage `json:"old,omitempty"`
	New    json.RawMessage `json:"new,omitempty"`
	Values int             `json:"values,omitempty"`
	Frames []Pair          `json:"frames,omitempty"`
}

// Pair is one frame, by its lines; 0 where it is not.
type Pair struct {
	Old   int    `json:"old,omitempty"`
	New   int    `json:"new,omitempty"`
	Label string `json:"label,omitempty"`
}

// Compare compares two transcripts by meaning.
func Compare(before, after *envelope.Transcript) *Diff {
	c := &comparison{diff: Diff{Version: 1, Old: before.File, New: after.File}}
	a, b := read(before), read(after)
	c.header(&a.header, &b.header)
	names, old := a.lanes()
	more, fresh := b.lanes()
	for _, name := range more {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		c.lane(old[name], fresh[name])
	}
	c.gather()
	c.diff.Same = len(c.diff.Changes) == 0
	return &c.diff
}

type comparison struct {
	diff  Diff
	edits []Change // one frame each
}

// origin are the metadata that say something of what was recorded.
var origin = []string{"providerVersion", "model", "cwdPolicy", "source", "match", "optionsProjection", "experimentalApi", "sdk", "protocolVersion"}

func (c *comparison) header(a, b *envelope.Header) {
	add := func(path string, old, new json.RawMessage) {
		if string(old) == string(new) {
			return
		}
		op := "changed"
		if old == nil {
			op = "added"
		} else if new == nil {
			op = "removed"
		}
		c.diff.Changes = append(c.diff.Changes, Change{What: "header", Op: op, Path: path, Old: old, New: new})
	}
	for _, f := range [][3]string{
		{"provider", a.Provider, b.Provider}, {"protocol", a.Protocol, b.Protocol},
		{"version", a.Version, b.Version}, {"scenario", a.Scenario, b.Scenario},
	} {
		add(f[0], envelope.AppendString(nil, f[1]), envelope.AppendString(nil, f[2]))
	}
	raw := func(h *envelope.Header, key string) json.RawMessage {
		if v := gjson.GetBytes(h.Metadata, key); v.Exists() {
			return json.RawMessage(v.Raw)
		}
		return nil
	}
	for _, key := range origin {
		add("metadata."+key, raw(a, key), raw(b, key))
	}
}

// lane compares one sequence.
func (c *comparison) lane(a, b []*unit) {
	var gone, come []*unit
	align(a, b, equal, alike, func(x, y *unit) {
		switch {
		case y == nil:
			gone = append(gone, x)
		case x == nil:
			come = append(come, y)
		default:
			c.pair(x, y)
		}
	})
	for _, x := range gone {
		i := slices.IndexFunc(come, func(y *unit) bool { return equal(x, y) })
		if i < 0 {
			c.frame("removed", x, Pair{Old: x.line, Label: x.label})
			continue
		}
		c.edits = append(c.edits, Change{What: "order", Op: "moved", Direction: x.dir.String(), Methods: []string{x.name()},
			Frames: []Pair{{Old: x.line, New: come[i].line, Label: x.label}}})
		come = slices.Delete(come, i, i+1)
	}
	for _, y := range come {
		c.frame("added", y, Pair{New: y.line, Label: y.label})
	}
}

func (c *comparison) frame(op string, u *unit, at Pair) {
	e := Change{What: "frame", Op: op, Direction: u.dir.String(), Methods: []string{u.name()}, Frames: []Pair{at}}
	v := u.value.json()
	if u.pieces > 0 {
		v = envelope.AppendString(nil, u.piece)
	}
	if op == "added" {
		e.New = v
	} else {
		e.Old = v
	}
	c.edits = append(c.edits, e)
}

func equal(x, y *unit) bool {
	return x.method == y.method && x.kind == y.kind && x.piece == y.piece && same(x.value, y.value)
}

func alike(x, y *unit) bool { return x.method == y.method && x.kind == y.kind }

// name is what a change calls a frame.
func (u *unit) name() string {
	switch {
	case u.method == "":
		return u.label
	case u.kind.String() == "response":
		return u.method + " (answer)"
	}
	return u.method
}

func (c *comparison) pair(x, y *unit) {
	add := func(d delta) {
		e := Change{What: "field", Op: d.op, Direction: x.dir.String(), Methods: []string{x.name()}, Path: d.path,
			Frames: []Pair{{Old: x.line, New: y.line, Label: y.label}}}
		if d.old != nil {
			e.Old = d.old.json()
		}
		if d.new != nil {
			e.New = d.new.json()
		}
		c.edits = append(c.edits, e)
	}
	compare("", x.value, y.value, add)
	if x.piece != y.piece {
		add(delta{"changed", x.at, &value{kind: '"', text: x.piece}, &value{kind: '"', text: y.piece}})
	}
}

// gather makes one change of equal ones, and of those at one place that
// differ in their values.
func (c *comparison) gather() {
	same := func(a, b *Change, values bool) bool {
		return a.What == b.What && a.Op == b.Op && a.Direction == b.Direction && a.Path == b.Path &&
			(a.What == "field" || a.Methods[0] == b.Methods[0]) &&
			(!values || string(a.Old) == string(b.Old) && string(a.New) == string(b.New))
	}
	for _, values := range []bool{true, false} {
		var groups []Change
		for _, e := range c.edits {
			i := slices.IndexFunc(groups, func(g Change) bool { return same(&g, &e, values) })
			if i < 0 {
				e.Values = max(e.Values, 1)
				groups = append(groups, e)
				continue
			}
			g := &groups[i]
			g.Frames = append(g.Frames, e.Frames...)
			for _, m := range e.Methods {
				if !slices.Contains(g.Methods, m) {
					g.Methods = append(g.Methods, m)
				}
			}
			if !values {
				g.Values += max(e.Values, 1)
			}
		}
		c.edits = groups
	}
	slices.SortStableFunc(c.edits, func(a, b Change) int {
		return strings.Compare(rank(a), rank(b))
	})
	c.diff.Changes = append(c.diff.Changes, c.edits...)
}

// rank puts what the client sends before what it gets, and fields before
// frames.
func rank(c Change) string {
	return map[string]string{"outbound": "0", "inbound": "1"}[c.Direction] + map[string]string{"field": "0", "frame": "1", "order": "2"}[c.What]
}
