package scenario

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/replaypeer/replaypeer/internal/orch"
	"github.com/replaypeer/replaypeer/internal/orch/agent"
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

// vary makes the scenario the one that its provider can play: itself, or what
// it has for a provider that lacks something.
func (r *runner) vary() error {
	a, err := agent.New(r.instances[0].provider, nil, nil)
	if err != nil {
		return err
	}
	missing := lacking(a.Capabilities(), r.sc.Needs)
	for _, capability := range missing {
		if v, ok := r.sc.Without[capability]; ok {
			varied := *r.sc
			varied.Steps, varied.Assertions = v.Steps, v.Assertions
			r.sc, r.without = &varied, capability
			return nil
		}
	}
	if len(missing) > 0 {
		return &skip{fmt.Sprintf("%s lacks the capability %s", r.provider, strings.Join(missing, ", "))}
	}
	return nil
}

// lacking lists what is needed and not there.
func lacking(c orch.Capabilities, needs []string) []string {
	has := capabilitySet(c)
	return slices.DeleteFunc(slices.Clone(needs), func(need string) bool { return has[need] })
}
