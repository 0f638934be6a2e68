package redact

import (
	"encoding/json"
	"errors"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// Redaction returns the value of metadata.redaction: the rule set, and the
// counts added to those of the value that stands there, nil for none.
func Redaction(old json.RawMessage, counts map[string]int) (json.RawMessage, error) {
	v := struct {
		RuleSet string         `json:"ruleSet"`
		Counts  map[string]int `json:"counts"`
	}{}
	if json.Unmarshal(old, &v) != nil || v.Counts == nil { // of another tool: nothing to add to
		v.Counts = map[string]int{}
	}
	v.RuleSet = RuleSet
	for rule, n := range counts {
		v.Counts[rule] += n
	}
	return json.Marshal(v)
}

// withRedaction returns a header's metadata, nil for none, with its redaction
// member brought up to date. All other bytes stay.
func withRedaction(raw json.RawMessage, counts map[string]int) (json.RawMessage, error) {
	if raw == nil {
		raw = json.RawMessage("{}")
	}
	if raw[0] != '{' {
		return nil, errors.New("metadata is not an object")
	}
	var old json.RawMessage
	empty := true
	at := len(raw) - 1 // where the member's value goes
	err := envelope.EachMember(raw, func(key, value []byte) error {
		empty = false
		if envelope.Unquote(key) == "redaction" {
			old = value
			at = cap(raw) - cap(value) // value is a slice of raw
		}
		return nil
	})
	if err != nil {
		return nil, err // unreachable: the function returns none
	}
	value, err := Redaction(old, counts)
	if err != nil {
		return nil, err // unreachable: strings and numbers
	}
	out := append([]byte{}, raw[:at]...)
	if old == nil {
		if !empty {
			out = append(out, ',')
		}
		out = append(out, `"redaction":`...)
	}
	return append(append(out, value...), raw[at+len(old):]...), nil
}
