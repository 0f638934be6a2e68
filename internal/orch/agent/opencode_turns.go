package agent

import (
	"errors"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

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
		if t.idle && t.over() { // it only waited for this
			c.end(t)
		}
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

func (t *openCodeTurn) broke() bool { return t.stopping() || t.failure != "" }

// over tells whether a turn of an idle session has ended: it broke off and
// writes no more, or every prompt has its answer.
func (t *openCodeTurn) over() bool {
	if t.broke() {
		return t.writing == ""
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
