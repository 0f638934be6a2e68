package lint

import (
	"encoding/base64"
	"hash/maphash"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// text is one string that rules about contents look at: of a frame, of
// metadata, or put together from the pieces of a stream.
type text struct {
	line int
	body string
	key  string // the key it stands under, or is
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
	show    func(*text)
	seen    hashes
	one     text // the one that is shown; rules keep none
	streams map[uint64]*stream
	order   []uint64 // of streams, oldest first
}

func newTexts(show func(*text)) *texts {
	return &texts{show: show, streams: map[uint64]*stream{}}
}

// once says whether the text, by its checksum and the key it stands under, is
// met for the first time.
func (x *texts) once(key []byte, h uint64) bool {
	if secretKeyBytes(key) {
		h ^= maphash.Bytes(seed, key)
	}
	return x.seen.add(h)
}

// entry shows what is new in an entry.
func (x *texts) entry(s *step) {
	if e, ok := s.entry.(*envelope.RuntimeExit); ok {
		if e.Error != nil {
			x.value(s.line, "error", e.Error)
		}
		x.flush()
		return
	}
	x.strings(s.line, "frame", s.raw, s.quoted())
	x.pieces(s)
}

// value shows the strings of a JSON value, keys among them.
func (x *texts) value(line int, root string, raw []byte) {
	x.strings(line, root, raw, quotedIn(nil, raw))
}

func (x *texts) strings(line int, root string, raw []byte, all []quoted) {
	var key []byte
	for _, q := range all {
		if q.apart {
			key = nil
		}
		if q.end-q.at >= minText+2 && x.once(key, q.hash) {
			x.one = text{line: line, body: envelope.Unquote(raw[q.at:q.end]), root: root, raw: raw, at: q.at}
			if key != nil {
				x.one.key = envelope.Unquote(key)
			}
			x.unwrap(&x.one, 3)
		}
		if q.key {
			key = raw[q.at:q.end]
		}
	}
}

// minText is the length below which nothing of interest fits.
const minText = 6

// unwrap shows a text and what it holds in other forms: JSON in a string,
// escapes of JSON and of URLs, base64.
func (x *texts) unwrap(t *text, depth int) {
	x.show(t)
	if depth == 0 || len(t.body) < 12 {
		return
	}
	deeper := func(via, key, body string) {
		if len(body) < minText || body == t.body || !x.once(nil, maphash.String(seed, via+body)) {
			return
		}
		inner := *t
		inner.body, inner.key, inner.via = body, key, via
		x.unwrap(&inner, depth-1)
	}
	b := strings.TrimSpace(t.body)
	if strings.IndexByte(b, '\x1b') >= 0 {
		deeper("colours", t.key, colours.ReplaceAllString(b, ""))
	}
	switch {
	case len(b) > 1 && (b[0] == '{' || b[0] == '[') && envelope.Valid([]byte(b)):
		nested([]byte(b), func(key, body string) { deeper("json", key, body) })
	case strings.IndexByte(b, '\\') >= 0:
		deeper("escapes", t.key, unescape(b))
	}
	if strings.IndexByte(b, '%') >= 0 {
		if plain, err := url.PathUnescape(b); err == nil {
			deeper("url", t.key, plain)
		}
	}
	eachRun(b, 16, func(run string, _ int) {
		if plain := decode64(run); plain != "" {
			deeper("base64", t.key, plain)
		}
	})
}

// colours are a terminal's escapes, which may stand within a word.
var colours = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)

// colon returns the offset of the colon after a key that ends at i, 0 where
// the string is no key.
func colon(raw []byte, i int) int {
	for ; i < len(raw); i++ {
		switch raw[i] {
		case ':':
			return i
		case ' ', '\t', '\r', '\n':
		default:
			return 0
		}
	}
	return 0
}

// nested calls fn with the strings of valid JSON and the keys they stand
// under.
func nested(raw []byte, fn func(key, body string)) {
	key := ""
	for i := 0; i < len(raw); {
		if raw[i] != '"' {
			if raw[i] == ',' || raw[i] == '{' {
				key = ""
			}
			i++
			continue
		}
		end := envelope.SkipString(raw, i)
		body := envelope.Unquote(raw[i:end])
		fn(key, body)
		if colon(raw, end) > 0 {
			key = body
		}
		i = end
	}
}

// unescape undoes JSON's escapes in text that need not be a whole string.
func unescape(s string) string {
	return envelope.Unquote(append(append([]byte{'"'}, strings.TrimRight(s, `\`)...), '"'))
}

func runByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '-' || c == '_'
}

// eachRun calls fn with the runs of base64's letters, padding included.
func eachRun(s string, least int, fn func(run string, at int)) {
	for i := 0; i < len(s); {
		if !runByte(s[i]) {
			i++
			continue
		}
		start := i
		for i < len(s) && runByte(s[i]) {
			i++
		}
		end := i
		for i < len(s) && s[i] == '=' && i < end+2 {
			i++
		}
		if end-start >= least {
			fn(s[start:i], start)
		}
	}
}

// decode64 decodes base64 of either alphabet that holds text, "" else.
func decode64(run string) string {
	body := strings.TrimRight(run, "=")
	if len(body) > mostStream || len(body)%4 == 1 {
		return ""
	}
	enc := base64.RawStdEncoding
	if strings.ContainsAny(body, "-_") {
		enc = base64.RawURLEncoding
	}
	b, err := enc.DecodeString(body)
	if err != nil || !utf8.Valid(b) {
		return ""
	}
	for _, c := range b {
		if c < 0x20 && c != '\n' && c != '\r' && c != '\t' || c == 0x7f {
			return ""
		}
	}
	return string(b)
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
