package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

// Verdict is how a replay stands.
type Verdict string

// Only Passed is good: Running counts as failed, so a killed peer can't look
// green.
const (
	Running    Verdict = "running"
	Passed     Verdict = "passed"
	Mismatch   Verdict = "mismatch"   // an outbound frame is not the expected one, or not legal
	Leftover   Verdict = "leftover"   // the client closed before everything was played
	Unexpected Verdict = "unexpected" // a frame or launch after the end
	Timeout    Verdict = "timeout"    // nothing came within the idle timeout
	Invalid    Verdict = "invalid"    // the transcript or the state cannot be played
	Aborted    Verdict = "aborted"    // the client stopped reading, died, or ended the peer too early
)

// Report is the receipt of a replay: written when it starts and replaced when
// its verdict is known.
type Report struct {
	Version    int           `json:"version"` // 1
	Verdict    Verdict       `json:"verdict"`
	Transcript TranscriptRef `json:"transcript"`
	Entries    EntryCount    `json:"entries"`
	Outbound   OutboundCount `json:"outbound"`
	Inbound    InboundCount  `json:"inbound"`
	Launches   int           `json:"launches"`
	Failure    *Failure      `json:"failure,omitempty"`
	Warnings   []string      `json:"warnings,omitempty"`
	ExitCode   int           `json:"exitCode"`
}

// TranscriptRef names what was played.
type TranscriptRef struct {
	Path     string `json:"path"`
	SHA256   string `json:"sha256"`
	Provider string `json:"provider"`
	Protocol string `json:"protocol"`
	Scenario string `json:"scenario"`
}

// EntryCount counts entries over all launches. Skipped ones are optional
// frames, and their answers, that the client left out.
type EntryCount struct {
	Total   int `json:"total"`
	Played  int `json:"played"`
	Skipped int `json:"skipped,omitempty"`
}

// OutboundCount counts expectations. Repeated are further requests answered
// from a repeat entry.
type OutboundCount struct {
	Expected int `json:"expected"`
	Matched  int `json:"matched"`
	Repeated int `json:"repeated,omitempty"`
}

// InboundCount counts frames sent to the client.
type InboundCount struct {
	Emitted int `json:"emitted"`
}

// Failure says what went wrong first.
type Failure struct {
	// Reason is a word for machines: "frame", "illegal_frame", "answer",
	// "ahead", "end_of_input", "after_end", "idle", "output_closed",
	// "parent_gone", "terminated", "transcript", "state", "launch".
	Reason  string `json:"reason"`
	Message string `json:"message"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Label   string `json:"label,omitempty"`
	// Actual is the client's frame, whole.
	Actual      json.RawMessage `json:"actual,omitempty"`
	Differences []Difference    `json:"differences,omitempty"`
	Nearest     *Nearest        `json:"nearest,omitempty"`
	// DuplicateOf is an expectation that the same frame has met already.
	DuplicateOf *Place  `json:"duplicateOf,omitempty"`
	Previous    *Place  `json:"previous,omitempty"` // the entry played last
	Awaiting    Awaited `json:"awaiting,omitempty"`
	// Queued are frames that came early and were not compared.
	Queued        []json.RawMessage `json:"queued,omitempty"`
	Leftover      []Place           `json:"leftover,omitempty"`
	LeftoverCount int               `json:"leftoverCount,omitempty"`
}

// Place is one entry of the transcript.
type Place struct {
	Line  int    `json:"line"`
	Label string `json:"label,omitempty"`
	Type  string `json:"type,omitempty"` // expect_outbound, emit_inbound, runtime_exit
}

// Awaited is what must come next: one entry, or several that may come in any
// order. As JSON it is one object, a Place whose "also" lists the others.
type Awaited []Place

type awaited struct {
	Place
	Also []Place `json:"also,omitempty"`
}

// MarshalJSON writes the object; null when nothing is awaited.
func (a Awaited) MarshalJSON() ([]byte, error) {
	if len(a) == 0 {
		return []byte("null"), nil
	}
	return json.Marshal(awaited{a[0], a[1:]})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (a *Awaited) UnmarshalJSON(b []byte) error {
	var w *awaited
	if err := json.Unmarshal(b, &w); err != nil || w == nil {
		return err
	}
	*a = append(Awaited{w.Place}, w.Also...)
	return nil
}

// Nearest is a later expectation that fits the frame better.
type Nearest struct {
	Place
	Differences []Difference `json:"differences,omitempty"`
}

// Encode returns the report as one JSON line.
func (r *Report) Encode() []byte {
	b, err := encodeLine(r)
	if err != nil {
		// unreachable unless a raw frame is not JSON; the verdict must still be told
		bare := *r
		bare.Failure = &Failure{Reason: "report", Message: err.Error()}
		b, _ = encodeLine(&bare)
	}
	return b
}

// encodeLine is json.Marshal that leaves <any> and its like readable, and LF.
func encodeLine(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// ReadReport reads a report file.
func ReadReport(path string) (*Report, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	var r Report
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("read report %s: %v", path, err)
	}
	if r.Version != 1 || r.Verdict == "" {
		return nil, fmt.Errorf("read report %s: not a replay report of version 1", path)
	}
	return &r, nil
}
