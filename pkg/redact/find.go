package redact

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// span is a place in a decoded string that must not stay.
type span struct {
	start, end int
	rule       string // id
	dir        string // workspace, home or tmp, where it is one
	secret     string // the value in its plain form; tells equal ones
	coded      bool   // a directory that does not stand as a path
	context    bool   // only the surroundings tell
	personal   bool
	rest       bool // goes on with what began in an earlier piece of a stream
}

// finder finds spans. Not safe for concurrent use: it learns.
type finder struct {
	rules []compiled
	dirs  []directory
	names []*name
	known []known
	wire  bool
}

// known is a secret whose value is known.
type known struct {
	value string
	rule  string
	exact bool // found only where it is no part of a longer word
}

// opaque is text that stands for something already.
var opaque = regexp.MustCompile(`<(?:redacted:[a-z0-9-]+:[0-9]+|bind:[A-Za-z0-9_.-]+|any|workspace|home|tmp|vendor-prose|string|int|number|bool|uuid|timestamp|path)>|\[workspace\]`)

// ours is the look of our own placeholders.
var ours = regexp.MustCompile(`<redacted:([a-z0-9-]+):([0-9]+)>`)

// depth is how many encodings inside each other are taken off.
const depth = 3

// rounds bounds how often a text is looked at again after something was cut
// out of it. The second look finds what stood glued to a secret.
const rounds = 4

// find returns what must not stay in the text, in order and apart. Ids are
// not searched for personal data.
func (f *finder) find(text string, id bool) []span {
	if len(text) < 2 {
		return nil
	}
	var spans []span
	if f.wire && strings.Contains(text, "<redacted:") {
		for _, m := range ours.FindAllStringIndex(text, -1) {
			spans = append(spans, span{start: m[0], end: m[1], rule: "literal", secret: text[m[0]:m[1]]})
		}
	}
	for range rounds {
		var more []span
		if len(spans) == 0 {
			f.collect(text, depth, id, func(s span) { more = append(more, s) })
		} else {
			v := masked(text, spans)
			f.collect(v.text, depth, id, func(s span) {
				s.start, s.end = v.at[s.start], v.at[s.end]
				more = append(more, s)
			})
		}
		if len(more) == 0 {
			break
		}
		spans = resolve(text, append(spans, more...))
	}
	for _, s := range spans {
		if !s.personal && s.dir == "" && s.rule != "encoded" && s.rule != "literal" {
			f.learn(s.secret, s.rule, s.context)
		}
	}
	return spans
}

// masked is the text with the spans replaced by something opaque.
func masked(text string, spans []span) *view {
	v := &view{text: text, at: make([]int, 0, len(text)+1)}
	const mask = "<redacted:x:0>"
	var b strings.Builder
	from := 0
	copyTo := func(to int) {
		for i := from; i < to; i++ {
			v.at = append(v.at, i)
		}
		b.WriteString(text[from:to])
	}
	for _, s := range spans {
		copyTo(s.start)
		for range len(mask) {
			v.at = append(v.at, s.start)
		}
		b.WriteString(mask)
		from = s.end
	}
	copyTo(len(text))
	v.text, v.at = b.String(), append(v.at, len(text))
	return v
}

// collect calls add with all finds in the text and in its other readings.
func (f *finder) collect(text string, depth int, id bool, add func(span)) {
	free := keepOff(text)
	put := func(s span) {
		if s.start, s.end = free(s.start, s.end); s.end > s.start {
			if s.secret == "" || s.dir == "" && len(s.secret) > s.end-s.start {
				s.secret = text[s.start:s.end]
			}
			add(s)
		}
	}
	f.scan(text, id, put)
	if depth == 0 {
		return
	}
	views(text, func(v *view) {
		f.collect(v.text, depth-1, id, func(s span) {
			if v.wrapped && (s.context || s.personal || s.dir != "") || v.whole && s.rule == "email" {
				return
			}
			if v.whole && (s.dir != "" || strings.TrimSpace(v.text) != s.secret) {
				s.secret = text[v.at[0]:v.at[1]]
				if s.dir != "" {
					s.rule, s.dir = "encoded", ""
				}
			}
			s.coded = s.coded || v.coded
			start, end := v.place(s.start, s.end)
			if a, b := free(start, end); a != start || b != end {
				return
			}
			s.start, s.end = start, end
			add(s)
		})
	})
}

