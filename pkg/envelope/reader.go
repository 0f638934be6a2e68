package envelope

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
)

// Reader reads a transcript line by line. Only LF ends a line; a CR before it
// is dropped and counted, blank lines are skipped, and the last line need not
// be terminated.
type Reader struct {
	// MaxLine is the longest line accepted, in bytes; 0 means MaxLine.
	MaxLine int

	// Borrow makes entries cheap for one who looks at each and keeps none:
	// an entry from Next, with all that it holds but strings, is valid until
	// the next call, and Tape has its line's tokens.
	Borrow bool

	name   string
	src    *bufio.Reader
	buf    []byte
	line   int // of the line last read
	crlf   int
	open   bool // the line last read was not terminated
	header bool
	text   []byte // the line last read, as line ends are cut off

	scratch []byte            // of Canonical
	fields  []Member          // of the line being read
	labels  map[string]string // labels met, so that a label is one string

	// Where Borrow is set:
	tape  Tape
	frame int // token of the line's frame, -1 for none
	out   ExpectOutbound
	in    EmitInbound
	exit  RuntimeExit
	ms    int64
}

// NewReader returns a Reader of r. The name stands in every error.
func NewReader(name string, r io.Reader) *Reader {
	return &Reader{name: name, src: bufio.NewReaderSize(r, 64<<10)}
}

// ReadFile reads a whole transcript. The error is the first one met.
func ReadFile(path string) (*Transcript, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read transcript: %w", err)
	}
	defer f.Close()
	return Read(path, f)
}

// Read reads a whole transcript from r; name stands in errors.
func Read(name string, r io.Reader) (*Transcript, error) {
	rd := NewReader(name, r)
	h, err := rd.Header()
	if err != nil {
		return nil, err
	}
	t := &Transcript{File: name, Header: *h}
	for {
		e, err := rd.Next()
		if err == io.EOF {
			return t, nil
		}
		if err != nil {
			return nil, err
		}
		t.Entries = append(t.Entries, e)
	}
}

// CRLF returns how many of the lines read so far ended in CR LF.
func (r *Reader) CRLF() int { return r.crlf }

// Lines returns how many lines were read so far, blank and bad ones included.
func (r *Reader) Lines() int { return r.line }

// Terminated says whether the line last read ended in LF.
func (r *Reader) Terminated() bool { return !r.open }

// Line returns the line last read, without its end, valid until the next is
// read.
func (r *Reader) Line() []byte { return r.text }

// Canonical says whether the line last read, which became the entry, is what a
// Writer makes of that. The frame of a borrowed entry costs nothing to compare.
func (r *Reader) Canonical(e Entry) bool {
	line, frame := r.text, []byte(nil)
	var err error
	if r.scratch, frame, err = appendHead(r.scratch[:0], e); err != nil {
		return false // unreachable unless an Entry is added
	}
	for _, part := range [...][]byte{r.scratch, frame} {
		if !bytes.HasPrefix(line, part) {
			return false
		}
		line = line[len(part):]
	}
	r.scratch = appendTail(r.scratch[:0], e)
	return bytes.Equal(line, r.scratch[:len(r.scratch)-1]) // without the LF
}

// Tape returns the tokens of the entry last read and the index of its frame
// among them, -1 where it has none. It is filled where Borrow is set.
func (r *Reader) Tape() (tape *Tape, frame int) { return &r.tape, r.frame }

