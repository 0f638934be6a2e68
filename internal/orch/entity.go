package orch

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Kind is a kind of entity; it is the first word of its event types and names
// its projection table.
type Kind string

// The kinds of entity.
const (
	KindThread          Kind = "thread"
	KindRun             Kind = "run"
	KindAttempt         Kind = "run-attempt"
	KindNode            Kind = "node"
	KindSubagent        Kind = "subagent"
	KindProviderSession Kind = "provider-session"
	KindProviderThread  Kind = "provider-thread"
	KindProviderTurn    Kind = "provider-turn"
	KindRuntimeRequest  Kind = "runtime-request"
	KindMessage         Kind = "message"
	KindTurnItem        Kind = "turn-item"
	KindPlan            Kind = "plan"
	KindCheckpointScope Kind = "checkpoint-scope"
	KindCheckpoint      Kind = "checkpoint"
	KindTransfer        Kind = "context-transfer"
	KindHandoff         Kind = "context-handoff"
)

// Kinds lists every kind of entity.
var Kinds = []Kind{
	KindThread, KindRun, KindAttempt, KindNode, KindSubagent, KindProviderSession, KindProviderThread,
	KindProviderTurn, KindRuntimeRequest, KindMessage, KindTurnItem, KindPlan, KindCheckpointScope,
	KindCheckpoint, KindTransfer, KindHandoff,
}

// entity is one of the entity types, by value.
type entity interface{ facts() facts }

// facts are what events and rows tell about an entity without decoding it.
type facts struct {
	kind             Kind
	id, status       string
	run, node        string
	driver, instance string
	ordinal          int64
}

func (e AppThread) facts() facts {
	return facts{kind: KindThread, id: e.ID, instance: e.ProviderInstanceID}
}

func (e Run) facts() facts {
	return facts{
		kind: KindRun, id: e.ID, status: e.Status, run: e.ID, node: e.RootNodeID,
		instance: e.ProviderInstanceID, ordinal: int64(e.Ordinal),
	}
}

func (e RunAttempt) facts() facts {
	return facts{
		kind: KindAttempt, id: e.ID, status: e.Status, run: e.RunID, node: e.RootNodeID,
		instance: e.ProviderInstanceID, ordinal: int64(e.AttemptOrdinal),
	}
}

func (e ExecutionNode) facts() facts {
	return facts{kind: KindNode, id: e.ID, status: e.Status, run: string(e.RunID), node: e.ID}
}

func (e Subagent) facts() facts {
	return facts{
		kind: KindSubagent, id: e.ID, status: e.Status, run: string(e.RunID), node: e.ID,
		driver: e.Driver, instance: e.ProviderInstanceID,
	}
}

func (e ProviderSession) facts() facts {
	return facts{kind: KindProviderSession, id: e.ID, status: e.Status, driver: e.Driver, instance: e.ProviderInstanceID}
}

func (e ProviderThread) facts() facts {
	return facts{
		kind: KindProviderThread, id: e.ID, status: e.Status, node: string(e.OwnerNodeID),
		driver: e.Driver, instance: e.ProviderInstanceID,
	}
}

func (e ProviderTurn) facts() facts {
	f := facts{kind: KindProviderTurn, id: e.ID, status: e.Status, node: e.NodeID, ordinal: int64(e.Ordinal)}
	if e.NativeTurnRef != nil {
		f.driver = e.NativeTurnRef.Driver
	}
	return f
}

func (e RuntimeRequest) facts() facts {
	f := facts{kind: KindRuntimeRequest, id: e.ID, status: e.Status, node: e.NodeID}
	if e.NativeRequestRef != nil {
		f.driver = e.NativeRequestRef.Driver
	}
	return f
}

func (e Message) facts() facts {
	return facts{kind: KindMessage, id: e.ID, run: string(e.RunID), node: string(e.NodeID)}
}

func (e TurnItem) facts() facts {
	return facts{
		kind: KindTurnItem, id: e.ID, status: e.Status, run: string(e.RunID), node: string(e.NodeID),
		ordinal: e.Ordinal,
	}
}

func (e PlanArtifact) facts() facts {
	return facts{kind: KindPlan, id: e.ID, status: e.Status, run: string(e.RunID), node: string(e.NodeID)}
}

func (e CheckpointScope) facts() facts {
	return facts{kind: KindCheckpointScope, id: e.ID, run: string(e.RunID), node: string(e.NodeID)}
}

func (e Checkpoint) facts() facts {
	return facts{
		kind: KindCheckpoint, id: e.ID, status: e.Status, run: string(e.RunID), node: string(e.NodeID),
		ordinal: int64(e.OrdinalWithinScope),
	}
}

func (e ContextTransfer) facts() facts {
	return facts{kind: KindTransfer, id: e.ID, status: e.Status, run: string(e.TargetRunID)}
}

func (e ContextHandoff) facts() facts {
	return facts{
		kind: KindHandoff, id: e.ID, status: e.Status, run: e.TargetRunID,
		instance: e.CreatedByInstanceID,
	}
}

// decodeEntity is the inverse of json.Marshal for an entity.
func decodeEntity(kind Kind, raw []byte) (entity, error) {
	switch kind {
	case KindThread:
		return decodeAs[AppThread](raw)
	case KindRun:
		return decodeAs[Run](raw)
	case KindAttempt:
		return decodeAs[RunAttempt](raw)
	case KindNode:
		return decodeAs[ExecutionNode](raw)
	case KindSubagent:
		return decodeAs[Subagent](raw)
	case KindProviderSession:
		return decodeAs[ProviderSession](raw)
	case KindProviderThread:
		return decodeAs[ProviderThread](raw)
	case KindProviderTurn:
		return decodeAs[ProviderTurn](raw)
	case KindRuntimeRequest:
		return decodeAs[RuntimeRequest](raw)
	case KindMessage:
		return decodeAs[Message](raw)
	case KindTurnItem:
		return decodeAs[TurnItem](raw)
	case KindPlan:
		return decodeAs[PlanArtifact](raw)
	case KindCheckpointScope:
		return decodeAs[CheckpointScope](raw)
	case KindCheckpoint:
		return decodeAs[Checkpoint](raw)
	case KindTransfer:
		return decodeAs[ContextTransfer](raw)
	case KindHandoff:
		return decodeAs[ContextHandoff](raw)
	default:
		return nil, fmt.Errorf("unknown kind of entity %q", kind)
	}
}

func decodeAs[T entity](raw []byte) (entity, error) {
	var e T
	if err := decodeInto(&decoder{}, string(raw), &e); err != nil {
		return nil, err
	}
	return e, nil
}

// decodeInto decodes into a zero entity.
func decodeInto[T entity](d *decoder, raw string, e *T) error {
	if d.decode(layoutOf(reflect.TypeFor[T]()), raw, reflect.ValueOf(e).Elem()) {
		return nil
	}
	*e = *new(T)
	return json.Unmarshal([]byte(raw), e)
}

// kindOfEvent is the first word of an event type.
func kindOfEvent(eventType string) Kind {
	word, _, _ := strings.Cut(eventType, ".")
	return Kind(word)
}
