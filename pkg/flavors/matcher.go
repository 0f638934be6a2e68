package flavors

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// Matcher finds many places in one walk over a frame. It remembers, by method,
// what it has to look for. Not safe for concurrent use.
type Matcher struct {
	places []Place
	known  map[matcherKey]*program
	walk   walk
}

type matcherKey struct {
	dir    envelope.Direction
	method string
}

// NewMatcher returns a Matcher of the places.
func NewMatcher(places ...Place) *Matcher {
	return &Matcher{places: places, known: map[matcherKey]*program{}}
}

// Span is a value in a raw frame: offsets [From, To), and the index of the
// place that it is at.
type Span struct{ Place, From, To int }

// Find returns where the places stand in the frame, in the order of their
// beginnings, outer values first. The slice is valid until the next call.
func (m *Matcher) Find(dir envelope.Direction, f Frame) []Span {
	key := matcherKey{dir, f.Method}
	p := m.known[key]
	if p == nil {
		const most = 1024 // methods may be made up
		if len(m.known) >= most {
			clear(m.known)
		}
		p = compilePlaces(m.places, dir, f.Method)
		m.known[key] = p
	}
	m.walk = walk{program: p, raw: f.Raw, found: m.walk.found[:0], active: m.walk.active[:0]}
	if len(p.deep)+len(p.wild)+len(p.top) == 0 {
		return nil
	}
	m.walk.active = append(m.walk.active, p.top...)
	m.walk.value(envelope.SkipSpace(f.Raw, 0), 0)
	return m.walk.found
}

// program is what a walk looks for in the frames of one method.
type program struct {
	top  []pathAt            // paths from the frame's top
	deep map[string][]pathAt // paths from any depth, by their first segment
	wild []pathAt            // those that begin with "*" or an index
	keys [256]bool           // of a hash, whether a key of deep may have it
}

// pathAt is the rest of a place's path.
type pathAt struct {
	place int
	rest  []string
}

func compilePlaces(places []Place, dir envelope.Direction, method string) *program {
	p := &program{deep: map[string][]pathAt{}}
	for i, place := range places {
		if !place.Applies(dir, method) {
			continue
		}
		rest, deep := strings.CutPrefix(place.Path, "**.")
		at := pathAt{i, strings.Split(rest, ".")}
		_, err := strconv.Atoi(at.rest[0])
		switch {
		case !deep:
			p.top = append(p.top, at)
		case at.rest[0] == "*" || err == nil:
			p.wild = append(p.wild, at)
		default:
			p.deep[at.rest[0]] = append(p.deep[at.rest[0]], at)
			p.keys[keyHash([]byte(at.rest[0]))] = true
		}
	}
	return p
}

func keyHash(key []byte) byte {
	if len(key) == 0 {
		return 0
	}
	return key[0]*7 + key[len(key)-1]*3 + byte(len(key))
}

// walk is one walk over a frame.
type walk struct {
	*program
	raw    json.RawMessage
	found  []Span
	active []pathAt // a stack: paths that go on below the value that is walked
}

// value walks the value at i, for which the paths from the given height of the
// stack on are active, and returns the index after it.
func (w *walk) value(i, base int) int {
	if w.raw[i] != '{' && w.raw[i] != '[' || len(w.active) == base && len(w.deep)+len(w.wild) == 0 {
		return envelope.SkipValue(w.raw, i)
	}
	object := w.raw[i] == '{'
	top := len(w.active)
	i = envelope.SkipSpace(w.raw, i+1)
	for k := 0; w.raw[i] != '}' && w.raw[i] != ']'; k++ {
		first := len(w.found)
		if object {
			end := envelope.SkipString(w.raw, i)
			key := w.raw[i+1 : end-1]
			i = envelope.SkipSpace(w.raw, envelope.SkipSpace(w.raw, end)+1)
			w.enter(key, base, top, i)
		} else if base < top || len(w.wild) > 0 {
			w.enter(strconv.AppendInt(nil, int64(k), 10), base, top, i)
		}
		last := len(w.found)
		i = w.value(i, top)
		for n := first; n < last; n++ {
			w.found[n].To = i
		}
		w.active = w.active[:top]
		if i = envelope.SkipSpace(w.raw, i); w.raw[i] == ',' {
			i = envelope.SkipSpace(w.raw, i+1)
		}
	}
	return i + 1
}

// enter pushes what of the paths goes on below a key, and notes those that end
// at its value.
func (w *walk) enter(key []byte, base, top, at int) {
	dots := bytes.IndexByte(key, '.') >= 0
	for n := base; n < top; n++ {
		w.step(w.active[n], key, dots, at)
	}
	for _, p := range w.wild {
		w.step(p, key, dots, at)
	}
	switch {
	case dots: // a key with full stops takes several segments
		for _, paths := range w.deep {
			for _, p := range paths {
				w.step(p, key, true, at)
			}
		}
	case w.keys[keyHash(key)]:
		for _, p := range w.deep[string(key)] {
			w.step(p, key, false, at)
		}
	}
}

func (w *walk) step(p pathAt, key []byte, dots bool, at int) {
	n := 1
	switch {
	case dots:
		if n = fitting(p.rest, string(key)); n == 0 {
			return
		}
	case p.rest[0] != "*" && p.rest[0] != string(key):
		return
	}
	if n == len(p.rest) {
		w.found = append(w.found, Span{p.place, at, 0})
		return
	}
	w.active = append(w.active, pathAt{p.place, p.rest[n:]})
}
