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
	Without     map[string]Variant  `json:"without"` // by capability of Needs; nil for none

	File string `json:"-"` // as messages name it
	dir  string // where the transcripts are
}

// Variant is what a provider plays that lacks a capability.
type Variant struct {
	Steps      []Step      `json:"steps"`
	Assertions []Assertion `json:"assertions"`
}

// Provider is one provider that can play a scenario.
type Provider struct {
	Transcript string `json:"transcript"` // file name; "" means PROVIDER.ndjson
	// Retarget is the provider whose transcript is played as this one's, which
	// its protocol must allow; "" means the provider's own. Transcript is then
	// that one's by default.
	Retarget    string `json:"retarget"`
	Model       string `json:"model"`
	RuntimeMode string `json:"runtimeMode"` // "" means full-access
	// Mode is the thread's interaction mode: default or plan; "" means default.
	Mode string `json:"interactionMode"`
	// Instances are other provider instances that steps send messages to, each
	// with a peer of its own; nil for none.
	Instances map[string]Instance `json:"instances"`
}

// Instance is another provider instance of a scenario.
type Instance struct {
	Provider   string `json:"provider"`
	Transcript string `json:"transcript"` // file name; "" means INSTANCE.ndjson
	Model      string `json:"model"`
}

// Step is one step. Exactly one of its pointers is set.
type Step struct {
	Line int      `json:"-"`
	For  []string `json:"for"` // providers it is played with; nil means all

	CreateThread    *CreateThread    `json:"create_thread"`
	Message         *Message         `json:"message"`
	AwaitRun        *AwaitRun        `json:"await_run"`
	AwaitThreadIdle *AwaitThreadIdle `json:"await_thread_idle"`
	AwaitItem       *AwaitItem       `json:"await_item"`
	AwaitRequest    *AwaitRequest    `json:"await_request"`
	AwaitSession    *AwaitSession    `json:"await_session"`
	Interrupt       *Interrupt       `json:"interrupt"`
	Respond         *Respond         `json:"respond"`
	CancelQueuedRun *CancelQueuedRun `json:"cancel_queued_run"`
	ReorderQueued   *ReorderQueued   `json:"reorder_queued_run"`
	EditQueued      *EditQueued      `json:"edit_queued_run"`
	Promote         *Promote         `json:"promote"`
	Rollback        *Rollback        `json:"rollback"`
	SwitchProvider  *SwitchProvider  `json:"switch_provider"`
	Fork            *Fork            `json:"fork"`
	MergeBack       *MergeBack       `json:"merge_back"`
	Detach          *Detach          `json:"detach"`
	Restart         *Restart         `json:"restart"`
	AdvanceClock    *AdvanceClock    `json:"advance_clock"`
	CaptureSnapshot *CaptureSnapshot `json:"capture_snapshot"`
	Probe           *Probe           `json:"probe"`
	ReleaseGate     *ReleaseGate     `json:"release_gate"`
	WriteFile       *WriteFile       `json:"write_file"`
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
	Provider  string   `json:"provider"`   // instance that answers; "" means the thread's
	Thread    string   `json:"thread"`     // see runner.threadNamed; "" means the scenario's
	Refused   string   `json:"refused"`    // code of the refusal that is wanted; "" means none
	Timeout   Duration `json:"timeout"`    // 0 means the scenario's
}

// AwaitRun waits until a run has a status.
type AwaitRun struct {
	Ordinal int      `json:"ordinal"`
	Status  string   `json:"status"`
	Thread  string   `json:"thread"`  // "" means the scenario's
	Timeout Duration `json:"timeout"` // 0 means the scenario's
}

// AwaitThreadIdle waits until every run of the thread is terminal.
type AwaitThreadIdle struct {
	Timeout Duration `json:"timeout"` // 0 means the scenario's
}

// Restart tears the orchestrator down and builds it again on its database.
type Restart struct{}

// AdvanceClock moves the orchestrator's clock on. With a live provider it also
// goes on by itself.
type AdvanceClock struct {
	By Duration `json:"by"`
}

// CaptureSnapshot keeps the projection of this moment for assertions.
type CaptureSnapshot struct {
	Key    string `json:"key"`
	Thread string `json:"thread"` // "" means the scenario's
	Shell  bool   `json:"shell"`  // the list of threads instead
}

// Probe holds assertions against the projection of this moment.
type Probe struct {
	Assertions []Assertion `json:"assertions"`
}

// ReleaseGate lets the peer go on past a held label.
type ReleaseGate struct {
	Label    string   `json:"label"`
	Provider string   `json:"provider"` // instance; "" means the main one
	For      []string `json:"for"`      // providers the scenario is played with; nil means all
}

// concerns tells whether the step is played with a provider. A gate may say so
// itself.
func (s *Step) concerns(provider string) bool {
	among := func(providers []string) bool { return len(providers) == 0 || slices.Contains(providers, provider) }
	return among(s.For) && (s.ReleaseGate == nil || among(s.ReleaseGate.For))
}

// Assertion is what one JSON path must hold. Exactly one operator is set.
type Assertion struct {
	Line     int      `json:"-"`
	Path     string   `json:"path"`     // gjson syntax
	For      []string `json:"for"`      // providers; nil means all
	Snapshot string   `json:"snapshot"` // key of a captured snapshot; "" means the projection at hand
	Thread   string   `json:"thread"`   // whose projection; "" means the scenario's thread
	// Of is shell, report or model instead of a projection. report takes an
	// instance: report.claude. model is the list of requests that the scripted
	// model of a live run got.
	Of string `json:"of"`

	Equals   json.RawMessage   `json:"equals"`
	Length   *int              `json:"length"`
	Contains json.RawMessage   `json:"contains"`
	Matches  string            `json:"matches"` // anchored at both ends
	Exists   bool              `json:"exists"`
	Absent   bool              `json:"absent"` // null counts as absent
	OneOf    []json.RawMessage `json:"one_of"`
	Ordered  []json.RawMessage `json:"ordered"` // others may stand between
	SameAs   string            `json:"same_as"` // another path of the document
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

// shortestWait returns the shortest deadline of all steps.
func (s *Scenario) shortestWait() time.Duration {
	least := s.Timeout.or(DefaultTimeout)
	for _, step := range s.Steps {
		for _, d := range []Duration{
			step.Message.timeout(), step.AwaitRun.timeout(), step.AwaitThreadIdle.timeout(), step.AwaitItem.timeout(), step.AwaitRequest.timeout(), step.AwaitSession.timeout(),
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
