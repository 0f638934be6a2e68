package lint

import (
	"regexp"
	"strings"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// bindName is what may stand after <bind: in a placeholder.
var bindName = regexp.MustCompile(`^:[A-Za-z0-9_.-]+$`)

// mark is one placeholder-like piece of a string.
type mark struct {
	word  string // "any"
	name  string // ":NAME", or ""
	whole bool   // it is the whole string
}

func (m mark) String() string { return "<" + m.word + m.name + ">" }

// known says whether a replay understands the mark.
func (m mark) known() bool {
	switch m.word {
	case "any", "workspace":
		return m.name == ""
	case "string", "int", "number", "bool", "uuid", "timestamp", "path":
		return m.name == "" && m.whole
	case "bind":
		return bindName.MatchString(m.name)
	}
	return false
}

// meant says whether an unknown mark is a slip for one: it differs by a
// letter or case, or only stands where it is no placeholder.
func (m mark) meant() bool {
	word := strings.ToLower(m.word)
	switch {
	case m.name != "":
		return near(word, "bind", 1)
	case near(word, "workspace", 2):
		return true
	}
	return m.whole && (word == "bind" || m.word != word && (mark{word: word, whole: true}).known())
}

// marks finds what looks like a placeholder: <word> or <word:NAME>. One more
// '<' before it is the escape for literal text.
func marks(text string) []mark { return appendMarks(nil, text) }

func appendMarks(ms []mark, text string) []mark {
	for i := 0; ; {
		at := strings.IndexByte(text[i:], '<')
		if at < 0 {
			return ms
		}
		first := i + at
		for i = first + 1; i < len(text) && text[i] == '<'; i++ {
		}
		word := i
		for i < len(text) && (text[i]|0x20) >= 'a' && (text[i]|0x20) <= 'z' {
			i++
		}
		end := i
		if i > word && i < len(text) && text[i] == ':' {
			if n := strings.IndexAny(text[i:], "<>"); n > 0 {
				i += n
			}
		}
		if i == word || i == len(text) || text[i] != '>' {
			continue
		}
		if i++; word == first+1 {
			ms = append(ms, mark{text[word:end], text[end : i-1], first == 0 && i == len(text)})
		}
	}
}

// markAt is a mark and the string it stands in.
type markAt struct {
	at stringAt
	mark
}

// eachMark calls fn for every mark in the strings of a wire frame.
func eachMark(s *step, fn func(at *stringAt, m *mark)) {
	if !s.wire {
		return
	}
	if !s.ready.marked {
		s.ready.marked = true
		s.marks = s.marks[:0]
		var room [8]mark
		for _, t := range s.texts() {
			for _, m := range appendMarks(room[:0], t.text) {
				s.marks = append(s.marks, markAt{t, m})
			}
		}
	}
	for i := range s.marks {
		fn(&s.marks[i].at, &s.marks[i].mark)
	}
}

// proseKey names what people write: there a whole <word> is what somebody said.
var proseKey = regexp.MustCompile(`(?i)(?:^|\.)(?:text|prompt|content|message|title|description)$`)

// checkUnknownPlaceholder takes any whole <word> in an expectation for a
// placeholder, but for prose. There, and elsewhere, text may well hold tags, so
// only slips count.
func checkUnknownPlaceholder(_ *run, found report) checker {
	return checker{entry: func(s *step) {
		eachMark(s, func(at *stringAt, m *mark) {
			if !at.key && !m.known() && (m.meant() || m.whole && s.dir == envelope.Out && !proseKey.MatchString(at.path())) {
				found(s.line, at.path(), "", "%s is no placeholder", m)
			}
		})
	}}
}

func checkBind(_ *run, found report) checker {
	captured := map[string]bool{}
	return checker{entry: func(s *step) {
		eachMark(s, func(at *stringAt, m *mark) {
			if m.word != "bind" || !m.known() || captured[m.name] {
				return
			}
			if s.dir == envelope.Out && m.whole && !at.key {
				captured[m.name] = true
				return
			}
			found(s.line, at.path(), "", "%s is used before an outbound value captures it", m)
		})
	}}
}

func checkInboundPlaceholder(_ *run, found report) checker {
	return checker{entry: func(s *step) {
		if s.dir != envelope.In {
			return
		}
		eachMark(s, func(at *stringAt, m *mark) {
			if !at.key && m.whole && m.known() && m.word != "bind" && m.word != "workspace" {
				found(s.line, at.path(), "literal text of this form is written <"+m.String(), "%s in an inbound frame: the client receives it as it stands", m)
			}
		})
	}}
}

// near says whether two words differ by at most n letters put in, left out,
// changed or swapped with their neighbour.
func near(a, b string, n int) bool {
	if a == b {
		return true
	}
	if n == 0 {
		return false
	}
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	a, b = a[i:], b[i:]
	switch {
	case a == "" || b == "":
		return len(a)+len(b) <= n
	case len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] && near(a[2:], b[2:], n-1):
		return true
	}
	return near(a[1:], b[1:], n-1) || near(a[1:], b, n-1) || near(a, b[1:], n-1)
}
