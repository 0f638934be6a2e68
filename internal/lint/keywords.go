package lint

// keywords finds many words in a text at once, letters of either case: an
// automaton that looks at each byte once and allocates nothing.
type keywords struct {
	next [][256]int32
	hits [][]int32 // per state, the words that end there
}

// newKeywords prepares the search; words must be in lower case.
func newKeywords(words []string) *keywords {
	k := &keywords{}
	k.state()
	for w, word := range words {
		at := int32(0)
		for i := range len(word) {
			c := word[i]
			if k.next[at][c] == 0 {
				k.next[at][c] = k.state()
			}
			at = k.next[at][c]
		}
		k.hits[at] = append(k.hits[at], int32(w))
	}
	fail := make([]int32, len(k.next))
	var queue []int32
	for c := range 256 {
		if s := k.next[0][c]; s != 0 {
			queue = append(queue, s)
		}
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		k.hits[at] = append(k.hits[at], k.hits[fail[at]]...)
		for c := range 256 {
			s := k.next[at][c]
			if s == 0 {
				k.next[at][c] = k.next[fail[at]][c]
				continue
			}
			fail[s] = k.next[fail[at]][c]
			queue = append(queue, s)
		}
	}
	for at := range k.next {
		for c := byte('A'); c <= 'Z'; c++ {
			k.next[at][c] = k.next[at][c|0x20]
		}
	}
	return k
}

func (k *keywords) state() int32 {
	k.next = append(k.next, [256]int32{})
	k.hits = append(k.hits, nil)
	return int32(len(k.next) - 1)
}

// each calls fn with each word found and the offset after it.
func (k *keywords) each(text string, fn func(word int32, end int)) {
	at := int32(0)
	for i := range len(text) {
		at = k.next[at][text[i]]
		for _, w := range k.hits[at] {
			fn(w, i+1)
		}
	}
}
