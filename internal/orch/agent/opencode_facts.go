package agent

import (
	"errors"
	"slices"
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
// to answer. Idle alone ends nothing. An abort makes a session idle at once,
// while the tools still wind down; once they have, the message they belong to
// is complete, and the session is idle for a second time, which may be when
// the next turn has begun. The answer to the abort comes anywhere in between.
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
	id       string
	parent   string // of a child; "" where it is not known
	named    bool
	child    *orch.SubagentUpdated    // what was last said of it; nil for ours
	held     []orch.ProviderEvent     // while not named
	turn     *openCodeTurn            // that runs, or nil
	last     *openCodeTurn            // that ended last, or nil
	messages map[string]*openCodeTurn // by message id; nil for those of no turn
	users    map[string]bool          // ids of messages of the user
}

// openCodeTurn is a turn that runs, or the last one that did.
type openCodeTurn struct {
	id           string
	session      *openCodeFactsSession
	waiting      []string      // prompts whose message was not seen yet
	user         string        // the newest message of the user
	answered     string        // the message of the user that was answered last
	writing      string        // the newest message of the assistant, while not complete
	idle         bool          // the session is, although the turn goes on
	working      chan struct{} // closed when the server has begun, and at the end
	works        bool          // working is closed
	interrupting bool
	aborted      bool
	failure      string // why the newest answer broke off
	status       string // once ended
	items        []*openCodeItem
	answer       string // last text of the assistant
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

// begin starts a turn with a prompt, whose text is to be called part.
func (c *openCodeFacts) begin(sessionID, turnID, part, mode string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.session(sessionID)
	if s.turn != nil {
		return errors.New("opencode: a turn is running")
	}
	c.mode = mode
	c.start(s, turnID).waiting = []string{part}
	return nil
}

func (c *openCodeFacts) start(s *openCodeFactsSession, turnID string) *openCodeTurn {
	t := &openCodeTurn{id: turnID, session: s, working: make(chan struct{})}
	s.turn, c.turns[turnID] = t, t
	c.childRuns(s)
	c.emit(s, orch.TurnStarted{NativeThreadID: s.id, NativeTurnID: t.id})
	return t
}

// forget drops a turn whose prompt was refused.
func (c *openCodeFacts) forget(turnID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.turns[turnID]; t != nil {
		t.session.turn = nil
		delete(c.turns, turnID)
		t.begun()
	}
}

// steer gives a turn another prompt; false when it does not run.
func (c *openCodeFacts) steer(turnID, part string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.turns[turnID]
	if t == nil {
		return false
	}
	t.waiting = append(t.waiting, part)
	return true
}

// unsteer takes a prompt back that was refused.
func (c *openCodeFacts) unsteer(turnID, part string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.turns[turnID]; t != nil {
		t.seen(part)
	}
}

// working returns what is closed once the server works on a turn, or it is
// over; nil when the turn does not run.
func (c *openCodeFacts) working(turnID string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.turns[turnID]; t != nil {
		return t.working
	}
	return nil
}

// interrupting notes that a turn is about to be aborted: its end may come
// before the answer. nil when it does not run.
func (c *openCodeFacts) interrupting(turnID string) *openCodeTurn {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.turns[turnID]
	if t != nil {
		t.interrupting = true
	}
	return t
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
		delete(s.users, p.Get("messageID").Str)
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
	if s.named {
		c.push(e)
		return
	}
	s.held = append(s.held, e)
}

func (c *openCodeFacts) session(id string) *openCodeFactsSession {
	s := c.sessions[id]
	if s == nil {
		s = &openCodeFactsSession{id: strings.Clone(id), messages: map[string]*openCodeTurn{}, users: map[string]bool{}}
		c.sessions[s.id] = s
	}
	return s
}

// name lets a session's events through, those held first.
func (c *openCodeFacts) name(s *openCodeFactsSession) {
	if s.named {
		return
	}
	s.named = true
	for _, e := range s.held {
		c.push(e)
	}
	s.held = nil
}

// message takes what is told of a message:
//
//	{"id":"msg_1","sessionID":"ses_1","role":"user"}
//	{"id":"msg_2","sessionID":"ses_1","role":"assistant","parentID":"msg_1","time":{"completed":1}}
//
// The server tells of a user's message again when its turn is over.
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
		s.messages[id], s.users[id] = s.turn, true
		if s.turn != nil {
			s.turn.user = id
		}
		return
	}
	if !known {
		t = s.turn
		s.messages[id] = t
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
		if t.idle && t.stopping() {
			c.end(t)
		}
	}
}

// broken notes why an answer broke off.
func (t *openCodeTurn) broken(failure gjson.Result) {
	if failure.Get("name").Str == "MessageAbortedError" {
		t.aborted = true
		return
	}
	t.failure = firstText(failure.Get("data.message").String(), failure.Get("name").String(), "the provider gave no reason")
}

// seen notes that a prompt has become a message.
func (t *openCodeTurn) seen(part string) {
	if i := slices.Index(t.waiting, part); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
}

// begun lets those go on who wait for the server to work on the turn.
func (t *openCodeTurn) begun() {
	if !t.works {
		t.works = true
		close(t.working)
	}
}

// status takes what a session does.
func (c *openCodeFacts) status(s *openCodeFactsSession, status string) {
	t := s.turn
	if t == nil {
		return
	}
	t.idle = status == "idle"
	switch {
	case t.idle && t.over():
		c.end(t)
	case !t.idle && t.user != "": // busy, or between two tries
		t.begun()
	}
}

func (t *openCodeTurn) stopping() bool { return t.aborted || t.interrupting }

// over tells whether a turn of an idle session has ended: it was stopped and
// writes no more, or it broke off, or every prompt has its answer.
func (t *openCodeTurn) over() bool {
	switch {
	case t.stopping():
		return t.writing == ""
	case t.failure != "":
		return true
	}
	return len(t.waiting) == 0 && t.user != "" && t.answered == t.user
}

// end ends a turn: first the items and questions that the server left open,
// then the turn, then the subagent that it was a turn of. A turn that
// completed while it was being aborted counts as interrupted.
func (c *openCodeFacts) end(t *openCodeTurn) {
	s := t.session
	reason := ""
	switch {
	case t.stopping():
		t.status = "interrupted"
	case t.failure != "":
		t.status, reason = "failed", t.failure
	default:
		t.status = "completed"
	}
	s.turn, s.last = nil, t
	delete(c.turns, t.id)
	t.begun()
	c.closeItems(t)
	c.closeRequests(t)
	c.emit(s, orch.TurnEnded{NativeThreadID: s.id, NativeTurnID: t.id, Status: t.status, Error: reason})
	c.childEnded(t)
}
