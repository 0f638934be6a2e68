package orch

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Projection is the state of one thread: the fold of its events. In JSON it
// also has visibleTurnItems, see VisibleTurnItems.
type Projection struct {
	Thread           AppThread         `json:"thread"`
	Runs             []Run             `json:"runs"`
	Attempts         []RunAttempt      `json:"attempts"`
	Nodes            []ExecutionNode   `json:"nodes"`
	Subagents        []Subagent        `json:"subagents"`
	ProviderSessions []ProviderSession `json:"providerSessions"`
	ProviderThreads  []ProviderThread  `json:"providerThreads"`
	ProviderTurns    []ProviderTurn    `json:"providerTurns"`
	RuntimeRequests  []RuntimeRequest  `json:"runtimeRequests"`
	Messages         []Message         `json:"messages"`
	TurnItems        []TurnItem        `json:"turnItems"` // by ordinal; all others by first appearance
	Plans            []PlanArtifact    `json:"plans"`
	CheckpointScopes []CheckpointScope `json:"checkpointScopes"`
	Checkpoints      []Checkpoint      `json:"checkpoints"`
	ContextTransfers []ContextTransfer `json:"contextTransfers"`
	ContextHandoffs  []ContextHandoff  `json:"contextHandoffs"`
	UpdatedAt        time.Time         `json:"updatedAt"` // of its last event

	index map[entityKey]int // position in its array; nil until first used
}

type entityKey struct {
	kind Kind
	id   string
}

// VisibleItem is a turn item as a reader of the thread sees it.
type VisibleItem struct {
	Position       int      `json:"position"`   // 0..n-1
	Visibility     string   `json:"visibility"` // local, inherited or synthetic
	SourceThreadID string   `json:"sourceThreadId"`
	SourceItemID   string   `json:"sourceItemId"`
	Item           TurnItem `json:"item"`
}

// Fold folds the events of one thread from scratch; nil when there are none.
// Events that cannot be decoded are left out, as in a log of a later version.
func Fold(events []StoredEvent, threadID string) *Projection {
	var p *Projection
	for _, e := range events {
		if e.Event.ThreadID != threadID {
			continue
		}
		if p == nil {
			p = newProjection(threadID)
		}
		_ = p.Apply(e)
	}
	return p
}

func newProjection(threadID string) *Projection {
	return &Projection{Thread: AppThread{ID: threadID}}
}

// Apply folds one event in. Events of other threads change nothing.
func (p *Projection) Apply(e StoredEvent) error {
	if p.Thread.ID != "" && e.Event.ThreadID != p.Thread.ID {
		return nil
	}
	decoded, err := decodePayload(e.Event)
	if err != nil {
		return err
	}
	p.put(decoded)
	p.UpdatedAt = e.Event.OccurredAt
	return nil
}

// put is the reducer: it upserts an entity by id.
func (p *Projection) put(e entity) {
	switch e := e.(type) {
	case AppThread:
		p.Thread = e
	case Run:
		upsert(p, &p.Runs, e)
	case RunAttempt:
		upsert(p, &p.Attempts, e)
	case ExecutionNode:
		upsert(p, &p.Nodes, e)
	case Subagent:
		upsert(p, &p.Subagents, e)
	case ProviderSession:
		upsert(p, &p.ProviderSessions, e)
	case ProviderThread:
		upsert(p, &p.ProviderThreads, e)
		if p.activates(e) {
			p.Thread.ActiveProviderThreadID = Ref(e.ID)
		}
	case ProviderTurn:
		upsert(p, &p.ProviderTurns, e)
	case RuntimeRequest:
		upsert(p, &p.RuntimeRequests, e)
	case Message:
		upsert(p, &p.Messages, e)
	case TurnItem:
		p.putItem(e)
	case PlanArtifact:
		upsert(p, &p.Plans, e)
	case CheckpointScope:
		upsert(p, &p.CheckpointScopes, e)
	case Checkpoint:
		upsert(p, &p.Checkpoints, e)
	case ContextTransfer:
		upsert(p, &p.ContextTransfers, e)
	case ContextHandoff:
		upsert(p, &p.ContextHandoffs, e)
	default:
		panic(fmt.Sprintf("orch: unknown entity %T", e)) // unreachable unless decodeEntity knows more
	}
}

// activates reports whether a provider thread becomes the thread's active one:
// when a turn starts on it, or when it is the thread's first. A provider
// thread that merely goes idle or is unloaded does not.
func (p *Projection) activates(t ProviderThread) bool {
	return t.AppThreadID == p.Thread.ID && (t.Status == "active" || p.Thread.ActiveProviderThreadID == "")
}

func upsert[T entity](p *Projection, list *[]T, e T) {
	f := e.facts()
	key := entityKey{f.kind, f.id}
	if at, ok := p.positions()[key]; ok {
		(*list)[at] = e
		return
	}
	p.index[key] = len(*list)
	*list = append(*list, e)
}

