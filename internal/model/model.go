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
// One script serves the OpenAI Responses API and Chat Completions, Anthropic
// Messages, and Gemini, streamed and not. Each API is a file that reads its
// requests into a prompt and writes a reply's items.
package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/tidwall/gjson"
)

// maxRequest is the largest request body read.
const maxRequest = 64 << 20

// api is one HTTP API over the script.
type api struct {
	suffix string // of the request path
	// read makes a prompt of a request, whose body is valid JSON.
	read  func(r *http.Request, req gjson.Result) (prompt, error)
	reply func(s *stream, p prompt, r *Reply)
	// fail makes the body of an error answer.
	fail func(status int, code, message, id string) any
	// count is what a request to count tokens gets, which no script answers.
	count any
	// idHeader names the response's header for the request's id; "" for none.
	idHeader string
	// namespaces is true where calls may be custom and in a namespace.
	namespaces bool
}

var apis = []*api{
	{suffix: "/responses", read: readResponses, reply: streamResponses, fail: failOpenAI, namespaces: true},
	{suffix: "/chat/completions", read: readChat, reply: replyChat, fail: failOpenAI, idHeader: "X-Request-Id"},
	{suffix: "/messages", read: readMessages, reply: replyMessages, fail: failMessages, idHeader: "Request-Id"},
	{suffix: "/messages/count_tokens", fail: failMessages, count: map[string]any{"input_tokens": 100}, idHeader: "Request-Id"},
	{suffix: ":streamGenerateContent", read: readGeminiStream, reply: replyGemini, fail: failGemini},
	{suffix: ":generateContent", read: readGemini, reply: replyGemini, fail: failGemini},
	{suffix: ":countTokens", fail: failGemini, count: map[string]any{"totalTokens": 100}},
}

// Server answers requests from a script. It is an http.Handler. Besides the
// APIs it serves POST /-/release?name=NAME, which releases a hold.
type Server struct {
	script *Script
	log    io.Writer
	note   func(string)

	mu       sync.Mutex
	requests int
	asked    map[point]int            // how often each was asked for
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
		asked: map[point]int{}, served: map[string]int{}, holds: map[string]chan struct{}{},
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
	var a *api
	for _, candidate := range apis {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, candidate.suffix) {
			a = candidate
		}
	}
	enc := r.Header.Get("Content-Encoding")
	switch {
	case err != nil:
	case a == nil:
		s.refuse(w, r, body, a, http.StatusNotFound, fmt.Sprintf("%s %s is not served", r.Method, r.URL.Path))
		return
	case enc != "" && enc != "identity":
		err = fmt.Errorf("content encoding %s is not read", enc)
	case !gjson.ValidBytes(body):
		err = errors.New("request body is not JSON")
	case a.count != nil:
		s.record(r, body, "count", "")
		a.setID(w, "count")
		writeJSON(w, http.StatusOK, a.count)
		return
	default:
		var p prompt
		if p, err = a.read(r, gjson.ParseBytes(body)); err == nil {
			s.answer(w, r, body, a, p)
			return
		}
	}
	s.refuse(w, r, body, a, http.StatusBadRequest, err.Error())
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, body []byte, a *api, p prompt) {
	reply, suffix := s.choose(p.point)
	if reply == nil {
		s.refuse(w, r, body, a, http.StatusInternalServerError, "no reply for "+p.String())
		return
	}
	for _, it := range reply.Items {
		if c := it.Call; c != nil && !a.namespaces && (c.Custom || c.Namespace != "") {
			s.refuse(w, r, body, a, http.StatusInternalServerError,
				fmt.Sprintf("reply %s has a custom or namespaced call, which only the Responses API has", reply.Name))
			return
		}
	}
	s.record(r, body, reply.Name, "")
	id := reply.Name + suffix
	a.setID(w, id)
	if e := reply.Error; e != nil {
		for k, v := range e.Headers {
			w.Header().Set(k, v)
		}
		writeJSON(w, e.Status, a.fail(e.Status, e.Code, e.Message, id))
		return
	}
	st := &stream{w: w, ctx: r.Context(), server: s, api: a, id: id, whole: !p.stream}
	if p.stream {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-store")
	}
	a.reply(st, p, reply)
}

func (a *api) setID(w http.ResponseWriter, id string) {
	if a.idHeader != "" {
		w.Header().Set(a.idHeader, "req_"+id)
	}
}

// probed is the answer to a probe that the script says nothing of.
var probed = &Reply{Name: "probe", Items: []Item{{Text: []Piece{{Text: "ok"}}}}}

// choose returns the reply for a point, nil for none, and what sets the ids
// of its second and later uses apart.
func (s *Server) choose(p point) (*Reply, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[p]++
	var best *Reply
	for i := range s.script.Replies {
		r := &s.script.Replies[i]
		if r.When.fits(p, s.asked[p]) && (best == nil || better(r.When, best.When)) {
			best = r
		}
	}
	if best == nil && p.probe {
		best = probed
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

// fits says whether the reply is for a point that is asked for the nth time.
func (w When) fits(p point, n int) bool {
	return w.ToolResults == p.toolResults && w.Agent == p.agent && strings.Contains(p.user, w.User) &&
		(w.Tools == "" || (w.Tools == "yes") == p.tools) && w.Probe == p.probe &&
		(w.Attempt == 0 || w.Attempt == n)
}

// better says whether a says more about a request than b.
func better(a, b When) bool {
	if (a.Tools == "") != (b.Tools == "") {
		return a.Tools != ""
	}
	if len(a.User) != len(b.User) {
		return len(a.User) > len(b.User)
	}
	return a.Attempt > b.Attempt
}

// refuse answers what the script has nothing for, in the API's own form where
// it is one.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, body []byte, a *api, status int, message string) {
	message = "scripted model: " + message
	s.note(message)
	s.record(r, body, "", message)
	fail := failOpenAI
	if a != nil {
		fail = a.fail
	}
	writeJSON(w, status, fail(status, "scripted_model", message, "refused"))
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(marshal(v)) // an error means that the client has gone
}

// marshal writes JSON as a model would, with an LF.
func marshal(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // unreachable: maps, strings, numbers, and JSON that was checked
	}
	return b.Bytes()
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
