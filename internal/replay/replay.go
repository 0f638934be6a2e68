// Package replay plays a transcript: a state machine that is told what the
// client sent and when it closed, and tells what to send and when to exit. It
// owns no process and no socket and knows nothing of turns, plans or
// approvals; what it knows of a protocol comes as a flavor. internal/peer
// puts it on a wire.
//
// A Player plays one launch of the provider. A driver calls Receive for each
// outbound frame, Close when the client is gone, and Next until it says Wait.
package replay

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// Options are the settings of one replay. The zero value plays instantly.
type Options struct {
	// Workspace is the value of <workspace>: an absolute path.
	Workspace string
	Pace      Pace
	// Hold lists gates: labels, or LABEL#N for one occurrence. Playing stops
	// before the entry until Release.
	Hold []string
}

// Action is what the driver has to do next.
type Action struct {
	Kind ActionKind
	// Channel and Frame belong to Emit. On the protocol channel Frame is a
	// logical frame to encode; on the others Frame.Raw is a JSON string whose
	// text goes out as it is.
	Channel envelope.Channel
	Frame   flavors.Frame
	// ID is the actual request id that an emitted response answers; nil when
	// the frame's own id stands.
	ID json.RawMessage
	// Delay is how long Sleep lasts.
	Delay time.Duration
	// Exit belongs to Quit and Closing.
	Exit Exit
}

// ActionKind is what to do.
type ActionKind uint8

const (
	// Wait for the client: a frame or its close.
	Wait ActionKind = iota
	// Emit sends Frame, then ask again.
	Emit
	// Sleep for Delay or until something else happens, then ask again.
	Sleep
	// Held by a gate, a pause or the virtual clock: wait for control.
	Held
	// Closing means everything of this launch was played: wait for the client
	// to close, then Quit. Idling here is no failure.
	Closing
	// Quit the process as Exit says. The replay of this launch is over.
	Quit
	// Fail means the replay failed: Report tells why; stop.
	Fail
)

// Exit is how the recorded process ended.
type Exit struct {
	Status envelope.Status
	Code   int
	Signal string // "SIGKILL"; "" for none
	Stderr string // text to write before
	// InputClosed is true where it waited for the end of its input.
	InputClosed bool
}

// own says whether the provider ended by itself, not because the client
// closed or ended it.
func (x Exit) own() bool { return x.Status == envelope.Failed && !x.InputClosed }

// expectation is one expect_outbound that the cursor has reached.
type expectation struct {
	entry   *envelope.ExpectOutbound
	index   int // of the entry
	frame   flavors.Frame
	pattern *pattern
	met     bool
	id      json.RawMessage         // the actual request id, once met
	held    []*envelope.EmitInbound // answers to an optional request that has not come
	given   []*envelope.EmitInbound // answers given, kept for repeat
	answers json.RawMessage         // for a response: the actual id of the request it must answer; nil for any
	// repeated are ids of further requests that came before the answer.
	repeated []json.RawMessage
}

func (x *expectation) request() bool { return x.frame.Kind == flavors.Request }

// rightRequest says whether a response answers what x does.
func (x *expectation) rightRequest(f flavors.Frame) bool {
	return x.answers == nil || f.Kind != flavors.Response || idKey(x.answers) == idKey(f.ID)
}

func (x *expectation) place() Place {
	return Place{Line: x.entry.Line, Label: x.entry.Label, Type: "expect_outbound"}
}

