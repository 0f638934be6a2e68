// Package model is a scripted stand-in for a model provider's HTTP API, to
// record a real agent with when there is no account, or no wish for chance.
//
// A script says what the model answers, chosen by what the conversation looks
// like and not by how many requests came before, so that retries and side
// requests do not eat replies:
//
//	replies:
//	  - when: {user: "list the files"}
//	    items:
//	      - call: {name: exec_command, arguments: {cmd: ls}}
//	  - when: {user: "list the files", toolResults: 1}
//	    items:
//	      - {text: "There are two files.", chunks: 3}
//
// Ids are made of the script alone, so that two recordings agree.
//
// The OpenAI Responses API is spoken so far (responses.go). Another API is a
// file that reads its requests into a prompt and writes a reply's items.
package model

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// maxRequest is the largest request body read.
const maxRequest = 64 << 20

// api is one HTTP API over the script.
type api struct {
	suffix string // of the request path
	read   func(r *http.Request, body []byte) (prompt, error)
	stream func(s *stream, p prompt, r *Reply)
}

var apis = []api{{"/responses", readResponses, streamResponses}}

// Server answers requests from a script. It is an http.Handler. Besides the
// APIs it serves POST /-/release?name=NAME, which releases a hold.
type Server struct {
	script *Script
	log    io.Writer
	note   func(string)

	mu       sync.Mutex
	requests int
	asked    map[When]int             // how often each point was asked for
	served   map[string]int           // how often each reply was given
	holds    map[string]chan struct{} // closed when released
}

// New returns a server. log takes every request as one line of JSON, nil for
// none; note is told of what a script's author must know, nil to drop it.
func New(script *Script, log io.Writer, note func(string)) *Server {
	if note == nil {
		note = func(string) {}
	}
	return &Server{
		script: script, log: log, note: note,
		asked: map[When]int{}, served: map[string]int{}, holds: map[string]chan struct{}{},
	}
}

// Release lets every reply go on that waits at the hold, now or later.
func (s *Server) Release(name string) {
	ch := s.hold(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-ch:
	default:
		close(ch)
	}
}

func (s *Server) hold(name string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch, ok := s.holds[name]
	if !ok {
		ch = make(chan struct{})
		s.holds[name] = ch
	}
	return ch
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost && r.URL.Path == "/-/release" {
		s.Release(r.URL.Query().Get("name"))
		w.WriteHeader(http.StatusNoContent)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		s.refuse(w, r, body, http.StatusBadRequest, err.Error())
		return
	}
	for _, a := range apis {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, a.suffix) {
			s.answer(w, r, body, a)
			return
		}
	}
	s.refuse(w, r, body, http.StatusNotFound, fmt.Sprintf("%s %s is not served", r.Method, r.URL.Path))
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, body []byte, a api) {
	p, err := a.read(r, body)
	if err != nil {
		s.refuse(w, r, body, http.StatusBadRequest, err.Error())
		return
	}
	reply, suffix := s.choose(p)
	if reply == nil {
		s.refuse(w, r, body, http.StatusInternalServerError, "no reply for "+p.String())
		return
	}
	s.record(r, body, reply.Name, "")
	if e := reply.Error; e != nil {
		for k, v := range e.Headers {
			w.Header().Set(k, v)
		}
		writeError(w, e.Status, e.Code, e.Message)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	a.stream(&stream{w: w, ctx: r.Context(), server: s, id: reply.Name + suffix}, p, reply)
}

// choose returns the reply for a prompt, nil for none, and what sets the ids
// of its second and later uses apart.
func (s *Server) choose(p prompt) (*Reply, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	point := When{User: p.user, ToolResults: p.toolResults, Agent: p.agent}
	s.asked[point]++
	var best *Reply
	for i := range s.script.Replies {
		r := &s.script.Replies[i]
		w := r.When
		if w.ToolResults != p.toolResults || w.Agent != p.agent || !strings.Contains(p.user, w.User) ||
			w.Attempt != 0 && w.Attempt != s.asked[point] {
			continue
		}
		if best == nil || better(w, best.When) {
			best = r
		}
	}
	if best == nil {
		return nil, ""
	}
	s.served[best.Name]++
	if n := s.served[best.Name]; n > 1 {
		return best, fmt.Sprintf("_%d", n)
	}
	return best, ""
}

// better says whether a says more about a request than b.
func better(a, b When) bool {
	if len(a.User) != len(b.User) {
		return len(a.User) > len(b.User)
	}
	return a.Attempt > b.Attempt
}

// refuse answers what the script has nothing for.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, body []byte, status int, message string) {
	message = "scripted model: " + message
	s.note(message)
	s.record(r, body, "", message)
	writeError(w, status, "scripted_model", message)
}

func writeError(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{ // an error means that the client has gone
		"error": map[string]any{"message": message, "type": code, "code": code, "param": nil},
	})
}

// logged is one line of the request log. Credentials are not in it: of the
// headers only these.
type logged struct {
	N       int               `json:"n"`
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    json.RawMessage   `json:"body,omitempty"`
	Reply   string            `json:"reply,omitempty"`
	Error   string            `json:"error,omitempty"`
}

func (s *Server) record(r *http.Request, body []byte, reply, problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	if s.log == nil {
		return
	}
	l := logged{N: s.requests, Method: r.Method, Path: r.URL.Path, Headers: map[string]string{}, Reply: reply, Error: problem}
	for k := range r.Header {
		switch k {
		case "Content-Type", "Content-Encoding", "User-Agent", agentHeader:
			l.Headers[k] = r.Header.Get(k)
		}
	}
	if len(body) > 0 {
		if !json.Valid(body) {
			body, _ = json.Marshal(string(body)) // of a string: never fails
		}
		l.Body = body
	}
	line, err := json.Marshal(l)
	if err == nil {
		_, err = s.log.Write(append(line, '\n'))
	}
	if err != nil {
		s.note("request log: " + err.Error())
		s.log = nil
	}
}

// stream writes one reply's events.
type stream struct {
	w      http.ResponseWriter
	ctx    context.Context
	server *Server
	id     string // of the reply: basis of all ids
	seq    int
	gone   bool // the client closed the connection
}

// event sends one server-sent event; fields gets the type and a number.
func (s *stream) event(kind string, fields map[string]any) {
	if s.gone {
		return
	}
	fields["type"], fields["sequence_number"] = kind, s.seq
	s.seq++
	var data bytes.Buffer
	enc := json.NewEncoder(&data)
	enc.SetEscapeHTML(false)
	err := enc.Encode(fields) // ends in LF
	if err == nil {
		_, err = fmt.Fprintf(s.w, "event: %s\ndata: %s\n", kind, data.Bytes())
	}
	if err == nil {
		err = http.NewResponseController(s.w).Flush()
	}
	s.gone = s.gone || err != nil
}

// pause waits for a delay or a hold, and says whether the client is still
// there.
func (s *stream) pause(d time.Duration, hold string) bool {
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
	return !s.gone
}
