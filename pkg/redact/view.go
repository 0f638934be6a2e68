package redact

import (
	"encoding/base64"
	"regexp"
	"strings"
	"unicode/utf8"
)

// view is a text in another reading, with the way back.
type view struct {
	text string
	at   []int // per byte of text where it starts in the original, and the end
	to   []int // per byte of text where it ends there; nil: where the next one starts
	// coded is true where a path in the text does not stand as a path in the
	// original.
	coded bool
	// wrapped texts had line ends that a terminal put in.
	wrapped bool
	// whole is true where a find stands for all of the original's part.
	whole bool
}

// place returns where text[start:end] of the view stands in the original.
func (v *view) place(start, end int) (int, int) {
	if v.whole {
		return v.at[0], v.at[1]
	}
	if v.to != nil && end > start {
		return v.at[start], v.to[end-1]
	}
	return v.at[start], v.at[end]
}

// views calls fn with the other readings of a text that may hide something.
func views(text string, fn func(*view)) {
	if strings.IndexByte(text, '\\') >= 0 {
		if v := read(text, unescapeJSON); v != nil {
			fn(v)
		}
	}
	if strings.IndexByte(text, '%') >= 0 {
		if v := read(text, unescapePercent); v != nil {
			v.coded = true
			fn(v)
		}
	}
	if strings.IndexByte(text, '\x1b') >= 0 || strings.IndexByte(text, '\r') >= 0 {
		if v := read(text, skipControls); v != nil {
			fn(v)
		}
	}
	if strings.IndexByte(text, '\n') >= 0 {
		if v := unwrap(text); v != nil {
			fn(v)
		}
	}
	base64Runs(text, base64.RawStdEncoding, "+/", fn)
	if strings.ContainsAny(text, "-_") {
		base64Runs(text, base64.RawURLEncoding, "-_", fn)
	}
}

// read makes a view with a decoder, which returns how long the code at the
// start of its text is and what it stands for; 0 means the byte stands for
// itself. It returns nil when nothing was decoded.
func read(text string, decode func(string) (int, string)) *view {
	var b strings.Builder
	var at, to []int
	decoded := false
	for i := 0; i < len(text); {
		n, s := decode(text[i:])
		if n == 0 {
			n, s = 1, text[i:i+1]
		} else {
			if !decoded {
				decoded = true
				at, to = make([]int, i, len(text)+1), make([]int, i, len(text))
				for k := range at {
					at[k], to[k] = k, k+1
				}
				b.WriteString(text[:i])
			}
		}
		if decoded {
			for range len(s) {
				at, to = append(at, i), append(to, i+n)
			}
			b.WriteString(s)
		}
		i += n
	}
	if !decoded {
		return nil
	}
	return &view{text: b.String(), at: append(at, len(text)), to: to}
}

func unescapeJSON(s string) (int, string) {
	if s[0] != '\\' || len(s) < 2 {
		return 0, ""
	}
	switch s[1] {
	case '"', '\\', '/', '\'':
		return 2, s[1:2]
	case 'n':
		return 2, "\n"
	case 'r':
		return 2, "\r"
	case 't':
		return 2, "\t"
	case 'u', 'x':
		n := 4
		if s[1] == 'x' {
			n = 2
		}
		if len(s) < 2+n {
			return 0, ""
		}
		r := rune(0)
		for i := range n {
			d := hexDigit(s[2+i])
			if d < 0 {
				return 0, ""
			}
			r = r<<4 | rune(d)
		}
		return 2 + n, string(r)
	}
	return 0, ""
}

func unescapePercent(s string) (int, string) {
	if s[0] != '%' || len(s) < 3 {
		return 0, ""
	}
	high, low := hexDigit(s[1]), hexDigit(s[2])
	if high < 0 || low < 0 {
		return 0, ""
	}
	return 3, string([]byte{byte(high<<4 | low)})
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

var escape = regexp.MustCompile(`^\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>78])`)

// skipControls leaves out what only moves a terminal's cursor or changes its
// colours.
func skipControls(s string) (int, string) {
	switch s[0] {
	case '\r':
		return 1, ""
	case '\x1b':
		return len(escape.FindString(s)), ""
	}
	return 0, ""
}

// terminal is the least width at which a line end in a word is taken for a
// terminal's.
const terminal = 60

// unwrap joins lines that end in the middle of a long word.
func unwrap(text string) *view {
	column := 0
	v := read(text, func(s string) (int, string) {
		if s[0] != '\n' && s[0] != '\r' {
			column++
			return 0, ""
		}
		n := 1
		if strings.HasPrefix(s, "\r\n") {
			n = 2
		}
		width, i := column, len(text)-len(s)
		column = 0
		if width >= terminal && i > 0 && i+n < len(text) && tokenByte(text[i-1]) && tokenByte(text[i+n]) {
			return n, ""
		}
		return 0, ""
	})
	if v != nil {
		v.wrapped = true
	}
	return v
}

func tokenByte(c byte) bool {
	return c == '_' || c == '-' || c == '/' || c == '+' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// base64Min is the shortest run of base64 characters that is decoded.
const base64Min = 16

// base64Limit is the longest run that is tried at all four alignments.
const base64Limit = 64 << 10

// base64Runs calls fn for the runs of base64 text in one of its alphabets.
func base64Runs(text string, code *base64.Encoding, more string, fn func(*view)) {
	in := func(c byte) bool {
		return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == more[0] || c == more[1]
	}
	for i := 0; i < len(text); i++ {
		start := i
		for i < len(text) && in(text[i]) {
			i++
		}
		if i-start >= base64Min && (code == base64.RawStdEncoding || strings.ContainsAny(text[start:i], more)) {
			base64Views(text, start, i, code, fn)
		}
	}
}

// base64Views decodes a run of base64 text, which may begin before the code
// does: with a path, or a word.
func base64Views(text string, start, end int, code *base64.Encoding, fn func(*view)) {
	run := text[start:end]
	for end < len(text) && text[end] == '=' && (end-start)%4 != 0 {
		end++
	}
	aligned := 4
	if len(run) > base64Limit {
		aligned = 1
	}
	for skip := range aligned {
		part := run[skip:]
		if len(part)%4 == 1 {
			part = part[:len(part)-1]
		}
		data := make([]byte, code.DecodedLen(len(part)))
		n, _ := code.Decode(data, []byte(part)) // an error leaves what came before
		for _, s := range readable(data[:n]) {
			fn(&view{text: s, at: []int{start, end}, coded: true, whole: true})
		}
	}
}

// readable returns the longer runs of text in the data.
func readable(data []byte) (list []string) {
	start := 0
	flush := func(end int) {
		if end-start >= 8 {
			list = append(list, string(data[start:end]))
		}
	}
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError || r < ' ' && r != '\n' && r != '\t' && r != '\r' || r == 0x7f {
			flush(i)
			start = i + n
		}
		i += n
	}
	flush(len(data))
	return list
}
