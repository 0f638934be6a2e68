package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// Next says what to do now. now is the driver's clock, from any fixed start;
// only differences count. An Emit counts as played once it is returned: a
// driver that can't deliver it calls Close.
func (p *Player) Next(now time.Duration) Action {
	for {
		if p.Failed() {
			return Action{Kind: Fail}
		}
		if len(p.again) > 0 {
			e := p.again[0]
			p.again = p.again[1:]
			return p.emit(e)
		}
		if len(p.window) > 0 { // something must come before the cursor moves
			if len(p.queued()) == 0 {
				if p.closed != "" {
					p.failClosed()
					continue
				}
				return Action{Kind: Wait}
			}
			if act, ok := p.compare(now); ok {
				return act
			}
			continue
		}
		if p.peek == nil {
			if act, ok := p.end(Exit{Status: envelope.Success}); ok {
				return act
			}
			continue
		}
		if act, ok := p.hold(now); ok {
			return act
		}
		if act, ok := p.step(now); ok {
			return act
		}
	}
}

// step plays the entry at the cursor; ok is false when there is nothing for
// the driver to do about it.
func (p *Player) step(now time.Duration) (Action, bool) {
	switch e := p.peek.(type) {
	case *envelope.ExpectOutbound:
		p.expect(e)
		p.advance(now)
		for e.Group != "" && !p.Failed() {
			next, ok := p.peek.(*envelope.ExpectOutbound)
			if !ok || next.Group != e.Group {
				break
			}
			p.expect(next)
			p.advance(now)
		}
	case *envelope.EmitInbound:
		em, emit := p.correlate(e)
		p.advance(now)
		if emit && !p.Failed() {
			return p.emit(em), true
		}
	case *envelope.RuntimeExit:
		return p.end(exitOf(e))
	default:
		p.invalid(fmt.Errorf("entry of type %T", e)) // unreachable unless an Entry is added
	}
	return Action{}, false
}

// advance moves the cursor past the entry that was just taken up.
func (p *Player) advance(now time.Duration) {
	_, label := p.peek.Position()
	p.pacer.played(now)
	p.gates.passed(label)
	p.cursor++
	next, err := p.feed.next()
	if err != nil {
		p.invalid(err)
	}
	p.peek = next
}

// expect opens an expectation: one that holds everything after it, or an
// optional one that holds nothing.
func (p *Player) expect(e *envelope.ExpectOutbound) {
	x, err := p.newExpectation(e, p.cursor)
	if err != nil {
		p.invalid(err)
		return
	}
	switch x.frame.Kind {
	case flavors.Request:
		p.asked = append(p.asked, x)
	case flavors.Response:
		x.answers, p.open = takeRequest(p.open, x.frame)
	}
	if e.Optional {
		p.optional = append(p.optional, x)
		return
	}
	p.window = append(p.window, x)
}

func (p *Player) newExpectation(e *envelope.ExpectOutbound, index int) (*expectation, error) {
	f, err := p.script.Flavor.Classify(envelope.Out, e.Frame)
	if err != nil {
		return nil, p.script.errorf(e.Line, "%v", err)
	}
	chosen, err := sites(p.script.Flavor.Chosen, f)
	if err != nil {
		return nil, p.script.errorf(e.Line, "%v", err) // unreachable unless the flavor has a bad path
	}
	x := &expectation{entry: e, index: index, frame: f, pattern: compile(e.Frame, p.rules, chosen)}
	x.pattern.bare = f.Kind != flavors.Notification && f.ID == nil
	return x, nil
}

// Expected recognises a line that is, byte for byte, the frame that must come
// now, and saves reading it: most lines are.
func (p *Player) Expected(line []byte) (flavors.Frame, bool) {
	if !p.script.Flavor.Verbatim || len(p.window) == 0 || len(p.queued()) > 0 {
		return flavors.Frame{}, false
	}
	x := p.window[0]
	if !x.pattern.exact || !bytes.Equal(x.entry.Frame, line) {
		return flavors.Frame{}, false
	}
	return x.frame, true
}

// sites returns the paths of places that apply to an outbound frame.
func sites(list []flavors.Place, f flavors.Frame) ([]place, error) {
	var paths []place
	for _, pl := range list {
		if pl.Dir == envelope.Out && (pl.Method == "*" || pl.Method == f.Method) {
			p, err := parsePlace(pl.Path)
			if err != nil {
				return nil, err
			}
			paths = append(paths, p)
		}
	}
	return paths, nil
}