// Player plays one launch of a transcript. Not safe for concurrent use.
type Player struct {
	script *Script
	opt    Options
	rules  *rules
	bound  *bindings

	feed   *feed
	cursor int            // index of peek
	peek   envelope.Entry // the next entry; nil at the end

	window   []*expectation // what must come now; more than one in a group
	optional []*expectation // may come any time until the process ends
	repeats  []*expectation // may come again
	asked    []*expectation // requests whose recorded answer has not come, in order
	again    []emission     // answers to emit before going on

	queue    []flavors.Frame // frames received; those from head on are not compared yet
	head     int
	strays   bool            // frames wait that met nothing, where they have no order
	since    time.Duration   // when that began
	inflight map[string]bool // actual ids of unanswered client requests
	answered map[string]bool // ids of our requests: false while open
	open     []inRequest     // our requests whose recorded answer has not been reached
	nextID   int64           // for our requests that have no recorded id
	scopes   scopes
	early    bool           // playing is held: what comes now comes early
	met      []*expectation // the last few, to recognise duplicates

	pacer  pacer
	gates  gates
	closed Cause // why the client is gone; "" while it is there
	ended  bool  // everything of this launch was played
	// cancelled is true at the end of a launch that the recorded client ended.
	cancelled bool

	report   Report
	previous Place
	refusal  *flavors.Frame // the client's request that gets the error answer
}

// emission is one frame ready to go out.
type emission struct {
	entry    *envelope.EmitInbound
	id       json.RawMessage // of the actual request it answers
	frame    flavors.Frame   // the entry's, where it was classified already
	repeated bool            // it went out before and was counted then
}

// Cause is why a client is gone.
type Cause string

// The causes Close takes.
const (
	EndOfInput   Cause = "end_of_input"
	OutputClosed Cause = "output_closed"
	ParentGone   Cause = "parent_gone"
	Terminated   Cause = "terminated"
	Idle         Cause = "idle"
)

// New returns the Player of the launch that st points at, which it does not
// keep.
func New(s *Script, opt Options, st State) (*Player, error) {
	p := &Player{
		script:   s,
		opt:      opt,
		rules:    &rules{ignore: s.ignore, idKey: s.Flavor.IDKey, workspace: opt.Workspace},
		bound:    st.bindings(opt.Workspace),
		cursor:   st.Cursor,
		inflight: map[string]bool{},
		answered: map[string]bool{},
		pacer:    pacer{pace: opt.Pace},
		report: Report{
			Version: 1,
			Verdict: Running,
			Transcript: TranscriptRef{
				Path: s.Path, SHA256: s.SHA256,
				Provider: s.Header.Provider, Protocol: s.Header.Protocol, Scenario: s.Header.Scenario,
			},
			Entries:  EntryCount{Total: s.Total, Played: st.Played, Skipped: st.Skipped},
			Outbound: OutboundCount{Expected: s.Outbound, Matched: st.Matched, Repeated: st.Repeated},
			Inbound:  InboundCount{Emitted: st.Emitted},
			Launches: st.Launches + 1,
		},
	}
	var err error
	if p.gates, err = newGates(s, opt.Hold, st.Cursor); err != nil {
		return nil, err
	}
	if p.feed, err = s.open(st.Cursor); err != nil {
		return nil, err
	}
	if p.peek, err = p.feed.next(); err != nil {
		p.feed.close()
		return nil, err
	}
	return p, nil
}

// Report returns the receipt as it stands.
func (p *Player) Report() *Report {
	r := p.report
	return &r
}

// Refusal returns the client's request that the failure leaves unanswered;
// nil when there is none.
func (p *Player) Refusal() *flavors.Frame { return p.refusal }

// Failed says whether the replay has failed.
func (p *Player) Failed() bool {
	return p.report.Verdict != Running && p.report.Verdict != Passed
}

// Stop releases what the Player holds open.
func (p *Player) Stop() { p.feed.close() }

// Awaiting lists what the client should send now, else what comes next.
func (p *Player) Awaiting() Awaited { return p.awaiting() }

// FailLaunch fails the replay because of what happened around it: another
// launch, a file that can't be written.
func (p *Player) FailLaunch(msg string) {
	p.fail(Unexpected, Failure{Reason: "launch", Message: msg})
}

// Warn adds a remark to the report, once.
func (p *Player) Warn(msg string) {
	if !slices.Contains(p.report.Warnings, msg) {
		p.report.Warnings = append(p.report.Warnings, msg)
	}
}
