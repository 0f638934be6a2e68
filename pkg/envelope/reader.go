package envelope

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
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
	for i := range m.rest {
		f := &m.rest[i]
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
	for i := range fields {
		f := &fields[i]
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
	for i := range fields {
		f := &fields[i]
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
	for i := range fields {
		f := &fields[i]
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

func (r *Reader) errorf(format string, args ...any) error {
	line := r.line
	if line == 0 {
		line = 1
	}
	return &SyntaxError{File: r.name, Line: line, Msg: fmt.Sprintf(format, args...)}
}
