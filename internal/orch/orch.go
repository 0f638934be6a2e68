// Package orch is the orchestrator: commands, events, policy and projections.
package orch

import "errors"

// ErrResume is returned by AgentSession.ResumeThread when the provider does
// not take the thread back.
var ErrResume = errors.New("provider refused to resume the thread")

// ErrTurnNotActive is returned when there is no turn to steer or interrupt.
var ErrTurnNotActive = errors.New("turn not active")
