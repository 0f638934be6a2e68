package lint

import (
	"bytes"
	"strings"
	"sync"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// layout is all places that rules look at in the frames of a protocol, found
// in one walk per frame.
type layout struct {
	flavor  *flavors.Flavor
	all     []flavors.Place
	begins  [groups + 1]int // of each group in all
	matcher *flavors.Matcher
}

// group is what a rule wants places for.
type group int

const (
	volatile   group = iota // values that differ in every recording
	births                  // where threads are introduced
	children                // where a thread is named that must be
	references              // what the client names
	streams                 // pieces of the flavor's streams, in their order
	groups
)

// layouts keeps layouts that no file has, which are the dearer the shorter a
// file is.
var layouts struct {
	sync.Mutex
	free map[*flavors.Flavor][]*layout
}

func takeLayout(f *flavors.Flavor) *layout {
	layouts.Lock()
	defer layouts.Unlock()
	free := layouts.free[f]
	if len(free) == 0 {
		return newLayout(f)
	}
	layouts.free[f] = free[:len(free)-1]
	return free[len(free)-1]
}

// release lets another file have the layout. The last step's spans are gone.
func (p *layout) release() {
	layouts.Lock()
	defer layouts.Unlock()
	if layouts.free == nil {
		layouts.free = map[*flavors.Flavor][]*layout{}
	}
	layouts.free[p.flavor] = append(layouts.free[p.flavor], p)
}

func newLayout(f *flavors.Flavor) *layout {
	p := &layout{flavor: f}
	family := families[f.Protocol]
	var pieces []flavors.Place
	for _, s := range f.Streams {
		pieces = append(pieces, s.Place())
	}
	for g, list := range [groups][]flavors.Place{f.Volatile, family.births, family.children, f.References, pieces} {
		p.all = append(p.all, list...)
		p.begins[g+1] = len(p.all)
	}
	p.matcher = flavors.NewMatcher(p.all...)
	return p
}

// each calls fn with where the places of a group stand in the frame, in order.
func (s *step) each(g group, fn func(p flavors.Place, from, to int)) {
	for _, at := range s.spans {
		if at.Place >= s.places.begins[g] && at.Place < s.places.begins[g+1] {
			fn(s.places.all[at.Place], at.From, at.To)
		}
	}
}

// eachText calls fn with the strings among them, which are valid until it
// returns, and the path of their place.
func (s *step) eachText(g group, fn func(text []byte, path string)) {
	s.each(g, func(p flavors.Place, from, to int) {
		if s.raw[from] == '"' {
			fn(plainText(s.raw[from:to]), strings.TrimPrefix(p.Path, "**."))
		}
	})
}

// plainText decodes a string; one without escapes is not copied.
func plainText(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	return envelope.AppendUnquoted(nil, quoted)
}

// eachStream calls fn with the pieces of streams in the frame.
func (s *step) eachStream(fn func(p *flavors.Stream, from, to int)) {
	for _, at := range s.spans {
		if i := at.Place - s.places.begins[streams]; i >= 0 && i < len(s.places.flavor.Streams) {
			if p := &s.places.flavor.Streams[i]; p.Fits(*s.frame) {
				fn(p, at.From, at.To)
			}
		}
	}
}
