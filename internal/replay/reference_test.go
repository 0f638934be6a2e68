package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// A second matcher, slow and plain, that the compiled one must agree with. It
// decodes both sides into trees, groups members by name and tries all splits
// of a text.

// tree is a decoded value. kind is '{', '[', '"' or '1' for everything else.
type tree struct {
	kind    byte
	text    string // the decoded string, or the literal
	names   []string
	values  []*tree // of members or items
	ignored bool
}

// decodeTree reads valid JSON; ignored holds offsets in it.
func decodeTree(raw []byte, ignored map[int]bool) *tree {
	d := treeDecoder{raw: raw, ignored: ignored}
	return d.value()
}

type treeDecoder struct {
	raw     []byte
	at      int
	ignored map[int]bool
}

func (d *treeDecoder) peek() byte {
	for strings.IndexByte(" \t\r\n,:", d.raw[d.at]) >= 0 {
		d.at++
	}
	return d.raw[d.at]
}

func (d *treeDecoder) value() *tree {
	c := d.peek()
	n := &tree{kind: c, ignored: d.ignored[d.at]}
	switch c {
	case '{', '[':
		d.at++
		for d.peek() != c+2 {
			if c == '{' {
				n.names = append(n.names, d.str())
				d.peek()
			}
			n.values = append(n.values, d.value())
		}
		d.at++
	case '"':
		n.text = d.str()
	default:
		n.kind = '1'
		start := d.at
		for d.at < len(d.raw) && strings.IndexByte("]},: \t\r\n", d.raw[d.at]) < 0 {
			d.at++
		}
		n.text = string(d.raw[start:d.at])
	}
	return n
}

// str decodes a string escape by escape; a lone surrogate becomes its number
// in a form that no text has.
func (d *treeDecoder) str() string {
	quoted := d.raw[d.at:]
	end := 1
	for quoted[end] != '"' {
		if quoted[end] == '\\' {
			end++
		}
		end++
	}
	d.at += end + 1
	var out []byte
	for s := quoted[1:end]; len(s) > 0; {
		if s[0] != '\\' {
			out = append(out, s[0])
			s = s[1:]
			continue
		}
		if s[1] != 'u' {
			var one string
			if err := json.Unmarshal([]byte(`"`+string(s[:2])+`"`), &one); err != nil {
				panic(err)
			}
			out = append(out, one...)
			s = s[2:]
			continue
		}
		unit := hexUnit(s)
		s = s[6:]
		switch {
		case !utf16.IsSurrogate(unit):
			out = append(out, string(unit)...)
		case len(s) >= 6 && s[0] == '\\' && s[1] == 'u' && utf16.DecodeRune(unit, hexUnit(s)) != 0xfffd:
			out = append(out, string(utf16.DecodeRune(unit, hexUnit(s)))...)
			s = s[6:]
		default:
			out = append(out, 0xe0|byte(unit>>12), 0x80|byte(unit>>6&0x3f), 0x80|byte(unit&0x3f))
		}
	}
	return string(out)
}

func hexUnit(escape []byte) rune {
	n, err := strconv.ParseUint(string(escape[2:6]), 16, 32)
	if err != nil {
		panic(err)
	}
	return rune(n)
}

// reference compares one pair of frames.
type reference struct {
	workspace string
	names     map[string]*tree // of <bind:NAME>; filled by the first pass
	texts     [][2]string      // strings with placeholders inside, for the second pass
}

func referenceMatch(want, got []byte, ignore []place, idKey, workspace string) bool {
	r := reference{workspace: workspace, names: map[string]*tree{}}
	w, g := decodeTree(want, places(want, ignore)), decodeTree(got, places(got, ignore))
	if w.kind == '{' && g.kind == '{' && idKey != "" {
		for i, name := range w.names {
			if name == idKey { // any value, but one
				w.values[i] = &tree{kind: '"', text: "<any>", ignored: w.values[i].ignored}
			}
		}
	}
	if !r.match(w, g, true) {
		return false
	}
	for _, t := range r.texts {
		if !r.split(r.tokens(t[0]), t[1]) {
			return false
		}
	}
	return true
}

// match is the first pass. Without placeholders, strings are literal.
func (r *reference) match(w, g *tree, placeholders bool) bool {
	if w.ignored || g.ignored {
		return true
	}
	if w.kind == '"' && placeholders {
		return r.matchString(w.text, g)
	}
	switch {
	case w.kind != g.kind:
		return false
	case w.kind == '[':
		for i := range max(len(w.values), len(g.values)) {
			switch {
			case i >= len(w.values) && !g.values[i].ignored,
				i >= len(g.values) && !w.values[i].ignored,
				i < len(w.values) && i < len(g.values) && !r.match(w.values[i], g.values[i], placeholders):
				return false
			}
		}
		return true
	case w.kind == '{':
		return r.matchMembers(r.group(w, placeholders), r.group(g, false), placeholders)
	}
	return w.text == g.text
}

// group lists an object's values by name, in order.
func (r *reference) group(n *tree, placeholders bool) map[string][]*tree {
	by := map[string][]*tree{}
	for i, name := range n.names {
		if placeholders {
			name = r.key(name)
		}
		by[name] = append(by[name], n.values[i])
	}
	return by
}

