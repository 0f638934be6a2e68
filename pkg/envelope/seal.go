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
	h       hash.Hash
	scratch []byte
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
	if s.h == nil {
		s.h = sha256.New()
	}
	s.scratch = append(append(s.scratch[:0], channel...), ' ')
	s.scratch = append(strconv.AppendInt(s.scratch, int64(len(frame)), 10), ' ')
	s.h.Write(s.scratch)
	s.h.Write(frame)
	s.h.Write(newline)
}

var newline = []byte{'\n'}

// Sum returns "sha256:" and the checksum of what was added so far.
func (s *Seal) Sum() string {
	if s.h == nil {
		s.h = sha256.New()
	}
	return "sha256:" + hex.EncodeToString(s.h.Sum(nil))
}
