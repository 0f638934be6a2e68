package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// eventVersion is the version of the stored form of events.
const eventVersion = 2

// Commit implements orch.Store.
func (s *Store) Commit(ctx context.Context, req orch.CommitRequest, decide func() (orch.Batch, error)) (orch.CommitResult, error) {
	var result orch.CommitResult
	var rejected *orch.RejectedError
	err := s.write(ctx, func(tx *transaction) error {
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
		result.Events, err = store(ctx, tx, req, batch)
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
	if rejected != nil {
		return result, rejected
	}
	return result, nil
}

// openReceipt inserts a receipt if absent; known tells that it was there.
func openReceipt(ctx context.Context, tx *transaction, req orch.CommitRequest) (known bool, err error) {
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
func closeReceipt(ctx context.Context, tx *transaction, req orch.CommitRequest, sequence int64, rejected *orch.RejectedError) (orch.Receipt, error) {
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
func duplicate(ctx context.Context, tx *transaction, commandID string) (orch.CommitResult, error) {
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

// store appends a batch and projects it.
func store(ctx context.Context, tx *transaction, req orch.CommitRequest, batch orch.Batch) ([]orch.StoredEvent, error) {
	if len(batch.Events) == 0 {
		return nil, nil
	}
	versions := map[string]int64{}
	for _, head := range batch.Threads {
		if err := checkVersion(ctx, tx, head); err != nil {
			return nil, err
		}
		versions[head.ThreadID] = head.Version
	}
	stored, err := appendEvents(ctx, tx, req, batch.Events, versions)
	if err != nil {
		return nil, err
	}
	last := stored[len(stored)-1].Sequence
	for _, head := range batch.Threads {
		_, err := tx.ExecContext(ctx, `INSERT INTO orchestration_streams VALUES (?, ?, ?)
			ON CONFLICT DO UPDATE SET stream_version = excluded.stream_version, updated_at = excluded.updated_at`,
			head.ThreadID, versions[head.ThreadID], stamp(head.UpdatedAt))
		if err != nil {
			return nil, fmt.Errorf("update stream: %w", err)
		}
	}
	for i, row := range batch.Rows {
		// first_sequence only orders entities: those of one batch stand in the
		// order in which they were first written, all above older ones.
		first := last<<16 | int64(i)
		if err := project(ctx, tx, row, first, last); err != nil {
			return nil, err
		}
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO projection_metadata VALUES ('threads', ?, ?)
		ON CONFLICT DO UPDATE SET last_sequence = excluded.last_sequence`, projectionSchema, last); err != nil {
		return nil, fmt.Errorf("update projection metadata: %w", err)
	}
	for _, effect := range batch.Effects {
		if err := insertEffect(ctx, tx, effect, req.Now); err != nil {
			return nil, err
		}
	}
	for _, id := range batch.CancelEffects {
		_, err := tx.ExecContext(ctx, `UPDATE orchestration_v2_effect_outbox
			SET status = 'cancelled', completed_at = ?2, updated_at = ?2, lease_owner = NULL, lease_expires_at = NULL
			WHERE effect_id = ?1 AND status IN ('pending', 'running')`, id, req.Now.UnixMilli())
		if err != nil {
			return nil, fmt.Errorf("cancel effect: %w", err)
		}
	}
	return stored, nil
}

func checkVersion(ctx context.Context, tx *transaction, head orch.ThreadHead) error {
	var version int64
	err := tx.QueryRowContext(ctx, "SELECT stream_version FROM orchestration_streams WHERE stream_id = ?", head.ThreadID).Scan(&version)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("read stream: %w", err)
	}
	if version != head.Version {
		return fmt.Errorf("%w: %s is at %d, planned at %d", orch.ErrConflict, head.ThreadID, version, head.Version)
	}
	return nil
}

// metadata is what is stored of an event beside its columns and payload.
type metadata struct {
	RunID              string `json:"runId,omitempty"`
	NodeID             string `json:"nodeId,omitempty"`
	Driver             string `json:"driver,omitempty"`
	ProviderInstanceID string `json:"providerInstanceId,omitempty"`
}

func appendEvents(ctx context.Context, tx *transaction, req orch.CommitRequest, events []orch.Event, versions map[string]int64) ([]orch.StoredEvent, error) {
	command, actor := sql.NullString{String: req.CommandID, Valid: req.CommandID != ""}, "system"
	if command.Valid {
		actor = "client"
	}
	stored := make([]orch.StoredEvent, 0, len(events))
	for _, e := range events {
		meta, err := json.Marshal(metadata{e.RunID, e.NodeID, e.Driver, e.ProviderInstanceID})
		if err != nil {
			return nil, err // unreachable unless metadata holds more than strings
		}
		versions[e.ThreadID]++
		done, err := tx.ExecContext(ctx, `INSERT INTO orchestration_events
			(event_id, aggregate_kind, stream_id, stream_version, event_type, occurred_at, command_id, actor_kind,
			 payload_json, metadata_json, application_event_version)
			VALUES (?, 'thread', ?, ?, ?, ?, ?, ?, ?, ?, ?)`, e.ID, e.ThreadID, versions[e.ThreadID], e.Type, stamp(e.OccurredAt),
			command, actor, string(e.Payload), string(meta), eventVersion)
		if err != nil {
			return nil, fmt.Errorf("append event: %w", err)
		}
		sequence, err := done.LastInsertId()
		if err != nil {
			return nil, fmt.Errorf("append event: %w", err)
		}
		stored = append(stored, orch.StoredEvent{Sequence: sequence, CommandID: req.CommandID, Event: e})
	}
	return stored, nil
}

// project upserts one row.
func project(ctx context.Context, tx *transaction, row orch.Row, first, last int64) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO `+table(row.Kind)+`
		(thread_id, id, run_id, status, ordinal, first_sequence, last_sequence, payload_json)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET run_id = excluded.run_id, status = excluded.status, ordinal = excluded.ordinal,
		  last_sequence = excluded.last_sequence, payload_json = excluded.payload_json`,
		row.ThreadID, row.ID, row.RunID, row.Status, row.Ordinal, first, last, string(row.Payload))
	if err != nil {
		return fmt.Errorf("project %s: %w", row.Kind, err)
	}
	return nil
}