// Header reads the first line. It must be called once, before Next.
func (r *Reader) Header() (*Header, error) {
	if r.header {
		return nil, errors.New("envelope: Header called twice") // unreachable unless misused
	}
	r.header = true
	line, err := r.readLine()
	if err == io.EOF {
		return nil, r.errorf("empty transcript: want a transcript_start line")
	}
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(line, []byte("\xef\xbb\xbf")) {
		return nil, r.errorf("byte order mark before the header: remove it")
	}
	m, err := r.members(line)
	if err != nil {
		return nil, err
	}
	if m.typ != "transcript_start" {
		return nil, r.errorf("first line is %s: want type \"transcript_start\"", describeType(m.typ))
	}
	h := &Header{Line: r.line}
	for _, f := range m.rest {
		switch f.Name {
		case "provider":
			err = r.str(f, &h.Provider)
		case "protocol":
			err = r.str(f, &h.Protocol)
		case "version":
			err = r.str(f, &h.Version)
		case "scenario":
			err = r.str(f, &h.Scenario)
		case "metadata":
			if f.Value[0] != '{' {
				err = r.errorf("metadata is %s: want an object", kindOf(f.Value))
			}
			h.Metadata = clone(f.Value)
		default:
			h.Extra = append(h.Extra, Member{Name: f.Name, Value: clone(f.Value), key: bytes.Clone(f.key)})
		}
		if err != nil {
			return nil, err
		}
	}
	for _, q := range []struct{ name, value string }{
		{"provider", h.Provider}, {"protocol", h.Protocol}, {"version", h.Version}, {"scenario", h.Scenario},
	} {
		if q.value == "" {
			return nil, r.errorf("header has no %s: want a non-empty string", q.name)
		}
	}
	return h, nil
}

// Next reads the next entry. It returns io.EOF at the end and a *SyntaxError
// for a line that is not an entry; the call after that reads the next line.
func (r *Reader) Next() (Entry, error) {
	line, err := r.readLine()
	if err != nil {
		return nil, err
	}
	m, err := r.members(line)
	if err != nil {
		return nil, err
	}
	switch m.typ {
	case "expect_outbound":
		return r.expectOutbound(m.rest)
	case "emit_inbound":
		return r.emitInbound(m.rest)
	case "runtime_exit":
		return r.runtimeExit(m.rest)
	case "transcript_start":
		return nil, r.errorf("second transcript_start: a file holds one transcript")
	}
	return nil, r.errorf("%s: want expect_outbound, emit_inbound or runtime_exit", describeType(m.typ))
}

func (r *Reader) expectOutbound(fields []Member) (Entry, error) {
	e := &r.out
	if !r.Borrow {
		e = new(ExpectOutbound)
	}
	*e = ExpectOutbound{Line: r.line}
	var err error
	for _, f := range fields {
		switch f.Name {
		case "label":
			err = r.label(f, &e.Label)
		case "group":
			err = r.str(f, &e.Group)
		case "optional":
			err = r.boolean(f, &e.Optional)
		case "repeat":
			err = r.boolean(f, &e.Repeat)
		case "frame":
			e.Frame = r.part(f.Value)
		default:
			e.Extra = append(e.Extra, r.keep(f))
		}
		if err != nil {
			return nil, err
		}
	}
	if e.Frame == nil {
		return nil, r.errorf("expect_outbound without a frame")
	}
	return e, nil
}

func (r *Reader) emitInbound(fields []Member) (Entry, error) {
	e := &r.in
	if !r.Borrow {
		e = new(EmitInbound)
	}
	*e = EmitInbound{Line: r.line}
	var err error
	for _, f := range fields {
		switch f.Name {
		case "label":
			err = r.label(f, &e.Label)
		case "channel":
			err = r.str(f, (*string)(&e.Channel))
		case "frame":
			e.Frame = r.part(f.Value)
		case "afterMs":
			e.AfterMs, err = r.millis(f)
		default:
			e.Extra = append(e.Extra, r.keep(f))
		}
		if err != nil {
			return nil, err
		}
	}
	switch e.Channel {
	case "", Protocol:
	case Stderr, Stdout:
		if len(e.Frame) > 0 && e.Frame[0] != '"' {
			return nil, r.errorf("frame on channel %s is %s: want a string", e.Channel, kindOf(e.Frame))
		}
	default:
		return nil, r.errorf("channel %q: want protocol, stderr or stdout", string(e.Channel))
	}
	if e.Frame == nil {
		return nil, r.errorf("emit_inbound without a frame")
	}
	return e, nil
}

