// Package accept takes what a client sends today into transcripts: it reads
// the reports of failed replays, and makes each difference a change of the
// expectations, in one transcript or a whole corpus. What the provider said is
// evidence and is never touched.
//
// A report tells of the first frame that differed, and a client that has
// changed sends the same change again. So a change goes to every expectation
// of the method where it applies: where the added key is not there yet, where
// the removed or changed value is the recorded one.
package accept

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// Options say what to accept. The zero value takes everything everywhere.
type Options struct {
	Workspace string // what stands as <workspace> in an expectation; "" for nothing
	Reported  bool   // only the expectation a report names, not others of its method
}

// Change is one change of what is expected.
type Change struct {
	Method string          `json:"method"`
	Op     string          `json:"op"` // "added", "removed" or "changed"
	Path   string          `json:"path"`
	Old    json.RawMessage `json:"old,omitempty"`
	New    json.RawMessage `json:"new,omitempty"`
	Places []Place         `json:"places"`
	// Own is true where the value holds an id of its transcript: it goes to
	// no other one.
	Own bool `json:"own,omitempty"`

	protocol string
}

// Place is one expectation that changes.
type Place struct {
	File string `json:"file"`
	Line int    `json:"line"`
}

// Refusal is a report that can't be accepted.
type Refusal struct {
	Report string `json:"report"`
	Why    string `json:"why"`
}

// Plan is what would be written.
type Plan struct {
	Changes []Change  `json:"changes"`
	Refused []Refusal `json:"refused"`
	files   []*file
}

// Report is a replay's report and where it was read.
type Report struct {
	File string
	*replay.Report
}

// Make reads what the reports tell of the files. name and content of each file
// are given; nothing is written.
func Make(files map[string][]byte, reports []Report, o Options) (*Plan, error) {
	p := &Plan{Changes: []Change{}, Refused: []Refusal{}}
	for _, name := range sorted(files) {
		f, err := load(name, files[name])
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, f)
	}
	for _, r := range reports {
		if r.Verdict == replay.Passed || r.Failure != nil && (r.Failure.Reason == "launch" || r.Failure.Reason == "state") {
			continue // the latter two tell that an earlier launch failed
		}
		if why := p.report(r, o); why != "" {
			p.Refused = append(p.Refused, Refusal{r.File, why})
		}
	}
	for _, f := range p.files {
		if f.changed && f.seal() != f.sealed {
			return nil, fmt.Errorf("%s: the inbound frames would change", f.name) // unreachable: only expectations are edited
		}
	}
	return p, nil
}

// report takes one report in, or says why not.
func (p *Plan) report(r Report, o Options) string {
	f := p.find(r)
	switch {
	case r.Failure == nil:
		return fmt.Sprintf("verdict %s tells of no frame", r.Verdict)
	case f == nil:
		return fmt.Sprintf("it is about %s, or another version of it", r.Transcript.Path)
	case r.Failure.Reason != "frame" || len(r.Failure.Differences) == 0:
		return r.Failure.Message + ": not a change of a frame, record the scenario again"
	case r.Failure.Nearest != nil && len(r.Failure.Nearest.Differences) == 0:
		return fmt.Sprintf("the frame is the one of line %d: frames in another order are recorded again", r.Failure.Nearest.Line)
	}
	at := f.at(r.Failure.Line)
	if at == nil {
		return fmt.Sprintf("line %d of %s expects no frame", r.Failure.Line, f.name)
	}
	method := f.method(at)
	if sent, err := f.classify(r.Failure.Actual); err != nil || sent != method {
		return fmt.Sprintf("the client sent %s where %s is expected: another frame is recorded again", sent, method)
	}
	if bytes.Contains(r.Failure.Actual, []byte("<masked>")) {
		return "the frame holds a credential, which the report does not tell: record the scenario again"
	}
	changes, why := f.changes(r.Failure, at, method, o)
	for i := range changes {
		p.apply(changes[i], f, at, o)
	}
	return why
}

