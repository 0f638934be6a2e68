package scenario

import (
	"context"
	"fmt"

	"github.com/replaypeer/replaypeer/internal/peer"
)

// releaseGate waits until the peer of an instance stands at a held label and
// lets it go on. The provider must be running: an await_run before it sees to
// that. A live provider has no gates.
func (r *runner) releaseGate(ctx context.Context, g *ReleaseGate) error {
	if r.cfg.Live != nil {
		return nil
	}
	ctx, cancel := r.deadline(ctx, 0)
	defer cancel()
	for _, in := range r.instances {
		if in.name != orElse(g.Provider, r.provider) {
			continue
		}
		for _, command := range []string{"wait " + g.Label, "release " + g.Label} {
			if _, err := peer.Command(ctx, in.control, command); err != nil {
				if cause := context.Cause(ctx); cause != nil {
					err = fmt.Errorf("%v (%w)", err, cause)
				}
				return inf(Transport, "gate %q: %w\n%s", g.Label, err, lastEvents(r.feed.all(), 6))
			}
		}
		return nil
	}
	return inf(Setup, "gate %q: the scenario has no provider %q", g.Label, g.Provider)
}
