package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// most is how many rows of a kind are handed over at once, block how many rows
// are read at once.
const most, block = 512, 128

// Thread implements orch.Store.
func (s *Store) Thread(ctx context.Context, threadID string, take func(orch.Kind, []string)) (orch.StoredThread, error) {
	var t orch.StoredThread
	err := s.read(ctx, func(tx *connection) error {
		var err error
		if t.Sequence, err = highWater(ctx, tx); err != nil {
			return err
		}
		stream, err := readStream(ctx, tx, threadID)
		if err != nil || stream.version == 0 {
			return err
		}
		t.Version, t.UpdatedAt = stream.version, stream.updatedAt
		return readRows(ctx, tx, stream, take)
	})
	return t, err
}

// readRows hands over a stream's rows. A block of them is read as two values,
// the sizes and kinds of all and their payloads, since a step from SQLite to Go
// costs more than reading a row does. What the inner query yields in order is
// joined in that order.
func readRows(ctx context.Context, tx *connection, s stream, take func(orch.Kind, []string)) error {
	parts := map[orch.Kind][]string{}
	from, to := stream{number: s.number}.position(0), s.position(0)
	for n := block; n == block; from++ {
		var heads, text string
		err := tx.QueryRowContext(ctx, `SELECT count(*), coalesce(max(position), 0),
			  coalesce(group_concat(octet_length(payload_json) || ' ' || kind, ' '), ''), coalesce(group_concat(payload_json, ''), '')
			FROM (SELECT position, kind, payload_json FROM orchestration_v2_projection
			  WHERE position >= ? AND position < ? ORDER BY position LIMIT `+strconv.Itoa(block)+")", from, to).Scan(&n, &from, &heads, &text)
		if err != nil {
			return fmt.Errorf("read rows: %w", err)
		}
		for range n {
			var size, kind string
			size, heads, _ = strings.Cut(heads, " ")
			kind, heads, _ = strings.Cut(heads, " ")
			bytes, err := strconv.Atoi(size)
			if err != nil || bytes < 0 || bytes > len(text) {
				return fmt.Errorf("read rows: a row of %q bytes in a block that has %d left", size, len(text))
			}
			part := append(parts[orch.Kind(kind)], text[:bytes])
			if text = text[bytes:]; len(part) == most {
				take(orch.Kind(kind), part)
				part = make([]string, 0, most)
			}
			parts[orch.Kind(kind)] = part
		}
	}
	for kind, part := range parts {
		if len(part) > 0 {
			take(kind, part)
		}
	}
	return nil
}

// Shell implements orch.Store.
func (s *Store) Shell(ctx context.Context) (orch.ShellRows, error) {
	var shell orch.ShellRows
	err := s.read(ctx, func(tx *connection) error {
		var err error
		if shell.Sequence, err = highWater(ctx, tx); err != nil {
			return err
		}
		return rows(ctx, tx, func(r *sql.Rows) error {
			var row orch.ShellRow
			err := r.Scan(&row.Payload, &row.RunCount, &row.RunID, &row.RunStatus)
			shell.Threads = append(shell.Threads, row)
			return err
		}, `SELECT t.payload_json, (SELECT count(*) `+runs+`), coalesce(r.id, ''), coalesce(r.status, '')
			FROM orchestration_v2_projection t
			LEFT JOIN orchestration_v2_projection r ON r.kind = 'run' AND r.thread_id = t.id AND r.ordinal = coalesce(
			  (SELECT min(ordinal) `+runs+` AND status IN (`+live+`)), (SELECT max(ordinal) `+runs+`))
			WHERE t.kind = 'thread' ORDER BY t.position`)
	})
	return shell, err
}

// runs are those of thread t.
const runs = "FROM orchestration_v2_projection WHERE kind = 'run' AND thread_id = t.id"

// live are the statuses of a run that is not over.
const live = "'preparing', 'queued', 'starting', 'running', 'waiting'"

// Events implements orch.Store.
func (s *Store) Events(ctx context.Context, after int64, limit int) ([]orch.StoredEvent, error) {
	var events []orch.StoredEvent
	err := s.look(ctx, func(tx *connection) error {
		var err error
		events, err = selectEvents(ctx, tx, "WHERE sequence > ? ORDER BY sequence LIMIT ?", after, limit)
		return err
	})
	return events, err
}

func selectEvents(ctx context.Context, tx *connection, where string, args ...any) ([]orch.StoredEvent, error) {
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
		parts = append(parts, "SELECT thread_id FROM orchestration_v2_projection WHERE kind = '"+string(kind)+"' AND status IN ("+statuses+")")
	}
	var threads []string
	err := s.look(ctx, func(tx *connection) error {
		return rows(ctx, tx, func(r *sql.Rows) error {
			var id string
			err := r.Scan(&id)
			threads = append(threads, id)
			return err
		}, strings.Join(parts, " UNION ")+" ORDER BY 1")
	})
	return threads, err
}

func highWater(ctx context.Context, tx *connection) (int64, error) {
	var sequence int64
	err := tx.QueryRowContext(ctx, "SELECT coalesce(max(sequence), 0) FROM orchestration_events").Scan(&sequence)
	return sequence, err
}
