package redact

import (
	"regexp"
)

// placeholder is text that a replay takes for a placeholder: the short ones
// anywhere in a string, the types only as all of it.
var placeholder = regexp.MustCompile(`<(?:any|workspace|bind:[A-Za-z0-9_.-]+|(string|int|number|bool|uuid|timestamp|path))>`)

// literals returns where the text needs one more '<' to be read as it stands.
// A type's name in the middle of a string is plain text, unless a '<' before
// it makes it an escape.
func literals(text string) (at []int) {
	for _, m := range placeholder.FindAllStringSubmatchIndex(text, -1) {
		whole := m[0] == 0 && m[1] == len(text)
		escape := m[0] > 0 && text[m[0]-1] == '<'
		if m[2] < 0 || whole || escape {
			at = append(at, m[0])
		}
	}
	return at
}

// locate turns edits of a decoded string into edits of its quoted form, whose
// offsets count from the opening quote.
func locate(quoted []byte, edits []edit) []edit {
	raw, decoded := 1, 0
	to := func(target int) int {
		for decoded < target {
			n, width := char(quoted[raw:])
			raw += n
			decoded += width
		}
		return raw
	}
	for i := range edits {
		edits[i].start = to(edits[i].start)
		edits[i].end = to(edits[i].end)
	}
	return edits
}

// char returns the length of one character of a valid JSON string and that of
// its decoded form, in bytes. An unescaped byte counts as a character.
func char(b []byte) (n, decoded int) {
	if b[0] != '\\' {
		return 1, 1
	}
	if b[1] != 'u' {
		return 2, 1
	}
	r := hex4(b[2:])
	switch {
	case r >= 0xd800 && r < 0xdc00 && len(b) >= 12 && b[6] == '\\' && b[7] == 'u':
		if low := hex4(b[8:]); low >= 0xdc00 && low < 0xe000 {
			return 12, 4
		}
		return 6, 3 // a lone surrogate
	case r < 0x80:
		return 6, 1
	case r < 0x800:
		return 6, 2
	}
	return 6, 3
}

func hex4(b []byte) (r rune) {
	for _, c := range b[:4] {
		switch {
		case c <= '9':
			c -= '0'
		case c <= 'F':
			c -= 'A' - 10
		default:
			c -= 'a' - 10
		}
		r = r<<4 | rune(c)
	}
	return r
}
