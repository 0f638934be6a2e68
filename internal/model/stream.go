package model

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// stream writes one reply: its events as they come, or the whole at its end.
type stream struct {
	w      http.ResponseWriter
	ctx    context.Context
	server *Server
	api    *api
	id     string // of the reply: basis of all ids
	whole  bool   // no events: finish writes the answer
	seq    int
	gone   bool // the client closed the connection
}

// event sends one event of the Responses API; fields gets the type and a
// number.
func (s *stream) event(kind string, fields map[string]any) {
	fields["type"], fields["sequence_number"] = kind, s.seq
	s.seq++
	s.send(kind, fields)
}

// send sends one server-sent event; a kind of "" has no name.
func (s *stream) send(kind string, v any) {
	head := ""
	if kind != "" {
		head = "event: " + kind + "\n"
	}
	s.raw(fmt.Sprintf("%sdata: %s\n", head, marshal(v))) // the JSON ends in LF
}

func (s *stream) raw(text string) {
	if s.gone || s.whole {
		return
	}
	_, err := s.w.Write([]byte(text))
	if err == nil {
		err = http.NewResponseController(s.w).Flush()
	}
	s.gone = err != nil
}

// finish writes the answer that is not streamed.
func (s *stream) finish(v any) {
	if s.whole && !s.gone {
		writeJSON(s.w, http.StatusOK, v)
	}
}

// failWhole answers with an error what can't fail in mid-stream.
func (s *stream) failWhole(e *HTTPError) {
	const status = http.StatusInternalServerError
	writeJSON(s.w, status, s.api.fail(status, e.Code, e.Message, s.id))
}

// between does what an item does in every API, and returns false for one that
// says something.
func (s *stream) between(it Item) bool {
	switch {
	case it.Delay > 0 || it.Hold != "":
		s.pause(it.Delay, it.Hold)
		return true
	case it.Cut:
		panic(http.ErrAbortHandler) // closes the connection without an end
	}
	return s.gone
}

// pieces sends a text's deltas and returns the whole; ok is false when the
// client has gone.
func (s *stream) pieces(pieces []Piece, delta func(string)) (whole string, ok bool) {
	for _, p := range pieces {
		switch {
		case p.Text != "":
			delta(p.Text)
		default:
			s.between(Item{Delay: p.Delay, Hold: p.Hold, Cut: p.Cut})
		}
		if s.gone {
			return "", false
		}
	}
	return text(pieces), true
}

// pause waits for a delay or a hold, or until the client goes.
func (s *stream) pause(d time.Duration, hold string) {
	switch {
	case s.gone:
	case hold != "":
		select {
		case <-s.server.hold(hold):
		case <-s.ctx.Done():
			s.gone = true
		}
	case d > 0:
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-s.ctx.Done():
			s.gone = true
		}
	}
}

// callID is the id of a tool call, made of the reply's unless the script
// names one.
func callID(c *Call, prefix, id string) string {
	if c.ID != "" {
		return c.ID
	}
	return prefix + id
}
