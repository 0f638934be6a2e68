package record

import (
	"encoding/json"
	"maps"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// vendorTextMin is how long a string at one of a flavor's VendorText places
// is, in bytes, to be replaced. Shorter ones are names more than prose.
const vendorTextMin = 120

const vendorText = `"<vendor-prose>"`

// trim puts a placeholder for the provider's own prose.
func (t *translator) trim(f flavors.Frame) json.RawMessage {
	var out json.RawMessage
	kept := 0 // the frame up to here is in out
	for _, s := range flavors.Spans(t.flavor.VendorText, envelope.In, f) {
		if s[1]-s[0] < vendorTextMin || f.Raw[s[0]] != '"' {
			continue
		}
		out = append(append(out, f.Raw[kept:s[0]]...), vendorText...)
		kept = s[1]
		t.trimmed++
	}
	if kept == 0 {
		return f.Raw
	}
	return append(out, f.Raw[kept:]...)
}

// withTrimmed adds what was trimmed to the counts of what was replaced.
func (t *translator) withTrimmed(counts map[string]int) map[string]int {
	if t.trimmed == 0 {
		return counts
	}
	counts = maps.Clone(counts)
	counts["vendorProse"] += t.trimmed
	return counts
}
