package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// stream is where a thread's events stand.
type stream struct {
	number    int64 // counts streams, from 1; 0: there is none
	version   int64
	updatedAt time.Time // when the last event occurred; only readStream tells
}

// position is that of the nth projection row of a batch that builds on this
// version. Rows of a stream follow each other in the order in which they came:
// an event brings at most two, its entity and the thread.
func (s stream) position(n int64) int64 { return s.number<<32 | (2*s.version + n) }

func readStream(ctx context.Context, tx *connection, threadID string) (stream, error) {
	var s stream
	var at string
	err := tx.QueryRowContext(ctx, `SELECT number, stream_version, occurred_at
		FROM orchestration_streams JOIN orchestration_events USING (stream_id)
		WHERE stream_id = ? ORDER BY stream_version DESC LIMIT 1`, threadID).Scan(&s.number, &s.version, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return s, nil
	}
	if err == nil {
		s.updatedAt, err = unstamp(at)
	}
	if err != nil {
		return s, fmt.Errorf("read stream %s: %w", threadID, err)
	}
	return s, nil
}

// streams remembers where the streams stand that this process wrote to, so
// that a commit need not look. What another process writes meanwhile is seen
// when a version of the stream is stored twice.
type streams struct {
	mu    sync.Mutex
	known map[string]stream
}

func (s *streams) remember(written map[string]stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(s.known, written)
}

// at is the stream that a batch builds on, a new one if need be.
func (s *streams) at(ctx context.Context, tx *connection, head orch.ThreadHead) (stream, error) {
	s.mu.Lock()
	found := s.known[head.ThreadID]
	s.mu.Unlock()
	if found.number > 0 && found.version == head.Version {
		return found, nil
	}
	found, err := readStream(ctx, tx, head.ThreadID)
	if err != nil {
		return found, err
	}
	if found.version != head.Version {
		return found, conflict(head.ThreadID, found.version, head.Version)
	}
	if found.number == 0 {
		done, err := tx.ExecContext(ctx, "INSERT INTO orchestration_streams (stream_id) VALUES (?)", head.ThreadID)
		if err != nil {
			return found, fmt.Errorf("insert stream: %w", err)
		}
		if found.number, err = done.LastInsertId(); err != nil {
			return found, fmt.Errorf("insert stream: %w", err)
		}
	}
	return found, nil
}

// raced is why events could not be stored: err, or a conflict with another
// process that has stored the same versions. streams are as they would be.
func raced(ctx context.Context, tx *connection, events []orch.Event, streams map[string]stream, err error) error {
	for _, e := range events {
		s := streams[e.ThreadID]
		s.version--
		streams[e.ThreadID] = s
	}
	for id, planned := range streams {
		if found, readErr := readStream(ctx, tx, id); readErr == nil && found.version > planned.version {
			return conflict(id, found.version, planned.version)
		}
	}
	return err
}

func conflict(threadID string, version, planned int64) error {
	return fmt.Errorf("%w: %s is at %d, planned at %d", orch.ErrConflict, threadID, version, planned)
}
