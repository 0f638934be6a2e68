// Package lint says what is wrong with a transcript before a replay does: one
// function per rule, one value per finding.
//
// A transcript is read as a stream and goes on after a bad line. A line is
// scanned once, to a tape of its keys and values. What several rules need of it
// (launches, which request a response answers, the strings of a frame) is worked
// out once per entry, in step; a rule only looks and reports. Entries, and what
// they hold, are borrowed: what is to be kept of one is copied.
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
	"github.com/replaypeer/replaypeer/schemas"
)

// Options say how to check. The zero value runs every rule.
type Options struct {
	Disable []string  // ids of rules to leave out
	Now     time.Time // what a capture time is compared with; zero means the clock

	// MaxAge is how old a recording may get; zero means 180 days, less than
	// zero any age.
	MaxAge time.Duration
	// Current names the version of each provider that recordings are made
	// with today; a provider that is not named is not compared.
	Current map[string]string
	// Gates are the labels at which something outside the file holds its
	// replay.
	Gates []Gate
	// Corpus knows the transcripts that belong together; nil means the file
	// stands alone. It is filled by Check.
	Corpus *Corpus
	// Published are schemas that providers publish; nil compares no frame with
	// them. Check counts in it.
	Published *Published
}

// Gate is one label that a replay is held at.
type Gate struct {
	Label string // as --hold takes it: "turn/completed" or "turn/completed#2"
	From  string // who says so, such as a scenario's file
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
	c.sort()
	fingerprints(c.findings)
	c.suppress()
	n := len(c.findings)
	for _, k := range c.checkers {
		if k.last != nil {
			k.last()
		}
	}
	if len(c.findings) > n {
		fingerprints(c.findings[n:])
		c.sort()
	}
	return c.findings, nil
}

func (c *run) sort() {
	slices.SortStableFunc(c.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Rule, b.Rule))
	})
}

// run is the check of one file.
type run struct {
	name     string
	now      time.Time
	opts     Options
	unused   []string // fingerprints of metadata.lint.suppress that fit nothing
	checkers []checker
	findings []Finding

	flavor  *flavors.Flavor  // nil when the protocol is not known
	hdr     *envelope.Header // nil when the header is broken
	lines   *envelope.Reader
	texts   *texts
	secrets []string // reported already
	broken  bool     // a line could not be read
	last    int      // line of the last entry or bad line
	talk    conversation
	// problems are what the schema says of the metadata, once it was asked.
	problems []schemas.Problem

	dead []*request // at the end: requests left unanswered
	lost []*step    // at the end: outbound responses to nothing
}

// checker is one rule at work on one file. Each function may be nil. They are
// called in file order: header at most once, end at the end.
type checker struct {
	syntax func(*envelope.SyntaxError)
	header func(*envelope.Header)
	entry  func(*step) // the step, and what it holds, is valid until it returns
	exit   func(*step) // entry for one who looks at each runtime_exit only
	text   func(*text) // every distinct string and stream
	end    func()
	last   func() // after suppression
}

// report adds a finding of one rule.
type report func(line int, path, hint, format string, args ...any)

func newRun(name string, opts Options) (*run, error) {
	for _, id := range opts.Disable {
		if !slices.ContainsFunc(Rules, func(r Rule) bool { return r.ID == id }) {
			return nil, fmt.Errorf("unknown rule %q", id)
		}
	}
	c := &run{name: name, now: opts.Now, opts: opts}
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
	rd := envelope.NewReader(c.name, r)
	rd.Borrow = true
	c.lines = rd
	h, err := rd.Header()
	if err := c.bad(err); err != nil {
		return err
	}
	if h != nil {
		c.hdr, c.last = h, h.Line
		c.flavor, _ = flavors.ByProtocol(h.Protocol)
		c.talk.flavor = c.flavor
		c.startTexts()
		for _, k := range c.checkers {
			if k.header != nil {
				k.header(h)
			}
		}
	}
	var entry, exit []func(*step)
	for _, k := range c.checkers {
		if k.entry != nil {
			entry = append(entry, k.entry)
		}
		if k.exit != nil {
			exit = append(exit, k.exit)
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
		if e == nil {
			continue
		}
		s := c.talk.step(e, rd)
		c.last = s.line
		for _, look := range entry {
			look(s)
		}
		if _, ok := e.(*envelope.RuntimeExit); ok {
			for _, look := range exit {
				look(s)
			}
		}
		if c.texts != nil {
			c.texts.entry(s)
		}
	}
	if c.texts != nil {
		c.texts.flush()
		c.texts.seen.release()
	}
	c.dead, c.lost = c.talk.close(false)
	if c.talk.places != nil {
		defer c.talk.places.release()
	}
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
	c.broken = true
	c.talk.gap = true
	for _, k := range c.checkers {
		if k.syntax != nil {
			k.syntax(syn)
		}
	}
	return nil
}

// startTexts begins to show strings to the rules that look at them.
func (c *run) startTexts() {
	var shows []func(*text)
	for _, k := range c.checkers {
		if k.text != nil {
			shows = append(shows, k.text)
		}
	}
	if len(shows) == 0 {
		return
	}
	c.texts = newTexts(func(t *text) {
		for _, show := range shows {
			show(t)
		}
	})
	c.texts.value(c.hdr.Line, "metadata", c.hdr.Metadata)
}
