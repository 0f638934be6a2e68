package orch

import (
	"context"
	"errors"
	"time"
)

// ErrConflict is returned by Store.Commit when a thread's stream is not at the
// version the batch was planned on: another process writes to the same store.
var ErrConflict = errors.New("stream version conflict")

// Store keeps events, receipts, projections and effects. Safe for concurrent
// use; commits happen one at a time.
type Store interface {
	// Commit is one transaction. With a command: the receipt is inserted if
	// absent; if it was there, the stored one is returned as Duplicate and
	// decide is not called. Otherwise decide's batch is checked against the
	// versions of its threads (ErrConflict), its events appended, its rows
	// upserted, its effects inserted, and the receipt completed. When decide
	// fails with a *RejectedError, a rejected receipt is all that is stored,
	// and the error returned. Any other error stores nothing. A batch without
	// events is not committed.
	Commit(ctx context.Context, req CommitRequest, decide func() (Batch, error)) (CommitResult, error)
	// Thread reads a thread and the sequence of the log in one transaction;
	// Version 0 when there is no such thread. take gets the payloads of rows
	// while the next are being read, some of a kind at a time, and keeps them.
	// Those of a kind come in the order of their first appearance.
	Thread(ctx context.Context, threadID string, take func(Kind, []string)) (StoredThread, error)
	// Shell reads all threads and the sequence of the log in one transaction.
	Shell(ctx context.Context) (ShellRows, error)
	// Events reads at most limit events after a sequence.
	Events(ctx context.Context, after int64, limit int) ([]StoredEvent, error)
	// Unsettled lists, sorted, the threads with a live run, a pending request
	// or a session that is not stopped.
	Unsettled(ctx context.Context) ([]string, error)

	// ClaimEffect leases the first due effect of a thread in which none runs,
	// by available time, creation time and insertion; nil when there is none.
	// One whose type is in Claim.Beside only waits for others of those types.
	ClaimEffect(ctx context.Context, c Claim) (*Effect, error)
	// SettleEffect ends or re-schedules an effect, if the lease still holds;
	// it reports whether it did.
	SettleEffect(ctx context.Context, s Settlement) (bool, error)
	// DueEffects lists the thread's effects that run or could run at now, in
	// order of insertion.
	DueEffects(ctx context.Context, threadID string, now time.Time) ([]DueEffect, error)
	// UnsettledEffects lists the ids of a thread's pending and running effects
	// of a type.
	UnsettledEffects(ctx context.Context, threadID, effectType string) ([]string, error)
	// RecoverEffects prepares the outbox for a new process: unsettled effects
	// of the replay-safe types become pending, all others are cancelled.
	RecoverEffects(ctx context.Context, replaySafe []string, now time.Time) error
}

// CommitRequest says what a commit is for.
type CommitRequest struct {
	CommandID   string // "" for facts, which have no receipt
	CommandType string
	ThreadID    string
	Now         time.Time
}

// CommitResult is what a commit stored, or what an earlier one had stored.
type CommitResult struct {
	Receipt Receipt // zero for facts
	Events  []StoredEvent
}

// Batch is what one transaction stores.
type Batch struct {
	Events  []Event
	Threads []ThreadHead // of every thread that has events in the batch
	Rows    []Row
	Effects []EffectRequest
	// CancelEffects are ids of effects to cancel if unsettled.
	CancelEffects []string
}

// ThreadHead is the version of a thread's stream that a batch builds on.
type ThreadHead struct {
	ThreadID string
	Version  int64 // events in the stream before the batch
}

// Row is one entity of a projection.
type Row struct {
	Kind     Kind
	ThreadID string
	ID       string
	RunID    string
	Status   string
	Ordinal  int64
	Payload  []byte
}

// StoredThread is a thread as stored, but for its rows.
type StoredThread struct {
	Sequence  int64     // of the whole log
	Version   int64     // of the thread's stream
	UpdatedAt time.Time // of the stream's last event
}

// ShellRows is every thread as stored, in order of creation.
type ShellRows struct {
	Sequence int64
	Threads  []ShellRow
}

// ShellRow is a thread and its lowest-ordinal live run, else its last.
type ShellRow struct {
	Payload   []byte
	RunCount  int
	RunID     string
	RunStatus string
}
