package lint

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// step is one entry with what the rules need to know of it. One step serves
// all entries of a conversation: what is to be kept of one is copied.
type step struct {
	entry envelope.Entry
	line  int
	label string
	dir   envelope.Direction
	raw   json.RawMessage // the frame; nil for an exit
	wire  bool            // the frame is a protocol message, not raw text

	// Set for wire frames of a known protocol.
	frame    *flavors.Frame // nil when frameErr says why
	frameErr error
	answers  *request // the request that a response answers
	reuses   *request // the open request whose id a request takes
	mistyped string   // the id of an open request that the response's only resembles
	sure     bool     // no unreadable line or frame may hold the counterpart

	answeredEarly *step      // an outbound response that stands before its request, this step
	dead          []*request // at an exit: requests it leaves unanswered
	lost          []*step    // at an exit: outbound responses to nothing

	onTape envelope.Value // the frame's tokens; without a tape where there is no frame
	ready  struct{ quoted, walked, marked bool }
	*scratch

	places *layout        // of the conversation
	spans  []flavors.Span // where they stand in the frame
}

// scratch is what is worked out of a frame when a rule asks for it, in memory
// that one entry after the other uses.
type scratch struct {
	own     flavors.Frame
	names   keyNames   // of the reader's tape
	quoted  []quoted   // strings
	strings []stringAt // those of them that may hold a mark or a path
	marks   []markAt   // in them
}

// request is a request that waits for its answer.
type request struct {
	line      int
	dir       envelope.Direction
	frame     flavors.Frame // without its bytes
	explained bool          // an interruption or a notification accounts for a missing answer
}

// conversation follows who asked what, per provider process.
type conversation struct {
	flavor *flavors.Flavor // nil when the protocol is not known
	places *layout         // of the flavor
	gap    bool            // a line could not be read
	open   []*request      // oldest first
	early  []*step         // outbound responses to nothing so far

	now     step // the entry that is looked at
	scratch scratch
}

// step reads the next entry, which the reader has just returned.
func (t *conversation) step(e envelope.Entry, lines *envelope.Reader) *step {
	s := &t.now
	*s = step{entry: e, scratch: &t.scratch}
	s.line, s.label = e.Position()
	switch e := e.(type) {
	case *envelope.ExpectOutbound:
		s.dir, s.raw, s.wire = envelope.Out, e.Frame, true
	case *envelope.EmitInbound:
		s.dir, s.raw = envelope.In, e.Frame
		s.wire = e.Channel == "" || e.Channel == envelope.Protocol
	case *envelope.RuntimeExit:
		s.dead, s.lost = t.close(e.Status != envelope.Success)
	}
	if tape, at := lines.Tape(); s.raw != nil && at >= 0 {
		s.onTape = envelope.Value{Tape: tape, Index: at}
	}
	if t.flavor == nil || !s.wire {
		return s
	}
	f, err := t.classify(s)
	if err != nil {
		s.frameErr = err
		t.gap = true
		return s
	}
	t.scratch.own = f
	s.frame, s.sure = &t.scratch.own, !t.gap
	if t.places == nil {
		t.places = takeLayout(t.flavor)
	}
	s.places, s.spans = t.places, t.places.matcher.OnTape(s.dir, f.Method, s.onTape)
	switch f.Kind {
	case flavors.Request:
		t.ask(s)
	case flavors.Response:
		t.answer(s)
	}
	t.explain(s)
	return s
}

func (t *conversation) classify(s *step) (flavors.Frame, error) {
	if t.flavor.OnTape != nil {
		return t.flavor.OnTape(s.dir, s.onTape)
	}
	return t.flavor.Classify(s.dir, s.raw)
}

// kept returns a step that outlives its entry: its frame, and what was found
// out about it in the conversation.
func (s *step) kept() *step {
	f := *s.frame
	f.ID, f.Raw = bytes.Clone(f.ID), bytes.Clone(f.Raw)
	return &step{line: s.line, label: s.label, dir: s.dir, wire: s.wire, raw: f.Raw, frame: &f, answers: s.answers, mistyped: s.mistyped, sure: s.sure}
}

