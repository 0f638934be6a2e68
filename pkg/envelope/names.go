package envelope

import (
	"encoding/binary"
	"math/bits"
)

// names numbers keys, which are few and come again in every line: who wants to
// know something about a key works it out once.
type names struct {
	list  []name                // by number; that of 0 is the empty key, which has none
	slots [2 * MostNames]uint16 // numbers, by hash; 0 is free
	// follow has, by a hash of the keys before, the number of the short key that
	// came after them last: lines resemble each other, and to compare with one
	// key is cheaper than to look for the end of any and then for its number.
	follow [4 * MostNames]uint16
}

// name is a key that is known.
type name struct {
	text     text
	of0, of1 uint64 // the bits of the first two words that are of the text
	size     int    // of the text
}

// text is a key of at most 23 bytes and its closing quote; zeros, which are in
// no key, follow them.
type text [3]uint64

// longest is the size of the longest texts that follow has.
const longest = 16

func newNames() *names { return &names{list: []name{newName(text{'"'}, 1)}} }

func newName(t text, size int) name {
	k := name{text: t, of0: ^uint64(0), of1: ^uint64(0), size: size}
	if size < 8 {
		k.of0 = 1<<(8*size) - 1
	}
	if size < 16 {
		k.of1 = 1<<(8*max(0, size-8)) - 1
	}
	return k
}

// scan reads the key that begins at b[i], after its quote, and returns the index
// after its closing quote and its number. before is a hash of the keys before it.
// A key that is long or escaped, or that the text ends soon after, is left to
// scanString: end is 0.
func (n *names) scan(b []byte, i int, before uint) (end int, number uint16) {
	follows := &n.follow[before%uint(len(n.follow))]
	if i+longest <= len(b) {
		k := &n.list[*follows]
		if (binary.LittleEndian.Uint64(b[i:])^k.text[0])&k.of0|(binary.LittleEndian.Uint64(b[i+8:])^k.text[1])&k.of1 == 0 {
			return i + k.size, *follows
		}
	}
	if end, number = n.read(b, i); end-i <= longest {
		*follows = number
	}
	return end, number
}

// read is scan of any key.
func (n *names) read(b []byte, i int) (end int, number uint16) {
	var key text
	var at int
	start := i
	if at, key[0] = keyWord(b, i); at == 8 {
		if at, key[1] = keyWord(b, i+8); at == 8 {
			at, key[2] = keyWord(b, i+16)
			i += 8
		}
		i += 8
	}
	if i += at; at >= 8 || b[i] != '"' {
		return 0, 0
	}
	return i + 1, n.number(key, i+1-start)
}

// keyWord returns the bytes of a key in the eight from b[i] on, with the one that
// ends it, and how many stand before that.
func keyWord(b []byte, i int) (n int, word uint64) {
	if i+8 > len(b) {
		return 9, 0
	}
	x := binary.LittleEndian.Uint64(b[i:])
	m := special(x)
	return bits.TrailingZeros64(m) >> 3, x & (m&-m<<1 - 1) // without a special one, all
}

// of returns the number of a key without escapes, as scan does.
func (n *names) of(key []byte) uint16 {
	var room [24]byte
	if len(key) >= len(room) {
		return 0
	}
	copy(room[:], key)
	room[len(key)] = '"'
	var t text
	for i := range t {
		t[i] = binary.LittleEndian.Uint64(room[8*i:])
	}
	return n.number(t, len(key)+1)
}

// number returns the number of a key, 0 for none.
func (n *names) number(key text, size int) uint16 {
	if size == 1 {
		return 0
	}
	h := (key[0] ^ key[1]*0x9e3779b97f4a7c15 ^ key[2]*0xc2b2ae3d27d4eb4f) * 0xff51afd7ed558ccd >> 40
	const most = 8 // slots that are looked at
	for i := range uint64(most) {
		slot := &n.slots[(h+i)%uint64(len(n.slots))]
		if *slot == 0 {
			if len(n.list) >= MostNames {
				return 0
			}
			*slot = uint16(len(n.list))
			n.list = append(n.list, newName(key, size))
			return *slot
		}
		if n.list[*slot].text == key {
			return *slot
		}
	}
	return 0
}
