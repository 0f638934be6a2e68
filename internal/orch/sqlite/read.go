package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// ordered is an entity with its place among those of its kind.
type ordered struct {
	first   int64
	payload []byte
}

// Thread implements orch.Store.
func (s *Store) Thread(ctx context.Context, threadID string) (orch.ThreadRows, error) {
	var t orch.ThreadRows
	err := s.read(ctx, func(tx *transaction) error {
		var err error
		if t.Sequence, err = highWater(ctx, tx); err != nil {
			return err
		}
		var at string
		err = tx.QueryRowContext(ctx, "SELECT stream_version, updated_at FROM orchestration_streams WHERE stream_id = ?", threadID).
			Scan(&t.Version, &at)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if t.UpdatedAt, err = unstamp(at); err != nil {
			return err
		}
		for _, kind := range orch.Kinds {
			var found []ordered
			err := rows(ctx, tx, func(r *sql.Rows) error {
				var row ordered
				err := r.Scan(&row.first, &row.payload)
				found = append(found, row)
				return err
			}, "SELECT first_sequence, payload_json FROM "+table(kind)+" WHERE thread_id = ?", threadID)
			if err != nil {
				return err
			}
			slices.SortFunc(found, func(a, b ordered) int { return cmp.Compare(a.first, b.first) })
			t.Rows = slices.Grow(t.Rows, len(found))
			for _, row := range found {
				t.Rows = append(t.Rows, orch.Row{Kind: kind, Payload: row.payload})
			}
		}
		return nil
	})
	return t, err
}

// Shell implements orch.Store.
func (s *Store) Shell(ctx context.Context) (orch.ShellRows, error) {
	var shell orch.ShellRows
	err := s.read(ctx, func(tx *transaction) error {
		var err error
		if shell.Sequence, err = highWater(ctx, tx); err != nil {
			return err
		}
		runs := table(orch.KindRun)
		return rows(ctx, tx, func(r *sql.Rows) error {
			var row orch.ShellRow
			err := r.Scan(&row.Payload, &row.RunCount, &row.RunID, &row.RunStatus)
			shell.Threads = append(shell.Threads, row)
			return err
		}, `SELECT t.payload_json, (SELECT count(*) FROM `+runs+` WHERE thread_id = t.id), coalesce(r.id, ''), coalesce(r.status, '')
			FROM `+table(orch.KindThread)+` t LEFT JOIN `+runs+` r ON r.thread_id = t.id AND r.ordinal = coalesce(
			  (SELECT min(ordinal) FROM `+runs+` WHERE thread_id = t.id AND status IN (`+live+`)),
			  (SELECT max(ordinal) FROM `+runs+` WHERE thread_id = t.id))
			ORDER BY t.first_sequence`)
	})
	return shell, err
}

// live are the statuses of a run that is not over.
const live = "'preparing', 'queued', 'starting', 'running', 'waiting'"

// Events implements orch.Store.
func (s *Store) Events(ctx context.Context, after int64, limit int) ([]orch.StoredEvent, error) {
	var events []orch.StoredEvent
	err := s.read(ctx, func(tx *transaction) error {
		var err error
		events, err = selectEvents(ctx, tx, "WHERE sequence > ? ORDER BY sequence LIMIT ?", after, limit)
		return err
	})
	return events, err
}

func selectEvents(ctx context.Context, tx *transaction, where string, args ...any) ([]orch.StoredEvent, error) {
	var events []orch.StoredEvent
	err := rows(ctx, tx, func(r *sql.Rows) error {
		var e orch.StoredEvent
		var at string
		var command sql.NullString
		var meta, payload []byte
		err := r.Scan(&e.Sequence, &e.Event.ID, &e.Event.ThreadID, &e.Event.Type, &at, &command, &payload, &meta)
		if err != nil {
			return err
		}
		var m metadata
		if err := json.Unmarshal(meta, &m); err != nil {
			return fmt.Errorf("event %d: %w", e.Sequence, err)
		}
		e.CommandID, e.Event.Payload = command.String, payload
		e.Event.RunID, e.Event.NodeID = m.RunID, m.NodeID
		e.Event.Driver, e.Event.ProviderInstanceID = m.Driver, m.ProviderInstanceID
		if e.Event.OccurredAt, err = unstamp(at); err != nil {
			return fmt.Errorf("event %d: %w", e.Sequence, err)
		}
		events = append(events, e)
		return nil
	}, `SELECT sequence, event_id, stream_id, event_type, occurred_at, command_id, payload_json, metadata_json
		FROM orchestration_events `+where, args...)
	return events, err
}

// Unsettled implements orch.Store.
func (s *Store) Unsettled(ctx context.Context) ([]string, error) {
	var parts []string
	for kind, statuses := range map[orch.Kind]string{
		orch.KindRun:             live,
		orch.KindRuntimeRequest:  "'pending'",
		orch.KindProviderSession: "'starting', 'ready', 'running', 'waiting'",
	} {
		parts = append(parts, "SELECT thread_id FROM "+table(kind)+" WHERE status IN ("+statuses+")")
	}
	var threads []string
	err := s.read(ctx, func(tx *transaction) error {
		return rows(ctx, tx, func(r *sql.Rows) error {
			var id string
			err := r.Scan(&id)
			threads = append(threads, id)
			return err
		}, strings.Join(parts, " UNION ")+" ORDER BY 1")
	})
	return threads, err
}

func highWater(ctx context.Context, tx *transaction) (int64, error) {
	var sequence int64
	err := tx.QueryRowContext(ctx, "SELECT coalesce(max(sequence), 0) FROM orchestration_events").Scan(&sequence)
	return sequence, err
}