func (t *conversation) ask(s *step) {
	if s.frame.ID != nil {
		if i := t.find(s.dir, *s.frame); i >= 0 {
			s.reuses = t.open[i]
			t.remove(i) // reported once, by its reuse
		}
	}
	r := &request{line: s.line, dir: s.dir, frame: *s.frame}
	r.frame.ID, r.frame.Raw = bytes.Clone(r.frame.ID), nil
	// Where the player answers by itself, nobody needs to have recorded it.
	r.explained = s.dir == envelope.Out && t.flavor.Minimal != nil && t.flavor.Minimal(*s.frame) != nil
	t.open = append(t.open, r)
	for i, answer := range t.early {
		if s.dir == envelope.In && t.same(*answer.frame, *s.frame) {
			s.answeredEarly, r.explained = answer, true
			t.early = append(t.early[:i], t.early[i+1:]...)
			return
		}
	}
}

func (t *conversation) answer(s *step) {
	if i := t.find(s.dir.Opposite(), *s.frame); i >= 0 {
		s.answers = t.open[i]
		t.remove(i)
		return
	}
	for _, r := range t.open {
		if r.dir != s.dir && s.frame.ID != nil && bytes.Equal(bytes.Trim(r.frame.ID, `"`), bytes.Trim(s.frame.ID, `"`)) {
			s.mistyped = string(r.frame.ID)
			r.explained = true // the answer that came has its own finding
		}
	}
	if s.dir == envelope.Out && s.sure {
		t.early = append(t.early, s.kept())
	}
}

// find returns the index of the oldest open request of one side that belongs
// to the frame, -1 when there is none.
func (t *conversation) find(asker envelope.Direction, f flavors.Frame) int {
	for i, r := range t.open {
		if r.dir == asker && t.same(r.frame, f) {
			return i
		}
	}
	return -1
}

// same says whether two frames belong together by id, or by method where one
// of them carries none.
func (t *conversation) same(a, b flavors.Frame) bool {
	if a.ID == nil || b.ID == nil {
		return a.Method != "" && a.Method == b.Method
	}
	return sameID(a.ID, b.ID)
}

func (t *conversation) remove(i int) { t.open = append(t.open[:i], t.open[i+1:]...) }

// close ends the process and returns the requests it leaves unexplained and
// the outbound responses that answered nothing.
func (t *conversation) close(abnormal bool) (dead []*request, lost []*step) {
	for _, r := range t.open {
		if !abnormal && !r.explained && !t.gap {
			dead = append(dead, r)
		}
	}
	lost = t.early
	t.open, t.early, t.gap = nil, nil, false
	return dead, lost
}

// explain marks the requests that may stay unanswered after this frame: all
// of them once the client interrupts, and the one a notification withdraws by
// its id, as serverRequest/resolved and $/cancel_request do.
func (t *conversation) explain(s *step) {
	if len(t.open) == 0 {
		return
	}
	if s.dir == envelope.Out && s.frame.Kind != flavors.Response && interrupts(s.frame.Method) {
		for _, r := range t.open {
			r.explained = r.explained || r.line < s.line
		}
	}
	if s.frame.Kind != flavors.Notification || !holdsRequestID(s.raw) {
		return
	}
	var names struct {
		Params struct {
			RequestID json.RawMessage `json:"requestId"`
		} `json:"params"`
	}
	if json.Unmarshal(s.raw, &names) != nil {
		return
	}
	for _, r := range t.open {
		r.explained = r.explained || sameID(r.frame.ID, names.Params.RequestID)
	}
}

// holdsRequestID looks for "requestId" by the rarest of its letters.
func holdsRequestID(b []byte) bool {
	const word, at = `"requestId"`, len(`"request`)
	for {
		i := bytes.IndexByte(b, word[at])
		if i < 0 {
			return false
		}
		if i >= at && i+len(word)-at <= len(b) && string(b[i-at:i-at+len(word)]) == word {
			return true
		}
		b = b[i+1:]
	}
}

func interrupts(method string) bool {
	method = strings.ToLower(method)
	return strings.Contains(method, "interrupt") || strings.Contains(method, "cancel") || strings.Contains(method, "abort")
}

// sameID compares two id literals: strings by what they say, anything else by
// its bytes.
func sameID(a, b json.RawMessage) bool {
	if len(a) > 0 && bytes.Equal(a, b) {
		return true
	}
	if len(a) > 0 && len(b) > 0 && a[0] == '"' && b[0] == '"' && (bytes.IndexByte(a, '\\') >= 0 || bytes.IndexByte(b, '\\') >= 0) {
		return envelope.Unquote(a) == envelope.Unquote(b)
	}
	return false
}
