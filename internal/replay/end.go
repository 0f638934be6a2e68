package replay

import (
	"time"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// maxQueue bounds the frames that wait while playing is held.
const maxQueue = 1 << 16

// Receive takes one outbound frame. Its Raw must not change afterwards.
func (p *Player) Receive(f flavors.Frame) {
	if p.Failed() {
		return
	}
	switch f.Kind {
	case flavors.Request:
		if err := p.script.Flavor.CheckID(f.ID); err != nil {
			p.failIllegal(f, err.Error())
			return
		}
		if p.inflight[idKey(f.ID)] {
			p.failIllegal(f, "request id "+string(f.ID)+" is in flight already")
			return
		}
		p.inflight[idKey(f.ID)] = true
		if msg := p.scopes.open(p.script.Flavor.Exclusive, f); msg != "" {
			p.failIllegal(f, msg)
			return
		}
	case flavors.Response:
		done, sent := p.answered[idKey(f.ID)]
		switch {
		case !sent:
			p.failAnswer(f, "answers request "+string(f.ID)+", which the provider has not sent"+p.openRequests())
			return
		case done:
			p.failAnswer(f, "answers request "+string(f.ID)+" a second time")
			return
		}
		p.answered[idKey(f.ID)] = true
	}
	if p.early {
		if msg := p.ahead(f); msg != "" {
			p.failAhead(f, msg)
			return
		}
	}
	if len(p.queued()) >= maxQueue {
		p.failAhead(f, "too many frames sent ahead of the recording")
		return
	}
	p.queue = append(p.queue, f)
}

// Illegal takes a message that is no frame of the protocol.
func (p *Player) Illegal(wire []byte, err error) {
	if !p.Failed() {
		p.failIllegal(flavors.Frame{Raw: quoteUnlessJSON(wire)}, err.Error())
	}
}

// Close says that the client is gone, or does nothing more. What it means
// depends on what is left: at the end of a launch every cause is fine but
// OutputClosed, which says that a frame was not delivered, and after the end of
// input the provider still says what it has to say.
func (p *Player) Close(c Cause) {
	if p.Failed() || p.gone() && c != OutputClosed {
		return // a client that has sent all it will may still stop reading too early
	}
	p.closed = c
	switch {
	case p.ended && c != OutputClosed || c == EndOfInput:
	case c == Idle:
		p.failIdle()
	default:
		p.failAborted(c)
	}
}

// gone says whether nobody is there any more. Where the provider ends by
// itself, a client has not gone by having said all it has to say.
func (p *Player) gone() bool {
	return p.closed != "" && !(p.closed == EndOfInput && p.script.Flavor.EndsAlone)
}

// hold says whether a gate, a pause or the pace keeps the entry at the cursor
// back.
func (p *Player) hold(now time.Duration) (Action, bool) {
	_, label := p.peek.Position()
	p.early = true
	if p.gates.held(label) {
		if p.gone() {
			p.failClosed()
			return Action{Kind: Fail}, true
		}
		return Action{Kind: Held}, true
	}
	if !p.gone() {
		if d := p.pacer.left(p.peek, now); d != 0 {
			if d < 0 {
				return Action{Kind: Held}, true
			}
			return Action{Kind: Sleep, Delay: d}, true
		}
	}
	p.early = false
	return Action{}, false
}

// end is the end of a launch: a runtime_exit, or the end of a transcript that
// has none. What waits in the queue came after it.
func (p *Player) end(x Exit) (Action, bool) {
	if len(p.queued()) > 0 {
		f := p.dequeue()
		if !p.compareLoose(f) {
			p.failAfterEnd(f)
		}
		return Action{}, false
	}
	if !p.ended {
		p.ended = true
		if p.peek != nil {
			p.report.Entries.Played++
			line, label := p.peek.Position()
			p.previous = Place{Line: line, Label: label, Type: "runtime_exit"}
		}
		for _, o := range p.optional {
			p.report.Entries.Skipped += 1 + len(o.held)
		}
		if p.last() {
			p.pass(x)
			if p.Failed() {
				return Action{}, false
			}
		}
	}
	p.cancelled = x.Status == envelope.Cancelled
	if x.own() || p.closed != "" && !p.outlives() {
		return Action{Kind: Quit, Exit: x}, true
	}
	return Action{Kind: Closing, Exit: x}, true
}

// outlives says whether the end of its input is not enough to end the
// provider: its client closed first, as every client of such a provider does,
// and then had to end it by a signal.
func (p *Player) outlives() bool {
	return p.ended && p.cancelled && p.closed == EndOfInput && p.script.Flavor.EndsAlone
}

// last says whether the end at the cursor is the transcript's.
func (p *Player) last() bool { return p.cursor >= p.script.Total-1 }

func (p *Player) pass(x Exit) {
	if p.report.Outbound.Matched+p.report.Inbound.Emitted == 0 {
		p.failEmpty()
		return
	}
	p.report.Verdict = Passed
	p.report.ExitCode = x.Code
	if p.script.CRLF > 0 {
		p.Warn("the transcript has lines that end in CR LF")
	}
}

// State is what the next launch needs to know.
func (p *Player) State() State {
	r := &p.report
	st := State{
		Version: 1, Transcript: p.script.SHA256,
		Cursor: p.cursor, Launches: r.Launches, Verdict: r.Verdict,
		Played: r.Entries.Played, Skipped: r.Entries.Skipped,
		Matched: r.Outbound.Matched, Repeated: r.Outbound.Repeated, Emitted: r.Inbound.Emitted,
		Names: p.bound.names, Literals: p.bound.literals,
	}
	if p.ended {
		st.Ended = true
		if p.peek != nil {
			st.Cursor++
		}
	}
	return st
}
