package lint

import (
	"hash/maphash"
	"math/bits"
	"path/filepath"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// Corpus is what several transcripts that belong together are compared by. It
// holds a checksum and a name per file. Not safe for concurrent use.
type Corpus struct {
	seed  maphash.Seed         // of the checksums
	talks map[uint64]string    // what was said, to the first file
	names map[[3]string]string // provider, protocol and scenario, to the first file
}

// first returns the file that was met before under the key, or "" and
// remembers this one.
func first[K comparable](m *map[K]string, key K, file string) string {
	if *m == nil {
		*m = map[K]string{}
	}
	if before, ok := (*m)[key]; ok && before != file {
		return before
	}
	(*m)[key] = file
	return ""
}

func checkSameName(c *run, found report) checker {
	return checker{header: func(h *envelope.Header) {
		if c.opts.Corpus == nil {
			return
		}
		key := [3]string{h.Provider, h.Protocol, h.Scenario}
		// Files side by side are several instances of one provider in a scenario.
		if before := first(&c.opts.Corpus.names, key, c.name); before != "" && filepath.Dir(before) != filepath.Dir(c.name) {
			found(h.Line, "scenario", "name the scenario for what it shows", "%s has the same provider, protocol and scenario", before)
		}
	}}
}

func checkSameTalk(c *run, found report) checker {
	if c.opts.Corpus == nil {
		return checker{}
	}
	if c.opts.Corpus.talks == nil {
		c.opts.Corpus.seed = maphash.MakeSeed()
	}
	sum := talkSum{seed: c.opts.Corpus.seed}
	n := 0
	return checker{
		entry: func(s *step) {
			n++
			sum.entry(s)
		},
		end: func() {
			if n == 0 || c.broken || c.hdr == nil {
				return
			}
			sum.part([]byte(c.hdr.Protocol))
			sum.part([]byte(c.hdr.Version))
			if before := first(&c.opts.Corpus.talks, sum.sum, c.name); before != "" {
				found(c.hdr.Line, "", "remove one", "the conversation is the same as that of %s", before)
			}
		},
	}
}

// talkSum is a checksum of parts, in their order.
type talkSum struct {
	seed maphash.Seed
	sum  uint64
}

func (t *talkSum) part(b []byte) {
	const odd = 0x9e3779b97f4a7c15
	t.sum = bits.RotateLeft64((t.sum^maphash.Bytes(t.seed, b))*odd, 29)
}

// entry adds an entry without the values that differ in every recording.
func (t *talkSum) entry(s *step) {
	t.part([]byte{byte(s.dir)})
	if e, ok := s.entry.(*envelope.RuntimeExit); ok {
		t.part([]byte(e.Status))
		return
	}
	at := 0
	s.each(volatile, func(_ flavors.Place, from, to int) {
		if from >= at { // else it is within the one before
			t.part(s.raw[at:from])
			at = to
		}
	})
	t.part(s.raw[at:])
}