// putItem keeps turn items sorted by ordinal.
func (p *Projection) putItem(e TurnItem) {
	key := entityKey{KindTurnItem, e.ID}
	at, ok := p.positions()[key]
	if ok && p.TurnItems[at].Ordinal == e.Ordinal {
		p.TurnItems[at] = e
		return
	}
	if ok {
		p.TurnItems = slices.Delete(p.TurnItems, at, at+1)
	}
	place, _ := slices.BinarySearchFunc(p.TurnItems, e, compareItems)
	p.TurnItems = slices.Insert(p.TurnItems, place, e)
	if ok {
		place = min(place, at)
	}
	for i := place; i < len(p.TurnItems); i++ {
		p.index[entityKey{KindTurnItem, p.TurnItems[i].ID}] = i
	}
}

func compareItems(a, b TurnItem) int {
	if a.Ordinal != b.Ordinal {
		return int(a.Ordinal - b.Ordinal)
	}
	return strings.Compare(a.ID, b.ID)
}

func (p *Projection) positions() map[entityKey]int {
	if p.index == nil {
		p.index = map[entityKey]int{}
		indexAll(p, p.Runs)
		indexAll(p, p.Attempts)
		indexAll(p, p.Nodes)
		indexAll(p, p.Subagents)
		indexAll(p, p.ProviderSessions)
		indexAll(p, p.ProviderThreads)
		indexAll(p, p.ProviderTurns)
		indexAll(p, p.RuntimeRequests)
		indexAll(p, p.Messages)
		indexAll(p, p.TurnItems)
		indexAll(p, p.Plans)
		indexAll(p, p.CheckpointScopes)
		indexAll(p, p.Checkpoints)
		indexAll(p, p.ContextTransfers)
		indexAll(p, p.ContextHandoffs)
	}
	return p.index
}

func indexAll[T entity](p *Projection, list []T) {
	for i, e := range list {
		f := e.facts()
		p.index[entityKey{f.kind, f.id}] = i
	}
}

// lookup returns the entity of an id, by value.
func lookup[T entity](p *Projection, list []T, id string) (T, bool) {
	var none T
	at, ok := p.positions()[entityKey{none.facts().kind, id}]
	if !ok {
		return none, false
	}
	return list[at], true
}

// get returns the entity of a key, nil when there is none.
func (p *Projection) get(key entityKey) entity {
	if key.kind == KindThread {
		if p.Thread.CreatedAt.IsZero() {
			return nil
		}
		return p.Thread
	}
	at, ok := p.positions()[key]
	if !ok {
		return nil
	}
	switch key.kind {
	case KindRun:
		return p.Runs[at]
	case KindAttempt:
		return p.Attempts[at]
	case KindNode:
		return p.Nodes[at]
	case KindSubagent:
		return p.Subagents[at]
	case KindProviderSession:
		return p.ProviderSessions[at]
	case KindProviderThread:
		return p.ProviderThreads[at]
	case KindProviderTurn:
		return p.ProviderTurns[at]
	case KindRuntimeRequest:
		return p.RuntimeRequests[at]
	case KindMessage:
		return p.Messages[at]
	case KindTurnItem:
		return p.TurnItems[at]
	case KindPlan:
		return p.Plans[at]
	case KindCheckpointScope:
		return p.CheckpointScopes[at]
	case KindCheckpoint:
		return p.Checkpoints[at]
	case KindTransfer:
		return p.ContextTransfers[at]
	case KindHandoff:
		return p.ContextHandoffs[at]
	}
	return nil // unreachable unless an unknown kind was indexed
}

// MarshalJSON adds visibleTurnItems and encodes empty arrays as [].
func (p Projection) MarshalJSON() ([]byte, error) {
	type plain Projection
	out := struct {
		plain
		Visible []VisibleItem `json:"visibleTurnItems"`
	}{plain(p), p.VisibleTurnItems()}
	orEmpty(&out.Runs)
	orEmpty(&out.Attempts)
	orEmpty(&out.Nodes)
	orEmpty(&out.Subagents)
	orEmpty(&out.ProviderSessions)
	orEmpty(&out.ProviderThreads)
	orEmpty(&out.ProviderTurns)
	orEmpty(&out.RuntimeRequests)
	orEmpty(&out.Messages)
	orEmpty(&out.TurnItems)
	orEmpty(&out.Plans)
	orEmpty(&out.CheckpointScopes)
	orEmpty(&out.Checkpoints)
	orEmpty(&out.ContextTransfers)
	orEmpty(&out.ContextHandoffs)
	return json.Marshal(out)
}

func orEmpty[T any](list *[]T) {
	if *list == nil {
		*list = []T{}
	}
}
