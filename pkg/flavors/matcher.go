package flavors

import (
	"bytes"
	"strconv"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// Matcher finds many places in one walk over a frame. It remembers, by method,
// what it has to look for. Not safe for concurrent use.
type Matcher struct {
	places []Place
	known  map[matcherKey]*program
	tapes  int // how many there were
	last   [64]struct {
		matcherKey
		*program
	} // of known, by direction and length of the method
	walk walk
	tape envelope.Tape // of a frame that is none yet
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
	if !m.tape.Scan(f.Raw) {
		return nil
	}
	return m.find(dir, f.Method, envelope.Value{Tape: &m.tape}, 0)
}

// OnTape is Find of a frame that was scanned; offsets are from its beginning.
func (m *Matcher) OnTape(dir envelope.Direction, method string, v envelope.Value) []Span {
	return m.find(dir, method, v, int(v.Tape.Tokens[v.Index].At))
}

func (m *Matcher) find(dir envelope.Direction, method string, v envelope.Value, origin int) []Span {
	p := m.program(matcherKey{dir, method})
	w := &m.walk
	if w.tape != v.Tape { // whose keys have other numbers
		w.tape, w.dotless = v.Tape, numbers{}
		m.tapes++
	}
	if p.tapes != m.tapes {
		p.tapes = m.tapes
		p.forget()
	}
	w.program, w.text, w.tokens, w.origin, w.found = p, v.Tape.Text, v.Tape.Tokens, origin, w.found[:0]
	w.active = w.active[:0]
	if p.top.goesOn() {
		w.active = append(w.active, &p.top)
	}
	w.value(v.Index, 0)
	return w.found
}

// program returns what to look for.
func (m *Matcher) program(key matcherKey) *program {
	last := &m.last[(len(key.method)*2+int(key.dir))%len(m.last)]
	if last.program != nil && last.matcherKey == key {
		return last.program
	}
	p := m.known[key]
	if p == nil {
		const most = 1024 // methods may be made up
		if len(m.known) >= most {
			clear(m.known)
		}
		p = compilePlaces(m.places, key.dir, key.method)
		m.known[key] = p
	}
	last.matcherKey, last.program = key, p
	return p
}

// walk is one walk over a frame.
type walk struct {
	*program
	tape    *envelope.Tape
	dotless numbers // of its keys, those known to be without full stops
	text    []byte
	tokens  []envelope.Token
	origin  int // of the offsets that are found
	found   []Span
	active  []*node // a stack: what goes on below the value that is walked
}

// value walks below the value of a token, for which the nodes from the given
// height of the stack on are active.
func (w *walk) value(at, base int) {
	top := len(w.active)
	if top == base && !w.wild.goesOn() {
		if w.anywhere {
			w.strewn(at)
		}
		return
	}
	t := &w.tokens[at]
	end := int(t.Next)
	switch t.Kind {
	case '{':
		for i := at + 1; i < end; {
			key := &w.tokens[i]
			if n := key.Name; n == 0 || !w.leadsNowhere(n, base, top) {
				w.enter(w.text[key.At+1:key.End-1], n, base, top, i+1)
			}
			i = w.below(i+1, top)
		}
	case '[':
		var room [20]byte
		for i, k := at+1, int64(0); i < end; k++ {
			if base < top || w.wild.goesOn() {
				w.enter(strconv.AppendInt(room[:0], k, 10), 0, base, top, i)
			}
			i = w.below(i, top)
		}
	}
}

// strewn walks below a value where only paths from any depth can begin, and
// those with a key: it looks at the keys one after the other, however they nest.
func (w *walk) strewn(at int) {
	top := len(w.active)
	for i, end := at+1, int(w.tokens[at].Next); i < end; i++ {
		key := &w.tokens[i]
		if key.Kind != envelope.Key || w.idle.has(key.Name) {
			continue
		}
		w.enter(w.text[key.At+1:key.End-1], key.Name, top, top, i+1)
		if len(w.active) > top {
			i = w.below(i+1, top) - 1
		}
	}
}

// below walks a value that was entered and returns the index of the next.
func (w *walk) below(at, top int) int {
	next := int(w.tokens[at].Next)
	if next > at+1 {
		w.value(at, top)
	}
	w.active = w.active[:top]
	return next
}

// leadsNowhere says whether a key by its number is known to begin nothing here.
func (w *walk) leadsNowhere(name uint16, base, top int) bool {
	if !w.idle.has(name) {
		return false
	}
	for _, n := range w.active[base:top] {
		if !n.idle.has(name) {
			return false
		}
	}
	return true
}

// enter pushes what of the paths goes on below a key, and notes those that end
// at its value, a token. name is the key's number.
func (w *walk) enter(key []byte, name uint16, base, top, at int) {
	dots := !w.dotless.has(name) && bytes.IndexByte(key, '.') >= 0
	if !dots {
		w.dotless.add(name)
	}
	for n := base; n < top; n++ {
		if !w.active[n].idle.has(name) {
			w.step(w.active[n], key, name, dots, at)
		}
	}
	if w.wild.goesOn() {
		w.step(&w.wild, key, name, dots, at)
	}
	switch {
	case w.idle.has(name):
	case dots:
		w.visit(w.deep.dotted(string(key)), at)
	case w.keys[keyHash(key)]:
		to := w.deep.below(key)
		w.visit(to, at)
		if to == nil && !w.wild.goesOn() {
			w.idle.add(name)
		}
	case !w.wild.goesOn():
		w.idle.add(name)
	}
}

func (w *walk) step(n *node, key []byte, name uint16, dots bool, at int) {
	w.visit(n.any, at)
	if dots {
		w.visit(n.dotted(string(key)), at)
		return
	}
	to := n.below(key)
	if to == nil && n.any == nil {
		n.idle.add(name)
	}
	w.visit(to, at)
}

// visit notes the places that end at a node, which may be nil, and keeps what
// goes on below it.
func (w *walk) visit(n *node, at int) {
	if n == nil {
		return
	}
	for _, place := range n.places {
		t := &w.tokens[at]
		w.found = append(w.found, Span{})
		s := &w.found[len(w.found)-1] // written in place, as a token is
		s.Place, s.From, s.To = place, int(t.At)-w.origin, int(t.End)-w.origin
	}
	if n.goesOn() {
		w.active = append(w.active, n)
	}
}
