package peer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// silence is how often an event stream says that it is alive.
const silence = 10 * time.Second

// delivery is one thing to write: an answer, an event for one stream, or raw
// text for a standard stream of the process.
type delivery struct {
	to     *exchange // nil for raw text
	answer *flavors.HTTPMessage
	event  *flavors.HTTPMessage
	file   io.Writer
	text   []byte
	bare   bool // a stream opens without an event of the peer's own
}

func (h *httpWire) emit(act replay.Action) bool {
	s := h.s
	switch act.Channel {
	case envelope.Protocol:
	case envelope.Stdout:
		h.queue = append(h.queue, delivery{file: s.stdout, text: []byte(envelope.Unquote(act.Frame.Raw))})
		return true
	case envelope.Stderr:
		h.queue = append(h.queue, delivery{file: s.stderr, text: []byte(envelope.Unquote(act.Frame.Raw))})
		return true
	default:
		s.player.Illegal(act.Frame.Raw, fmt.Errorf("channel %q", act.Channel)) // unreachable unless a Channel is added
		return true
	}
	wire, err := s.codec.Encode(nil, envelope.In, act.Frame, act.ID)
	var m flavors.HTTPMessage
	if err == nil {
		m, err = flavors.ParseHTTPMessage(wire)
	}
	if err != nil {
		s.player.Illegal(act.Frame.Raw, fmt.Errorf("recorded frame can't be encoded: %v", err))
		return true
	}
	if m.Status != 0 {
		return h.emitAnswer(act, &m)
	}
	return h.emitEvent(act, &m)
}

func (h *httpWire) emitAnswer(act replay.Action, m *flavors.HTTPMessage) bool {
	for _, x := range h.pending {
		if x.id != m.ID {
			continue
		}
		h.pending = remove(h.pending, x)
		h.queue = append(h.queue, delivery{to: x, answer: m})
		if m.Stream != "" {
			x.stream, x.keepAlive, x.opening = m.Stream, m.KeepAlive, m.Event
			if !x.gone {
				h.streams = append(h.streams, x)
			}
		}
		return true
	}
	h.s.player.Illegal(act.Frame.Raw, errors.New("recorded answer to no open request"))
	return true
}

// emitEvent sends an event to the streams that are open. Where none is, the
// recorded client saw what this one can't.
func (h *httpWire) emitEvent(act replay.Action, m *flavors.HTTPMessage) bool {
	sent := false
	for _, x := range h.streams {
		if m.Stream != "" && m.Stream != x.stream {
			continue
		}
		sent = true
		h.queue = append(h.queue, delivery{to: x, event: m})
	}
	if sent {
		return true
	}
	name := m.Stream
	if name == "" {
		name = "event"
	}
	return h.failGone(fmt.Sprintf("%s was not delivered: the client has no %s stream open", act.Frame.Method, name))
}

func (h *httpWire) flush() bool {
	last, ok := h.hold()
	if ok && last != nil {
		last()
	}
	return ok && !h.s.over
}

// hold delivers all but the last.
func (h *httpWire) hold() (last func(), ok bool) {
	queue := h.queue
	h.queue = nil
	for i := range queue {
		d := &queue[i]
		// A stream's own first event is left out where the recorded one follows.
		d.bare = i+1 < len(queue) && queue[i+1].to == d.to && queue[i+1].event != nil && queue[i+1].event.Opening
		if i == len(queue)-1 {
			return func() { h.deliver(d) }, true
		}
		if !h.deliver(d) {
			return nil, false
		}
	}
	return func() {}, true
}

// deliver returns false when the launch is over because the client is gone.
func (h *httpWire) deliver(d *delivery) bool {
	err := d.deliver(h)
	if err == nil || d.file == h.s.stderr {
		return true // a client may have closed stderr
	}
	if d.to == nil {
		return h.failGone(fmt.Sprintf("stdout: %v", err))
	}
	return h.failGone(d.to.line + " was not delivered: the client has closed the connection")
}

func (d *delivery) deliver(h *httpWire) error {
	if d.to == nil {
		return h.s.write(d.file, d.text)
	}
	if d.to.gone {
		return errGone
	}
	if h.last != nil && h.last.client != d.to.client {
		since := h.lastAt
		if t := h.last.await(); t.After(since) {
			since = t
		}
		time.Sleep(apart - time.Since(since))
	}
	defer func() { h.last, h.lastAt = d.to, time.Now() }()
	if d.event != nil {
		return h.event(d.to, d.event)
	}
	if err := h.answer(d.to, d.answer); err != nil || d.answer.Stream == "" || d.bare {
		return err
	}
	return h.begin(d.to)
}

// await returns once the client has read what it was sent, and when that was
// last known not to be so.
func (x *exchange) await() (unreadAt time.Time) {
	for end := time.Now().Add(patient); time.Now().Before(end); time.Sleep(apart / 4) {
		if n, ok := unread(x.client, x.server); !ok || n == 0 {
			break
		}
		unreadAt = time.Now()
	}
	return unreadAt
}

// answer writes a whole answer, or the beginning of a stream.
func (h *httpWire) answer(x *exchange, m *flavors.HTTPMessage) error {
	header := x.w.Header()
	for _, v := range m.Headers {
		header.Set(v.Name, v.Value)
	}
	body := []byte(m.Body)
	if m.Text != "" {
		body = []byte(m.Text)
	}
	if m.Stream != "" {
		header.Set("Cache-Control", "no-cache")
		body = nil
	} else {
		defer x.finish()
		if m.Status != http.StatusNoContent {
			header.Set("Content-Length", strconv.Itoa(len(body)))
		}
	}
	x.w.WriteHeader(m.Status)
	if len(body) > 0 {
		return h.s.write(flushed{x.w}, body)
	}
	h.s.writing.begin(h.s.player, 0)
	defer h.s.writing.end()
	_, err := flushed{x.w}.Write(nil)
	return err
}

// event writes one event. The one that streams begin with goes out once.
func (h *httpWire) event(x *exchange, m *flavors.HTTPMessage) error {
	if m.Opening && x.begun {
		return nil // it had the peer's own
	}
	x.begun = true
	return h.s.write(flushed{x.w}, eventText(m.Event))
}

// begin writes the event that a stream begins with.
func (h *httpWire) begin(x *exchange) error {
	if x.begun || x.opening == nil {
		return nil
	}
	x.begun = true
	return h.s.write(flushed{x.w}, eventText(x.opening))
}

// eventText is a server-sent event. A frame has no line feed; a carriage
// return would end the line, too, and can only be white space.
func eventText(data []byte) []byte {
	data = bytes.ReplaceAll(data, []byte{'\r'}, []byte{' '})
	return append(append([]byte("data: "), data...), "\n\n"...)
}

// flushed sends every write to the client at once.
type flushed struct{ w http.ResponseWriter }

func (f flushed) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	if err == nil {
		err = http.NewResponseController(f.w).Flush()
	}
	return n, err
}

// keepAlive lets open streams say that they are alive. That is no progress.
func (h *httpWire) keepAlive() {
	tick := time.NewTicker(silence)
	defer tick.Stop()
	for {
		select {
		case <-h.stop:
			return
		case <-tick.C:
		}
		h.s.mu.Lock()
		for _, x := range h.streams {
			if !h.s.over && x.begun {
				h.s.writing.begin(h.s.player, len(x.keepAlive))
				_, _ = flushed{x.w}.Write([]byte(x.keepAlive)) // if it is gone, its request says so
				h.s.writing.end()
			}
		}
		h.s.mu.Unlock()
	}
}
