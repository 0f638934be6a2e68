package lint

import (
	"bytes"
	"hash/maphash"
	"net/url"
	"regexp"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// text is one string that rules about contents look at: of a frame, of
// metadata, or put together from the pieces of a stream. It is valid until the
// rule returns.
type text struct {
	line int
	body []byte
	key  []byte // the key it stands under, or is; nil for none
	via  string // how it was found in the string at its place: "base64", "json", …; "" for the string itself

	root string // of the path
	raw  []byte // the value it stands in; nil for a stream
	at   int    // offset of its string in raw
}

// path is where the text's string stands.
func (t *text) path() string {
	if t.raw == nil {
		return t.root
	}
	return pathOf(t.root, t.raw, t.at)
}

// most distinct strings are remembered; then a string may be looked at again.
const mostSeen = 1 << 18

// most of a stream that is held, and how much of it is kept when it is cut.
const (
	mostStream  = 32 << 10
	keepStream  = 512
	mostStreams = 256
)

// texts shows every distinct string once, and every stream as a whole, to the
// rules. Its memory is bounded, however long the file.
type texts struct {
	show   func(*text)
	seen   hashes
	one    text   // the one that is shown; rules keep none
	plain  []byte // memory for one without its escapes
	within [deepest + 1]struct {
		tape   envelope.Tape
		quoted []quoted
	} // of JSON within a text, by depth; the last is of metadata and errors
	streams map[uint64]*stream
	name    []byte   // memory for that of one
	order   []uint64 // of streams, oldest first
}

func newTexts(show func(*text)) *texts {
	return &texts{show: show, streams: map[uint64]*stream{}}
}

// entry shows what is new in an entry.
func (x *texts) entry(s *step) {
	if e, ok := s.entry.(*envelope.RuntimeExit); ok {
		x.value(s.line, "error", e.Error)
		x.flush()
		return
	}
	if s.onTape.Tape != nil {
		x.strings(s.line, "frame", s.onTape, s.quoted(), &s.names)
	}
	x.pieces(s)
}

// value shows the strings of a JSON value, keys among them.
func (x *texts) value(line int, root string, raw []byte) {
	in := &x.within[deepest]
	if v, ok := scanned(&in.tape, raw); ok {
		in.quoted = quotedIn(in.quoted[:0], v, nil)
		x.strings(line, root, v, in.quoted, nil)
	}
}

// strings shows those that are met for the first time, with the key they stand
// under where that may make a difference.
func (x *texts) strings(line int, root string, v envelope.Value, all []quoted, names *keyNames) {
	raw := v.Bytes()
	x.one = text{line: line, root: root, raw: raw}
	for i := range all {
		q := &all[i]
		if q.end-q.at < minText+2 {
			continue
		}
		if q.name != 0 {
			names[q.name].seen = true
		}
		if h := max(q.hash^q.context, 1); x.seen.met(h) || !x.seen.add(h) {
			continue
		}
		x.one.body, x.one.key, x.one.at = raw[q.at+1:q.end-1], nil, int(q.at)
		if q.escaped {
			x.plain = envelope.AppendUnquoted(x.plain[:0], raw[q.at:q.end])
			x.one.body = x.plain
		}
		if q.under > 0 {
			x.one.key = plainText(v.Tape.Bytes(v.Tape.Tokens[q.under]))
		}
		x.unwrap(&x.one, deepest)
	}
}

// deepest is how many forms within one another are looked through.
const deepest = 3

// minText is the length below which nothing of interest fits.
const minText = 6

// unwrap shows a text and what it holds in other forms: JSON in a string,
// escapes of JSON and of URLs, base64.
func (x *texts) unwrap(t *text, depth int) {
	x.show(t)
	if depth == 0 || len(t.body) < 12 {
		return
	}
	b := bytes.TrimSpace(t.body)
	if bytes.IndexByte(b, '\x1b') >= 0 {
		x.deeper(t, depth, "colours", t.key, colours.ReplaceAll(b, nil))
	}
	switch {
	case x.nested(t, depth, b):
	case bytes.IndexByte(b, '\\') >= 0:
		x.deeper(t, depth, "escapes", t.key, unescape(b))
	}
	if bytes.IndexByte(b, '%') >= 0 {
		if plain, err := url.PathUnescape(string(b)); err == nil {
			x.deeper(t, depth, "url", t.key, []byte(plain))
		}
	}
	eachRun(b, 16, func(run []byte, _ int) {
		if plain := decode64(run); len(plain) > 0 {
			x.deeper(t, depth, "base64", t.key, plain)
		}
	})
}

// deeper unwraps what a text holds in another form.
func (x *texts) deeper(t *text, depth int, via string, key, body []byte) {
	if len(body) < minText || bytes.Equal(body, t.body) || !x.seen.add(maphash.Bytes(seed, body)^maphash.String(seed, via)) {
		return
	}
	inner := *t
	inner.body, inner.key, inner.via = body, key, via
	x.unwrap(&inner, depth-1)
}

// colours are a terminal's escapes, which may stand within a word.
var colours = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)

// nested shows the strings of a text that is JSON, and says whether it is.
func (x *texts) nested(t *text, depth int, b []byte) bool {
	if len(b) < 2 || b[0] != '{' && b[0] != '[' {
		return false
	}
	in := &x.within[depth-1]
	v, ok := scanned(&in.tape, b)
	if !ok {
		return false
	}
	in.quoted = quotedIn(in.quoted[:0], v, nil)
	for _, q := range in.quoted {
		var key []byte
		if q.under > 0 {
			key = plainText(v.Tape.Bytes(v.Tape.Tokens[q.under]))
		}
		x.deeper(t, depth, "json", key, plainText(v.Bytes()[q.at:q.end]))
	}
	return true
}

// unescape undoes JSON's escapes in text that need not be a whole string: where
// the last one is cut off, zeros follow.
func unescape(s []byte) []byte {
	s = bytes.TrimRight(s, `\`)
	quoted := make([]byte, 0, len(s)+8)
	return envelope.AppendUnquoted(nil, append(append(append(quoted, '"'), s...), '"'))
}

// pathOf is the path of the string at an offset of valid JSON.
func pathOf(root string, raw []byte, at int) string {
	w := walker{b: raw, path: []byte(root), want: at}
	w.value(envelope.SkipSpace(raw, 0))
	if w.hit == nil {
		return root
	}
	return string(w.hit)
}
