package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Status is the verdict on one scenario and provider.
type Status string

// Only Passed is good. NotReached means that something stood in the way of
// the first step: a missing binary, an unreadable transcript.
const (
	Passed     Status = "passed"
	Failed     Status = "failed"
	NotReached Status = "not_reached"
	Skipped    Status = "skipped"
)

// Layer is where a scenario went wrong.
type Layer string

// The layers, outermost first.
const (
	Setup       Layer = "setup"       // files, git, binaries, building the orchestrator
	Transport   Layer = "transport"   // what went over the provider's wire; the peer's report says it
	Adapter     Layer = "adapter"     // the provider did not bring a run where it should be
	Persistence Layer = "persistence" // store, sequences, duplicate commands, snapshots and streams
	Projection  Layer = "projection"  // an assertion
	Cleanup     Layer = "cleanup"     // a process or an effect that outlived the run
)

// Result is the outcome of one scenario and provider.
type Result struct {
	Scenario   string          `json:"scenario"`
	Provider   string          `json:"provider"`
	Without    string          `json:"without,omitempty"` // capability whose lack decided what was played; "" for none
	Status     Status          `json:"status"`
	Layer      Layer           `json:"layer,omitempty"`  // "" when passed or skipped
	Reason     string          `json:"reason,omitempty"` // "" when passed; may have several lines
	Frames     Frames          `json:"frames"`
	Events     int             `json:"events"`
	DurationMs int64           `json:"durationMs"`
	Transcript string          `json:"transcript,omitempty"` // "" for a live provider
	Report     json.RawMessage `json:"report,omitempty"`     // the peer's; nil when there is none
}

// Frames counts what went over the wire.
type Frames struct {
	Outbound int `json:"outbound"` // frames of the orchestrator that matched
	Inbound  int `json:"inbound"`  // frames the peer sent
}

// failure is an error with the layer it belongs to.
type failure struct {
	layer Layer
	err   error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func in(layer Layer, err error) error {
	if err == nil {
		return nil
	}
	return &failure{layer, err}
}

func inf(layer Layer, format string, args ...any) error {
	return &failure{layer, fmt.Errorf(format, args...)}
}

// skip is why a scenario was not played, which is nobody's fault.
type skip struct{ reason string }

func (s *skip) Error() string { return s.reason }

// judge settles status, layer and reason. started tells whether the first
// step was reached: what fails before is not a verdict on the orchestrator.
func (r *Result) judge(err error, started bool) {
	var skipped *skip
	var failed *failure
	switch {
	case err == nil:
		r.Status = Passed
		return
	case errors.As(err, &skipped):
		r.Status = Skipped
	case !started:
		r.Status, r.Layer = NotReached, Setup
	default:
		r.Status = Failed
	}
	if errors.As(err, &failed) && r.Status != Skipped {
		r.Layer = failed.layer
	}
	r.Reason = err.Error()
}

// Totals counts results by status.
type Totals struct {
	Passed     int `json:"passed"`
	Failed     int `json:"failed"`
	NotReached int `json:"not_reached"`
	Skipped    int `json:"skipped"`
}

// Count adds up results.
func Count(results []*Result) Totals {
	var t Totals
	for _, r := range results {
		switch r.Status {
		case Passed:
			t.Passed++
		case Skipped:
			t.Skipped++
		case NotReached:
			t.NotReached++
		default:
			t.Failed++
		}
	}
	return t
}

// Good tells whether something passed and nothing failed or was not reached.
func (t Totals) Good() bool { return t.Passed > 0 && t.Failed == 0 && t.NotReached == 0 }

func since(start time.Time) int64 { return time.Since(start).Milliseconds() }
