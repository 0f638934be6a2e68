package review

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Text renders the difference for a terminal; "" when there is none.
func (d *Diff) Text() string {
	if d.Same {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s → %s: %s\n", d.Old, d.New, count(len(d.Changes), "change"))
	for _, c := range d.Changes {
		fmt.Fprintf(&b, "%s\n", c.headline())
		if c.Op == "changed" && len(c.Old)+len(c.New) < 70 {
			fmt.Fprintf(&b, "    %s → %s%s\n", c.Old, c.New, c.more())
			continue
		}
		if c.Old != nil {
			fmt.Fprintf(&b, "  - %s\n", around(c.Old, c.New, 160))
		}
		if c.New != nil {
			fmt.Fprintf(&b, "  + %s%s\n", around(c.New, c.Old, 160), c.more())
		} else if c.Values > 1 {
			fmt.Fprintf(&b, "   %s\n", c.more())
		}
	}
	return b.String()
}

func (c *Change) more() string {
	if c.Values < 2 {
		return ""
	}
	return fmt.Sprintf("   (and %s)", count(c.Values-1, "other value"))
}

func (c *Change) headline() string {
	switch c.What {
	case "header":
		return fmt.Sprintf("header: %s %s", c.Path, c.Op)
	case "order":
		return fmt.Sprintf("%s: %s stands elsewhere (%s)", c.Direction, strings.Join(c.Methods, ", "), c.where())
	case "frame":
		return fmt.Sprintf("%s: %s %s (%s)", c.Direction, strings.Join(c.Methods, ", "), c.Op, c.where())
	}
	path := c.Path
	if path == "" {
		path = "the frame"
	}
	return fmt.Sprintf("%s: %s %s in %s (%s)", c.Direction, path, c.Op, names(c.Methods), c.where())
}

func names(methods []string) string {
	if len(methods) > 4 {
		return strings.Join(methods[:4], ", ") + fmt.Sprintf(" and %d more", len(methods)-4)
	}
	return strings.Join(methods, ", ")
}

// where counts frames and names the first one's line.
func (c *Change) where() string {
	p := c.Frames[0]
	at := fmt.Sprintf("line %d", p.New)
	switch {
	case p.New == 0:
		at = fmt.Sprintf("old line %d", p.Old)
	case p.Old > 0 && p.Old != p.New:
		at = fmt.Sprintf("line %d → %d", p.Old, p.New)
	}
	if n := len(c.Frames); n > 1 {
		return fmt.Sprintf("%d frames from %s", n, at)
	}
	return at
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// JSON renders the difference as one line.
func (d *Diff) JSON() []byte {
	if d.Changes == nil {
		d.Changes = []Change{}
	}
	return jsonLine(d)
}

func jsonLine(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return []byte(`{"version":1,"error":"` + err.Error() + "\"}\n") // unreachable: valid JSON within
	}
	return b.Bytes()
}

// Markdown renders the difference as a comment on a pull request.
func (d *Diff) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "**`%s`** compared with `%s`: ", d.New, d.Old)
	if d.Same {
		return b.String() + "no change in meaning\n"
	}
	fmt.Fprintf(&b, "%s\n\n| | what | frames | before | after |\n|---|---|---|---|---|\n", count(len(d.Changes), "change"))
	const most = 60 // a comment may have 65536 characters
	for i, c := range d.Changes {
		if i == most {
			fmt.Fprintf(&b, "| | … and %s | | | |\n", count(len(d.Changes)-most, "other change"))
			break
		}
		what := c.Path
		if c.What != "field" && c.What != "header" {
			what = c.What
		}
		frames := "header"
		if len(c.Frames) > 0 {
			frames = fmt.Sprintf("%s %s: %s", c.Direction, names(c.Methods), c.where())
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s |\n", c.Op, strings.ReplaceAll(what, "|", `\|`), cell(frames), code(around(c.Old, c.New, 120)), code(around(c.New, c.Old, 120)+c.more()))
	}
	return b.String()
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "<code>" + cell(s) + "</code>"
}

func cell(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "|", "&#124;", "\n", " ", "`", "&#96;", "*", "&#42;", "_", "&#95;", "@", "&#64;").Replace(s)
}

// around shortens s to about n characters, keeping where it begins to differ
// from other.
func around(s, other []byte, n int) string {
	text := string(s)
	if len(text) <= n {
		return text
	}
	at := 0
	for at < len(s) && at < len(other) && s[at] == other[at] {
		at++
	}
	from := max(0, at-n/4)
	if other == nil || at < n/2 {
		from = 0
	}
	to := min(len(text), from+n)
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	out := text[from:to]
	if from > 0 {
		out = "…" + out
	}
	if to < len(text) {
		out += fmt.Sprintf("… (%d characters)", utf8.RuneCountInString(text))
	}
	return out
}
