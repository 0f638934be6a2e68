package orch

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// agentFacts is what policy may know of a provider instance.
type agentFacts struct {
	driver       string
	capabilities Capabilities
}

// threadState is a thread in memory: its projection and the version of its
// stream. Owned by the thread's lane.
type threadState struct {
	p       *Projection
	version int64
}

// draft collects what one commit stores. Planners and ingestion read p and put
// entities; every put is guarded against and applied to p at once, so that
// what follows sees what came before. When the commit fails, p is thrown away.
//
// A planner is a pure function of p, the command and the draft's now, agents
// and ids: no I/O, no clock, no other randomness.
type draft struct {
	p         *Projection
	now       time.Time
	agents    map[string]agentFacts
	commandID string // "" for facts

	seed    seed
	version int64 // of the stream before the batch
	draws   int
	batch   Batch
	touched []touched
	err     error // first encoding error
}

// touched is an entity that the batch changes.
type touched struct {
	key entityKey
	raw json.RawMessage // its JSON; nil: to be encoded at the end
}

func newDraft(st *threadState, now time.Time, agents map[string]agentFacts, s seed, commandID string) *draft {
	return &draft{p: st.p, now: now, agents: agents, commandID: commandID, seed: s, version: st.version}
}

// newID draws a random id.
func (d *draft) newID(prefix string) string {
	d.draws++
	return d.seed.id(prefix, d.p.Thread.ID, strconv.FormatInt(d.version, 10), strconv.Itoa(d.draws))
}

// put stores an entity under its default event type.
func (d *draft) put(e entity) { d.putAs("", e) }

// putAs stores an entity, unless the lifecycle guard absorbs the change.
func (d *draft) putAs(eventType string, e entity) {
	f := d.facts(e)
	key := entityKey{f.kind, f.id}
	before := d.p.get(key)
	if before != nil && absorbed(before, e) {
		return
	}
	if eventType == "" {
		eventType = defaultEventType(f.kind, before != nil)
	}
	raw, err := encodePayload(e)
	if err != nil {
		if d.err == nil {
			d.err = err
		}
		return
	}
	d.batch.Events = append(d.batch.Events, Event{
		ID:       d.seed.eventID(d.p.Thread.ID, d.version+int64(len(d.batch.Events))+1),
		Type:     eventType,
		ThreadID: d.p.Thread.ID,
		RunID:    f.run, NodeID: f.node, Driver: f.driver, ProviderInstanceID: f.instance,
		OccurredAt: d.now,
		Payload:    raw,
	})
	active := d.p.Thread.ActiveProviderThreadID
	d.p.put(e)
	d.p.UpdatedAt = d.now
	entity, _ := entityIn(raw)
	d.touch(key, entity)
	if d.p.Thread.ActiveProviderThreadID != active {
		d.touch(entityKey{KindThread, d.p.Thread.ID}, nil)
	}
}

// facts are an entity's own, and the run of its node where it names none.
func (d *draft) facts(e entity) facts {
	f := e.facts()
	if f.run == "" {
		node, _ := lookup(d.p, d.p.Nodes, f.node)
		f.run = string(node.RunID)
	}
	return f
}

func (d *draft) touch(key entityKey, raw json.RawMessage) {
	for i := range d.touched {
		if d.touched[i].key == key {
			d.touched[i].raw = raw
			return
		}
	}
	d.touched = append(d.touched, touched{key, raw})
}

// effect asks for an effect. cause is the command id, or names the fact.
func (d *draft) effect(effectType, target string, args effectPayload) {
	cause := d.commandID
	if cause == "" {
		cause = "fact"
	}
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err) // unreachable unless effectPayload holds what JSON cannot
	}
	d.batch.Effects = append(d.batch.Effects, EffectRequest{
		ID: effectID(cause, effectType, target), CommandID: d.commandID,
		ThreadID: d.p.Thread.ID, Type: effectType, Payload: raw,
	})
}

// finish completes the batch with the rows of what was touched.
func (d *draft) finish() (Batch, error) {
	if d.err != nil {
		return Batch{}, d.err
	}
	if len(d.batch.Events) == 0 {
		return Batch{}, nil
	}
	for _, t := range d.touched {
		e, raw := d.p.get(t.key), t.raw
		if raw == nil {
			var err error
			if raw, err = json.Marshal(e); err != nil {
				return Batch{}, fmt.Errorf("encode %s: %w", t.key.kind, err)
			}
		}
		f := d.facts(e)
		d.batch.Rows = append(d.batch.Rows, Row{
			Kind: f.kind, ThreadID: d.p.Thread.ID, ID: f.id, RunID: f.run,
			Status: f.status, Ordinal: f.ordinal, Payload: raw,
		})
	}
	d.batch.Threads = []ThreadHead{{ThreadID: d.p.Thread.ID, Version: d.version}}
	return d.batch, nil
}

// at is a pointer to the draft's time.
func (d *draft) at() *time.Time {
	now := d.now
	return &now
}
