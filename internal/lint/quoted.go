package lint

import (
	"bytes"
	"hash/maphash"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// seed is that of all checksums which are compared within a process.
var seed = maphash.MakeSeed()

// quoted is one string of a JSON value: offsets [at, end), quotes included.
type quoted struct {
	at, end int
	hash    uint64 // of what is between the quotes, as it stands
	key     bool   // an object's key
	apart   bool   // a member or an item lies between it and the string before
}

// quotedIn appends the strings of valid JSON, keys among them, in order.
func quotedIn(dst []quoted, raw []byte) []quoted {
	apart := false
	for i := 0; i < len(raw); {
		switch raw[i] {
		case '"':
			end := envelope.SkipString(raw, i)
			dst = append(dst, quoted{i, end, maphash.Bytes(seed, raw[i+1:end-1]), colon(raw, end) > 0, apart})
			i, apart = end, false
			continue
		case '{', ',', '}':
			apart = true
		}
		i++
	}
	return dst
}

// quoted returns the strings of the frame. The slice is valid until the next
// entry.
func (s *step) quoted() []quoted {
	if s.scratch == nil {
		return nil // unreachable unless a step is made by hand
	}
	if !s.scratch.filled {
		s.scratch.filled = true
		s.scratch.quoted = quotedIn(s.scratch.quoted[:0], s.raw)
	}
	return s.scratch.quoted
}

// scratch is memory that one entry after the other uses.
type scratch struct {
	quoted []quoted
	filled bool
}

// eachHash calls fn with the checksums of the frame's short strings, ids among
// them, as maphash.String has them.
func (s *step) eachHash(fn func(h uint64)) {
	for _, q := range s.quoted() {
		switch n := q.end - q.at; {
		case n <= 4 || n > 130:
		case bytes.IndexByte(s.raw[q.at:q.end], '\\') >= 0:
			fn(maphash.String(seed, envelope.Unquote(s.raw[q.at:q.end])))
		default:
			fn(q.hash)
		}
	}
}
