package review

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// Drift is what changed in a provider's protocol between two recordings of
// one scenario: a Diff, read as news about the provider.
type Drift struct {
	Version  int    `json:"version"` // 1
	Provider string `json:"provider"`
	Scenario string `json:"scenario"`
	// Before and After are the versions of the provider that were recorded.
	Before string `json:"before"`
	After  string `json:"after"`
	Same   bool   `json:"same"`
	News   []News `json:"news"`
}

// News is one thing that changed, in however many frames.
type News struct {
	// What is "method", "field", "type", "value", "frames", "order" or "header".
	// A method is new or gone when no frame of it is in the other recording, a
	// field when no frame of its method has it; "frames" are more or fewer
	// frames of a method that both have.
	What string `json:"what"`
	// Op is "new", "gone", "changed", "more", "fewer" or "moved".
	Op        string          `json:"op"`
	Direction string          `json:"direction,omitempty"`
	Methods   []string        `json:"methods,omitempty"`
	Path      string          `json:"path,omitempty"` // indexes are #
	Before    json.RawMessage `json:"before,omitempty"`
	After     json.RawMessage `json:"after,omitempty"`
	Frames    int             `json:"frames,omitempty"`
	Line      int             `json:"line,omitempty"` // of the first frame in the new recording; 0 when gone
}

// DriftOf compares the recording of a scenario with a newer one. The version
// of the provider is no drift by itself, nor is what it says on stderr.
func DriftOf(before, after *envelope.Transcript) *Drift {
	d := &Drift{
		Version: 1, Provider: after.Header.Provider, Scenario: after.Header.Scenario,
		Before: versionOf(before), After: versionOf(after), News: []News{},
	}
	old, fresh := shapeOf(before), shapeOf(after)
	for _, c := range Compare(before, after).Changes {
		if c.What == "header" {
			switch c.Path {
			case "version", "metadata.providerVersion", "metadata.source":
				continue
			}
		}
		if slices.Equal(c.Methods, []string{string(envelope.Stderr)}) {
			continue // for people, and no protocol
		}
		d.News = append(d.News, newsOf(c, old, fresh))
	}
	d.Same = len(d.News) == 0
	return d
}

func versionOf(t *envelope.Transcript) string {
	if v := gjson.GetBytes(t.Header.Metadata, "providerVersion").Str; v != "" {
		return v
	}
	return t.Header.Version
}

func newsOf(c Change, old, fresh shape) News {
	n := News{What: c.What, Op: c.Op, Direction: c.Direction, Methods: c.Methods, Path: c.Path, Before: c.Old, After: c.New, Frames: len(c.Frames)}
	if len(c.Frames) > 0 {
		n.Line = c.Frames[0].New
	}
	other, op := old, "new"
	if c.Op == "removed" {
		other, op = fresh, "gone"
	}
	switch {
	case c.Op != "added" && c.Op != "removed":
		if c.What == "field" {
			n.What = "value"
			if kindOf(c.Old) != kindOf(c.New) {
				n.What = "type"
			}
		}
	case c.What == "frame" && !other.methods[c.Direction+" "+c.Methods[0]]:
		n.What, n.Op = "method", op
	case c.What == "frame":
		n.What, n.Op = "frames", map[string]string{"new": "more", "gone": "fewer"}[op]
	case c.What == "field" && slices.ContainsFunc(c.Methods, func(m string) bool { return other.fields[c.Direction+" "+m+" "+c.Path] }):
		n.What, n.Op = "value", op // other frames of the method had it all along
	default:
		n.Op = op
	}
	return n
}

func kindOf(raw json.RawMessage) gjson.Type {
	v := gjson.ParseBytes(raw)
	switch {
	case v.Type == gjson.True:
		return gjson.False // one type
	case v.IsArray():
		return -1
	}
	return v.Type
}

// shape is what methods a recording has, and where they have fields.
type shape struct{ methods, fields map[string]bool }

func shapeOf(t *envelope.Transcript) shape {
	s := shape{map[string]bool{}, map[string]bool{}}
	for _, u := range read(t).units {
		name := u.dir.String() + " " + u.name()
		s.methods[name] = true
		s.add(name, "", u.value)
	}
	return s
}

func (s shape) add(name, path string, v *value) {
	s.fields[name+" "+path] = true
	for i, in := range v.inner {
		key := "#"
		if v.kind == '{' {
			key = v.keys[i]
		}
		s.add(name, join(path, key), in)
	}
}

// headline is the first line of every rendering.
func (d *Drift) headline() string {
	versions := d.Before
	if d.After != d.Before {
		versions += " → " + d.After
	}
	return fmt.Sprintf("%s/%s, %s: ", d.Scenario, d.Provider, versions)
}

// Text renders the drift for a terminal; "" when there is none.
func (d *Drift) Text() string {
	if d.Same {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s\n", d.headline(), count(len(d.News), "change"))
	for _, n := range d.News {
		fmt.Fprintf(&b, "  %s\n", n.text())
		if n.Before != nil {
			fmt.Fprintf(&b, "    - %s\n", around(n.Before, n.After, 160))
		}
		if n.After != nil {
			fmt.Fprintf(&b, "    + %s\n", around(n.After, n.Before, 160))
		}
	}
	return b.String()
}

func (n *News) text() string {
	var parts []string
	parts = append(parts, n.Op, n.What)
	if n.Path != "" {
		parts = append(parts, n.Path)
	}
	if len(n.Methods) > 0 {
		in := "of"
		if n.What == "method" {
			in = "="
		}
		parts = append(parts, in, n.Direction, names(n.Methods))
	}
	text := strings.Join(parts, " ")
	if n.Frames > 1 {
		text += fmt.Sprintf(" (%d frames)", n.Frames)
	}
	return text
}

// JSON renders the drift as one line.
func (d *Drift) JSON() []byte { return jsonLine(d) }

// Markdown renders the drift as a section of an issue.
func (d *Drift) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** ", strings.TrimSuffix(d.headline(), ": "))
	if d.Same {
		return b.String() + "no drift\n"
	}
	fmt.Fprintf(&b, "%s\n\n| | what | where | frames | before | after |\n|---|---|---|---|---|---|\n", count(len(d.News), "change"))
	for _, n := range d.News {
		what := n.What
		if n.Path != "" {
			what += " `" + strings.ReplaceAll(n.Path, "|", `\|`) + "`"
		}
		frames := ""
		if n.Frames > 0 {
			frames = fmt.Sprint(n.Frames)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", n.Op, what, cell(n.Direction+" "+names(n.Methods)), frames,
			code(around(n.Before, n.After, 120)), code(around(n.After, n.Before, 120)))
	}
	return b.String()
}
