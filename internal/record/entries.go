package record

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
	"github.com/replaypeer/replaypeer/pkg/redact"
)

// translator turns the messages of one provider process into entries. Only
// the writing goroutine uses it.
type translator struct {
	flavor *flavors.Flavor
	codec  flavors.Codec
	redact *redact.Redactor
	known  int // secrets it knew at the start

	labels  map[string]string   // open requests: direction and id to their label
	open    map[string][]string // the same where frames carry no ids: direction to labels, oldest first
	last    time.Time           // of the entry before
	ended   bool                // the client's input
	trimmed int                 // strings of the provider's own prose
	facts   map[string]string   // what Flavor.Probe told; the first word counts
}

func newTranslator(o *Options, args []string, r *redact.Redactor) *translator {
	return &translator{
		flavor: o.Flavor,
		codec:  o.Flavor.NewCodec(flavors.Launch{Args: args}),
		redact: r,
		known:  r.Known(),
		labels: map[string]string{},
		open:   map[string][]string{},
		facts:  map[string]string{},
	}
}

// write adds what a message stands for to the recording, as far as no secret
// can go on in a later one. The rest follows with later messages.
func (t *translator) write(out *output, m message) {
	for _, e := range t.entries(m) {
		out.redacted(t.redact.Add(e))
	}
}

func (t *translator) entries(m message) []envelope.Entry {
	switch m.from {
	case fromClient:
		return t.outbound(m)
	case clientEnd:
		return t.endInput(m)
	case fromStdout, fromServer:
		return t.inbound(m)
	case fromLog:
		if _, ready := readyURL(t.flavor, m.line); ready {
			return nil // the peer has its own
		}
		return []envelope.Entry{t.text(m, envelope.Stdout)}
	case fromStderr:
		return []envelope.Entry{t.text(m, envelope.Stderr)}
	default:
		return append(t.endInput(m), exitEntry(*m.end))
	}
}

// outbound records what is no frame of the protocol as well: as it stands
// where it is JSON, else as a string. Such a transcript fails its check.
func (t *translator) outbound(m message) []envelope.Entry {
	wire := m.line
	if !t.flavor.Prose {
		if wire = bytes.TrimSpace(wire); len(wire) == 0 {
			return nil
		}
	}
	frames, err := t.codec.Decode(envelope.Out, wire)
	if err != nil {
		raw := json.RawMessage(wire)
		if !json.Valid(wire) {
			raw = quote(wire)
		}
		frames = []flavors.Frame{{Kind: flavors.Notification, Raw: raw}}
	}
	return t.expectations(m, frames)
}

// endInput records what the end of the client's input completes, once.
func (t *translator) endInput(m message) []envelope.Entry {
	if t.ended {
		return nil
	}
	t.ended = true
	frames, err := t.codec.End(envelope.Out)
	if err != nil {
		return nil
	}
	return t.expectations(m, frames)
}

func (t *translator) expectations(m message, frames []flavors.Frame) []envelope.Entry {
	entries := make([]envelope.Entry, 0, len(frames))
	for _, f := range frames {
		t.probe(envelope.Out, f)
		entries = append(entries, &envelope.ExpectOutbound{
			Label: t.label(envelope.Out, f), Frame: f.Raw,
		})
		t.last = m.at
	}
	return entries
}

func (t *translator) inbound(m message) []envelope.Entry {
	wire := bytes.TrimSpace(m.line)
	frames, err := t.codec.Decode(envelope.In, wire)
	if err != nil {
		return []envelope.Entry{t.text(m, envelope.Stdout)}
	}
	if len(frames) == 0 {
		t.probe(envelope.In, flavors.Frame{Raw: wire})
	}
	entries := make([]envelope.Entry, 0, len(frames))
	for _, f := range frames {
		t.probe(envelope.In, f)
		if f.Kind == flavors.Notification && slices.Contains(t.flavor.Noise, f.Method) {
			continue
		}
		f.Raw = t.trim(f)
		entries = append(entries, &envelope.EmitInbound{
			Label: t.label(envelope.In, f), Frame: f.Raw, AfterMs: t.after(m.at),
		})
	}
	return entries
}

// text is a line that is not of the protocol, its end included, so that one
// without an end stays so.
func (t *translator) text(m message, c envelope.Channel) envelope.Entry {
	return &envelope.EmitInbound{
		Label: string(c), Channel: c, Frame: quote(m.line), AfterMs: t.after(m.at),
	}
}

// quote makes a JSON string of text that need not be UTF-8.
func quote(text []byte) json.RawMessage {
	return envelope.AppendString(nil, strings.ToValidUTF8(string(text), "\ufffd"))
}

// after is the time since the entry before in whole milliseconds, nil for
// none.
func (t *translator) after(at time.Time) *int64 {
	before := t.last
	t.last = at
	if before.IsZero() {
		return nil
	}
	ms := at.Sub(before).Milliseconds()
	if ms <= 0 {
		return nil
	}
	return &ms
}

// label is the method of a request, and for a response that of its request; a
// notification is called what the flavor calls it.
func (t *translator) label(dir envelope.Direction, f flavors.Frame) string {
	switch f.Kind {
	case flavors.Request:
		t.asked(dir, f)
	case flavors.Response:
		if label := t.answered(dir.Opposite(), f); label != "" {
			return label
		}
		if f.Stray() {
			return "error"
		}
	default:
		if t.flavor.Label != nil {
			return t.flavor.Label(f)
		}
	}
	return f.Method
}

func (t *translator) asked(dir envelope.Direction, f flavors.Frame) {
	if f.ID != nil {
		t.labels[dir.String()+string(f.ID)] = f.Method
		return
	}
	t.open[dir.String()] = append(t.open[dir.String()], f.Method)
}

// answered takes the request of a response off the open ones.
func (t *translator) answered(dir envelope.Direction, f flavors.Frame) string {
	if f.ID != nil {
		key := dir.String() + string(f.ID)
		label := t.labels[key]
		delete(t.labels, key)
		return label
	}
	open := t.open[dir.String()]
	for i, label := range open {
		if f.Method == "" || f.Method == label {
			t.open[dir.String()] = append(open[:i:i], open[i+1:]...)
			return label
		}
	}
	return ""
}

func (t *translator) probe(dir envelope.Direction, f flavors.Frame) {
	if t.flavor.Probe == nil {
		return
	}
	for k, v := range t.flavor.Probe(dir, f) {
		if t.facts[k] == "" {
			t.facts[k] = v
		}
	}
}

// exitEntry is the runtime_exit of a process. The error leaves out stderr:
// its lines are entries of their own. An exit that only came once the client
// had closed says so, for a failure need not be a crash.
func exitEntry(end ending) *envelope.RuntimeExit {
	e := &envelope.RuntimeExit{Status: envelope.Failed}
	switch {
	case end.exit.Success():
		e.Status = envelope.Success
		return e
	case end.signaled:
		e.Status = envelope.Cancelled
	}
	e.Error = exitError(end.exit.Code, end.exit.Signal, end.closed && !end.signaled)
	return e
}

func exitError(code int, signal string, closed bool) json.RawMessage {
	d := struct {
		ExitCode    *int   `json:"exitCode,omitempty"`
		Signal      string `json:"signal,omitempty"`
		InputClosed bool   `json:"inputClosed,omitempty"`
	}{Signal: signal, InputClosed: closed && signal == ""}
	if signal == "" {
		d.ExitCode = &code
	}
	raw, err := json.Marshal(d)
	if err != nil {
		return nil // unreachable: an int and a string
	}
	return raw
}
