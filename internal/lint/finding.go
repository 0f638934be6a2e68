package lint

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
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

	// Fingerprint is the same as long as the finding is, wherever its line has
	// moved to: what a baseline and metadata.lint.suppress name it by.
	Fingerprint string `json:"fingerprint"`
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

// moving is what of a message changes when lines are put in before it.
var moving = regexp.MustCompile(`\b(line|lines|in) \d+( lines)?`)

// fingerprints names each finding of a file; the second of two alike is
// another one.
func fingerprints(found []Finding) {
	seen := map[string]int{}
	for i := range found {
		f := &found[i]
		text := f.Rule + "\x00" + f.Path + "\x00" + moving.ReplaceAllString(f.Message, "$1 N")
		seen[text]++
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", text, seen[text]))
		f.Fingerprint = hex.EncodeToString(sum[:8])
	}
}

// suppressed reads the fingerprints of metadata.lint.suppress: strings, or
// objects {"fingerprint":…,"reason":…}.
func suppressed(h *envelope.Header) []string {
	if h == nil || !gjson.GetBytes(h.Metadata, "lint").Exists() {
		return nil
	}
	var m struct {
		Lint struct {
			Suppress []json.RawMessage `json:"suppress"`
		} `json:"lint"`
	}
	if json.Unmarshal(h.Metadata, &m) != nil {
		return nil
	}
	var all []string
	for _, raw := range m.Lint.Suppress {
		var named struct {
			Fingerprint string `json:"fingerprint"`
		}
		if json.Unmarshal(raw, &named.Fingerprint) != nil && json.Unmarshal(raw, &named) != nil {
			continue
		}
		all = append(all, named.Fingerprint)
	}
	return all
}

// suppress takes out the findings that the header names and keeps the names
// that fit none.
func (c *run) suppress() {
	names := suppressed(c.hdr)
	used := map[string]bool{}
	c.findings = slices.DeleteFunc(c.findings, func(f Finding) bool {
		fits := slices.Contains(names, f.Fingerprint)
		used[f.Fingerprint] = used[f.Fingerprint] || fits
		return fits
	})
	for _, name := range names {
		if !used[name] {
			c.unused = append(c.unused, name)
		}
	}
}

func checkSuppression(c *run, found report) checker {
	return checker{last: func() {
		for _, name := range c.unused {
			found(c.hdr.Line, "metadata.lint.suppress", "remove it", "no finding has the fingerprint %q", name)
		}
	}}
}
