package flavors

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// Events of the server that are none of the conversation.
const (
	connected = "server.connected"
	heartbeat = "server.heartbeat"
)

// seenEvents tells the copies of an event, which other streams of the
// operation carry, from the event itself. Not the order of the streams counts:
// one may end unnoticed while the next one goes on.
type seenEvents struct {
	first map[string]string // operation and id of an event to the stream that had it first
	order []string          // the keys, oldest first
}

// seenLimit is how many events are remembered: more than are on their way.
const seenLimit = 1024

// of returns the operation whose stream carries the event, "" for none. Events
// without an id count on the oldest stream alone.
func (s *seenEvents) of(streams map[string][]string, m *HTTPMessage) (operation string, copied bool) {
	at := -1
	for name, ids := range streams {
		if i := slices.Index(ids, m.ID); i >= 0 {
			operation, at = name, i
		}
	}
	id := ""
	for _, v := range gjson.GetManyBytes(m.Event, "id", "payload.id", "payload.syncEvent.id") {
		if id == "" {
			id = v.String()
		}
	}
	if id == "" || at < 0 {
		return operation, at > 0
	}
	key := operation + " " + id
	if stream, ok := s.first[key]; ok {
		return operation, stream != m.ID
	}
	if s.first == nil {
		s.first = map[string]string{}
	}
	if s.first[key] = m.ID; len(s.order) == seenLimit {
		delete(s.first, s.order[0])
		s.order = s.order[1:]
	}
	s.order = append(s.order, key)
	return operation, false
}

// closed forgets a stream that has ended: the next one of its operation
// carries the events.
func (c *openCodeCodec) closed(id string) {
	for name, ids := range c.streams {
		c.streams[name] = slices.DeleteFunc(ids, func(open string) bool { return open == id })
	}
}

// event is the logical frame of an event, unless it is the server's own or a
// copy on a second stream of the operation.
func (c *openCodeCodec) event(m *HTTPMessage) json.RawMessage {
	kind, err := eventType(source{}, m.Event)
	if err != nil || kind == connected || kind == heartbeat {
		return nil
	}
	stream, copied := c.seen.of(c.streams, m)
	if copied {
		return nil
	}
	raw := []byte(`{"type":"sdk.event",`)
	if stream != "" && stream != "event.subscribe" {
		raw = append(append(append(raw, `"stream":`...), quote(stream)...), ',')
	}
	return append(append(append(raw, `"event":`...), m.Event...), '}')
}

// What the peer says on its own has these ids: always the same.
const (
	connectedID = "evt_00000000000100000000000000"
	heartbeatID = "evt_00000000000200000000000000"
)

// openStream opens an event stream of an operation.
func openStream(name string) *HTTPMessage {
	own := func(id, kind string) string {
		e := `{"id":"` + id + `","type":"` + kind + `","properties":{}}`
		if name == "global.event" {
			e = `{"payload":` + e + `}`
		}
		return e
	}
	m := &HTTPMessage{Status: 200, Stream: name, Headers: []Header{{contentType, "text/event-stream"}}}
	m.KeepAlive = "data: " + own(heartbeatID, heartbeat) + "\n\n"
	m.Event = json.RawMessage(own(connectedID, connected))
	if strings.HasPrefix(name, "v2.") {
		m.KeepAlive = ": heartbeat\n\n"
	}
	return m
}

func encodeEvent(f Frame) *HTTPMessage {
	return &HTTPMessage{
		Event:   json.RawMessage(gjson.GetBytes(f.Raw, "event").Raw),
		Stream:  gjson.GetBytes(f.Raw, "stream").String(),
		Opening: f.Method == connected,
	}
}