// compare takes the oldest frame and finds what it meets: the expectation at
// the cursor, else an optional one, else a repeated one. ok is true when the
// driver has to wait for another frame first.
func (p *Player) compare(now time.Duration) (act Action, ok bool) {
	if p.script.Flavor.Unordered {
		return p.compareAny(now)
	}
	f := p.dequeue()
	if !p.settle(f, now) {
		p.failFrame(f)
	}
	return Action{}, false
}

// stray is how long a request may wait for one that was sent with it.
const stray = 250 * time.Millisecond

// compareAny is compare where frames that wait together have no order. The
// one that must come now may be on its way on another connection.
func (p *Player) compareAny(now time.Duration) (act Action, ok bool) {
	for i, f := range p.queued() {
		if p.settle(f, now) {
			p.queue = slices.Delete(p.queue, p.head+i, p.head+i+1)
			if p.head == len(p.queue) {
				p.queue, p.head = p.queue[:0], 0
			}
			p.strays = false
			return Action{}, false
		}
	}
	if !p.strays {
		p.strays, p.since = true, now
	}
	if left := p.since + stray - now; left > 0 && p.closed == "" {
		return Action{Kind: Sleep, Delay: left}, true
	}
	p.failFrame(p.dequeue())
	return Action{}, false
}

// settle lets a frame meet what it fits, and says whether there was something.
func (p *Player) settle(f flavors.Frame, now time.Duration) bool {
	for i, x := range p.window {
		if p.matches(x, f) {
			p.window = slices.Delete(p.window, i, i+1)
			p.meet(x, f)
			p.pacer.played(now) // recorded delays count from the frame's arrival
			return true
		}
	}
	return p.compareLoose(f)
}

// dequeue takes the oldest frame that was not compared. The queue's memory is
// used again once it is empty.
func (p *Player) dequeue() flavors.Frame {
	f := p.queue[p.head]
	p.queue[p.head] = flavors.Frame{}
	if p.head++; p.head == len(p.queue) {
		p.queue, p.head = p.queue[:0], 0
	}
	return f
}

// queued returns the frames that were not compared yet.
func (p *Player) queued() []flavors.Frame { return p.queue[p.head:] }

// compareLoose tries what may come out of turn.
func (p *Player) compareLoose(f flavors.Frame) bool {
	for i, x := range p.optional {
		if p.matches(x, f) {
			p.optional = slices.Delete(p.optional, i, i+1)
			p.meet(x, f)
			if p.ended { // it was counted as skipped
				p.report.Entries.Skipped -= 1 + len(x.held)
			}
			for _, e := range x.held {
				p.again = append(p.again, emission{entry: e, id: x.id})
				x.given = append(x.given, e)
			}
			x.held = nil
			return true
		}
	}
	for _, x := range p.repeats {
		if p.matches(x, f) {
			p.report.Outbound.Repeated++
			if p.script.unanswered[x.index] {
				p.answerMinimally(x, f.ID)
			}
			if len(x.given) == 0 && slices.Contains(p.asked, x) {
				x.repeated = append(x.repeated, f.ID)
			}
			for _, e := range x.given {
				p.again = append(p.again, emission{entry: e, id: f.ID, repeated: true})
			}
			return true
		}
	}
	return false
}

// matches compares a frame with an expectation. A response must also answer
// the very request that the recorded one answered.
func (p *Player) matches(x *expectation, f flavors.Frame) bool {
	return x.frame.Kind == f.Kind && x.rightRequest(f) && p.bound.match(x.pattern, f.Raw, x.request())
}

// inRequest is a request of the provider: as recorded, and the id it went out
// with.
type inRequest struct {
	frame flavors.Frame
	id    json.RawMessage
}

// takeRequest finds the oldest request that a recorded response answers and takes it
// from the list; nil when there is none.
func takeRequest(open []inRequest, response flavors.Frame) (id json.RawMessage, rest []inRequest) {
	at := slices.IndexFunc(open, func(r inRequest) bool { return sameRequest(r.frame, response) })
	if at < 0 {
		return nil, open
	}
	id = open[at].id
	return id, slices.Delete(open, at, at+1)
}

// meet settles an expectation.
func (p *Player) meet(x *expectation, f flavors.Frame) {
	x.met, x.id = true, f.ID
	p.previous = x.place()
	p.report.Outbound.Matched++
	p.report.Entries.Played++
	if p.script.unanswered[x.index] {
		p.answerMinimally(x, x.id)
	}
	if x.entry.Repeat && x.request() {
		p.repeats = append(p.repeats, x)
	}
	const remembered = 8
	if len(p.met) == remembered {
		copy(p.met, p.met[1:])
		p.met = p.met[:remembered-1]
	}
	p.met = append(p.met, x)
}

