package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/replaypeer/replaypeer/internal/lint"
)

// scenarioFile is what of a scenario tells which replays it holds, and where.
type scenarioFile struct {
	Providers map[string]struct {
		Transcript string // "" means PROVIDER.ndjson
		Instances  map[string]struct {
			Transcript string // "" means INSTANCE.ndjson
		}
	}
	Steps []struct {
		Gate *struct {
			Label    string
			Provider string   // instance; "" means the main one
			For      []string // main providers it is there with; nil means all
		} `yaml:"release_gate"`
	}
}

// scenarioGates reads at which labels the scenario beside a transcript holds
// its replay; nil where there is no scenario.
func scenarioGates(file string) (gates []lint.Gate, err error) {
	scenario := filepath.Join(filepath.Dir(file), "scenario.yaml")
	b, err := os.ReadFile(scenario)
	if errors.Is(err, fs.ErrNotExist) || file == "-" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var s scenarioFile
	if err := yaml.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("read gates of %s: %w", scenario, err)
	}
	for _, step := range s.Steps {
		if step.Gate != nil && s.plays(filepath.Base(file), step.Gate.Provider, step.Gate.For) {
			gates = append(gates, lint.Gate{Label: step.Gate.Label, From: scenario})
		}
	}
	return gates, nil
}

// plays says whether a file is the transcript of the instance, in a run with
// one of the main providers. instance "" is the main one, mains nil all.
func (s *scenarioFile) plays(file, instance string, mains []string) bool {
	for main, p := range s.Providers {
		if len(mains) > 0 && !slices.Contains(mains, main) {
			continue
		}
		if (instance == "" || instance == main) && file == cmp.Or(p.Transcript, main+".ndjson") {
			return true
		}
		if other, ok := p.Instances[instance]; ok && file == cmp.Or(other.Transcript, instance+".ndjson") {
			return true
		}
	}
	return false
}
