package review

import (
	"slices"
	"strings"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// itemOf finds the piece of work that a notification is about, and whether it
// tells a state.
func (r *reading) itemOf(u *unit, f flavors.Frame) {
	if f.Kind != flavors.Notification {
		return
	}
	u.state = slices.ContainsFunc(r.flavor.States, func(p flavors.Place) bool { return r.tells(p, u.dir, f) })
	for _, s := range flavors.Spans(r.flavor.Items, u.dir, f) {
		u.item = envelope.Unquote(u.raw[s[0]:s[1]])
		return
	}
}

// tells says whether a notification is one of the states that a place lists.
func (r *reading) tells(p flavors.Place, dir envelope.Direction, f flavors.Frame) bool {
	if !p.Applies(dir, f.Method) && (r.flavor.Label == nil || !p.Applies(dir, r.flavor.Label(f))) {
		return false
	}
	return p.Path == "" || len(flavors.Spans([]flavors.Place{{Dir: dir, Method: "*", Path: p.Path}}, dir, f)) > 0
}

// calm puts what races in a lane into one order: the same for every order that
// it may come in. A lane of states keeps each of them once.
func calm(lane []*unit) []*unit {
	if len(lane) > 0 && lane[0].state {
		return states(lane)
	}
	rank := map[string]int{}
	begin := 0 // of the frames that may change places
	settle := func(end int) {
		slices.SortStableFunc(lane[begin:end], func(a, b *unit) int { return rank[a.item] - rank[b.item] })
	}
	for i, u := range lane {
		_, under := rank[u.item]
		if u.item != "" && under {
			continue // goes on with what has begun
		}
		settle(i)
		begin = i + 1
		if u.item != "" {
			rank[u.item] = len(rank)
		}
	}
	settle(len(lane))
	return lane
}

// states sorts states and drops those told before.
func states(lane []*unit) []*unit {
	text := func(u *unit) string { return u.method + string(u.value.sorted().json()) }
	slices.SortStableFunc(lane, func(a, b *unit) int { return strings.Compare(text(a), text(b)) })
	return slices.CompactFunc(lane, func(a, b *unit) bool { return text(a) == text(b) })
}
