package record

import (
	"cmp"
	"encoding/json"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/redact"
)

// unknown is the header's version while nothing told it.
const unknown = "unknown"

// metadata is a header's metadata object, its members in order.
type metadata struct {
	keys   []string
	values map[string]json.RawMessage
}

// readMetadata reads what an earlier recorder wrote.
func readMetadata(raw json.RawMessage) *metadata {
	m := &metadata{values: map[string]json.RawMessage{}}
	gjson.ParseBytes(raw).ForEach(func(k, v gjson.Result) bool {
		m.set(k.Str, json.RawMessage(v.Raw))
		return true
	})
	return m
}

// startMetadata is what is known when a recording starts.
func startMetadata(o *Options, earlier json.RawMessage) *metadata {
	m := readMetadata(earlier)
	if earlier == nil {
		m.setString("capturedAt", time.Now().UTC().Format(time.RFC3339))
		m.setString("providerVersion", "") // keep their places
		m.setString("model", o.Model)
		policy := "verbatim"
		if o.Workspace != "" {
			policy = "workspace"
		}
		m.setString("cwdPolicy", policy)
		m.setString("source", o.Source)
		m.set("recorder", object("name", "replay-record", "version", cmp.Or(o.Recorder, "devel")))
		m.setString("platform", runtime.GOOS+"/"+runtime.GOARCH)
		m.set("redaction", nil)
	}
	for _, kv := range o.Metadata {
		m.setString(kv[0], kv[1])
	}
	m.set("incomplete", json.RawMessage("true"))
	return m
}

// finish fills in what the recording told. Facts that stand there already
// stay: the flags and the first process have the say.
func (m *metadata) finish(facts map[string]string, counts map[string]int) {
	for _, k := range slices.Sorted(maps.Keys(facts)) {
		if v := facts[k]; v != "" && m.str(k) == "" {
			m.setString(k, v)
		}
	}
	if raw, err := redact.Redaction(m.values["redaction"], counts); err == nil { // always: what a recorder wrote
		m.set("redaction", raw)
	}
	m.set("incomplete", nil)
}

func (m *metadata) set(key string, value json.RawMessage) {
	if _, ok := m.values[key]; !ok {
		m.keys = append(m.keys, key)
	}
	m.values[key] = value
}

// setString sets a string; an empty one keeps the key's place and is left
// out.
func (m *metadata) setString(key, value string) {
	if value == "" {
		m.set(key, nil)
		return
	}
	m.set(key, envelope.AppendString(nil, value))
}

// str returns a member that is a string, "" for none.
func (m *metadata) str(key string) string { return gjson.ParseBytes(m.values[key]).String() }

func (m *metadata) json() json.RawMessage {
	raw := []byte{'{'}
	for _, k := range m.keys {
		if m.values[k] == nil {
			continue
		}
		if len(raw) > 1 {
			raw = append(raw, ',')
		}
		raw = append(envelope.AppendString(raw, k), ':')
		raw = append(raw, m.values[k]...)
	}
	return append(raw, '}')
}

// object makes a JSON object of strings: name, value, name, value.
func object(pairs ...string) json.RawMessage {
	m := &metadata{values: map[string]json.RawMessage{}}
	for i := 0; i+1 < len(pairs); i += 2 {
		m.setString(pairs[i], pairs[i+1])
	}
	return m.json()
}

// OwnMetadata says whether the recorder itself writes the metadata key.
func OwnMetadata(key string) bool {
	switch key {
	case "capturedAt", "providerVersion", "model", "cwdPolicy", "source", "recorder", "platform", "redaction", "seal", "incomplete":
		return true
	}
	return false
}
