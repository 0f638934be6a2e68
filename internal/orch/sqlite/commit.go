package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// eventVersion is the version of the stored form of events.
const eventVersion = 2

// Commit implements orch.Store.
func (s *Store) Commit(ctx context.Context, req orch.CommitRequest, decide func() (orch.Batch, error)) (orch.CommitResult, error) {
	var result orch.CommitResult
	var rejected *orch.RejectedError
	var written map[string]stream
	err := s.write(ctx, func(tx *connection) error {
		if req.CommandID != "" {
			known, err := openReceipt(ctx, tx, req)
			if err != nil {
				return err
			}
			if known {
				result, err = duplicate(ctx, tx, req.CommandID)
				return err
			}
		}
		batch, err := decide()
		if errors.As(err, &rejected) && req.CommandID != "" {
			result.Receipt, err = closeReceipt(ctx, tx, req, 0, rejected)
			return err
		}
		if err != nil {
			return err
		}
		result.Events, written, err = s.store(ctx, tx, req, batch)
		if err != nil || req.CommandID == "" {
			return err
		}
		last := int64(0)
		if n := len(result.Events); n > 0 {
			last = result.Events[n-1].Sequence
		}
		result.Receipt, err = closeReceipt(ctx, tx, req, last, nil)
		return err
	})
	if err != nil {
		return orch.CommitResult{}, err
	}
	s.streams.remember(written)
	if rejected != nil {
		return result, rejected
	}
	return result, nil
}

// openReceipt inserts a receipt if absent; known tells that it was there.
func openReceipt(ctx context.Context, tx *connection, req orch.CommitRequest) (known bool, err error) {
	done, err := tx.ExecContext(ctx, `INSERT INTO orchestration_command_receipts
		(command_id, command_type, aggregate_kind, aggregate_id, accepted_at, result_sequence, status, code, error)
		VALUES (?, ?, 'thread', ?, ?, 0, 'accepted', '', '') ON CONFLICT DO NOTHING`,
		req.CommandID, req.CommandType, req.ThreadID, stamp(req.Now))
	if err != nil {
		return false, fmt.Errorf("insert receipt: %w", err)
	}
	inserted, err := done.RowsAffected()
	return inserted == 0, err
}

// closeReceipt writes the outcome of a command into its receipt.
func closeReceipt(ctx context.Context, tx *connection, req orch.CommitRequest, sequence int64, rejected *orch.RejectedError) (orch.Receipt, error) {
	r := orch.Receipt{
		CommandID: req.CommandID, CommandType: req.CommandType, ThreadID: req.ThreadID,
		AcceptedAt: req.Now, Sequence: sequence, Status: "accepted",
	}
	if rejected != nil {
		r.Status, r.Code, r.Error = "rejected", rejected.Code, rejected.Message
	}
	_, err := tx.ExecContext(ctx, `UPDATE orchestration_command_receipts
		SET result_sequence = ?, status = ?, code = ?, error = ? WHERE command_id = ?`,
		r.Sequence, r.Status, r.Code, r.Error, r.CommandID)
	if err != nil {
		return r, fmt.Errorf("complete receipt: %w", err)
	}
	return r, nil
}

// duplicate is what the first commit of a command stored.
func duplicate(ctx context.Context, tx *connection, commandID string) (orch.CommitResult, error) {
	r := orch.Receipt{CommandID: commandID, Duplicate: true}
	var at string
	err := tx.QueryRowContext(ctx, `SELECT command_type, aggregate_id, accepted_at, result_sequence, status, code, error
		FROM orchestration_command_receipts WHERE command_id = ?`, commandID).
		Scan(&r.CommandType, &r.ThreadID, &at, &r.Sequence, &r.Status, &r.Code, &r.Error)
	if err == nil {
		r.AcceptedAt, err = unstamp(at)
	}
	if err != nil {
		return orch.CommitResult{}, fmt.Errorf("read receipt: %w", err)
	}
	events, err := selectEvents(ctx, tx, "WHERE command_id = ? ORDER BY sequence", commandID)
	return orch.CommitResult{Receipt: r, Events: events}, err
}

// store appends a batch and projects it. It returns the streams it wrote to, as
// they are now.
func (s *Store) store(ctx context.Context, tx *connection, req orch.CommitRequest, batch orch.Batch) ([]orch.StoredEvent, map[string]stream, error) {
	if len(batch.Events) == 0 {
		return nil, nil, nil
	}
	streams := map[string]stream{}
	for _, head := range batch.Threads {
		found, err := s.streams.at(ctx, tx, head)
		if err != nil {
			return nil, nil, err
		}
		streams[head.ThreadID] = found
	}
	if err := project(ctx, tx, batch.Rows, streams); err != nil {
		return nil, nil, err
	}
	stored, err := appendEvents(ctx, tx, req, batch.Events, streams)
	if err != nil {
		return nil, nil, err
	}
	for _, effect := range batch.Effects {
		if err := insertEffect(ctx, tx, effect, req.Now); err != nil {
			return nil, nil, err
		}
	}
	for _, id := range batch.CancelEffects {
		_, err := tx.ExecContext(ctx, `UPDATE orchestration_v2_effect_outbox
			SET status = 'cancelled', completed_at = ?2, updated_at = ?2, lease_owner = NULL, lease_expires_at = NULL
			WHERE effect_id = ?1 AND status IN ('pending', 'running')`, id, req.Now.UnixMilli())
		if err != nil {
			return nil, nil, fmt.Errorf("cancel effect: %w", err)
		}
	}
	return stored, streams, nil
}

