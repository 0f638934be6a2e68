package flavors

import (
	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// Applies says whether a place is looked for in frames of the method.
func (p Place) Applies(dir envelope.Direction, method string) bool {
	return p.Dir == dir && (p.Method == "*" || p.Method == method)
}

// Spans returns where in the raw frame the places stand, as offsets [from,
// to), in order; a span within another is left out.
func Spans(places []Place, dir envelope.Direction, f Frame) [][2]int {
	return NewMatcher(places...).Outer(dir, f)
}

// Outer returns where the places stand in the frame, as offsets [from, to), in
// order; a span within another is left out.
func (m *Matcher) Outer(dir envelope.Direction, f Frame) (kept [][2]int) {
	end := 0
	for _, s := range m.Find(dir, f) {
		if s.From >= end {
			kept = append(kept, [2]int{s.From, s.To})
			end = s.To
		}
	}
	return kept
}
