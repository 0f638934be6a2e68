package flavors

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// Applies says whether a place is looked for in frames of the method.
func (p Place) Applies(dir envelope.Direction, method string) bool {
	return p.Dir == dir && (p.Method == "*" || p.Method == method)
}

// Spans returns where in the raw frame the places stand, as offsets [from,
// to), in order; a span within another is left out.
func Spans(places []Place, dir envelope.Direction, f Frame) [][2]int {
	var found [][2]int
	for _, p := range places {
		if !p.Applies(dir, f.Method) {
			continue
		}
		rest, deep := strings.CutPrefix(p.Path, "**.")
		spans(f.Raw, envelope.SkipSpace(f.Raw, 0), strings.Split(rest, "."), deep, &found)
	}
	if len(found) < 2 {
		return found
	}
	slices.SortFunc(found, func(a, b [2]int) int {
		if a[0] != b[0] {
			return a[0] - b[0]
		}
		return b[1] - a[1]
	})
	kept := found[:1]
	for _, s := range found[1:] {
		if s[0] >= kept[len(kept)-1][1] {
			kept = append(kept, s)
		}
	}
	return kept
}

// spans walks the value at offset at of valid JSON.
func spans(raw json.RawMessage, at int, path []string, deep bool, found *[][2]int) {
	if len(path) == 0 {
		*found = append(*found, [2]int{at, envelope.SkipValue(raw, at)})
		return
	}
	object := raw[at] == '{'
	if !object && raw[at] != '[' {
		return
	}
	i := envelope.SkipSpace(raw, at+1)
	for k := 0; raw[i] != '}' && raw[i] != ']'; k++ {
		n := 0 // segments of the path that fit
		if object {
			end := envelope.SkipString(raw, i)
			n = fitting(path, string(raw[i+1:end-1]))
			i = envelope.SkipSpace(raw, envelope.SkipSpace(raw, end)+1)
		} else {
			n = fitting(path, strconv.Itoa(k))
		}
		if n > 0 {
			spans(raw, i, path[n:], false, found)
		}
		if deep {
			spans(raw, i, path, true, found)
		}
		if i = envelope.SkipSpace(raw, envelope.SkipValue(raw, i)); raw[i] == ',' {
			i = envelope.SkipSpace(raw, i+1)
		}
	}
}

// fitting returns how many segments the key takes up: several where it has
// full stops in it, as in {"qwen.session.recordId": …}.
func fitting(path []string, key string) int {
	if path[0] == "*" {
		return 1
	}
	n := 1 + strings.Count(key, ".")
	if n <= len(path) && strings.Join(path[:n], ".") == key {
		return n
	}
	return 0
}
