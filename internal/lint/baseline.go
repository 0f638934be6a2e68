package lint

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
)

// Baseline is a set of findings that are known and put up with, by file and
// fingerprint. As a file it is one JSON object:
//
//	{"version":1,"findings":[{"file":"…","rule":"TL033","fingerprint":"…","message":"…"}]}
type Baseline struct {
	Version  int     `json:"version"`
	Findings []Known `json:"findings"`
}

// Known is one finding of a Baseline. Rule and message are for its reader.
type Known struct {
	File        string `json:"file"`
	Rule        string `json:"rule"`
	Fingerprint string `json:"fingerprint"`
	Message     string `json:"message"`
}

// ReadBaseline reads a baseline.
func ReadBaseline(r io.Reader) (*Baseline, error) {
	var b Baseline
	if err := json.NewDecoder(r).Decode(&b); err != nil {
		return nil, fmt.Errorf("read baseline: %v", err)
	}
	if b.Version != 1 {
		return nil, fmt.Errorf("read baseline: version %d: want 1", b.Version)
	}
	return &b, nil
}

// Has says whether the baseline knows the finding.
func (b *Baseline) Has(f Finding) bool {
	for _, k := range b.Findings {
		if k.Fingerprint == f.Fingerprint && k.File == slashed(f.File) {
			return true
		}
	}
	return false
}

// Add puts a finding into the baseline.
func (b *Baseline) Add(f Finding) {
	b.Findings = append(b.Findings, Known{slashed(f.File), f.Rule, f.Fingerprint, f.Message})
}

// Write writes the baseline, a finding a line.
func (b *Baseline) Write(w io.Writer) error {
	if _, err := io.WriteString(w, `{"version":1,"findings":[`); err != nil {
		return err
	}
	for i, k := range b.Findings {
		sep := ",\n"
		if i == 0 {
			sep = "\n"
		}
		line, err := json.Marshal(k)
		if err != nil {
			return err // unreachable: strings
		}
		if _, err := io.WriteString(w, sep+string(line)); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, "\n]}\n")
	return err
}

func slashed(file string) string { return filepath.ToSlash(filepath.Clean(file)) }