func (r *Reader) runtimeExit(fields []Member) (Entry, error) {
	e := &r.exit
	if !r.Borrow {
		e = new(RuntimeExit)
	}
	*e = RuntimeExit{Line: r.line}
	var err error
	for _, f := range fields {
		switch f.Name {
		case "label":
			err = r.label(f, &e.Label)
		case "afterMs":
			e.AfterMs, err = r.millis(f)
		case "status":
			err = r.str(f, (*string)(&e.Status))
		case "error":
			e.Error = r.part(f.Value)
		default:
			e.Extra = append(e.Extra, r.keep(f))
		}
		if err != nil {
			return nil, err
		}
	}
	switch e.Status {
	case Success, Failed, Cancelled:
		return e, nil
	}
	return nil, r.errorf("runtime_exit status %q: want success, error or cancelled", string(e.Status))
}

// readLine returns the next line that is not blank, without its end. The
// slice is valid until the next call.
func (r *Reader) readLine() ([]byte, error) {
	limit := r.MaxLine
	if limit <= 0 {
		limit = MaxLine
	}
	for {
		line, err := r.rawLine(limit)
		if err != nil {
			return nil, err
		}
		if n := len(line); n > 0 && line[n-1] == '\r' {
			r.crlf++
			line = line[:n-1]
		}
		r.text = line
		if len(line) > 0 && line[0] > ' ' || len(bytes.TrimLeft(line, " \t\r")) > 0 {
			return line, nil
		}
	}
}

// rawLine returns the bytes before the next LF, or before the end.
func (r *Reader) rawLine(limit int) ([]byte, error) {
	if cap(r.buf) > 1<<20 {
		r.buf = nil // do not hold on to one giant line
	}
	r.buf = r.buf[:0]
	r.line++
	for {
		part, err := r.src.ReadSlice('\n')
		if err == nil {
			part = part[:len(part)-1]
		}
		if len(r.buf)+len(part) > limit {
			if err == bufio.ErrBufferFull {
				err = r.skipLine()
			}
			r.open = err == io.EOF
			if err != nil && err != io.EOF {
				return nil, fmt.Errorf("%s:%d: %w", r.name, r.line, err)
			}
			return nil, r.errorf("line is longer than %d bytes: raise the line limit", limit)
		}
		switch {
		case err == nil && len(r.buf) == 0:
			r.open = false
			return part, nil // the common case: no copy
		case err == nil:
			r.open = false
			r.buf = append(r.buf, part...)
			return r.buf, nil
		case err == bufio.ErrBufferFull:
			r.buf = append(r.buf, part...)
		case err == io.EOF:
			r.buf = append(r.buf, part...)
			if len(r.buf) == 0 {
				r.line--
				return nil, io.EOF
			}
			r.open = true
			return r.buf, nil
		default:
			return nil, fmt.Errorf("%s:%d: %w", r.name, r.line, err)
		}
	}
}

func (r *Reader) skipLine() error {
	for {
		if _, err := r.src.ReadSlice('\n'); err != bufio.ErrBufferFull {
			return err
		}
	}
}

func (r *Reader) errorf(format string, args ...any) error {
	line := r.line
	if line == 0 {
		line = 1
	}
	return &SyntaxError{File: r.name, Line: line, Msg: fmt.Sprintf(format, args...)}
}

// record is one line, split: its type and the other fields, which point into
// the line and are valid until the next one.
type record struct {
	typ  string
	rest []Member
}