// changes turns the differences of a failure into changes, in an order in
// which they can be made one after the other. None is returned unless all
// apply.
func (f *file) changes(fail *replay.Failure, at *envelope.ExpectOutbound, method string, o Options) ([]Change, string) {
	var all []Change
	ops := map[string]string{"changed": "changed", "missing": "removed", "extra": "added"}
	for _, kind := range []string{"changed", "missing", "extra"} {
		list := slices.Clone(fail.Differences)
		if kind == "missing" {
			slices.Reverse(list) // the last item of an array first
		}
		for _, d := range list {
			if d.Kind != kind {
				continue
			}
			c := Change{Method: method, Op: ops[kind], Path: d.Path, Old: d.Expected, New: d.Actual, protocol: f.header.Protocol}
			if c.Path == "" {
				return nil, "the frame is another one altogether: record the scenario again"
			}
			if c.New != nil {
				c.New = expectation(c.New, o.Workspace)
				c.Own = f.says(c.New)
			}
			all = append(all, c)
		}
	}
	trial := at.Frame
	for i := range all {
		next, ok := edit(trial, &all[i])
		if !ok && !f.edited[at] {
			return nil, fmt.Sprintf("%s of line %d is not what the report says: it tells of another version", all[i].Path, fail.Line)
		}
		if ok {
			trial = next
		}
	}
	return all, ""
}

// apply makes the change at its place and wherever else it applies.
func (p *Plan) apply(c Change, f *file, at *envelope.ExpectOutbound, o Options) {
	i := slices.IndexFunc(p.Changes, func(k Change) bool {
		return k.Method == c.Method && k.Op == c.Op && k.Path == c.Path && bytes.Equal(k.Old, c.Old) && bytes.Equal(k.New, c.New)
	})
	if i >= 0 && slices.Contains(p.Changes[i].Places, Place{f.name, at.Line}) {
		return // another report's change has been here
	}
	if !f.edit(at, &c) {
		return
	}
	c.Places = append(c.Places, Place{f.name, at.Line})
	if !o.Reported {
		for _, other := range p.files {
			if other.header.Protocol != c.protocol || c.Own && other != f {
				continue
			}
			for _, e := range other.outbound {
				if e != at && other.method(e) == c.Method && other.edit(e, &c) {
					c.Places = append(c.Places, Place{other.name, e.Line})
				}
			}
		}
	}
	if i >= 0 {
		p.Changes[i].Places = append(p.Changes[i].Places, c.Places...)
		return
	}
	p.Changes = append(p.Changes, c)
}

// find returns the file that a report is about.
func (p *Plan) find(r Report) *file {
	for _, f := range p.files {
		if f.sum == r.Transcript.SHA256 {
			return f
		}
	}
	return nil
}

// Written returns the files that change, with their new content.
func (p *Plan) Written() map[string][]byte {
	out := map[string][]byte{}
	for _, f := range p.files {
		if f.changed {
			out[f.name] = f.content()
		}
	}
	return out
}

// Text shows the changes, each once, with where it goes.
func (p *Plan) Text() string {
	var b strings.Builder
	for _, c := range p.Changes {
		files := map[string]bool{}
		for _, at := range c.Places {
			files[at.File] = true
		}
		fmt.Fprintf(&b, "%s: %s %s in %s\n", c.Method, c.Path, c.Op, frames(len(c.Places), len(files)))
		if c.Old != nil {
			fmt.Fprintf(&b, "  - %s\n", c.Old)
		}
		if c.New != nil {
			fmt.Fprintf(&b, "  + %s\n", c.New)
		}
		const most = 5
		for i, at := range c.Places {
			if i == most {
				fmt.Fprintf(&b, "    and %d more\n", len(c.Places)-most)
				break
			}
			fmt.Fprintf(&b, "    %s:%d\n", at.File, at.Line)
		}
	}
	return b.String()
}

func frames(n, files int) string {
	switch {
	case n == 1:
		return "1 frame"
	case files == 1:
		return fmt.Sprintf("%d frames of 1 file", n)
	}
	return fmt.Sprintf("%d frames of %d files", n, files)
}

func (f *file) classify(raw json.RawMessage) (string, error) {
	if f.flavor == nil {
		return "", fmt.Errorf("unknown protocol")
	}
	frame, err := f.flavor.Classify(envelope.Out, raw)
	if frame.Kind == flavors.Response {
		return "an answer to " + frame.Method, err
	}
	return frame.Method, err
}
