package sqlite

import (
	"context"
	"fmt"
	"strings"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// migrations bring the database from one user_version to the next. They are
// append-only: a step that was released is never edited.
var migrations = []func() string{schema1, schema2}

// projectionSchema is the version of the rows in the projection tables.
const projectionSchema = 1

func migrate(ctx context.Context, db *pool) error {
	var version int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version > len(migrations) {
		return fmt.Errorf("database has schema %d, this program knows %d", version, len(migrations))
	}
	for ; version < len(migrations); version++ {
		err := db.transact(ctx, nil, func(tx *transaction) error {
			// Another process may have been here since the version was read.
			var current int
			if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&current); err != nil || current > version {
				return err
			}
			if _, err := tx.ExecContext(ctx, migrations[version]()); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", version+1))
			return err
		})
		if err != nil {
			return fmt.Errorf("migrate to schema %d: %w", version+1, err)
		}
	}
	return nil
}

// table is the projection table of a kind: "orchestration_v2_projection_runs".
func table(kind orch.Kind) string {
	name, ok := tables[kind]
	if !ok {
		panic("sqlite: no table for " + string(kind)) // unreachable unless orch.Kinds grew without a migration
	}
	return "orchestration_v2_projection_" + name
}

var tables = map[orch.Kind]string{
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

// schema1 is the first schema. Projection rows are keyed by thread and entity,
// since a provider session can serve many threads; first_sequence is where an
// entity appeared, last_sequence where it was last written.
func schema1() string {
	var b strings.Builder
	b.WriteString(`
CREATE TABLE orchestration_events (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
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
  stream_id TEXT PRIMARY KEY,
  stream_version INTEGER NOT NULL,
  updated_at TEXT NOT NULL
);

CREATE TABLE projection_metadata (
  projection_name TEXT PRIMARY KEY,
  schema_version INTEGER NOT NULL,
  last_sequence INTEGER NOT NULL
);

CREATE TABLE orchestration_v2_effect_outbox (
  position INTEGER PRIMARY KEY AUTOINCREMENT,
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
		fmt.Fprintf(&b, `
CREATE TABLE %[1]s (
  thread_id TEXT NOT NULL,
  id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  status TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  first_sequence INTEGER NOT NULL,
  last_sequence INTEGER NOT NULL,
  payload_json TEXT NOT NULL,
  PRIMARY KEY (thread_id, id)
) WITHOUT ROWID;
CREATE INDEX %[1]s_order ON %[1]s (thread_id, first_sequence);
`, table(kind))
	}
	for _, kind := range []orch.Kind{orch.KindRun, orch.KindRuntimeRequest, orch.KindProviderSession} {
		fmt.Fprintf(&b, "CREATE INDEX %[1]s_status ON %[1]s (status, thread_id);\n", table(kind))
	}
	fmt.Fprintf(&b, "CREATE INDEX %[1]s_ordinal ON %[1]s (thread_id, ordinal);\n", table(orch.KindRun))
	return b.String()
}

// schema2 drops what made the order of a thread's rows a matter of the
// database: a thread is read whole, along its key, and put in order after.
func schema2() string {
	var b strings.Builder
	for _, kind := range orch.Kinds {
		fmt.Fprintf(&b, "DROP INDEX %s_order;\n", table(kind))
	}
	return b.String()
}
