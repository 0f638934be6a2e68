package envelope

import "encoding/binary"

// names numbers keys, which are few and come again in every line: who wants to
// know something about a key works it out once.
type names struct {
	list  []name                // by number, from 1
	slots [2 * MostNames]uint16 // numbers, by hash; 0 is free
}

// name is a key of at most 16 bytes: its first 8 and its last 8, which overlap
// or are followed by zeros.
type name struct {
	head, tail uint64
	length     int
}

// of returns the number of the key b[from:to], 0 for none. A quote follows it.
func (n *names) of(b []byte, from, to int) uint16 {
	key := name{length: to - from}
	switch {
	case key.length > 16:
		return 0
	case key.length >= 8:
		key.head, key.tail = binary.LittleEndian.Uint64(b[from:]), binary.LittleEndian.Uint64(b[to-8:])
	case from+8 <= len(b):
		key.head = binary.LittleEndian.Uint64(b[from:]) & (1<<(8*key.length) - 1)
	default:
		for i := from; i < to; i++ {
			key.head |= uint64(b[i]) << (8 * (i - from))
		}
	}
	h := (key.head ^ key.tail*0x9e3779b97f4a7c15 ^ uint64(key.length)) * 0xff51afd7ed558ccd >> 40
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
