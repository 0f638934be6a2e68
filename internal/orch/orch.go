// Package orch is the orchestrator: commands, events, policy and projections.
//
// A Command is planned on the Projection of its thread (plan.go) into events
// and effects, which one transaction of the Store keeps together with the
// receipt (commit.go). Workers carry the effects out (worker.go, start_turn.go,
// control.go, capture.go, rollback.go): they open sessions of an Agent and give
// it turns. What the
// provider says comes back as ProviderEvents, one session at a time, and is
// ingested into more events (session_ingest.go, ingest.go). The doc comment of
// Orchestrator says in which order all this happens.
//
// The package has no I/O of its own: database, providers, git, clock and
// randomness are ports (store.go, port.go, checkpoint.go, Config).
package orch

import "errors"

// ErrResume is returned by AgentSession.ResumeThread when the provider does
// not take the thread back.
var ErrResume = errors.New("provider refused to resume the thread")

// ErrSessionEnded is returned by the methods of an AgentSession when its
// provider is gone, after SessionEnded was sent.
var ErrSessionEnded = errors.New("provider session ended")

// ErrTurnNotActive is returned when there is no turn to steer or interrupt.
var ErrTurnNotActive = errors.New("turn not active")
