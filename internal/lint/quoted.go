package lint

import (
	"hash/maphash"
	"math/bits"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// seed is that of all checksums which are compared within a process.
var seed = maphash.MakeSeed()

// quoted is one string of a JSON value: offsets [at, end) from its beginning,
// quotes included.
type quoted struct {
	at, end int32
	under   int32  // token of the key that the string stands under, 0 for none
	name    uint16 // number of the key that it is, 0 for a value or none
	escaped bool
	hash    uint64 // of what is between the quotes, as it stands; 0 for less than minHash bytes
	context uint64 // of the key above, where that matters to what a value is; 0 else
}

// minHash is the length of the shortest strings that are compared, mostHash
// that of the longest that may be an id.
const minHash, mostHash = 3, 128

// keyInfo is what is known of a key of a tape.
type keyInfo struct {
	hash       uint64
	context    uint64
	met        bool
	never      bool // too short to be an id, or too long
	said, seen bool // nobody needs it in the list of strings again
}

// keyNames is by the numbers of keys.
type keyNames [envelope.MostNames]keyInfo

// unsaid takes back that keys were said.
func (k *keyNames) unsaid() {
	for i := range k {
		k[i].said = k[i].never
	}
}

// read works out what is to be known of a key, in quotes.
func (k *keyInfo) read(key []byte) {
	n := len(key) - 2
	k.met = true
	if n >= minHash {
		k.hash = maphash.Bytes(seed, key[1:n+1])
	}
	if secretKeyBytes(key) {
		k.context = bits.RotateLeft64(k.hash, 23)
	}
	k.never = n < minHash || n > mostHash
	k.said, k.seen = k.never, n < minText
}

// quotedIn appends the strings of a value, keys among them, in order. Keys that
// names knows as said and seen are left out; it belongs to the tape, or is nil.
func quotedIn(dst []quoted, v envelope.Value, names *keyNames) []quoted {
	tokens, text := v.Tape.Tokens, v.Tape.Text
	origin := tokens[v.Index].At
	var one keyInfo // of the latest key without a number
	for i, end := v.Index, int(tokens[v.Index].Next); i < end; i++ {
		t := &tokens[i]
		switch t.Kind {
		case envelope.Key:
			info, name := &one, uint16(0)
			if names != nil && t.Name != 0 {
				name = t.Name
				info = &names[name]
				if info.said && info.seen {
					continue
				}
			} else {
				one = keyInfo{}
			}
			if !info.met {
				info.read(text[t.At:t.End])
			}
			if name == 0 || !info.said || !info.seen {
				var q *quoted
				dst, q = anotherQuoted(dst, t, origin)
				q.name, q.hash = name, info.hash
			}
		case '"':
			var q *quoted
			dst, q = anotherQuoted(dst, t, origin)
			if under := keyAbove(tokens, v.Index, i); under > 0 {
				q.under, q.context = int32(under), one.context
				if name := tokens[under].Name; names != nil && name != 0 {
					q.context = names[name].context
				}
			}
			if t.End-t.At >= minHash+2 {
				q.hash = maphash.Bytes(seed, text[t.At+1:t.End-1])
			}
		}
	}
	return dst
}

// keyAbove returns the key that a string stands under: nothing but brackets of
// arrays that open lies between them. It is 0 where there is none, and does not
// look before first.
func keyAbove(tokens []envelope.Token, first, at int) int {
	for at--; at >= first; at-- {
		switch t := &tokens[at]; {
		case t.Kind == envelope.Key:
			return at
		case t.Kind != '[' || int(t.Next) == at+1: // an empty one is a value before
			return 0
		}
	}
	return 0
}

// anotherQuoted appends the string of a token, in place: one that is put together
// first and copied as a whole waits for its parts.
func anotherQuoted(dst []quoted, t *envelope.Token, origin int32) ([]quoted, *quoted) {
	dst = append(dst, quoted{})
	q := &dst[len(dst)-1]
	q.at, q.end, q.escaped = t.At-origin, t.End-origin, t.Escaped
	return dst, q
}

// quoted returns the strings of the frame, without the keys that need not be
// looked at again. The slice is valid until the next entry.
func (s *step) quoted() []quoted {
	if !s.ready.quoted {
		s.ready.quoted = true
		s.scratch.quoted = s.scratch.quoted[:0]
		if s.onTape.Tape != nil {
			s.scratch.quoted = quotedIn(s.scratch.quoted, s.onTape, &s.names)
		}
	}
	return s.scratch.quoted
}

// idHash returns the checksum, as maphash.String has it, of a string that may
// be an id; 0 for another.
func (s *step) idHash(q *quoted) uint64 {
	switch n := q.end - q.at - 2; {
	case n < minHash || n > mostHash:
		return 0
	case q.escaped:
		return max(1, maphash.Bytes(seed, plainText(s.raw[q.at:q.end])))
	}
	return max(1, q.hash)
}