// metadata is what is stored of an event beside its columns and payload.
type metadata struct {
	RunID              string `json:"runId,omitempty"`
	NodeID             string `json:"nodeId,omitempty"`
	Driver             string `json:"driver,omitempty"`
	ProviderInstanceID string `json:"providerInstanceId,omitempty"`
}

// appendEvents stores events, each as the next version of its stream.
func appendEvents(ctx context.Context, tx *connection, req orch.CommitRequest, events []orch.Event, streams map[string]stream) ([]orch.StoredEvent, error) {
	command, actor := sql.NullString{String: req.CommandID, Valid: req.CommandID != ""}, "system"
	if command.Valid {
		actor = "client"
	}
	stored := make([]orch.StoredEvent, 0, len(events))
	for part := range slices.Chunk(events, together) {
		args := make([]any, 0, 9*len(part))
		for _, e := range part {
			meta, err := json.Marshal(metadata{e.RunID, e.NodeID, e.Driver, e.ProviderInstanceID})
			if err != nil {
				return nil, err // unreachable unless metadata holds more than strings
			}
			stream := streams[e.ThreadID]
			stream.version++
			streams[e.ThreadID] = stream
			args = append(args, e.ID, e.ThreadID, stream.version, e.Type, stamp(e.OccurredAt), command, actor, string(e.Payload), string(meta))
		}
		done, err := tx.ExecContext(ctx, insertEvents[len(part)], args...)
		if err != nil {
			return nil, fmt.Errorf("append events: %w", raced(ctx, tx, part, streams, err))
		}
		last, err := done.LastInsertId()
		if err != nil {
			return nil, fmt.Errorf("append events: %w", err)
		}
		for i, e := range part {
			sequence := last - int64(len(part)-1-i)
			stored = append(stored, orch.StoredEvent{Sequence: sequence, CommandID: req.CommandID, Event: e})
		}
	}
	return stored, nil
}

// together is how many rows one statement inserts at most.
const together = 8

// Statements that insert some rows at once, by their number.
var (
	insertEvents = inserts(`INSERT INTO orchestration_events
		(event_id, aggregate_kind, stream_id, stream_version, event_type, occurred_at, command_id, actor_kind,
		 payload_json, metadata_json, application_event_version) VALUES `,
		"(?, 'thread', ?, ?, ?, ?, ?, ?, ?, ?, "+strconv.Itoa(eventVersion)+")", "")
	insertRows = inserts(`INSERT INTO orchestration_v2_projection
		(position, stream, name, kind, thread_id, id, run_id, status, ordinal, payload_json) VALUES `,
		"(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		` ON CONFLICT (stream, name) DO UPDATE SET run_id = excluded.run_id, status = excluded.status,
		  ordinal = excluded.ordinal, payload_json = excluded.payload_json WHERE kind = excluded.kind AND id = excluded.id`)
)

func inserts(head, row, tail string) (statements [together + 1]string) {
	for n := 1; n <= together; n++ {
		statements[n] = head + strings.Repeat(row+", ", n-1) + row + tail
	}
	return statements
}

// project upserts rows of streams as they were before the batch.
func project(ctx context.Context, tx *connection, rows []orch.Row, streams map[string]stream) error {
	places := map[string]int64{}
	for part := range slices.Chunk(rows, together) {
		args := make([]any, 0, 10*len(part))
		for _, row := range part {
			stream := streams[row.ThreadID]
			if stream.number == 0 {
				return fmt.Errorf("project %s %s: thread %s has no event in the batch", row.Kind, row.ID, row.ThreadID)
			}
			args = append(args, stream.position(places[row.ThreadID]), stream.number, name(row), string(row.Kind), row.ThreadID, row.ID,
				row.RunID, row.Status, row.Ordinal, string(row.Payload))
			places[row.ThreadID]++
		}
		done, err := tx.ExecContext(ctx, insertRows[len(part)], args...)
		if err != nil {
			return fmt.Errorf("project rows: %w", err)
		}
		n, err := done.RowsAffected()
		if err == nil && n < int64(len(part)) {
			err = errors.New("the hash of an entity is that of another")
		}
		if err != nil {
			return fmt.Errorf("project rows: %w", err)
		}
	}
	return nil
}

// name is the hash of a row's kind and id.
func name(row orch.Row) int64 {
	sum := sha256.Sum256([]byte(string(row.Kind) + "\x00" + row.ID))
	return int64(binary.BigEndian.Uint64(sum[:]))
}
