package orch

import (
	"encoding/json"
	"slices"
	"time"
)

// Types of effects: what happens outside the store because of a commit.
const (
	EffectStartTurn     = "provider-turn.start"
	EffectInterruptTurn = "provider-turn.interrupt"
	EffectSteerTurn     = "provider-turn.steer"
	EffectRestartTurn   = "provider-turn.restart"
	EffectRespond       = "runtime-request.respond"
	EffectRollback      = "provider-thread.rollback"
	EffectDetach        = "provider-session.detach"
	EffectCapture       = "checkpoint.capture"
)

// replaySafe are the effects that another process may carry out again. All
// others are bound to the provider process they were meant for.
var replaySafe = []string{EffectCapture}

// beside are the effects that act on a turn while another effect of the thread
// may still wait for the provider: they are not held up by it. Among
// themselves they keep the order of their commits.
var beside = []string{EffectInterruptTurn, EffectRestartTurn, EffectSteerTurn, EffectRespond}

// silent are the effects that write no fact, however they go. Ingestion does
// not wait for them.
var silent = []string{EffectInterruptTurn, EffectRestartTurn}

// maxAttempts bounds the tries of an effect. What is bound to a provider
// process is tried once: the user learns of the failure instead of a provider
// getting the same input twice.
func maxAttempts(effectType string) int {
	if slices.Contains(replaySafe, effectType) {
		return 5
	}
	return 1
}

// Times of the effect worker.
const (
	effectLease      = 120 * time.Second
	effectPoll       = 30 * time.Second
	effectBackoff    = 100 * time.Millisecond
	effectBackoffMax = 30 * time.Second
	effectWorkers    = 4
)

// backoff is how long to wait after a number of failed attempts.
func backoff(attempts int) time.Duration {
	return min(effectBackoff<<min(attempts-1, 20), effectBackoffMax)
}

// EffectRequest is an effect to be stored with the events that ask for it.
type EffectRequest struct {
	ID        string // "effect:<command>:<type>:<target>"
	CommandID string // "" when a fact asked for it
	ThreadID  string
	Type      string
	Payload   json.RawMessage
}

// Effect is a leased effect.
type Effect struct {
	EffectRequest
	Attempt int    // 1 at the first try
	Lease   string // token to settle it with
}

// Claim asks for an effect.
type Claim struct {
	Owner string // of the process; its own leases never expire for it
	Token string // of the worker; the lease becomes "<owner>/<token>#<attempt>"
	Now   time.Time
	Until time.Time // when the lease expires
	// Beside are the types that may be claimed while an effect of another type
	// of the same thread runs.
	Beside []string
}

// DueEffect is an effect that runs or could run.
type DueEffect struct{ ID, Type string }

// Settlement ends an effect or, with status pending, re-schedules it.
type Settlement struct {
	EffectID    string
	Lease       string
	Status      string // succeeded, failed, cancelled or pending
	Error       string
	Now         time.Time
	AvailableAt time.Time // of a pending one
}

// effectPayload is the stored form of every effect's arguments.
type effectPayload struct {
	RunID        string `json:"runId,omitempty"`
	AttemptID    string `json:"attemptId,omitempty"`
	ScopeID      string `json:"scopeId,omitempty"`
	CheckpointID string `json:"checkpointId,omitempty"`
	SessionID    string `json:"providerSessionId,omitempty"`
	MessageID    string `json:"messageId,omitempty"`
	RequestID    string `json:"requestId,omitempty"`

	Decision string              `json:"decision,omitempty"`
	Answers  map[string][]string `json:"answers,omitempty"`
}
