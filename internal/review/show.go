package review

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// Mark is something to see at a line of a transcript: a finding of the linter
// or what a replay failed at.
type Mark struct {
	Line int
	Kind string // "error", "warning" or "info"
	Text string
}

// Show writes the conversation, a line per frame: its line in the file, who
// speaks (→ the client, ← the provider), which thread, what, and the most of
// it that fits. Pieces of a stream that follow each other are one line.
func Show(w io.Writer, t *envelope.Transcript, marks []Mark, width int) error {
	r := read(t)
	h := t.Header
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s: %s %s, scenario %s\n", t.File, h.Provider, h.Version, h.Scenario)
	digits := len(fmt.Sprint(lastLine(r)))
	for _, row := range r.rows() {
		u := row.unit
		line := fmt.Sprintf("%*d %s ", digits, u.line, arrow(u))
		if len(r.threads) > 1 {
			line += strings.Repeat("│ ", max(0, u.thread-1))
		}
		line += u.title()
		if row.pieces > 1 {
			line += fmt.Sprintf(" ×%d", row.pieces)
		}
		if text := row.summary(); text != "" {
			line += "  " + text
		}
		b.WriteString(clip(line, width) + "\n")
		for _, m := range marks {
			if m.Line >= u.line && m.Line <= row.last {
				fmt.Fprintf(b, "%*s ! %s: %s\n", digits, "", m.Kind, m.Text)
			}
		}
	}
	for _, m := range marks {
		if m.Line <= h.Line {
			fmt.Fprintf(b, "%*d ! %s: %s\n", digits, m.Line, m.Kind, m.Text)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func lastLine(r *reading) int {
	if len(r.units) == 0 {
		return 1
	}
	return r.units[len(r.units)-1].line
}

func arrow(u *unit) string {
	switch {
	case u.exit:
		return "■"
	case u.dir == envelope.Out:
		return "→"
	}
	return "←"
}

// row is what is shown as one: a frame, or pieces that follow each other.
type row struct {
	*unit
	text   string // of the pieces
	pieces int
	last   int // line
	raws   []json.RawMessage
}

func (r *reading) rows() (rows []*row) {
	for _, u := range r.units {
		if n := len(rows); u.pieces > 0 && n > 0 && rows[n-1].unit.pieces > 0 && rows[n-1].method == u.method && rows[n-1].thread == u.thread && same(rows[n-1].value, u.value) {
			last := rows[n-1]
			last.text += u.piece
			last.pieces++
			last.last = u.line
			last.raws = append(last.raws, u.raw)
			continue
		}
		rows = append(rows, &row{unit: u, text: u.piece, pieces: u.pieces, last: u.line, raws: []json.RawMessage{u.raw}})
	}
	return rows
}

// title is what a frame is called: its method, and what kind of thing it is
// about.
func (u *unit) title() string {
	title := cmp.Or(u.method, u.label)
	if u.kind == flavors.Response {
		title += " answered"
		if u.value.get("error") != nil {
			title += " with an error"
		}
	}
	for _, path := range [][]string{{"params", "item", "type"}, {"params", "update", "sessionUpdate"}, {"update", "type"}, {"event", "properties", "part", "type"}, {"event", "delta", "type"}} {
		if v := u.value.at(path); v != nil && v.kind == '"' {
			title += " " + v.text
			break
		}
	}
	return title
}

func (v *value) at(path []string) *value {
	for _, key := range path {
		if v = v.get(key); v == nil {
			return nil
		}
	}
	return v
}

// telling are keys whose strings say what a frame is about, best first.
var telling = []string{
	"command", "text", "delta", "thinking", "message", "prompt", "content", "result", "title", "name", "query",
	"file_path", "path", "cwd", "decision", "status", "error", "model",
}

// summary is the most telling text of a frame.
func (w *row) summary() string {
	if w.pieces > 0 {
		return quote(w.text)
	}
	found := map[string]string{}
	w.value.each("", func(key string, v *value) {
		if found[key] == "" && strings.TrimSpace(v.text) != "" && v.text != "…" {
			found[key] = v.text
		}
	})
	var parts []string
	for _, key := range telling {
		if s := found[key]; s != "" && s != w.method {
			if key == "status" || key == "decision" || key == "model" || key == "cwd" || key == "path" {
				s = key + " " + s
			} else {
				s = quote(s)
			}
			if parts = append(parts, s); len(parts) == 2 {
				break
			}
		}
	}
	return strings.Join(parts, ", ")
}

// each calls fn with every string and the key it stands under.
func (v *value) each(key string, fn func(key string, v *value)) {
	if v.kind == '"' {
		fn(key, v)
	}
	for i, in := range v.inner {
		if v.kind == '{' {
			key = v.keys[i]
		}
		in.each(key, fn)
	}
}

func quote(s string) string { return string(envelope.AppendString(nil, s)) }

// clip cuts a line to width characters, control characters made visible.
func clip(s string, width int) string {
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c >= 0x80 && c < 0xa0 {
			return '�'
		}
		return c
	}, s)
	if width <= 0 || utf8.RuneCountInString(s) <= width {
		return s
	}
	n := 0
	for i := range s {
		if n == width-1 {
			return s[:i] + "…"
		}
		n++
	}
	return s
}
