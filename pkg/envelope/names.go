package envelope

import (
	"encoding/binary"
	"math/bits"
)

// names numbers keys, which are few and come again in every line: who wants to
// know something about a key works it out once.
type names struct {
	list  []name                // by number, from 1
	slots [2 * MostNames]uint16 // numbers, by hash; 0 is free
}

// name is a key of at most 24 bytes; zeros, which are in no key, follow it.
type name struct{ a, b, c uint64 }

// scan reads the key that begins at b[i], after its quote, and returns the index
// after its closing quote and its number. A key that is long or escaped, or that
// the text ends soon after, is left to scanString: end is 0.
func (n *names) scan(b []byte, i int) (end int, number uint16) {
	var key name
	var at int
	if at, key.a = keyWord(b, i); at == 8 {
		if at, key.b = keyWord(b, i+8); at == 8 {
			at, key.c = keyWord(b, i+16)
			i += 8
		}
		i += 8
	}
	if i += at; at >= 8 || b[i] != '"' {
		return 0, 0
	}
	return i + 1, n.number(key)
}

// keyWord returns the bytes of a key in the eight from b[i] on, and how many.
func keyWord(b []byte, i int) (n int, word uint64) {
	if i+8 > len(b) {
		return 9, 0
	}
	x := binary.LittleEndian.Uint64(b[i:])
	m := special(x)
	// Below the lowest bit of m lie the bytes before; without one, all.
	return bits.TrailingZeros64(m) >> 3, x & (m&-m>>7 - 1)
}

// of returns the number of a key without escapes, as scan does.
func (n *names) of(key []byte) uint16 {
	if len(key) > 24 {
		return 0
	}
	var room [24]byte
	copy(room[:], key)
	word := binary.LittleEndian.Uint64
	return n.number(name{word(room[:]), word(room[8:]), word(room[16:])})
}

// number returns the number of a key, 0 for none.
func (n *names) number(key name) uint16 {
	h := (key.a ^ key.b*0x9e3779b97f4a7c15 ^ key.c*0xc2b2ae3d27d4eb4f) * 0xff51afd7ed558ccd >> 40
	const most = 8 // slots that are looked at
	for i := range uint64(most) {
		slot := &n.slots[(h+i)%uint64(len(n.slots))]
		if *slot == 0 {
			if len(n.list) >= MostNames-1 {
				return 0
			}
			n.list = append(n.list, key)
			*slot = uint16(len(n.list))
			return *slot
		}
		if n.list[*slot-1] == key {
			return *slot
		}
	}
	return 0
}
