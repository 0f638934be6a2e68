package envelope

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// This file cuts a line into its fields and reads their values.

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
		for i := range r.fields {
			if r.fields[i].Name == name {
				return r.errorf("duplicate field %q", name)
			}
		}
		r.fields = append(r.fields, Member{})
		f := &r.fields[len(r.fields)-1] // written in place, as a token is
		f.Name, f.Value, f.key = name, value, key
		return nil
	}
	r.frame = -1
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
func (r *Reader) label(f *Member, to *string) error {
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

func (r *Reader) str(f *Member, to *string) error {
	if f.Value[0] != '"' {
		return r.errorf("%s is %s: want a string", f.Name, kindOf(f.Value))
	}
	*to = Unquote(f.Value)
	return nil
}

func (r *Reader) boolean(f *Member, to *bool) error {
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

func (r *Reader) millis(f *Member) (*int64, error) {
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

func (r *Reader) keep(f *Member) Member {
	return Member{Name: f.Name, Value: r.part(f.Value), key: r.part(f.key)}
}

func clone(b json.RawMessage) json.RawMessage { return bytes.Clone(b) }
