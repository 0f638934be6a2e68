package sqlite

import (
	"context"
	"fmt"
	"strings"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// migrations bring the database from one user_version to the next. They are
// append-only: a step that was released is never edited.
var migrations = []func() string{schema1}

func migrate(ctx context.Context, db *pool) error {
	var version int
	err := db.use(ctx, func(c *connection) error {
		return c.Conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	})
	if err != nil {
		return err
	}
	if version > len(migrations) {
		return fmt.Errorf("database has schema %d, this program knows %d", version, len(migrations))
	}
	for ; version < len(migrations); version++ {
		err := db.transact(ctx, func(tx *connection) error {
			// Another process may have been here since the version was read.
			var current int
			if err := tx.Conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&current); err != nil || current > version {
				return err
			}
			if _, err := tx.Conn.ExecContext(ctx, migrations[version]()); err != nil {
				return err
			}
			_, err := tx.Conn.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", version+1))
			return err
		})
		if err != nil {
			return fmt.Errorf("migrate to schema %d: %w", version+1, err)
		}
	}
	return nil
}

// views are the kinds of projection rows under the names of tables, to look at.
var views = map[orch.Kind]string{
	orch.KindThread:          "threads",
	orch.KindRun:             "runs",
	orch.KindAttempt:         "run_attempts",
	orch.KindNode:            "nodes",
	orch.KindSubagent:        "subagents",
	orch.KindProviderSession: "provider_sessions",
	orch.KindProviderThread:  "provider_threads",
	orch.KindProviderTurn:    "provider_turns",
	orch.KindRuntimeRequest:  "runtime_requests",
	orch.KindMessage:         "messages",
	orch.KindTurnItem:        "turn_items",
	orch.KindPlan:            "plans",
	orch.KindCheckpointScope: "checkpoint_scopes",
	orch.KindCheckpoint:      "checkpoints",
	orch.KindTransfer:        "context_transfers",
	orch.KindHandoff:         "context_handoffs",
}

// schema1 is the first schema. All projection rows are in one table, a row for
// each thread and entity, since a provider session can serve many threads.
// Their positions follow the stream's number, so that the rows of a thread lie
// together in the order in which they first came: what one commit writes is on
// few pages, and reading a thread is reading on. A row is found by the hash of
// its kind and id, for the ids are long and would fill many pages of an index.
func schema1() string {
	var b strings.Builder
	b.WriteString(`
CREATE TABLE orchestration_events (
  sequence INTEGER PRIMARY KEY,
  event_id TEXT NOT NULL UNIQUE,
  aggregate_kind TEXT NOT NULL,
  stream_id TEXT NOT NULL,
  stream_version INTEGER NOT NULL,
  event_type TEXT NOT NULL,
  occurred_at TEXT NOT NULL,
  command_id TEXT,
  actor_kind TEXT NOT NULL,
  payload_json TEXT NOT NULL,
  metadata_json TEXT NOT NULL,
  application_event_version INTEGER NOT NULL,
  UNIQUE (stream_id, stream_version)
);
CREATE INDEX orchestration_events_command ON orchestration_events (command_id) WHERE command_id IS NOT NULL;

CREATE TABLE orchestration_command_receipts (
  command_id TEXT PRIMARY KEY,
  command_type TEXT NOT NULL,
  aggregate_kind TEXT NOT NULL,
  aggregate_id TEXT NOT NULL,
  accepted_at TEXT NOT NULL,
  result_sequence INTEGER NOT NULL,
  status TEXT NOT NULL,
  code TEXT NOT NULL,
  error TEXT NOT NULL
);

CREATE TABLE orchestration_streams (
  number INTEGER PRIMARY KEY,
  stream_id TEXT NOT NULL UNIQUE
);

CREATE TABLE orchestration_v2_projection (
  position INTEGER PRIMARY KEY,
  stream INTEGER NOT NULL,
  name INTEGER NOT NULL,
  kind TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  status TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  payload_json TEXT NOT NULL,
  UNIQUE (stream, name)
);
CREATE INDEX orchestration_v2_projection_status ON orchestration_v2_projection (kind, thread_id, ordinal, status)
  WHERE kind = 'thread' OR kind = 'run' OR kind = 'runtime-request' OR kind = 'provider-session';

CREATE TABLE orchestration_v2_effect_outbox (
  position INTEGER PRIMARY KEY,
  effect_id TEXT NOT NULL UNIQUE,
  command_id TEXT,
  thread_id TEXT NOT NULL,
  effect_type TEXT NOT NULL,
  payload_json TEXT NOT NULL,
  status TEXT NOT NULL,
  attempt_count INTEGER NOT NULL,
  available_at INTEGER NOT NULL,
  lease_owner TEXT,
  lease_expires_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  completed_at INTEGER,
  last_error TEXT
);
CREATE INDEX orchestration_v2_effect_outbox_unsettled
  ON orchestration_v2_effect_outbox (thread_id, status) WHERE status IN ('pending', 'running');
CREATE INDEX orchestration_v2_effect_outbox_due
  ON orchestration_v2_effect_outbox (available_at, created_at, position) WHERE status IN ('pending', 'running');
`)
	for _, kind := range orch.Kinds {
		fmt.Fprintf(&b, "CREATE VIEW orchestration_v2_projection_%s AS SELECT * FROM orchestration_v2_projection WHERE kind = '%s';\n", views[kind], kind)
	}
	return b.String()
}
