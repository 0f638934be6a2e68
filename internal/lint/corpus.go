package lint

import (
	"encoding/binary"
	"hash/maphash"
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
	var sum maphash.Hash
	sum.SetSeed(c.opts.Corpus.seed)
	n := 0
	return checker{
		entry: func(s *step) {
			n++
			addSteady(&sum, s)
		},
		end: func() {
			if n == 0 || c.broken || c.hdr == nil {
				return
			}
			addPart(&sum, []byte(c.hdr.Protocol))
			addPart(&sum, []byte(c.hdr.Version))
			if before := first(&c.opts.Corpus.talks, sum.Sum64(), c.name); before != "" {
				found(c.hdr.Line, "", "remove one", "the conversation is the same as that of %s", before)
			}
		},
	}
}

// addSteady adds an entry without the values that differ in every recording.
func addSteady(sum *maphash.Hash, s *step) {
	addPart(sum, []byte{byte(s.dir)})
	if e, ok := s.entry.(*envelope.RuntimeExit); ok {
		addPart(sum, []byte(e.Status))
		return
	}
	at := 0
	s.each(volatile, func(_ flavors.Place, from, to int) {
		if from >= at { // else it is within the one before
			addPart(sum, s.raw[at:from])
			at = to
		}
	})
	addPart(sum, s.raw[at:])
}

func addPart(sum *maphash.Hash, b []byte) {
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(b)))
	sum.Write(n[:])
	sum.Write(b)
}
