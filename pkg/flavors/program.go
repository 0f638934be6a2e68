package flavors

import (
	"strconv"
	"strings"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// program is what a walk looks for in the frames of one method: the paths of
// its places as trees, so that what they have in common is looked for once.
type program struct {
	top  node // paths from the frame's top
	deep node // paths from any depth
	wild node // those of them that begin with "*" or an index

	keys     [256]bool // of a hash, whether a key that deep begins with may have it
	anywhere bool      // there is something in deep or wild
	tapes    int       // which of the matcher's tapes the numbers of keys are of
	idle     numbers   // of keys that nothing begins with at any depth
}

// forget makes the program ready for another tape, whose keys have other
// numbers.
func (p *program) forget() {
	p.idle = numbers{}
	p.top.forget()
	p.deep.forget()
	p.wild.forget()
}

// numbers is a set of numbers of keys without full stops.
type numbers [envelope.MostNames / 64]uint64

func (s *numbers) has(name uint16) bool {
	return s[name/64%uint16(len(s))]&(1<<(name%64)) != 0
}

// add puts in a number; 0 is none.
func (s *numbers) add(name uint16) {
	if name != 0 {
		s[name/64] |= 1 << (name % 64)
	}
}

// node is a place in a tree of paths.
type node struct {
	places []int   // those that end here, in their order
	next   []edge  // by key or index
	any    *node   // below "*"
	idle   numbers // of keys that nothing is below of
}

type edge struct {
	segment string
	to      *node
}

func (n *node) forget() {
	n.idle = numbers{}
	for _, e := range n.next {
		e.to.forget()
	}
	if n.any != nil {
		n.any.forget()
	}
}

// goesOn says whether paths go on below the node.
func (n *node) goesOn() bool { return len(n.next) > 0 || n.any != nil }

// below returns the node below a key without full stops, "*" apart; nil for
// none.
func (n *node) below(key []byte) *node {
	for i := range n.next {
		if n.next[i].segment == string(key) {
			return n.next[i].to
		}
	}
	return nil
}

// dotted is below of a key with full stops, which takes several segments, as in
// {"qwen.session.recordId": …}.
func (n *node) dotted(key string) *node {
	for segment := range strings.SplitSeq(key, ".") {
		if n = n.below([]byte(segment)); n == nil {
			return nil
		}
	}
	return n
}

// add puts the path of a place into the tree.
func (n *node) add(path []string, place int) {
	for _, segment := range path {
		if segment == "*" {
			if n.any == nil {
				n.any = &node{}
			}
			n = n.any
			continue
		}
		to := n.below([]byte(segment))
		if to == nil {
			to = &node{}
			n.next = append(n.next, edge{segment, to})
		}
		n = to
	}
	n.places = append(n.places, place)
}

func compilePlaces(places []Place, dir envelope.Direction, method string) *program {
	p := &program{}
	for i, place := range places {
		if !place.Applies(dir, method) {
			continue
		}
		rest, deep := strings.CutPrefix(place.Path, "**.")
		path := strings.Split(rest, ".")
		_, err := strconv.Atoi(path[0])
		switch {
		case !deep:
			p.top.add(path, i)
		case path[0] == "*" || err == nil:
			p.wild.add(path, i)
		default:
			p.deep.add(path, i)
			p.keys[keyHash([]byte(path[0]))] = true
		}
	}
	p.anywhere = p.deep.goesOn() || p.wild.goesOn()
	return p
}

func keyHash(key []byte) byte {
	if len(key) == 0 {
		return 0
	}
	return key[0]*7 + key[len(key)-1]*3 + byte(len(key))
}
