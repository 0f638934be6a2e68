package replay

import (
	"encoding/json"
	"fmt"
	"maps"
)

// State is where a transcript of several launches stands: what a launch
// leaves for the next one. The zero value is the start.
type State struct {
	Version    int    `json:"version"`    // 1
	Transcript string `json:"transcript"` // its SHA-256
	Cursor     int    `json:"cursor"`     // the entry that comes next
	Launches   int    `json:"launches"`
	// Ended is false while a launch plays its segment; true when it has
	// reached its runtime_exit.
	Ended   bool    `json:"ended"`
	Verdict Verdict `json:"verdict"`

	Played   int `json:"played"`
	Skipped  int `json:"skipped,omitempty"`
	Matched  int `json:"matched"`
	Repeated int `json:"repeated,omitempty"`
	Emitted  int `json:"emitted"`

	Names    map[string]json.RawMessage `json:"names,omitempty"`    // <bind:NAME> values
	Literals map[string]string          `json:"literals,omitempty"` // client-chosen values, recorded to actual
}

// ReadState decodes a state file's content; empty content is the zero State.
func ReadState(b []byte) (State, error) {
	var st State
	if len(b) == 0 {
		return st, nil
	}
	if err := json.Unmarshal(b, &st); err != nil {
		return State{}, fmt.Errorf("state file is not readable: %v", err)
	}
	if st.Version != 1 || st.Cursor < 0 {
		return State{}, fmt.Errorf("state file has version %d: want 1", st.Version)
	}
	return st, nil
}

// Encode returns the state as one JSON line.
func (st State) Encode() []byte {
	b, err := encodeLine(st)
	if err != nil {
		b = []byte("{}\n") // unreachable unless a bound value is not JSON
	}
	return b
}

// Claim says whether one more launch of the script may start from the state;
// the error tells why not. A refused launch fails the whole run.
func (st State) Claim(s *Script) error {
	switch {
	case st.Version == 0:
		return nil
	case st.Transcript != s.SHA256:
		return fmt.Errorf("the state belongs to another transcript, or %s has changed since: remove the state file to start anew", s.Path)
	case st.Verdict != Running && st.Verdict != Passed:
		return fmt.Errorf("launch %d of this run failed (%s): nothing is played after a failure", st.Launches, st.Verdict)
	case !st.Ended:
		return fmt.Errorf("launch %d was ended before it reached its runtime_exit: its segment can't be claimed twice", st.Launches)
	case st.Cursor >= s.Total:
		return fmt.Errorf("launch %d played the last entry: the recording has no launch %d", st.Launches, st.Launches+1)
	}
	return nil
}

func (st State) bindings(workspace string) *bindings {
	b := &bindings{names: map[string]json.RawMessage{}, literals: map[string]string{}, workspace: workspace}
	maps.Copy(b.names, st.Names)
	maps.Copy(b.literals, st.Literals)
	return b
}
