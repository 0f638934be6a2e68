package replay

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxShown is how many bytes of a value Text shows.
const maxShown = 300

// Text is the failure for people: one line that starts "file:line: ", then
// what was wanted and what came, then help. Values are cut and secrets masked.
// It is "" when nothing failed.
func (r *Report) Text() string {
	if r.Failure == nil {
		return ""
	}
	r = r.Masked()
	f := r.Failure
	var b strings.Builder
	b.WriteString(r.Headline())
	b.WriteByte('\n')
	writeDifferences(&b, "  ", f.Differences)
	if f.Actual != nil && (len(f.Differences) == 0 || f.Differences[0].Path == "") {
		fmt.Fprintf(&b, "  got %s\n", show(f.Actual))
	}
	if f.DuplicateOf != nil {
		fmt.Fprintf(&b, "  the same frame met line %d (label %q) before: sent twice?\n", f.DuplicateOf.Line, f.DuplicateOf.Label)
	}
	if n := f.Nearest; n != nil {
		fmt.Fprintf(&b, "  nearer is line %d (label %q)", n.Line, n.Label)
		if len(n.Differences) == 0 {
			b.WriteString(", which it matches: sent too early, or something before it is missing\n")
		} else {
			b.WriteString(", which it misses at\n")
			writeDifferences(&b, "    ", n.Differences)
		}
	}
	if len(f.Differences) == 0 {
		writePlaces(&b, "awaited", f.Awaiting, len(f.Awaiting))
	}
	writePlaces(&b, "not played", f.Leftover, f.LeftoverCount)
	for _, q := range f.Queued {
		fmt.Fprintf(&b, "  came early and was not compared: %s\n", show(q))
	}
	if f.Previous != nil {
		fmt.Fprintf(&b, "  played last: line %d %s (label %q)\n", f.Previous.Line, f.Previous.Type, f.Previous.Label)
	}
	return b.String()
}

// Headline is the first line of Text: where, what, and the first path that
// differs. It is "" when nothing failed.
func (r *Report) Headline() string {
	f := r.Failure
	if f == nil {
		return ""
	}
	where := f.File
	if where == "" {
		where = r.Transcript.Path
	}
	if f.Line > 0 {
		where = fmt.Sprintf("%s:%d", where, f.Line)
	}
	text := fmt.Sprintf("%s: %s", where, maskText(f.Message))
	if len(f.Differences) > 0 {
		text += " at " + shownPath(f.Differences[0].Path)
	}
	if f.Label != "" {
		text += fmt.Sprintf(" (label %q)", f.Label)
	}
	return text
}

func writeDifferences(b *strings.Builder, indent string, list []Difference) {
	const most = 12
	for i, d := range list {
		if i == most {
			fmt.Fprintf(b, "%s… and %d more (all of them in the report)\n", indent, len(list)-most)
			return
		}
		fmt.Fprintf(b, "%s%s %s\n", indent, d.Kind, shownPath(d.Path))
		if d.Expected != nil {
			fmt.Fprintf(b, "%s  want %s\n", indent, show(d.Expected))
		}
		if d.Actual != nil {
			fmt.Fprintf(b, "%s  got  %s\n", indent, show(d.Actual))
		}
	}
}

func writePlaces(b *strings.Builder, what string, list []Place, count int) {
	const most = 10
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "  %s:\n", what)
	for i, p := range list {
		if i == most {
			break
		}
		fmt.Fprintf(b, "    line %d %s (label %q)\n", p.Line, p.Type, p.Label)
	}
	if rest := count - min(len(list), most); rest > 0 {
		fmt.Fprintf(b, "    … and %d more\n", rest)
	}
}

func shownPath(p string) string {
	if p == "" {
		return "the whole frame"
	}
	return p
}

// show cuts a raw value for a line of text.
func show(raw []byte) string {
	raw = mask(bytes.TrimSpace(raw))
	if len(raw) <= maxShown {
		return string(raw)
	}
	cut := maxShown
	for cut > 0 && !utf8.RuneStart(raw[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… (%d bytes)", raw[:cut], len(raw))
}
