package review

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// pageData is what page.html shows.
type pageData struct {
	File, Provider, Version, Scenario, Metadata string
	Lanes                                       []string // their heads
	Rows                                        []pageRow
	Head                                        []Mark // marks of the header
	Marks                                       int
}

type pageRow struct {
	Line, Last int
	Lane       int // column
	Class      string
	Arrow      string
	Title      string
	Count      string
	Summary    string
	Label      string
	After      string
	Frames     []string
	Marks      []Mark
}

// Page writes one self-contained page: a lane for the client, one for the
// provider and one per child thread, folded frames, search, a jump to a line,
// and the marks where they belong.
func Page(w io.Writer, t *envelope.Transcript, marks []Mark) error {
	r := read(t)
	d := pageData{
		File: t.File, Provider: t.Header.Provider, Version: t.Header.Version, Scenario: t.Header.Scenario,
		Metadata: indent(t.Header.Metadata), Lanes: []string{"client", "provider"}, Marks: len(marks),
	}
	after := map[int]string{}
	for _, e := range t.Entries {
		if e, ok := e.(*envelope.EmitInbound); ok && e.AfterMs != nil {
			after[e.Line] = fmt.Sprintf("%d ms", *e.AfterMs)
		}
	}
	lanes := map[int]int{0: 1, 1: 1} // of threads; the first one is the provider's own
	for _, row := range r.rows() {
		u := row.unit
		p := pageRow{Line: u.line, Last: row.last, Arrow: arrow(u), Title: u.title(), Summary: row.summary(), Label: u.label, After: after[u.line]}
		switch {
		case u.exit:
			p.Class, p.Lane = "exit", 1
		case u.dir == envelope.Out:
			p.Class = "out"
		default:
			p.Class = "in " + u.kind.String()
			lane, ok := lanes[u.thread]
			if !ok {
				lane = len(d.Lanes)
				lanes[u.thread] = lane
				d.Lanes = append(d.Lanes, fmt.Sprintf("child thread %d", lane-1))
			}
			p.Lane = lane
		}
		if row.pieces > 1 {
			p.Count = fmt.Sprintf("×%d", row.pieces)
		}
		for _, raw := range row.raws {
			p.Frames = append(p.Frames, indent(raw))
		}
		for _, m := range marks {
			if m.Line >= p.Line && m.Line <= p.Last {
				p.Marks = append(p.Marks, m)
			}
		}
		d.Rows = append(d.Rows, p)
	}
	for _, m := range marks {
		if m.Line <= t.Header.Line {
			d.Head = append(d.Head, m)
		}
	}
	return page.Execute(w, d)
}

// indent writes JSON over several lines; number literals and the order of keys
// stay.
func indent(raw json.RawMessage) string {
	var b bytes.Buffer
	if len(raw) == 0 || json.Indent(&b, raw, "", "  ") != nil {
		return strings.TrimSpace(string(raw))
	}
	return b.String()
}
