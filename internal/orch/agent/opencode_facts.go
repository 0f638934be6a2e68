package agent

import (
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// openCodeFacts turns the server's events into provider events. It is fed on
// the goroutine that reads them, in wire order.
//
// The server names no turns. A turn here begins with a prompt of ours (or, in
// a subagent's session, with the message it is given), takes in the prompts
// that are queued at it, and ends when the session is idle and nothing is left
// to answer. Idle alone ends nothing. An abort or an error makes a session idle
// at once, while the tools still wind down; once they have, the message that
// they belong to is complete, and the session is idle for a second time, which
// may be when the next turn has begun. The answer to the abort comes anywhere
// in between.
//
// A session is ours (created, resumed or copied here), a named child, or not
// named yet: a child speaks before the tool call that it belongs to names it.
// The events of the last kind are held until then.
type openCodeFacts struct {
	mu       sync.Mutex // guards all below; push is called with it held
	push     func(orch.ProviderEvent)
	mode     string // runtime mode of the turn that was begun last
	sessions map[string]*openCodeFactsSession
	turns    map[string]*openCodeTurn // that began here and have not ended
	requests []*openCodeRequest       // open ones, in the order asked
	dangling []*openCodeRequest       // that the end of their turn left unanswered
}

type openCodeFactsSession struct {
	held
	id       string
	parent   string                   // of a child; "" where it is not known
	child    *orch.SubagentUpdated    // what was last said of it; nil for ours
	turn     *openCodeTurn            // that runs, or nil
	last     *openCodeTurn            // that ended last, or nil
	messages map[string]*openCodeTurn // by message id; nil for those of no turn
	silent   map[string]bool          // ids of messages that make no items: the user's, and summaries
}

func newOpenCodeFacts(push func(orch.ProviderEvent)) *openCodeFacts {
	return &openCodeFacts{push: push, sessions: map[string]*openCodeFactsSession{}, turns: map[string]*openCodeTurn{}}
}

// own makes a session ours.
func (c *openCodeFacts) own(sessionID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.name(c.session(sessionID))
}

// event takes one of the server's events; unknown ones mean nothing here. It
// returns the id of a question that is to be allowed without asking anyone.
func (c *openCodeFacts) event(e gjson.Result) (granted string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := e.Get("properties")
	switch e.Get("type").Str {
	case "session.created":
		if parent := p.Get("info.parentID").Str; parent != "" {
			c.session(p.Get("info.id").Str).parent = strings.Clone(parent)
		}
	case "message.updated":
		c.message(p.Get("info"))
	case "message.removed":
		s := c.session(p.Get("sessionID").Str)
		delete(s.messages, p.Get("messageID").Str)
		delete(s.silent, p.Get("messageID").Str)
	case "message.part.updated":
		c.part(p.Get("part"))
	case "message.part.delta":
		c.delta(p)
	case "todo.updated":
		c.todos(c.session(p.Get("sessionID").Str), p.Get("todos"))
	case "session.status":
		c.status(c.session(p.Get("sessionID").Str), p.Get("status.type").Str)
	case "session.idle":
		c.status(c.session(p.Get("sessionID").Str), "idle")
	case "session.error":
		if t := c.session(p.Get("sessionID").Str).turn; t != nil {
			t.broken(p.Get("error"))
			if t.user == "" && t.failure != "" { // the prompt was not taken up: nothing follows
				c.end(t)
			}
		}
	case "permission.asked":
		return c.permissionAsked(p)
	case "question.asked":
		c.questionAsked(p)
	case "permission.replied", "question.replied", "question.rejected":
		c.closeRequest(p.Get("requestID").Str)
	}
	return ""
}

func (s *openCodeFactsSession) isChild() bool { return s.child != nil || s.parent != "" && !s.named }

// emit passes on an event that concerns a session, or holds it.
func (c *openCodeFacts) emit(s *openCodeFactsSession, e orch.ProviderEvent) {
	s.emit(c.push, e)
}

func (c *openCodeFacts) session(id string) *openCodeFactsSession {
	s := c.sessions[id]
	if s == nil {
		s = &openCodeFactsSession{id: strings.Clone(id), messages: map[string]*openCodeTurn{}, silent: map[string]bool{}}
		c.sessions[s.id] = s
	}
	return s
}

// name lets a session's events through, those held first.
func (c *openCodeFacts) name(s *openCodeFactsSession) {
	s.name(c.push)
}

// message takes what is told of a message:
//
//	{"id":"msg_1","sessionID":"ses_1","role":"user"}
//	{"id":"msg_2","sessionID":"ses_1","role":"assistant","parentID":"msg_1","time":{"completed":1}}
//
// The server tells of a user's message again when its turn is over. Ids ascend.
func (c *openCodeFacts) message(info gjson.Result) {
	s := c.session(info.Get("sessionID").Str)
	id := strings.Clone(info.Get("id").Str)
	t, known := s.messages[id]
	if info.Get("role").Str == "user" {
		if known {
			return
		}
		if s.turn == nil && s.isChild() {
			c.start(s, "turn:"+id)
		}
		s.messages[id], s.silent[id] = s.turn, true
		if s.turn != nil && id > s.turn.user {
			s.turn.user = id
		}
		return
	}
	if !known {
		t = s.turn
		s.messages[id] = t
		s.silent[id] = info.Get("summary").Type == gjson.True
		if t != nil {
			t.aborted, t.failure, t.writing = false, "", id
		}
	}
	if t == nil || t.status != "" {
		return
	}
	if failure := info.Get("error"); failure.Exists() {
		t.broken(failure)
	}
	if info.Get("time.completed").Exists() {
		t.answered = strings.Clone(info.Get("parentID").Str)
		if t.writing == id {
			t.writing = ""
		}
		if t.idle && t.broke() {
			c.end(t)
		}
	}
}
