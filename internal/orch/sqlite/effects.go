package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/replaypeer/replaypeer/internal/orch"
)

func insertEffect(ctx context.Context, tx *connection, e orch.EffectRequest, now time.Time) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO orchestration_v2_effect_outbox
		(effect_id, command_id, thread_id, effect_type, payload_json, status, attempt_count, available_at, created_at, updated_at)
		VALUES (?1, ?2, ?3, ?4, ?5, 'pending', 0, ?6, ?6, ?6) ON CONFLICT DO NOTHING`,
		e.ID, sql.NullString{String: e.CommandID, Valid: e.CommandID != ""}, e.ThreadID, e.Type,
		string(e.Payload), now.UnixMilli())
	if err != nil {
		return fmt.Errorf("insert effect: %w", err)
	}
	return nil
}

// holding is the condition on which a running effect keeps others of its
// thread back: its lease is this process's own, or has not expired. ?1 is now,
// ?2 the owner.
const holding = `(%[1]s.status = 'running' AND (%[1]s.lease_expires_at > ?1 OR substr(%[1]s.lease_owner, 1, length(?2) + 1) = ?2 || '/'))`

// ClaimEffect implements orch.Store.
func (s *Store) ClaimEffect(ctx context.Context, c orch.Claim) (*orch.Effect, error) {
	var due bool
	now, beside := c.Now.UnixMilli(), quoted(c.Beside)
	// A look from a reader first: idle workers do not disturb the writer.
	err := s.look(ctx, func(tx *connection) error {
		return tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM orchestration_v2_effect_outbox
			WHERE status IN ('pending', 'running') AND available_at <= ?)`, now).Scan(&due)
	})
	if err != nil || !due {
		return nil, err
	}
	var e *orch.Effect
	err = s.write(ctx, func(tx *connection) error {
		var claimed orch.Effect
		var command sql.NullString
		err := tx.QueryRowContext(ctx, `SELECT effect_id, command_id, thread_id, effect_type, payload_json, attempt_count + 1
			FROM orchestration_v2_effect_outbox e
			WHERE status IN ('pending', 'running') AND available_at <= ?1 AND NOT `+fmt.Sprintf(holding, "e")+`
			  AND NOT EXISTS (SELECT 1 FROM orchestration_v2_effect_outbox r
			    WHERE r.thread_id = e.thread_id AND r.position <> e.position AND r.status IN ('pending', 'running')
			      AND (r.effect_type IN (`+beside+`) OR e.effect_type NOT IN (`+beside+`))
			      AND `+fmt.Sprintf(holding, "r")+`)
			ORDER BY available_at, created_at, position LIMIT 1`, now, c.Owner).
			Scan(&claimed.ID, &command, &claimed.ThreadID, &claimed.Type, (*[]byte)(&claimed.Payload), &claimed.Attempt)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		claimed.CommandID = command.String
		claimed.Lease = fmt.Sprintf("%s/%s#%d", c.Owner, c.Token, claimed.Attempt)
		_, err = tx.ExecContext(ctx, `UPDATE orchestration_v2_effect_outbox
			SET status = 'running', attempt_count = ?, lease_owner = ?, lease_expires_at = ?, updated_at = ?
			WHERE effect_id = ?`, claimed.Attempt, claimed.Lease, c.Until.UnixMilli(), now, claimed.ID)
		e = &claimed
		return err
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// SettleEffect implements orch.Store.
func (s *Store) SettleEffect(ctx context.Context, t orch.Settlement) (bool, error) {
	now := t.Now.UnixMilli()
	completed, available := sql.NullInt64{Int64: now, Valid: true}, sql.NullInt64{}
	if t.Status == "pending" {
		completed.Valid, available = false, sql.NullInt64{Int64: t.AvailableAt.UnixMilli(), Valid: true}
	}
	var held int64
	err := s.write(ctx, func(tx *connection) error {
		done, err := tx.ExecContext(ctx, `UPDATE orchestration_v2_effect_outbox
			SET status = ?, last_error = ?, completed_at = ?, available_at = coalesce(?, available_at), updated_at = ?,
			  lease_owner = NULL, lease_expires_at = NULL
			WHERE effect_id = ? AND status = 'running' AND lease_owner = ?`,
			t.Status, sql.NullString{String: t.Error, Valid: t.Error != ""}, completed, available, now, t.EffectID, t.Lease)
		if err != nil {
			return err
		}
		held, err = done.RowsAffected()
		return err
	})
	return held == 1, err
}

// DueEffects implements orch.Store.
func (s *Store) DueEffects(ctx context.Context, threadID string, now time.Time) ([]orch.DueEffect, error) {
	var due []orch.DueEffect
	err := s.look(ctx, func(tx *connection) error {
		return rows(ctx, tx, func(r *sql.Rows) error {
			var e orch.DueEffect
			err := r.Scan(&e.ID, &e.Type)
			due = append(due, e)
			return err
		}, `SELECT effect_id, effect_type FROM orchestration_v2_effect_outbox
			WHERE thread_id = ? AND status IN ('pending', 'running') AND (status = 'running' OR available_at <= ?)
			ORDER BY position`, threadID, now.UnixMilli())
	})
	return due, err
}

// UnsettledEffects implements orch.Store.
func (s *Store) UnsettledEffects(ctx context.Context, threadID, effectType string) ([]string, error) {
	var ids []string
	err := s.look(ctx, func(tx *connection) error {
		return rows(ctx, tx, func(r *sql.Rows) error {
			var id string
			err := r.Scan(&id)
			ids = append(ids, id)
			return err
		}, `SELECT effect_id FROM orchestration_v2_effect_outbox
			WHERE thread_id = ? AND effect_type = ? AND status IN ('pending', 'running') ORDER BY position`, threadID, effectType)
	})
	return ids, err
}

// RecoverEffects implements orch.Store.
func (s *Store) RecoverEffects(ctx context.Context, replaySafe []string, now time.Time) error {
	return s.write(ctx, func(tx *connection) error {
		safe := quoted(replaySafe)
		_, err := tx.ExecContext(ctx, `UPDATE orchestration_v2_effect_outbox
			SET status = 'pending', available_at = min(available_at, ?1), updated_at = ?1, lease_owner = NULL, lease_expires_at = NULL
			WHERE status IN ('pending', 'running') AND effect_type IN (`+safe+`)`, now.UnixMilli())
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE orchestration_v2_effect_outbox
			SET status = 'cancelled', completed_at = ?1, updated_at = ?1, last_error = 'process lost', lease_owner = NULL, lease_expires_at = NULL
			WHERE status IN ('pending', 'running')`+` AND effect_type NOT IN (`+safe+`)`, now.UnixMilli())
		return err
	})
}

// quoted is a list of effect types as SQL; they are constants of orch.
func quoted(types []string) string { return "'" + strings.Join(types, "','") + "'" }
