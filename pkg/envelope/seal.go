package envelope

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strconv"
)

// Seal is a checksum over the inbound frames of a transcript, in order: what
// the provider said, which nobody may edit by hand. Recording and redaction
// write its sum as metadata.seal; what the client is expected to send, labels
// and pace may change without breaking it. The zero value is ready.
//
// The sum is that of, per emit_inbound, the channel ("protocol" where none is
// written), a space, the length of the frame in decimal, a space, the frame's
// bytes and LF; a runtime_exit counts as channel "exit" with its status.
type Seal struct {
	h   hash.Hash
	buf []byte // what is still to be hashed: that is cheaper in large pieces
}

// Add takes the next entry of the transcript.
func (s *Seal) Add(e Entry) {
	switch e := e.(type) {
	case *EmitInbound:
		channel := string(e.Channel)
		if channel == "" {
			channel = string(Protocol)
		}
		s.part(channel, e.Frame)
	case *RuntimeExit:
		s.part("exit", []byte(e.Status))
	}
}

func (s *Seal) part(channel string, frame []byte) {
	s.buf = append(append(s.buf, channel...), ' ')
	s.buf = append(strconv.AppendInt(s.buf, int64(len(frame)), 10), ' ')
	s.buf = append(append(s.buf, frame...), '\n')
	if len(s.buf) >= 4<<10 {
		s.flush()
	}
}

func (s *Seal) flush() {
	if s.h == nil {
		s.h = sha256.New()
	}
	s.h.Write(s.buf)
	if s.buf = s.buf[:0]; cap(s.buf) > 1<<20 {
		s.buf = nil // do not hold on to one giant frame
	}
}

// Sum returns "sha256:" and the checksum of what was added so far.
func (s *Seal) Sum() string {
	s.flush()
	return "sha256:" + hex.EncodeToString(s.h.Sum(nil))
}
