// Package envelope is the transcript format: one header line, then entries,
// as NDJSON.
//
//	{"type":"transcript_start","provider":"codex","protocol":"codex.app-server","version":"0.171.0","scenario":"simple","metadata":{…}}
//	{"type":"expect_outbound","label":"initialize","frame":{…}}
//	{"type":"emit_inbound","label":"initialize","frame":{…},"afterMs":12}
//	{"type":"runtime_exit","status":"success"}
//
// Frames are raw evidence: the reader keeps their bytes and the writer puts
// the same bytes back, so number literals, key order, duplicate keys and
// whatever legal text a provider sent survive. What the package does not know
// (header fields, entry fields) is kept in Extra and written last.
//
// Errors about a line are *SyntaxError and start with "file:line: ". Reading
// may go on after one: it concerns a single line.
package envelope

import (
	"encoding/json"
	"fmt"
)

// MaxLine is the longest line, in bytes, that a Reader accepts by default.
const MaxLine = 64 << 20

// Direction tells which side sent a frame.
type Direction uint8

// Out is client (orchestrator) to provider, In is provider to client.
const (
	Out Direction = iota
	In
)

// String returns "outbound" or "inbound".
func (d Direction) String() string {
	if d == In {
		return "inbound"
	}
	return "outbound"
}

// Opposite returns the other direction.
func (d Direction) Opposite() Direction { return 1 - d }

// Header is the first line of a transcript. The four strings are required.
type Header struct {
	Provider string // who was recorded: "codex"
	Protocol string // which protocol the frames follow: "codex.app-server"
	Version  string // the provider's version, or the protocol's
	Scenario string // what was recorded: "simple"
	// Metadata is a JSON object, or nil where the header has none.
	Metadata json.RawMessage
	Extra    []Member // unknown fields, in their order
	Line     int      // position in the file read, 1-based; 0 when made in memory
}

// Entry is one line after the header: *ExpectOutbound, *EmitInbound or
// *RuntimeExit.
type Entry interface {
	// Position returns the line the entry was read from and its label.
	Position() (line int, label string)
	isEntry()
}

// ExpectOutbound is a frame the client must send.
type ExpectOutbound struct {
	Label    string
	Group    string // consecutive entries of one group match in any order; "" is none
	Optional bool   // the client may leave it out
	Repeat   bool   // the client may ask again and gets the same answer again
	Frame    json.RawMessage
	Extra    []Member
	Line     int
}

// Channel tells where an inbound frame appeared.
type Channel string

// The frames of Stderr and Stdout are JSON strings: raw text, not protocol.
const (
	Protocol Channel = "protocol"
	Stderr   Channel = "stderr"
	Stdout   Channel = "stdout"
)

// EmitInbound is a frame the provider sends.
type EmitInbound struct {
	Label   string
	Channel Channel // "" means Protocol
	Frame   json.RawMessage
	AfterMs *int64 // milliseconds since the entry before; nil when not recorded
	Extra   []Member
	Line    int
}

// Status is how a provider process ended.
type Status string

// The statuses of a runtime_exit.
const (
	Success   Status = "success"
	Failed    Status = "error"
	Cancelled Status = "cancelled"
)

// RuntimeExit is the end of one provider process. When it is not the last
// entry, what follows belongs to the next launch.
type RuntimeExit struct {
	Label   string
	AfterMs *int64
	Status  Status
	// Error is free JSON, nil when absent. Where replay-record wrote it, it is
	// {"exitCode":int,"signal":string,"stderr":string,"inputClosed":bool}, each
	// part optional.
	Error json.RawMessage
	Extra []Member
	Line  int
}

func (e *ExpectOutbound) isEntry() {}
func (e *EmitInbound) isEntry()    {}
func (e *RuntimeExit) isEntry()    {}

// Position implements Entry.
func (e *ExpectOutbound) Position() (int, string) { return e.Line, e.Label }

// Position implements Entry.
func (e *EmitInbound) Position() (int, string) { return e.Line, e.Label }

// Position implements Entry.
func (e *RuntimeExit) Position() (int, string) { return e.Line, e.Label }

// Member is one field this package does not know, kept as it stood.
type Member struct {
	Name  string // decoded
	Value json.RawMessage
	key   []byte // the key's bytes, quotes included; nil when made in memory
}

// SyntaxError says what is wrong with one line of a transcript.
type SyntaxError struct {
	File string
	Line int // 1-based
	Msg  string
}

// Error returns "file:line: message".
func (e *SyntaxError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg) }

// Transcript is a whole transcript in memory.
type Transcript struct {
	File    string
	Header  Header
	Entries []Entry
}