// answerMinimally gives a request whose answer was not recorded the least that
// the protocol allows.
func (p *Player) answerMinimally(x *expectation, id json.RawMessage) {
	if raw := p.script.Flavor.Minimal(x.frame); raw != nil {
		e := &envelope.EmitInbound{Label: x.entry.Label, Frame: raw, Line: x.entry.Line}
		p.again = append(p.again, emission{entry: e, id: id, repeated: true})
	}
}

// correlate finds which request an inbound response answers, and whether it
// goes out now: the answer to an optional request that has not come waits
// with it.
func (p *Player) correlate(e *envelope.EmitInbound) (em emission, emit bool) {
	em.entry = e
	if !onProtocol(e) {
		return em, true
	}
	f, err := p.script.Flavor.Classify(envelope.In, e.Frame)
	if err != nil {
		p.invalid(p.script.errorf(e.Line, "%v", err))
		return em, false
	}
	em.frame = f
	if f.Kind != flavors.Response {
		return em, true
	}
	at := slices.IndexFunc(p.asked, func(x *expectation) bool { return sameRequest(x.frame, f) })
	if at < 0 {
		return em, true // an answer to nothing recorded: emitted as it stands
	}
	x := p.asked[at]
	p.asked = slices.Delete(p.asked, at, at+1)
	if !x.met {
		x.held = append(x.held, e)
		return em, false
	}
	if x.entry.Repeat {
		x.given = append(x.given, e)
		for _, id := range x.repeated {
			p.again = append(p.again, emission{entry: e, id: id, repeated: true})
		}
		x.repeated = nil
	}
	em.id = x.id
	return em, true
}

// emit turns an inbound entry into an action and keeps the books.
func (p *Player) emit(em emission) Action {
	e := em.entry
	p.previous = Place{Line: e.Line, Label: e.Label, Type: "emit_inbound"}
	p.report.Inbound.Emitted++
	if !em.repeated {
		p.report.Entries.Played++
	}
	act := Action{Kind: Emit, Channel: envelope.Protocol, ID: em.id}
	if !onProtocol(e) {
		act.Channel = e.Channel
		act.Frame = flavors.Frame{Raw: e.Frame}
		return act
	}
	raw, err := p.bound.render(e.Frame)
	if err != nil {
		p.invalid(p.script.errorf(e.Line, "%v", err))
		return Action{Kind: Fail}
	}
	var f flavors.Frame
	if em.frame.Raw != nil && &raw[0] == &e.Frame[0] {
		f = em.frame
	} else if f, err = p.script.Flavor.Classify(envelope.In, raw); err != nil {
		p.invalid(p.script.errorf(e.Line, "%v", err)) // unreachable unless substitution broke it
		return Action{Kind: Fail}
	}
	switch f.Kind {
	case flavors.Request:
		recorded := f
		if f.ID == nil {
			f.ID = strconv.AppendInt(nil, p.nextID, 10)
			p.nextID++
			act.ID = f.ID
		}
		p.answered[idKey(f.ID)] = false
		p.open = append(p.open, inRequest{recorded, f.ID})
	case flavors.Response:
		if em.id != nil {
			delete(p.inflight, idKey(em.id))
			p.scopes.close(idKey(em.id))
		}
	}
	act.Frame = f
	return act
}

func onProtocol(e *envelope.EmitInbound) bool {
	return e.Channel == "" || e.Channel == envelope.Protocol
}

func typeOf(e envelope.Entry) string {
	switch e.(type) {
	case *envelope.ExpectOutbound:
		return "expect_outbound"
	case *envelope.EmitInbound:
		return "emit_inbound"
	}
	return "runtime_exit"
}

// sameRequest says whether a recorded response belongs to a recorded request:
// by id where both frames carry one, else by method.
func sameRequest(request, response flavors.Frame) bool {
	if response.ID != nil && request.ID != nil {
		return idKey(request.ID) == idKey(response.ID)
	}
	return request.Method == response.Method
}

// idKey spells a request id in one way: two strings are the same id when they
// mean the same, however they are escaped.
func idKey(id json.RawMessage) string {
	if bytes.IndexByte(id, '\\') >= 0 && id[0] == '"' {
		return string(envelope.AppendString(nil, envelope.Unquote(id)))
	}
	return string(id)
}
