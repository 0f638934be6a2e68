package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// ExitFailed is the exit code of a peer whose replay did not pass.
const ExitFailed = 97

// How much of the rest of a transcript a failure looks at or lists.
const (
	maxNearest  = 200
	maxLeftover = 50
	maxQueued   = 20
)

// fail settles the replay. Only the first failure counts, and one after a
// pass still does.
func (p *Player) fail(v Verdict, f Failure) {
	if p.Failed() {
		return
	}
	f.File = p.script.Path
	if p.previous.Line > 0 {
		prev := p.previous
		f.Previous = &prev
	}
	p.report.Verdict = v
	p.report.ExitCode = ExitFailed
	p.report.Failure = &f
}

// failFrame is the common failure: the frame is not what must come now.
func (p *Player) failFrame(f flavors.Frame) {
	if len(p.window) == 0 {
		p.failAfterEnd(f)
		return
	}
	p.refuse(f)
	// In a group, the member that fits best is the one meant.
	var best *expectation
	var diffs []Difference
	for _, x := range p.window {
		d := p.differences(x, f)
		if best == nil || len(d) < len(diffs) {
			best, diffs = x, d
		}
	}
	fail := Failure{
		Reason: "frame", Line: best.entry.Line, Label: best.entry.Label,
		Message: "outbound mismatch", Actual: f.Raw, Differences: diffs,
		Awaiting: p.awaiting(),
	}
	fail.DuplicateOf = p.duplicateOf(f)
	fail.Nearest = p.nearest(f, len(diffs))
	p.fail(Mismatch, fail)
}

// failAfterEnd is a frame when nothing of this launch is left.
func (p *Player) failAfterEnd(f flavors.Frame) {
	p.refuse(f)
	p.fail(Unexpected, Failure{
		Reason: "after_end", Message: "outbound frame after the end of the recording", Line: p.previous.Line, Label: p.previous.Label,
		Actual: f.Raw, DuplicateOf: p.duplicateOf(f),
	})
}

func (p *Player) failIllegal(f flavors.Frame, msg string) {
	p.refuse(f)
	p.failNow("illegal_frame", "not a legal frame: "+msg, f)
}

func (p *Player) failAnswer(f flavors.Frame, msg string) {
	p.failNow("answer", "outbound response "+msg, f)
}

func (p *Player) failAhead(f flavors.Frame, msg string) {
	p.refuse(f)
	p.failNow("ahead", "outbound frame came too early: "+msg, f)
}

// failNow is a frame that is wrong whatever the recording wants next.
func (p *Player) failNow(reason, msg string, f flavors.Frame) {
	fail := Failure{Reason: reason, Message: msg, Actual: f.Raw, Awaiting: p.awaiting(), DuplicateOf: p.duplicateOf(f)}
	p.failHere(Mismatch, fail)
}

// failHere is a failure at what is awaited, or after what was played last.
func (p *Player) failHere(v Verdict, fail Failure) {
	fail.Line, fail.Label = p.previous.Line, p.previous.Label
	if len(fail.Awaiting) > 0 {
		fail.Line, fail.Label = fail.Awaiting[0].Line, fail.Awaiting[0].Label
	}
	p.fail(v, fail)
}

func (p *Player) failClosed() {
	p.failLeft(Leftover, string(EndOfInput), "the client closed its output before the recording ended")
}

func (p *Player) failIdle() {
	msg := "nothing came from the client within the idle timeout"
	if p.gates.reached != "" {
		msg = fmt.Sprintf("the gate at label %q was not released within the idle timeout", p.gates.reached)
	} else if p.gates.paused {
		msg = "playing was paused and not resumed within the idle timeout"
	} else if p.early {
		msg = "the virtual clock was not advanced within the idle timeout"
	}
	p.failLeft(Timeout, string(Idle), msg)
}

func (p *Player) failAborted(c Cause) {
	msg := map[Cause]string{
		OutputClosed: "the client stopped reading before the recording ended",
		ParentGone:   "the process that started this peer is gone",
		Terminated:   "the peer was told to terminate before the recording ended",
	}[c]
	if p.ended {
		msg = "the client stopped reading before it had the last frames"
	}
	p.failLeft(Aborted, string(c), msg)
}

func (p *Player) failEmpty() {
	p.fail(Leftover, Failure{Reason: "empty", Message: "no frame was served: a replay that compared and played nothing proves nothing"})
}