// scan looks at the text as it stands.
func (f *finder) scan(text string, id bool, add func(span)) {
	in := newReading(text)
	for i := range f.rules {
		r := &f.rules[i]
		if r.Personal && id {
			continue
		}
		r.scan(in, func(start, end int) {
			add(span{start: start, end: end, rule: r.ID, context: r.Context, personal: r.Personal})
		})
	}
	for _, k := range f.known {
		for at := find(text, k.value, 0); at < len(text); at = find(text, k.value, at+len(k.value)) {
			end := at + len(k.value)
			if k.exact && (at > 0 && wordByte(text[at-1]) || end < len(text) && wordByte(text[end])) {
				continue
			}
			add(span{start: at, end: end, rule: k.rule, secret: k.value})
		}
	}
	scanDirectories(f.dirs, text, func(start, end int, d directory) {
		add(span{start: start, end: end, rule: d.name, dir: d.name, coded: d.coded, secret: d.text})
	})
	if id {
		return
	}
	for _, n := range f.names {
		n.scan(text, func(start, end int) { add(span{start: start, end: end, rule: n.rule, personal: true}) })
	}
}

// keepOff returns a function that cuts a place short where opaque text begins
// in it, down to nothing where it begins in opaque text or too little is left.
func keepOff(text string) func(start, end int) (int, int) {
	if strings.IndexByte(text, '<') < 0 && !strings.Contains(text, "[workspace]") {
		return func(start, end int) (int, int) { return start, end }
	}
	list := opaque.FindAllStringIndex(text, -1)
	return func(start, end int) (int, int) {
		for _, o := range list {
			switch {
			case o[1] <= start || o[0] >= end:
			case o[0] <= start:
				return start, start
			default:
				if end = o[0]; end-start < 4 {
					return start, start
				}
			}
		}
		return start, end
	}
}

// resolve puts spans in order and joins those that overlap.
func resolve(text string, spans []span) []span {
	slices.SortStableFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	out := spans[:0]
	for _, s := range spans {
		last := len(out) - 1
		if last < 0 || s.start >= out[last].end {
			out = append(out, s)
			continue
		}
		o := &out[last]
		switch {
		case s.end > o.end: // neither holds the other
			o.end, o.secret, o.dir = s.end, text[o.start:s.end], ""
			if o.rule == "workspace" || o.rule == "home" || o.rule == "tmp" {
				o.rule = s.rule
			}
		case o.context && !s.context && !s.personal && s.dir == "" && letters(text[o.start:s.start])+letters(text[s.end:o.end]) < 6:
			*o = s // the form tells more than the surroundings
		}
	}
	return out
}

// letters counts letters and digits.
func letters(s string) (n int) {
	for i := range len(s) {
		if wordByte(s[i]) {
			n++
		}
	}
	return n
}

// learnMax bounds how many values are looked for everywhere.
const learnMax = 1000

// learn makes a secret known, so that it is found where its surroundings do
// not tell, or where it is glued to other text. One that only its surroundings
// gave away might be a part of other words.
func (f *finder) learn(value, rule string, exact bool) {
	if len(value) < 8 || len(value) > 4096 || entropy(value) < 2.5 || plainWord(value) || digits(value) == 0 && len(value) < 16 ||
		strings.ContainsAny(value, "<> \n") || len(f.known) >= learnMax {
		return
	}
	if !slices.ContainsFunc(f.known, func(k known) bool { return k.value == value }) {
		f.known = append(f.known, known{value, rule, exact})
	}
}

var scheme = regexp.MustCompile(`(?i)^\s*(?:bearer|basic|token|apikey|ssws)\s+`)

// member returns what must not stay in the value of a member: all of it where
// the key says so, unless what was found is all there is to hide.
func (f *finder) member(key, text string, id bool) []span {
	spans := f.find(text, id)
	kind := memberKind(key, text)
	if kind == "" {
		return spans
	}
	v := masked(text, spans)
	left := scheme.ReplaceAllString(opaque.ReplaceAllString(v.text, ""), "")
	if (len(spans) > 0 || opaque.MatchString(text)) && letters(left) < 6 {
		return spans
	}
	if kind == "secret-member" && !strings.Contains(text, " ") {
		f.learn(text, kind, true)
	}
	return []span{{start: 0, end: len(text), rule: kind, secret: text, personal: kind != "secret-member"}}
}
