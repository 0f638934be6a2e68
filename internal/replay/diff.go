package replay

import (
	"encoding/json"
	"strconv"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// Difference is one place where an outbound frame is not what was recorded.
type Difference struct {
	// Path is gjson's syntax, "" for the whole frame.
	Path string `json:"path"`
	// Kind is "changed", "missing" (recorded, not sent) or "extra" (sent, not
	// recorded).
	Kind     string          `json:"kind"`
	Expected json.RawMessage `json:"expected,omitempty"`
	Actual   json.RawMessage `json:"actual,omitempty"`
}

// maxDifferences bounds a report; one frame rarely needs more to be understood.
const maxDifferences = 200

// diff lists where actual differs from the pattern, in the pattern's order,
// extra members last in each object. It captures nothing.
func (b *bindings) diff(p *pattern, actual []byte, skipID bool) []Difference {
	d := differ{trial: b.try(p, actual)}
	have, _ := parseNode(actual, envelope.SkipSpace(actual, 0))
	d.walk("", p.tree(skipID), have)
	for i, w := range d.trial.later {
		if !d.trial.parts(w.want, w.raw) {
			d.add(d.later[i].at, "changed", w.want, d.later[i].have)
		}
	}
	return d.found
}

type differ struct {
	trial trial
	found []Difference
	later []laterPlace // of trial.later
}

type laterPlace struct {
	at   string
	have *node
}

func (d *differ) add(path, kind string, want, have *node) {
	if len(d.found) >= maxDifferences {
		return
	}
	f := Difference{Path: path, Kind: kind}
	if want != nil {
		f.Expected = want.raw
	}
	if have != nil {
		f.Actual = have.raw
	}
	d.found = append(d.found, f)
}

func (d *differ) walk(at string, want, have *node) {
	switch {
	case want.ignored || want.present || d.trial.ignored[have.at]:
		return
	case want.kind == nodeObject && have.kind == nodeObject:
		d.object(at, want, have)
	case want.kind == nodeArray && have.kind == nodeArray:
		for i, w := range want.items {
			if i < len(have.items) {
				d.walk(indexPath(at, i), w, have.items[i])
			} else if !w.ignored {
				d.add(indexPath(at, i), "missing", w, nil)
			}
		}
		for i := len(want.items); i < len(have.items); i++ {
			if !d.trial.ignored[have.items[i].at] {
				d.add(indexPath(at, i), "extra", nil, have.items[i])
			}
		}
	default:
		if _, ok := d.trial.value(want, have.at); !ok {
			d.add(at, "changed", want, have)
		}
		if len(d.trial.later) > len(d.later) {
			d.later = append(d.later, laterPlace{at, have})
		}
	}
}

func (d *differ) object(at string, want, have *node) {
	used := make([]bool, len(have.keys))
	// A key that occurs several times is compared occurrence by occurrence.
	nth := map[string]int{}
	index := map[string][]int{}
	for k, f := range have.keys {
		index[f.name] = append(index[f.name], k)
	}
	for _, f := range want.keys {
		name := d.trial.key(f.name)
		places := index[name]
		if n := nth[name]; n < len(places) {
			nth[name]++
			used[places[n]] = true
			d.walk(path(at, name), f.value, have.keys[places[n]].value)
		} else if !f.value.ignored {
			d.add(path(at, name), "missing", f.value, nil)
		}
	}
	for k, f := range have.keys {
		if !used[k] && !d.trial.ignored[f.value.at] {
			d.add(path(at, f.name), "extra", nil, f.value)
		}
	}
}

// path returns p with the key or index appended, in gjson's path syntax.
func path(p, key string) string {
	escaped := make([]byte, 0, len(key))
	for i := 0; i < len(key); i++ {
		switch key[i] {
		case '.', '*', '?', '|', '#', '@', '\\', '!', '{', '}', '[', ']', '(', ')', '=', '<', '>', '%':
			escaped = append(escaped, '\\')
		}
		escaped = append(escaped, key[i])
	}
	if p == "" {
		return string(escaped)
	}
	return p + "." + string(escaped)
}

func indexPath(p string, i int) string { return path(p, strconv.Itoa(i)) }
