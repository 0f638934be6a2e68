package scenario

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// stream is a snapshot with the event stream after it.
type stream struct {
	sequence int64
	snapshot *orch.Projection
	feed     *feed
	events   []orch.StoredEvent // once ended
}

// openStream takes a snapshot and follows the stream after it.
func (r *runner) openStream(ctx context.Context) error {
	deadline, cancel := r.deadline(ctx, 0)
	defer cancel()
	p, sequence, err := r.orc.Snapshot(deadline, r.thread)
	if err != nil {
		return inf(Persistence, "snapshot: %w", err)
	}
	r.streams = append(r.streams, &stream{
		sequence: sequence,
		snapshot: p,
		feed:     follow(context.WithoutCancel(ctx), r.orc, []orch.StoredEvent{{Sequence: sequence}}),
	})
	return nil
}

// endStreams waits until every stream of this orchestrator has delivered the
// stored events and stops it.
func (r *runner) endStreams(ctx context.Context, stored []orch.StoredEvent) error {
	var last int64
	if len(stored) > 0 {
		last = stored[len(stored)-1].Sequence
	}
	for _, s := range r.streams {
		if s.feed == nil {
			continue
		}
		err := s.feed.reached(ctx, last)
		s.feed.stop()
		s.events, s.feed = s.feed.all()[1:], nil
		if err != nil {
			return fmt.Errorf("stream after snapshot %d: %w", s.sequence, err)
		}
	}
	return nil
}

// checkStreams wants each snapshot plus the stream after it to be the final
// projection.
func (r *runner) checkStreams(stored []orch.StoredEvent, final []byte) error {
	for _, s := range r.streams {
		want := s.sequence
		for _, e := range s.events {
			if want++; e.Sequence != want {
				return fmt.Errorf("stream after snapshot %d: sequence %d, wanted %d", s.sequence, e.Sequence, want)
			}
			if err := s.snapshot.Apply(e); err != nil {
				return fmt.Errorf("fold event %d on snapshot %d: %w", e.Sequence, s.sequence, err)
			}
		}
		// What a stream missed is what was stored after a restart closed it.
		for _, e := range stored {
			if e.Sequence > want {
				if err := s.snapshot.Apply(e); err != nil {
					return fmt.Errorf("fold event %d on snapshot %d: %w", e.Sequence, s.sequence, err)
				}
			}
		}
		doc, err := json.Marshal(s.snapshot)
		if err != nil {
			return err
		}
		if diff := difference(final, parsed(doc)); diff != "" {
			return fmt.Errorf("snapshot %d and the stream after it are not the final projection\n  diff (-final +folded)\n%s", s.sequence, diff)
		}
	}
	return nil
}

func parsed(doc []byte) gjson.Result { return gjson.ParseBytes(doc) }
