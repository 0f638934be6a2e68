package lint

import "sync"

// hashes is a set of checksums, made for many: two words of memory each, no
// pointers. It forgets all when it has grown to mostSeen.
type hashes struct {
	slots []uint64 // open addressing; 0 is free
	n     int
	// near are some of them, which the keys and words of a protocol meet in
	// every frame: most questions go no further.
	near [2048]uint64
}

// add puts a checksum in and says whether it was new.
func (s *hashes) add(h uint64) bool {
	h = max(h, 1)
	if 2*s.n >= len(s.slots) {
		s.grow()
	}
	near := &s.near[h>>53]
	if *near == h {
		return false
	}
	*near = h
	if !s.put(h) {
		return false
	}
	s.n++
	return true
}

// met says whether a checksum, which is not 0, is in and among the near ones: the
// short way of add and has, for those who ask of every string.
func (s *hashes) met(h uint64) bool { return s.n < mostSeen && s.near[h>>53] == h }

func (s *hashes) has(h uint64) bool {
	h = max(h, 1)
	near := &s.near[h>>53]
	if *near == h {
		return true
	}
	mask := uint64(len(s.slots) - 1)
	for i := h & mask; len(s.slots) > 0 && s.slots[i] != 0; i = (i + 1) & mask {
		if s.slots[i] == h {
			*near = h
			return true
		}
	}
	return false
}

func (s *hashes) put(h uint64) bool {
	mask := uint64(len(s.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		switch s.slots[i] {
		case 0:
			s.slots[i] = h
			return true
		case h:
			return false
		}
	}
}

func (s *hashes) grow() {
	if s.n >= mostSeen {
		clear(s.slots)
		clear(s.near[:])
		s.n = 0
		return
	}
	old := s.slots
	s.slots = takeSlots(min(max(1024, 4*len(old)), 2*mostSeen))
	for _, h := range old {
		if h != 0 {
			s.put(h)
		}
	}
	releaseSlots(old)
}

// release lets another file have the memory. The set is empty then.
func (s *hashes) release() {
	releaseSlots(s.slots)
	*s = hashes{}
}

// freeSlots are slots that no file has, by their number: fresh memory is dearer
// than to clear what was used.
var freeSlots struct {
	sync.Mutex
	by map[int][][]uint64
}

func takeSlots(n int) []uint64 {
	freeSlots.Lock()
	defer freeSlots.Unlock()
	free := freeSlots.by[n]
	if len(free) == 0 {
		return make([]uint64, n)
	}
	freeSlots.by[n] = free[:len(free)-1]
	return free[len(free)-1]
}

func releaseSlots(slots []uint64) {
	if len(slots) == 0 {
		return
	}
	clear(slots)
	freeSlots.Lock()
	defer freeSlots.Unlock()
	if freeSlots.by == nil {
		freeSlots.by = map[int][][]uint64{}
	}
	freeSlots.by[len(slots)] = append(freeSlots.by[len(slots)], slots)
}