func (r *reference) matchMembers(w, g map[string][]*tree, placeholders bool) bool {
	names := map[string]bool{}
	for name := range w {
		names[name] = true
	}
	for name := range g {
		names[name] = true
	}
	for name := range names {
		list := func(v []*tree) *tree { return &tree{kind: '[', values: v} }
		if !r.match(list(w[name]), list(g[name]), placeholders) {
			return false
		}
	}
	return true
}

var refToken = regexp.MustCompile(`<?<(?:any|workspace|bind:[A-Za-z0-9_.-]+|string|int|number|bool|uuid|timestamp|path)>`)

// tokens splits a text into literals and placeholders, which keep their <>;
// literals start with "=".
func (r *reference) tokens(s string) []string {
	var list []string
	rest := s
	for rest != "" {
		at := refToken.FindStringIndex(rest)
		if at == nil {
			break
		}
		found := rest[at[0]:at[1]]
		if at[0] > 0 {
			list = append(list, "="+rest[:at[0]])
		}
		rest = rest[at[1]:]
		switch {
		case found[1] == '<':
			list = append(list, "="+found[1:])
		case found == "<any>" || found == "<workspace>" || strings.HasPrefix(found, "<bind:") || found == s:
			list = append(list, found)
		default: // typed, and not the whole string
			list = append(list, "="+found)
		}
	}
	if rest != "" {
		list = append(list, "="+rest)
	}
	return list
}

// key resolves a recorded key, where only the workspace and escapes mean
// something.
func (r *reference) key(name string) string {
	out := ""
	for _, token := range r.tokens(name) {
		switch {
		case token[0] == '=':
			out += token[1:]
		case token == "<workspace>":
			out += r.workspace
		default:
			return name
		}
	}
	return out
}

func (r *reference) matchString(want string, g *tree) bool {
	tokens := r.tokens(want)
	if len(tokens) == 1 && tokens[0][0] == '<' && tokens[0] != "<workspace>" {
		name := strings.Trim(tokens[0], "<>")
		bind, ok := strings.CutPrefix(name, "bind:")
		if !ok {
			return r.typed(name, g)
		}
		if before, ok := r.names[bind]; ok {
			return r.match(before, g, false)
		}
		r.names[bind] = g
		return true
	}
	if g.kind == '"' {
		r.texts = append(r.texts, [2]string{want, g.text})
	}
	return g.kind == '"'
}

var refTypes = map[string]string{
	"int": `^-?[0-9]+$`, "number": `^-?[0-9]`, "bool": `^(true|false)$`,
	"uuid": `^(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, "path": `^(/|\\\\|[A-Za-z]:[/\\])`,
}

func (r *reference) typed(name string, g *tree) bool {
	switch name {
	case "any":
		return true
	case "string":
		return g.kind == '"'
	case "timestamp":
		return g.kind == '"' && isTimestamp(g.text)
	case "uuid", "path":
		return g.kind == '"' && regexp.MustCompile(refTypes[name]).MatchString(g.text)
	}
	return g.kind == '1' && regexp.MustCompile(refTypes[name]).MatchString(g.text)
}

var refName = regexp.MustCompile(`^[A-Za-z0-9_.\x80-\xff-]`)

// split tries every way to cut s into the tokens.
func (r *reference) split(tokens []string, s string) bool {
	reach := map[int]bool{0: true} // ends of what the tokens so far can cover
	for k, token := range tokens {
		next := map[int]bool{}
		for at := range reach {
			if token == "<any>" {
				for end := at; end <= len(s); end++ {
					next[end] = true
				}
				continue
			}
			text, ok := r.text(token)
			if !ok || !strings.HasPrefix(s[at:], text) {
				continue
			}
			end := at + len(text)
			open := token == "<workspace>" && k+1 < len(tokens) && tokens[k+1] == "<any>"
			if !open || end == len(s) || !nameAt(s, end) {
				next[end] = true
			}
		}
		reach = next
	}
	return reach[len(s)]
}

func nameAt(s string, i int) bool { return s[i] >= 0x80 || refName.MatchString(s[i:i+1]) }

func (r *reference) text(token string) (string, bool) {
	switch {
	case token[0] == '=':
		return token[1:], true
	case token == "<workspace>":
		return r.workspace, true
	}
	v, ok := r.names[strings.Trim(strings.TrimPrefix(token, "<bind:"), "<>")]
	if !ok {
		return "", false
	}
	return v.inText(), true
}

// inText is how a captured value reads inside a string. Structures are kept
// out of it by those who call.
func (n *tree) inText() string {
	if n.kind == '{' || n.kind == '[' {
		panic(fmt.Sprintf("a captured %c inside a string", n.kind))
	}
	return n.text
}

// fitForReference keeps out what the format refuses, and captured structures
// inside strings.
func fitForReference(want, got []byte) bool {
	if !envelope.Valid(want) || !envelope.Valid(got) || bytes.Contains(want, []byte("<bind:")) && bytes.ContainsAny(got[1:], "{[") && strings.Count(string(want), "<bind:") > strings.Count(string(want), `"<bind:`) {
		return false
	}
	check := bindCheck{captured: map[string]bool{}}
	return check.outbound(want) == nil
}
