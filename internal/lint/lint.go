// Package lint says what is wrong with a transcript before a replay does: one
// function per rule, one value per finding.
//
// A transcript is read as a stream and goes on after a bad line. What several
// rules need (launches, which request a response answers, the strings of a
// frame) is worked out once per entry, in step; a rule only looks and reports.
// Rules that depend on the protocol are skipped where it is not known.
package lint

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// Severity says how bad a finding is.
type Severity string

// Only an Error makes a transcript unfit. A Warning is worth a reviewer's
// look, an Info is advice.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Info    Severity = "info"
)

// Finding is one thing that a rule found.
type Finding struct {
	Rule     string   `json:"rule"` // id, such as "TL001"
	Severity Severity `json:"severity"`
	File     string   `json:"file"`
	Line     int      `json:"line"`           // 1-based
	Path     string   `json:"path,omitempty"` // place in the line, such as "frame.params.cwd"; "" is the whole line
	Message  string   `json:"message"`
	Hint     string   `json:"hint,omitempty"` // what to do about it
}

// String returns "file:line: severity rule message", with the place in the
// line and the hint where there are any.
func (f Finding) String() string {
	s := fmt.Sprintf("%s:%d: %s %s ", f.File, f.Line, f.Severity, f.Rule)
	if f.Path != "" {
		s += "at " + f.Path + ": "
	}
	s += f.Message
	if f.Hint != "" {
		s += " (" + f.Hint + ")"
	}
	return s
}

// Options say how to check. The zero value runs every rule.
type Options struct {
	Disable []string  // ids of rules to leave out
	Now     time.Time // what a capture time is compared with; zero means the clock
}

// Check reads a transcript from r and returns what the rules find in it, in
// file order. name stands in the findings. The error is never about the
// transcript: reading failed, or Options name an unknown rule.
func Check(name string, r io.Reader, opts Options) ([]Finding, error) {
	c, err := newRun(name, opts)
	if err != nil {
		return nil, err
	}
	if err := c.read(r); err != nil {
		return nil, err
	}
	slices.SortStableFunc(c.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Rule, b.Rule))
	})
	return c.findings, nil
}

// run is the check of one file.
type run struct {
	name     string
	now      time.Time
	checkers []checker
	findings []Finding

	flavor *flavors.Flavor  // nil when the protocol is not known
	hdr    *envelope.Header // nil when the header is broken
	sums   lineSums
	crlf   int
	last   int // line of the last entry or bad line
	talk   conversation
	dead   []*request // at the end: requests left unanswered
	lost   []*step    // at the end: outbound responses to nothing
}

// checker is one rule at work on one file. Each function may be nil. They are
// called in file order: header at most once, end at the end.
type checker struct {
	syntax func(*envelope.SyntaxError)
	header func(*envelope.Header)
	entry  func(*step)
	end    func()
}

// report adds a finding of one rule.
type report func(line int, path, hint, format string, args ...any)

func newRun(name string, opts Options) (*run, error) {
	for _, id := range opts.Disable {
		if !slices.ContainsFunc(Rules, func(r Rule) bool { return r.ID == id }) {
			return nil, fmt.Errorf("unknown rule %q", id)
		}
	}
	c := &run{name: name, now: opts.Now}
	if c.now.IsZero() {
		c.now = time.Now()
	}
	for _, rule := range Rules {
		if slices.Contains(opts.Disable, rule.ID) {
			continue
		}
		c.checkers = append(c.checkers, rule.start(c, func(line int, path, hint, format string, args ...any) {
			c.findings = append(c.findings, Finding{
				Rule: rule.ID, Severity: rule.Severity, File: name, Line: line, Path: path,
				Message: fmt.Sprintf(format, args...), Hint: hint,
			})
		}))
	}
	return c, nil
}

func (c *run) read(r io.Reader) error {
	rd := envelope.NewReader(c.name, io.TeeReader(r, &c.sums))
	h, err := rd.Header()
	if err := c.bad(err); err != nil {
		return err
	}
	c.crlf = rd.CRLF()
	if h != nil {
		c.hdr, c.last = h, h.Line
		c.flavor, _ = flavors.ByProtocol(h.Protocol)
		c.talk.flavor = c.flavor
		for _, k := range c.checkers {
			if k.header != nil {
				k.header(h)
			}
		}
	}
	for {
		e, err := rd.Next()
		if err == io.EOF {
			break
		}
		if err := c.bad(err); err != nil {
			return err
		}
		c.crlf = rd.CRLF()
		if e == nil {
			continue
		}
		s := c.talk.step(e)
		c.last = s.line
		for _, k := range c.checkers {
			if k.entry != nil {
				k.entry(s)
			}
		}
	}
	c.crlf = rd.CRLF()
	c.sums.close()
	c.dead, c.lost = c.talk.close(false)
	for _, k := range c.checkers {
		if k.end != nil {
			k.end()
		}
	}
	return nil
}

// bad passes a syntax error on to the rules and returns any other.
func (c *run) bad(err error) error {
	if err == nil {
		return nil
	}
	var syn *envelope.SyntaxError
	if !errors.As(err, &syn) {
		return err
	}
	c.last = syn.Line
	c.talk.gap = true
	for _, k := range c.checkers {
		if k.syntax != nil {
			k.syntax(syn)
		}
	}
	return nil
}
