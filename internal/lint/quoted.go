package lint

import (
	"hash/maphash"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// seed is that of all checksums which are compared within a process.
var seed = maphash.MakeSeed()

// quoted is one string of a JSON value: offsets [at, end) from its beginning,
// quotes included.
type quoted struct {
	at, end int32
	under   int32 // index of the key that the string stands under, -1 for none
	key     bool  // an object's key
	escaped bool
	// hash is of what is between the quotes, as it stands; 0 for less than
	// minHash bytes.
	hash uint64
}

// minHash is the length of the shortest strings that are compared.
const minHash = 3

// quotedIn appends the strings of a value, keys among them, in order. A string
// stands under a key that nothing but brackets of arrays lie between.
func quotedIn(dst []quoted, v envelope.Value) []quoted {
	tokens, text := v.Tape.Tokens, v.Tape.Text
	origin := tokens[v.Index].At
	under := int32(-1)
	for i, end := v.Index, int(tokens[v.Index].Next); i < end; i++ {
		t := &tokens[i]
		switch t.Kind {
		case envelope.Key, '"':
			q := quoted{at: t.At - origin, end: t.End - origin, under: -1, key: t.Kind == envelope.Key, escaped: t.Escaped}
			if t.End-t.At >= minHash+2 {
				q.hash = maphash.Bytes(seed, text[t.At+1:t.End-1])
			}
			if q.key {
				under = int32(len(dst))
			} else {
				q.under, under = under, -1
			}
			dst = append(dst, q)
		case '[':
			if int(t.Next) > i+1 {
				continue // its first item may be the string
			}
			under = -1
		default:
			under = -1
		}
	}
	return dst
}

// quoted returns the strings of the frame. The slice is valid until the next
// entry.
func (s *step) quoted() []quoted {
	if !s.ready.quoted {
		s.ready.quoted = true
		s.scratch.quoted = s.scratch.quoted[:0]
		if s.onTape.Tape != nil {
			s.scratch.quoted = quotedIn(s.scratch.quoted, s.onTape)
		}
	}
	return s.scratch.quoted
}

// eachHash calls fn with the checksums of the frame's short strings, ids among
// them, as maphash.String has them.
func (s *step) eachHash(fn func(h uint64)) {
	all := s.quoted()
	for i := range all {
		q := &all[i]
		switch n := q.end - q.at; {
		case n < minHash+2 || n > 130:
		case q.escaped:
			fn(maphash.Bytes(seed, plainText(s.raw[q.at:q.end])))
		default:
			fn(q.hash)
		}
	}
}
