// Package scenario drives the real orchestrator through scripted steps and
// holds what it kept against assertions. A scenario is a file:
//
//	name: simple
//	description: One turn, one answer.
//	providers:
//	  codex: {model: scripted-model}
//	steps:
//	  - message: {text: "Respond with exactly: fixture simple ok", await: completed}
//	assertions:
//	  - {path: "runs.#.status", equals: [completed]}
//
// Its provider is a replay peer that plays the transcript beside the file, or
// a live one. Everything else is what production runs: orchestrator, adapter,
// SQLite file, git checkpoints. Only the clock and the random source are
// fixed, so that two runs keep the same bytes.
package scenario

import (
	"encoding/json"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// DefaultTimeout is the longest wait of a step that says none of its own.
const DefaultTimeout = 10 * time.Second

// Names of the checks that ride along with a scenario.
const (
	ProbeDuplicates = "duplicate_commands"
	ProbeStream     = "snapshot_stream"
)

// Scenario is one scenario file.
type Scenario struct {
	Name        string              `json:"name"`
	Description string              `json:"description"`
	Providers   map[string]Provider `json:"providers"`
	Needs       []string            `json:"needs"`     // capabilities; nil for none
	Workspace   map[string]string   `json:"workspace"` // path to content; nil for an empty workspace
	Timeout     Duration            `json:"timeout"`   // 0 means DefaultTimeout
	Probes      []string            `json:"probes"`
	Steps       []Step              `json:"steps"`
	Assertions  []Assertion         `json:"assertions"`

	File string `json:"-"` // as messages name it
	dir  string // where the transcripts are
}

// Provider is one provider that can play a scenario.
type Provider struct {
	Transcript  string `json:"transcript"` // file name; "" means PROVIDER.ndjson
	Model       string `json:"model"`
	RuntimeMode string `json:"runtimeMode"` // "" means full-access
}

// Step is one step. Exactly one of its pointers is set.
type Step struct {
	Line int `json:"-"`

	CreateThread    *CreateThread    `json:"create_thread"`
	Message         *Message         `json:"message"`
	AwaitRun        *AwaitRun        `json:"await_run"`
	AwaitThreadIdle *AwaitThreadIdle `json:"await_thread_idle"`
	Restart         *Restart         `json:"restart"`
	AdvanceClock    *AdvanceClock    `json:"advance_clock"`
	CaptureSnapshot *CaptureSnapshot `json:"capture_snapshot"`
	Probe           *Probe           `json:"probe"`
	ReleaseGate     *ReleaseGate     `json:"release_gate"`
}

// CreateThread creates the scenario's thread.
type CreateThread struct {
	Title string `json:"title"` // "" means the scenario's name
}

// Message dispatches a user message.
type Message struct {
	Text      string   `json:"text"`
	Mode      string   `json:"mode"`       // start, queue, steer, restart; "" means start
	TargetRun int      `json:"target_run"` // ordinal; 0 means the last run
	Await     string   `json:"await"`      // run status to wait for; "" does not wait
	Timeout   Duration `json:"timeout"`    // 0 means the scenario's
}

// AwaitRun waits until a run has a status.
type AwaitRun struct {
	Ordinal int      `json:"ordinal"`
	Status  string   `json:"status"`
	Timeout Duration `json:"timeout"` // 0 means the scenario's
}

// AwaitThreadIdle waits until every run of the thread is terminal.
type AwaitThreadIdle struct {
	Timeout Duration `json:"timeout"` // 0 means the scenario's
}

// Restart tears the orchestrator down and builds it again on its database.
type Restart struct{}

// AdvanceClock moves the orchestrator's clock.
type AdvanceClock struct {
	By Duration `json:"by"`
}

// CaptureSnapshot keeps the projection of this moment for assertions.
type CaptureSnapshot struct {
	Key string `json:"key"`
}

// Probe holds assertions against the projection of this moment.
type Probe struct {
	Assertions []Assertion `json:"assertions"`
}

// ReleaseGate lets the peer go on past a held label.
type ReleaseGate struct {
	Label string `json:"label"`
}

// Assertion is what one JSON path must hold. Exactly one operator is set.
type Assertion struct {
	Line     int      `json:"-"`
	Path     string   `json:"path"`     // gjson syntax
	For      []string `json:"for"`      // providers; nil means all
	Snapshot string   `json:"snapshot"` // key of a captured snapshot; "" means the projection at hand

	Equals   json.RawMessage   `json:"equals"`
	Length   *int              `json:"length"`
	Contains json.RawMessage   `json:"contains"`
	Matches  string            `json:"matches"` // anchored at both ends
	Exists   bool              `json:"exists"`
	Absent   bool              `json:"absent"` // null counts as absent
	OneOf    []json.RawMessage `json:"one_of"`
	Ordered  []json.RawMessage `json:"ordered"` // others may stand between
}

// Duration is a time.Duration written as "10s".
type Duration time.Duration

// UnmarshalJSON reads a string in the syntax of time.ParseDuration.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	v, err := time.ParseDuration(s)
	*d = Duration(v)
	return err
}

// or returns d, or the default where d is 0.
func (d Duration) or(def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return time.Duration(d)
}

// ProviderNames lists the providers, sorted.
func (s *Scenario) ProviderNames() []string {
	var names []string
	for name := range s.Providers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// transcript returns the real path of a provider's transcript and the one
// that messages name.
func (s *Scenario) transcript(provider string) (file, shown string) {
	name := s.Providers[provider].Transcript
	if name == "" {
		name = provider + ".ndjson"
	}
	return filepath.Join(s.dir, name), path.Join(path.Dir(filepath.ToSlash(s.File)), name)
}

// gates lists the labels that steps release; the peer holds them.
func (s *Scenario) gates() []string {
	var labels []string
	for _, step := range s.Steps {
		if step.ReleaseGate != nil {
			labels = append(labels, step.ReleaseGate.Label)
		}
	}
	return labels
}

// shortestWait returns the shortest deadline of all steps.
func (s *Scenario) shortestWait() time.Duration {
	least := s.Timeout.or(DefaultTimeout)
	for _, step := range s.Steps {
		for _, d := range []Duration{
			step.Message.timeout(), step.AwaitRun.timeout(), step.AwaitThreadIdle.timeout(),
		} {
			least = min(least, d.or(least))
		}
	}
	return least
}

func (m *Message) timeout() Duration {
	if m == nil {
		return 0
	}
	return m.Timeout
}

func (a *AwaitRun) timeout() Duration {
	if a == nil {
		return 0
	}
	return a.Timeout
}

func (a *AwaitThreadIdle) timeout() Duration {
	if a == nil {
		return 0
	}
	return a.Timeout
}
