package replay

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// place is a parsed path that names values inside frames, in gjson's syntax:
//
//	params.input.0.text     keys and indexes; "\\" takes a special meaning away
//	params.input.#.text     every element
//	params.input.#(type=="text")#.text    every element that fits, without the last # the first
//	params.*.id             a pattern of * and ?
//	**.id                   at any depth
//
// Where gjson finds the first key that fits a pattern, a place names all of
// them, so that the order of keys does not matter.
type place []placeStep

type placeStep struct {
	kind stepKind
	text string // the key, the pattern with its escapes, or the query
}

type stepKind uint8

const (
	stepKey stepKind = iota
	stepPattern
	stepEach
	stepQuery
	stepDeep
)

// parsePlace reads a path. What gjson computes instead of finding (modifiers,
// pipes, counts, selections) has no place in a frame.
func parsePlace(path string) (place, error) {
	var p place
	for rest := path; ; {
		s, n, err := parseStep(rest, len(p) == 0)
		if err != nil {
			return nil, fmt.Errorf("path %q: %w", path, err)
		}
		p = append(p, s)
		if n == len(rest) {
			break
		}
		rest = rest[n+1:]
	}
	if last := p[len(p)-1].kind; last == stepEach || last == stepDeep {
		return nil, fmt.Errorf("path %q: ends in a %s: name what is below", path, map[stepKind]string{stepEach: "#", stepDeep: "**"}[last])
	}
	return p, nil
}

// parseStep reads one step and returns its length.
func parseStep(s string, first bool) (placeStep, int, error) {
	step := placeStep{kind: stepKey}
	end := 0
	switch {
	case s == "" || s[0] == '.':
		return step, 0, fmt.Errorf("empty step")
	case strings.IndexByte("@!{[", s[0]) >= 0:
		return step, 0, fmt.Errorf("%q computes something: want keys, indexes, # and *", s)
	case strings.HasPrefix(s, "#("):
		if end = queryEnd(s); end < 0 {
			return step, 0, fmt.Errorf("query %q has no end", s)
		}
		step = placeStep{stepQuery, s[:end]}
	case s[0] == '#':
		step.kind, end = stepEach, 1
	case first && strings.HasPrefix(s, "**."):
		step.kind, end = stepDeep, 2
	default:
		var key strings.Builder
		for end < len(s) && s[end] != '.' && s[end] != '|' {
			switch {
			case s[end] == '\\' && end+1 < len(s):
				end++
			case s[end] == '*' || s[end] == '?':
				step.kind = stepPattern
			}
			key.WriteByte(s[end])
			end++
		}
		if step.text = key.String(); step.kind == stepPattern {
			step.text = s[:end]
		}
	}
	if end < len(s) && s[end] != '.' {
		return step, 0, fmt.Errorf("%q after a step: want a dot", s[end:])
	}
	return step, end, nil
}

// queryEnd returns the index after "#(…)" or "#(…)#", -1 when it has no end.
func queryEnd(s string) int {
	depth, quoted := 0, false
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth > 0 {
				continue
			}
			if strings.HasPrefix(s[i+1:], "#") {
				i++
			}
			return i + 1
		}
	}
	return -1
}

// find calls add with the offset of every value that the place names below
// the value at offset at of valid JSON.
func (p place) find(raw []byte, at int, add func(int)) {
	if len(p) == 0 {
		add(at)
		return
	}
	s, rest := p[0], p[1:]
	switch s.kind {
	case stepQuery:
		if raw[at] == '[' {
			r := gjson.GetBytes(raw[at:envelope.SkipValue(raw, at)], s.text)
			for _, i := range append(r.Indexes, r.Index) {
				if i > 0 {
					rest.find(raw, at+i, add)
				}
			}
		}
	case stepDeep:
		rest.find(raw, at, add)
		children(raw, at, func(_ string, child int) { p.find(raw, child, add) })
	case stepEach:
		if raw[at] == '[' {
			children(raw, at, func(_ string, child int) { rest.find(raw, child, add) })
		}
	default:
		children(raw, at, func(name string, child int) {
			if name == s.text || s.kind == stepPattern && glob(s.text, name) {
				rest.find(raw, child, add)
			}
		})
	}
}

// children calls fn with the name, or the index as text, and the offset of
// every value in the object or array at offset at.
func children(raw []byte, at int, fn func(name string, at int)) {
	object := raw[at] == '{'
	if !object && raw[at] != '[' {
		return
	}
	i := envelope.SkipSpace(raw, at+1)
	for k := 0; raw[i] != '}' && raw[i] != ']'; k++ {
		var name string
		if object {
			end := envelope.SkipString(raw, i)
			name = envelope.Unquote(raw[i:end])
			i = envelope.SkipSpace(raw, envelope.SkipSpace(raw, end)+1)
		} else {
			name = strconv.Itoa(k)
		}
		fn(name, i)
		if i = envelope.SkipSpace(raw, envelope.SkipValue(raw, i)); raw[i] == ',' {
			i = envelope.SkipSpace(raw, i+1)
		}
	}
}

// glob says whether s fits the pattern of * and ?.
func glob(pattern, s string) bool {
	star, from := -1, 0 // the last *, and where in s it goes on from
	p, i := 0, 0
	for i < len(s) {
		literal := p
		if p+1 < len(pattern) && pattern[p] == '\\' {
			literal++
		}
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[literal] == s[i]):
			p, i = literal+1, i+1
		case star >= 0:
			from++
			p, i = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// places returns the offsets of the values in a frame that the paths name.
func places(raw []byte, paths []place) map[int]bool {
	if len(paths) == 0 {
		return nil
	}
	at := map[int]bool{}
	for _, p := range paths {
		p.find(raw, envelope.SkipSpace(raw, 0), func(i int) { at[i] = true })
	}
	return at
}
