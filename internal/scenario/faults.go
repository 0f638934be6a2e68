package scenario

import "github.com/replaypeer/replaypeer/internal/orch"

// faults break what the orchestrator stands on, at its ports. It is how the
// tests see to it that a scenario can fail; nil breaks nothing.
type faults struct {
	wrapAgent       func(orch.Agent) orch.Agent
	wrapCheckpoints func(orch.Checkpoints) orch.Checkpoints
	wrapStore       func(orch.Store) orch.Store
}

func (f *faults) agent(a orch.Agent) orch.Agent {
	if f == nil || f.wrapAgent == nil {
		return a
	}
	return f.wrapAgent(a)
}

func (f *faults) checkpoints(c orch.Checkpoints) orch.Checkpoints {
	if f == nil || f.wrapCheckpoints == nil {
		return c
	}
	return f.wrapCheckpoints(c)
}

func (f *faults) store(s orch.Store) orch.Store {
	if f == nil || f.wrapStore == nil {
		return s
	}
	return f.wrapStore(s)
}
