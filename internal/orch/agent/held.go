package agent

import "github.com/replaypeer/replaypeer/internal/orch"

// held keeps the events of a thread that nothing has named yet: a child may
// speak before what spawned it does.
type held struct {
	named  bool                 // ours, or a child that an item named
	events []orch.ProviderEvent // while not named
}

// emit passes an event on, or holds it.
func (h *held) emit(push func(orch.ProviderEvent), e orch.ProviderEvent) {
	if h.named {
		push(e)
		return
	}
	h.events = append(h.events, e)
}

// name lets the thread's events through, those held first.
func (h *held) name(push func(orch.ProviderEvent)) {
	h.named = true
	for _, e := range h.events {
		push(e)
	}
	h.events = nil
}
