package redact

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// What stands for a secret in a transcript:
//
//	<redacted:KIND:N>        plain text, in what the client gets, and in keys
//	<bind:redacted.KIND.N>   from where the client sends the secret as a whole
//	                         value: there it captures what the client sends at
//	                         replay, later it stands for that, both ways
//	<any>                    inside a longer string the client sends, where
//	                         nothing was captured
//	<string>                 as a whole value the client sends, after the
//	                         secret was shown as plain text: the client may
//	                         send either
//
// So a transcript plays against the client it was recorded with and against
// one that only knows what the transcript shows.

// secret is one value that was replaced.
type secret struct {
	kind  string
	n     int
	bound bool // captured: <bind:…> may stand
	shown bool // its plain placeholder, or <any>, stands somewhere before
}

func (s *secret) plain() string { return fmt.Sprintf("<redacted:%s:%d>", s.kind, s.n) }
func (s *secret) bind() string  { return fmt.Sprintf("<bind:redacted.%s.%d>", s.kind, s.n) }

// numbers gives out placeholders: per kind from 1, by first appearance.
type numbers struct {
	secrets map[string]*secret // by value
	taken   map[string]int     // per kind, the highest number that stands in the input or was given
}

func newNumbers() numbers { return numbers{map[string]*secret{}, map[string]int{}} }

// of returns the secret with the value.
func (n *numbers) of(value, kind string) *secret {
	s := n.secrets[value]
	if s == nil {
		n.taken[kind]++
		s = &secret{kind: kind, n: n.taken[kind]}
		n.secrets[value] = s
	}
	return s
}

var anyOurs = regexp.MustCompile(`(redacted:([a-z0-9-]+):|bind:redacted\.([a-z0-9-]+)\.)([0-9]{1,9})>`)

// reserve keeps the numbers that stand in a line from being given out again.
func (n *numbers) reserve(line []byte) {
	for _, m := range anyOurs.FindAllSubmatch(line, -1) {
		kind := string(m[2]) + string(m[3])
		if k, err := strconv.Atoi(string(m[4])); err == nil && k > n.taken[kind] {
			n.taken[kind] = k
		}
	}
}

// see notes a placeholder that stands in the input, in file order.
func (n *numbers) see(text string, captures bool) {
	if !strings.Contains(text, "redacted") {
		return
	}
	for _, m := range anyOurs.FindAllStringSubmatch(text, -1) {
		kind := m[2] + m[3]
		k, err := strconv.Atoi(m[4])
		if err != nil {
			continue // unreachable: nine digits
		}
		for _, s := range n.secrets {
			if s.kind == kind && s.n == k {
				s.shown = s.shown || m[2] != "" && !s.bound
				s.bound = s.bound || m[3] != "" && captures && text == s.bind()
			}
		}
	}
}

// restart forgets what was captured and shown, for a second pass.
func (n *numbers) restart() {
	for _, s := range n.secrets {
		s.bound, s.shown = false, false
	}
}

// edit replaces part of a decoded string.
type edit struct {
	start, end int
	text       string // needs no escaping in JSON
	rule       string // what is counted; "" counts nothing
}

// context tells where a string stands.
type context struct {
	dir   envelope.Direction
	key   bool
	binds bool // <bind:…> means something here
	wire  bool // placeholder-like text is literal
}

// kinds are the words in placeholders where they are not the rule's id.
var kinds = map[string]string{
	"assignment": "secret", "flag": "secret", "user-password": "secret", "netrc": "secret", "url-parameter": "secret", "secret-member": "secret", "variable": "secret",
	"home-user": "user", "home-user-folder": "user",
}

func kindOf(rule string) string {
	if k := kinds[rule]; k != "" {
		return k
	}
	return rule
}

// edits turns spans of a string into edits, in order and apart.
func (n *numbers) edits(c context, text string, spans []span) []edit {
	edits := make([]edit, 0, len(spans))
	kept := 0
	for _, s := range spans {
		e := edit{start: s.start, end: s.end, rule: s.rule}
		after := s.start > kept && text[s.start-1] == '<' // "<" before a placeholder would escape it
		kept = s.end
		switch {
		case s.rest:
			e.rule = ""
		case s.dir != "":
			e.text = directoryText(c, s, after, text, len(spans) == 1)
		default:
			e.text = n.text(c, s, text[s.start:s.end] == s.secret, after, s.start == 0 && s.end == len(text))
		}
		if strings.HasPrefix(e.text, "\x00") { // all of the string is replaced
			return []edit{{0, len(text), e.text[1:], e.rule}}
		}
		edits = append(edits, e)
	}
	if !c.wire {
		return edits
	}
	for _, at := range literals(text) {
		end := at + strings.IndexByte(text[at:], '>')
		if !slices.ContainsFunc(spans, func(s span) bool { return s.start <= end && s.end > at }) {
			edits = append(edits, edit{at, at, "<", "literal"})
		}
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return a.start - b.start })
	return edits
}

// text is what replaces a numbered secret. exact says that it stands in its
// plain form: only that can be captured and given back. With \x00 in front the
// text replaces all of the string.
func (n *numbers) text(c context, s span, exact, after, whole bool) string {
	if s.rule == proseRule {
		return proseText
	}
	x := n.of(s.secret, kindOf(s.rule))
	bindable := exact && c.binds && !after && !c.key
	outbound := c.dir == envelope.Out && !c.key
	switch {
	case bindable && x.bound:
		return x.bind()
	case bindable && outbound && whole && !x.shown:
		x.bound = true
		return x.bind()
	}
	x.shown = true
	switch {
	case !outbound:
		return x.plain()
	case whole || after:
		return "\x00<string>"
	}
	return "<any>"
}

// directoryText is what replaces a directory. <home> and <tmp> are plain data;
// in what the client sends they would have to match, so there a placeholder
// that matches any machine stands instead.
func directoryText(c context, s span, after bool, text string, alone bool) string {
	switch {
	case s.dir == "workspace" && !after && !s.coded:
		return "<workspace>"
	case c.dir == envelope.In || c.key:
		if s.dir == "workspace" {
			return "[workspace]"
		}
		return "<" + s.dir + ">"
	case after:
		return "\x00<string>"
	case s.start == 0 && alone && !s.coded && !strings.ContainsAny(text[s.end:], " \t\r\n<"):
		return "\x00<path>"
	}
	return "<any>"
}
