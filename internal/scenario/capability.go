package scenario

import (
	"encoding/json"
	"slices"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// capabilitySet returns a provider's capabilities by the names they have in
// its session.
func capabilitySet(c orch.Capabilities) map[string]bool {
	set := map[string]bool{}
	data, err := json.Marshal(c)
	if err == nil {
		err = json.Unmarshal(data, &set)
	}
	if err != nil {
		return nil // unreachable unless a capability is something else than a flag
	}
	return set
}

func capabilityNames() []string {
	var names []string
	for name := range capabilitySet(orch.Capabilities{}) {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// lacking lists what is needed and not there.
func lacking(c orch.Capabilities, needs []string) []string {
	has := capabilitySet(c)
	return slices.DeleteFunc(slices.Clone(needs), func(need string) bool { return has[need] })
}
