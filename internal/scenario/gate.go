package scenario

import (
	"context"
	"fmt"

	"github.com/replaypeer/replaypeer/internal/peer"
)

// releaseGate waits until the peer stands at a held label and lets it go on.
// The provider must be running: an await_run before it sees to that.
func (r *runner) releaseGate(ctx context.Context, label string) error {
	ctx, cancel := r.deadline(ctx, 0)
	defer cancel()
	for _, command := range []string{"wait " + label, "release " + label} {
		if _, err := peer.Command(ctx, r.peerConfig().Control, command); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = fmt.Errorf("%v (%w)", err, cause)
			}
			return inf(Transport, "gate %q: %w\n%s", label, err, lastEvents(r.feed.all(), 6))
		}
	}
	return nil
}
