package envelope

import (
	"fmt"
	"io"
	"strconv"
)

// Writer writes a transcript in canonical form: one Write call per line, keys
// in the order type label channel group optional repeat frame afterMs status
// error, then the unknown ones, no spaces outside frames. It does not buffer.
type Writer struct {
	w   io.Writer
	buf []byte
}

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// WriteHeader writes the header line.
func (w *Writer) WriteHeader(h *Header) error {
	w.buf = AppendHeader(w.buf[:0], h)
	return w.flush()
}

// WriteEntry writes one entry line.
func (w *Writer) WriteEntry(e Entry) error {
	line, err := AppendEntry(w.buf[:0], e)
	if err != nil {
		return err
	}
	w.buf = line
	return w.flush()
}

func (w *Writer) flush() error {
	_, err := w.w.Write(w.buf)
	if cap(w.buf) > 1<<20 {
		w.buf = nil
	}
	return err
}

// Write writes the whole transcript to w in canonical form.
func (t *Transcript) Write(w io.Writer) error {
	tw := NewWriter(w)
	if err := tw.WriteHeader(&t.Header); err != nil {
		return err
	}
	for _, e := range t.Entries {
		if err := tw.WriteEntry(e); err != nil {
			return err
		}
	}
	return nil
}

// AppendHeader appends the header line, LF included.
func AppendHeader(dst []byte, h *Header) []byte {
	l := line{append(dst, `{"type":"transcript_start"`...)}
	l.str("provider", h.Provider)
	l.str("protocol", h.Protocol)
	l.str("version", h.Version)
	l.str("scenario", h.Scenario)
	l.raw("metadata", h.Metadata)
	return l.end(h.Extra)
}

// AppendEntry appends the entry's line, LF included.
func AppendEntry(dst []byte, e Entry) ([]byte, error) {
	dst, frame, err := appendHead(dst, e)
	if err != nil {
		return nil, err
	}
	return appendTail(append(dst, frame...), e), nil
}

// appendHead appends an entry's line up to its frame, or the error of an exit,
// which it returns.
func appendHead(dst []byte, e Entry) (head, frame []byte, err error) {
	switch e := e.(type) {
	case *ExpectOutbound:
		l := line{append(dst, `{"type":"expect_outbound"`...)}
		l.optional("label", e.Label)
		l.optional("group", e.Group)
		l.flag("optional", e.Optional)
		l.flag("repeat", e.Repeat)
		return l.named("frame", e.Frame), e.Frame, nil
	case *EmitInbound:
		l := line{append(dst, `{"type":"emit_inbound"`...)}
		l.optional("label", e.Label)
		if e.Channel != Protocol {
			l.optional("channel", string(e.Channel))
		}
		return l.named("frame", e.Frame), e.Frame, nil
	case *RuntimeExit:
		l := line{append(dst, `{"type":"runtime_exit"`...)}
		l.optional("label", e.Label)
		l.millis("afterMs", e.AfterMs)
		l.str("status", string(e.Status))
		return l.named("error", e.Error), e.Error, nil
	}
	return nil, nil, fmt.Errorf("envelope: entry of type %T", e) // unreachable unless an Entry is added
}

// appendTail appends what stands after it.
func appendTail(dst []byte, e Entry) []byte {
	l := line{dst}
	switch e := e.(type) {
	case *ExpectOutbound:
		return l.end(e.Extra)
	case *EmitInbound:
		l.millis("afterMs", e.AfterMs)
		return l.end(e.Extra)
	case *RuntimeExit:
		return l.end(e.Extra)
	}
	return dst // unreachable: there was no head
}

// line builds one object, member by member.
type line struct{ b []byte }

// key appends a name that needs no escapes.
func (l *line) key(name string) {
	l.b = append(append(append(l.b, `,"`...), name...), `":`...)
}

func (l *line) str(name, value string) {
	l.key(name)
	l.b = AppendString(l.b, value)
}

func (l *line) optional(name, value string) {
	if value != "" {
		l.str(name, value)
	}
}

func (l *line) flag(name string, on bool) {
	if on {
		l.key(name)
		l.b = append(l.b, "true"...)
	}
}

func (l *line) millis(name string, n *int64) {
	if n != nil {
		l.key(name)
		l.b = strconv.AppendInt(l.b, *n, 10)
	}
}

// named appends the name of a value that is to come, unless that is nil.
func (l *line) named(name string, value []byte) []byte {
	if value != nil {
		l.key(name)
	}
	return l.b
}

func (l *line) raw(name string, value []byte) {
	if value != nil {
		l.key(name)
		l.b = append(l.b, value...)
	}
}

func (l *line) end(extra []Member) []byte {
	for _, m := range extra {
		if m.key != nil {
			l.b = append(append(append(l.b, ','), m.key...), ':')
		} else {
			l.b = append(AppendString(append(l.b, ','), m.Name), ':')
		}
		l.b = append(l.b, m.Value...)
	}
	return append(l.b, '}', '\n')
}
