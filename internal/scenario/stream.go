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

// waitForPoints takes a snapshot as soon as the feed has come to each of the
// points that are left. The goroutine owns r.streams' tail and r.points until
// pointed has returned.
func (r *runner) waitForPoints(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	taken := make(chan []*stream, 1)
	points := r.points
	go func() {
		var streams []*stream
		for _, point := range points {
			s, err := pointStream(ctx, r.orc, r.feed, point)
			if err != nil {
				break // endPoints tries it again
			}
			streams = append(streams, s)
		}
		taken <- streams
	}()
	r.pointed = func() {
		cancel()
		streams := <-taken
		r.streams, r.points = append(r.streams, streams...), points[len(streams):]
	}
}

// pointStream waits for a sequence and follows the stream after a snapshot of
// the first thread, which is the scenario's.
func pointStream(ctx context.Context, orc *orch.Orchestrator, f *feed, point int64) (*stream, error) {
	if err := f.reached(ctx, point); err != nil {
		return nil, err
	}
	f.mu.Lock()
	thread := f.order[0]
	f.mu.Unlock()
	p, sequence, err := orc.Snapshot(ctx, thread)
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	return &stream{
		sequence: sequence, snapshot: p,
		feed: follow(context.WithoutCancel(ctx), orc, []orch.StoredEvent{{Sequence: sequence}}),
	}, nil
}

// endPoints takes the snapshots of all points that are stored, at the latest
// now.
func (r *runner) endPoints(ctx context.Context, stored []orch.StoredEvent) error {
	r.pointed()
	for len(r.points) > 0 && r.points[0] <= int64(len(stored)) {
		s, err := pointStream(ctx, r.orc, r.feed, r.points[0])
		if err != nil {
			return fmt.Errorf("at sequence %d: %w", r.points[0], err)
		}
		r.streams, r.points = append(r.streams, s), r.points[1:]
	}
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
	if len(r.points) > 0 {
		return fmt.Errorf("no event %d: no snapshot was taken there", r.points[0])
	}
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
