package orch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Types of events. An entity that has no "created" of its own is upserted by
// "updated".
const (
	EventThreadCreated          = "thread.created"
	EventThreadUpdated          = "thread.metadata-updated"
	EventThreadProviderSwitched = "thread.provider-switched"
	EventRunCreated             = "run.created"
	EventRunUpdated             = "run.updated"
	EventAttemptCreated         = "run-attempt.created"
	EventAttemptUpdated         = "run-attempt.updated"
	EventNodeUpdated            = "node.updated"
	EventSubagentUpdated        = "subagent.updated"
	EventSessionAttached        = "provider-session.attached"
	EventSessionUpdated         = "provider-session.updated"
	EventSessionDetached        = "provider-session.detached"
	EventProviderThreadUpdated  = "provider-thread.updated"
	EventProviderTurnUpdated    = "provider-turn.updated"
	EventRequestUpdated         = "runtime-request.updated"
	EventMessageUpdated         = "message.updated"
	EventTurnItemUpdated        = "turn-item.updated"
	EventPlanUpdated            = "plan.updated"
	EventScopeCreated           = "checkpoint-scope.created"
	EventCheckpointCaptured     = "checkpoint.captured"
	EventRollbackRequested      = "checkpoint.rollback-requested"
	EventTransferCreated        = "context-transfer.created"
	EventTransferUpdated        = "context-transfer.updated"
	EventHandoffUpdated         = "context-handoff.updated"
)

// Event is one fact about one thread. Its payload holds one whole entity.
type Event struct {
	ID                 string          `json:"id"`
	Type               string          `json:"type"`
	ThreadID           string          `json:"threadId"`
	RunID              string          `json:"runId,omitempty"`
	NodeID             string          `json:"nodeId,omitempty"`
	Driver             string          `json:"driver,omitempty"`
	ProviderInstanceID string          `json:"providerInstanceId,omitempty"`
	OccurredAt         time.Time       `json:"occurredAt"`
	Payload            json.RawMessage `json:"payload"` // {"version":1,"entity":{…}}
}

// StoredEvent is an event in the log. Sequences are 1..N without a gap.
type StoredEvent struct {
	Sequence  int64  `json:"sequence"`
	CommandID string `json:"commandId,omitempty"` // "" for facts of the provider or the orchestrator
	Event     Event  `json:"event"`
}

// payload is what is stored of an entity. A later version gets a case in
// decodePayload; this one is never changed.
type payload struct {
	Version int             `json:"version"`
	Entity  json.RawMessage `json:"entity"`
}

// payloadHead is what a payload of this version begins with, as encoding/json
// would write it.
const payloadHead = `{"version":1,"entity":`

func encodePayload(e entity) (json.RawMessage, error) {
	raw, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", e.facts().kind, err)
	}
	return slices.Concat([]byte(payloadHead), raw, []byte("}")), nil
}

// entityIn is the entity within a payload that is in encodePayload's form.
func entityIn(p json.RawMessage) (raw json.RawMessage, ok bool) {
	raw, ok = bytes.CutPrefix(p, []byte(payloadHead))
	if !ok || !bytes.HasSuffix(raw, []byte("}")) {
		return nil, false
	}
	return raw[:len(raw)-1], true
}

// decodePayload returns the entity that an event carries.
func decodePayload(e Event) (entity, error) {
	if raw, ok := entityIn(e.Payload); ok {
		if decoded, err := decodeEntity(kindOfEvent(e.Type), raw); err == nil {
			return decoded, nil
		} // what is wrong with it is told below
	}
	var p payload
	if err := json.Unmarshal(e.Payload, &p); err != nil {
		return nil, fmt.Errorf("event %s: %w", e.ID, err)
	}
	if p.Version != 1 {
		return nil, fmt.Errorf("event %s: unknown payload version %d", e.ID, p.Version)
	}
	decoded, err := decodeEntity(kindOfEvent(e.Type), p.Entity)
	if err != nil {
		return nil, fmt.Errorf("event %s: %w", e.ID, err)
	}
	return decoded, nil
}

// defaultEventType is the event type that stores an entity of a kind.
func defaultEventType(kind Kind, exists bool) string {
	switch kind {
	case KindThread:
		if !exists {
			return EventThreadCreated
		}
		return EventThreadUpdated
	case KindRun, KindAttempt, KindTransfer:
		if !exists {
			return string(kind) + ".created"
		}
	case KindProviderSession:
		if !exists {
			return EventSessionAttached
		}
	case KindCheckpointScope:
		return EventScopeCreated
	case KindCheckpoint:
		return EventCheckpointCaptured
	}
	return string(kind) + ".updated"
}
