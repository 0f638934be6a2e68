package envelope

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// This file reads lines; what is in them is for fields.go.

// CRLF returns how many of the lines read so far ended in CR LF.
func (r *Reader) CRLF() int { return r.crlf }

// Lines returns how many lines were read so far, blank and bad ones included.
func (r *Reader) Lines() int { return r.line }

// Terminated says whether the line last read ended in LF.
func (r *Reader) Terminated() bool { return !r.open }

// Line returns the line last read, without its end, valid until the next is
// read.
func (r *Reader) Line() []byte { return r.text }

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