func (r *Reader) members(line []byte) (m record, err error) {
	line = bytes.TrimSpace(line)
	typed := false
	r.fields = r.fields[:0]
	field := func(key, value []byte) error {
		name := fieldName(key)
		if name == "type" {
			if typed {
				return r.errorf("duplicate field \"type\"")
			}
			typed = true
			if value[0] != '"' {
				return r.errorf("type is %s: want a string", kindOf(value))
			}
			m.typ = fieldName(value)
			return nil
		}
		for _, f := range r.fields {
			if f.Name == name {
				return r.errorf("duplicate field %q", name)
			}
		}
		r.fields = append(r.fields, Member{Name: name, Value: value, key: key})
		return nil
	}
	ok := r.Borrow && r.tape.Scan(line)
	if ok {
		err = r.onTape(field)
	} else { // also for the complaint about a line that is no JSON
		ok, err = ValidMembers(line, field)
	}
	m.rest = r.fields
	switch {
	case err != nil:
		return m, err
	case !ok:
		return m, r.errorf("not JSON: %s", jsonError(line))
	case line[0] != '{':
		return m, r.errorf("line is %s: want an object", kindOf(line))
	}
	return m, nil
}

// onTape gives the members of a scanned line to fn and remembers its frame.
func (r *Reader) onTape(fn func(key, value []byte) error) error {
	r.frame = -1
	tokens := r.tape.Tokens
	if tokens[0].Kind != '{' {
		return nil
	}
	for i := 1; i < len(tokens); i = int(tokens[i+1].Next) {
		n := len(r.fields)
		if err := fn(r.tape.Bytes(tokens[i]), r.tape.Bytes(tokens[i+1])); err != nil {
			return err
		}
		if len(r.fields) > n && r.fields[n].Name == "frame" {
			r.frame = i + 1
		}
	}
	return nil
}

// fieldName decodes a key or a type, without an allocation for the usual ones.
func fieldName(quoted []byte) string {
	switch string(quoted[1 : len(quoted)-1]) {
	case "type":
		return "type"
	case "label":
		return "label"
	case "frame":
		return "frame"
	case "expect_outbound":
		return "expect_outbound"
	case "emit_inbound":
		return "emit_inbound"
	case "afterMs":
		return "afterMs"
	case "channel":
		return "channel"
	case "runtime_exit":
		return "runtime_exit"
	case "status":
		return "status"
	}
	return Unquote(quoted)
}

// label decodes a label; one that was met before is the same string.
func (r *Reader) label(f Member, to *string) error {
	if known, ok := r.labels[string(f.Value)]; ok {
		*to = known
		return nil
	}
	if err := r.str(f, to); err != nil {
		return err
	}
	const most = 1024 // a transcript of generated labels must not fill memory
	if r.labels == nil {
		r.labels = map[string]string{}
	}
	if len(r.labels) < most {
		r.labels[string(f.Value)] = *to
	}
	return nil
}

func (r *Reader) str(f Member, to *string) error {
	if f.Value[0] != '"' {
		return r.errorf("%s is %s: want a string", f.Name, kindOf(f.Value))
	}
	*to = Unquote(f.Value)
	return nil
}

func (r *Reader) boolean(f Member, to *bool) error {
	switch string(f.Value) {
	case "true":
		*to = true
	case "false":
		*to = false
	default:
		return r.errorf("%s is %s: want true or false", f.Name, kindOf(f.Value))
	}
	return nil
}

func (r *Reader) millis(f Member) (*int64, error) {
	n, err := strconv.ParseInt(string(f.Value), 10, 64)
	if err != nil || n < 0 {
		return nil, r.errorf("%s is %.40s: want a whole number of milliseconds, 0 or more", f.Name, f.Value)
	}
	if r.Borrow {
		r.ms = n
		return &r.ms, nil
	}
	own := n // n itself need not be on the heap where it is borrowed
	return &own, nil
}

func describeType(t string) string {
	if t == "" {
		return "line without a type"
	}
	return fmt.Sprintf("type %q", t)
}

// part returns a value of the line for an entry.
func (r *Reader) part(value []byte) json.RawMessage {
	if r.Borrow {
		return value
	}
	return bytes.Clone(value)
}

func (r *Reader) keep(f Member) Member {
	return Member{Name: f.Name, Value: r.part(f.Value), key: r.part(f.key)}
}

func clone(b json.RawMessage) json.RawMessage { return bytes.Clone(b) }