// failLeft is a failure whose point is what did not happen.
func (p *Player) failLeft(v Verdict, reason, msg string) {
	fail := Failure{Reason: reason, Message: msg, Awaiting: p.awaiting()}
	fail.Leftover, fail.LeftoverCount = p.leftover()
	queue := p.queued()
	for _, f := range queue[:min(len(queue), maxQueued)] {
		fail.Queued = append(fail.Queued, f.Raw)
	}
	p.failHere(v, fail)
}

// invalid is a transcript that turned out unplayable.
func (p *Player) invalid(err error) {
	f := Failure{Reason: "transcript", Message: err.Error()}
	var syn *envelope.SyntaxError
	if errors.As(err, &syn) {
		f.Line, f.Message = syn.Line, syn.Msg
	}
	p.fail(Invalid, f)
}

// refuse remembers the request that gets the protocol's error answer.
func (p *Player) refuse(f flavors.Frame) {
	if f.Kind == flavors.Request && !p.Failed() {
		p.refusal = &f
	}
}

// awaiting lists what the client should have sent, else what comes next.
func (p *Player) awaiting() Awaited {
	var list []Place
	for _, x := range p.window {
		list = append(list, x.place())
	}
	if len(list) > 0 {
		return list
	}
	if p.peek != nil && !p.ended {
		line, label := p.peek.Position()
		list = append(list, Place{Line: line, Label: label, Type: typeOf(p.peek)})
	}
	return list
}

// leftover lists what was not played, the first of it, and counts all.
func (p *Player) leftover() ([]Place, int) {
	list := []Place{}
	for _, x := range p.window {
		list = append(list, x.place())
	}
	at := p.cursor
	if p.ended && p.peek != nil {
		at++ // the runtime_exit of this launch was played
	}
	n := len(list) + p.script.Total - at
	p.each(at, func(e envelope.Entry) bool {
		line, label := e.Position()
		list = append(list, Place{Line: line, Label: label, Type: typeOf(e)})
		return len(list) < maxLeftover
	})
	return list, n
}

// each calls fn with the entries from number at on until it says false.
func (p *Player) each(at int, fn func(envelope.Entry) bool) {
	f, err := p.script.open(at)
	if err != nil {
		return // the list is help, not evidence
	}
	defer f.close()
	for {
		e, err := f.next()
		if err != nil || e == nil || !fn(e) {
			return
		}
	}
}

// nearest finds a later expectation that the frame fits better than the one
// at the cursor, which it misses in `than` places.
func (p *Player) nearest(f flavors.Frame, than int) *Nearest {
	var found *Nearest
	index, seen := p.cursor, 0
	p.each(p.cursor, func(e envelope.Entry) bool {
		out, ok := e.(*envelope.ExpectOutbound)
		if ok {
			if d, ok := p.fits(out, index, f, than); ok {
				than = len(d)
				found = &Nearest{Place: Place{Line: out.Line, Label: out.Label, Type: "expect_outbound"}, Differences: d}
			}
			seen++
		}
		index++
		return seen < maxNearest && (found == nil || len(found.Differences) > 0)
	})
	return found
}

// differences lists where a frame misses an expectation, the request it
// answers included.
func (p *Player) differences(x *expectation, f flavors.Frame) []Difference {
	d := p.bound.diff(x.pattern, f.Raw, x.request())
	if !x.rightRequest(f) {
		d = append(d, Difference{Path: p.rules.idPath(), Kind: "changed", Expected: x.answers, Actual: f.ID})
	}
	return d
}

func (p *Player) fits(out *envelope.ExpectOutbound, index int, f flavors.Frame, than int) ([]Difference, bool) {
	x, err := p.newExpectation(out, index)
	if err != nil || x.frame.Kind != f.Kind || x.frame.Method != f.Method {
		return nil, false
	}
	d := p.differences(x, f)
	return d, len(d) < than
}

// duplicateOf finds the expectation that the same frame met shortly before.
func (p *Player) duplicateOf(f flavors.Frame) *Place {
	for _, x := range slices.Backward(p.met) {
		if x.frame.Kind == f.Kind && json.Valid(f.Raw) && len(p.differences(x, f)) == 0 {
			pl := x.place()
			return &pl
		}
	}
	return nil
}

// quoteUnlessJSON makes any bytes fit for a report.
func quoteUnlessJSON(b []byte) json.RawMessage {
	if json.Valid(b) {
		return b
	}
	q, _ := json.Marshal(string(b)) // unreachable error: strings always encode
	return q
}
