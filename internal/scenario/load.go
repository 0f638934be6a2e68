package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/replaypeer/replaypeer/schemas"
)

// fileName is the name of a scenario file inside its folder.
const fileName = "scenario.yaml"

// ErrNone is returned by LoadAll for a folder without scenarios.
var ErrNone = errors.New("no scenario")

// LoadAll reads every dir/NAME/scenario.yaml, by name. Messages call dir
// shown. It returns an error that wraps ErrNone where there are none, and one
// with all that is wrong with the files otherwise.
func LoadAll(dir, shown string) ([]*Scenario, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []*Scenario
	var problems []error
	for _, e := range entries {
		s, err := Load(filepath.Join(dir, e.Name()), path.Join(filepath.ToSlash(shown), e.Name()))
		switch {
		case errors.Is(err, fs.ErrNotExist) || !isDir(filepath.Join(dir, e.Name())):
		case err != nil:
			problems = append(problems, err)
		default:
			all = append(all, s)
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w in %s: want %s", ErrNone, shown, path.Join(filepath.ToSlash(shown), "NAME", fileName))
	}
	return all, nil
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// Load reads dir/scenario.yaml. Errors start with "file:line: ", the file
// being below shown; several are joined by line ends.
func Load(dir, shown string) (*Scenario, error) {
	data, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		return nil, err
	}
	s, err := parse(path.Join(filepath.ToSlash(shown), fileName), data)
	if err != nil {
		return nil, err
	}
	s.dir = dir
	if folder := path.Base(path.Dir(s.File)); folder != s.Name && folder != "." {
		return nil, fmt.Errorf("%s:1: scenario is called %q but its folder %q", s.File, s.Name, folder)
	}
	return s, nil
}

func parse(file string, data []byte) (*Scenario, error) {
	doc, err := parseYAML(file, data)
	if err != nil {
		return nil, err
	}
	if err := schemas.Validate("scenario", doc.JSON); err != nil {
		return nil, located(doc, err)
	}
	s := &Scenario{File: file}
	if err := json.Unmarshal(doc.JSON, s); err != nil {
		return nil, fmt.Errorf("%s:1: %v", file, err) // unreachable unless schema and types differ
	}
	setStepLines(doc, "/steps", s.Steps)
	setLines(doc, "/assertions", s.Assertions)
	for name, v := range s.Without {
		setStepLines(doc, "/without/"+name+"/steps", v.Steps)
		setLines(doc, "/without/"+name+"/assertions", v.Assertions)
	}
	return s, s.check(doc)
}

func setStepLines(doc *document, at string, steps []Step) {
	for i := range steps {
		at := fmt.Sprintf("%s/%d", at, i)
		steps[i].Line = doc.line(at)
		if p := steps[i].Probe; p != nil {
			setLines(doc, at+"/probe/assertions", p.Assertions)
		}
	}
}

func setLines(doc *document, at string, as []Assertion) {
	for i := range as {
		as[i].Line = doc.line(fmt.Sprintf("%s/%d", at, i))
	}
}

var (
	stepPointer      = regexp.MustCompile(`^(/without/\w+)?/steps/\d+$`)
	assertionPointer = regexp.MustCompile(`assertions/\d+$`)
)

// located puts file and line before every problem the schema found.
func located(doc *document, err error) error {
	var invalid *schemas.InvalidError
	if !errors.As(err, &invalid) {
		return fmt.Errorf("%s: %w", doc.File, err)
	}
	var out []error
	for _, p := range invalid.Problems {
		line, msg := doc.line(p.Pointer), p.String()
		switch {
		case stepPointer.MatchString(p.Pointer) && p.Keyword == "additionalProperties":
			msg = "unknown step: " + p.Message
		case assertionPointer.MatchString(p.Pointer) && (p.Keyword == "oneOf" || p.Keyword == "required") && p.Message != "missing path":
			msg = "at " + p.Pointer + ": want exactly one of " + strings.Join(operators, ", ")
		}
		if e := fmt.Errorf("%s:%d: %s", doc.File, line, msg); len(out) == 0 || out[len(out)-1].Error() != e.Error() {
			out = append(out, e)
		}
	}
	return errors.Join(out...)
}

// check finds what the schema cannot say.
func (s *Scenario) check(doc *document) error {
	var problems []error
	bad := func(line int, format string, args ...any) {
		problems = append(problems, fmt.Errorf("%s:%d: %s", s.File, line, fmt.Sprintf(format, args...)))
	}
	known := capabilityNames()
	for i, need := range s.Needs {
		if !slices.Contains(known, need) {
			bad(doc.line(fmt.Sprintf("/needs/%d", i)), "unknown capability %q: want %s", need, strings.Join(known, ", "))
		}
	}
	for name := range s.Workspace {
		if !inWorkspace(name) {
			bad(doc.line("/workspace/"+name), "workspace file %q does not lie in the workspace", name)
		}
	}
	for name := range s.Without {
		if !slices.Contains(s.Needs, name) {
			bad(doc.line("/without/"+name), "without %s: the scenario does not need it", name)
		}
	}
	s.checkScript(bad, s.Steps, s.Assertions)
	for _, name := range slices.Sorted(maps.Keys(s.Without)) {
		s.checkScript(bad, s.Without[name].Steps, s.Without[name].Assertions)
	}
	return errors.Join(problems...)
}

// checkScript is check for steps and the assertions after them.
func (s *Scenario) checkScript(bad func(line int, format string, args ...any), steps []Step, final []Assertion) {
	keys := map[string]bool{}
	held := map[string]bool{}
	concern := func(line int, what string, providers []string) {
		for _, p := range providers {
			if _, ok := s.Providers[p]; !ok {
				bad(line, "%s is for %q, which is no provider of the scenario", what, p)
			}
		}
	}
	assertions := func(as []Assertion) {
		for _, a := range as {
			if a.Snapshot != "" && (a.Thread != "" || a.Of != "") {
				bad(a.Line, "a snapshot has its thread already")
			}
			if a.Snapshot != "" && !keys[a.Snapshot] {
				bad(a.Line, "no step before captures a snapshot %q", a.Snapshot)
			}
			concern(a.Line, "assertion", a.For)
			if _, err := regexp.Compile(anchored(a.Matches)); err != nil {
				bad(a.Line, "%v", err)
			}
		}
	}
	for i, step := range steps {
		concern(step.Line, "step", step.For)
		switch {
		case step.CreateThread != nil && i > 0:
			bad(step.Line, "create_thread must be the first step")
		case step.CaptureSnapshot != nil && keys[step.CaptureSnapshot.Key]:
			bad(step.Line, "snapshot %q is captured twice", step.CaptureSnapshot.Key)
		case step.CaptureSnapshot != nil:
			keys[step.CaptureSnapshot.Key] = true
		case step.ReleaseGate != nil && held[step.ReleaseGate.Provider+" "+step.ReleaseGate.Label]:
			bad(step.Line, "gate %q is released twice", step.ReleaseGate.Label)
		case step.ReleaseGate != nil:
			held[step.ReleaseGate.Provider+" "+step.ReleaseGate.Label] = true
			concern(step.Line, "gate", step.ReleaseGate.For)
		case step.WriteFile != nil && !inWorkspace(step.WriteFile.Path):
			bad(step.Line, "workspace file %q does not lie in the workspace", step.WriteFile.Path)
		case step.Probe != nil:
			assertions(step.Probe.Assertions)
		}
	}
	assertions(final)
}

func inWorkspace(name string) bool {
	return filepath.IsLocal(name) && name != "." && !strings.HasPrefix(path.Clean(filepath.ToSlash(name)), ".git/")
}
