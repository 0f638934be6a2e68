// Package flavors holds what the toolkit knows of each provider's protocol,
// as data and small pure functions: how wire messages and logical frames turn
// into each other, which frames ask and which answer, which values vary from
// run to run. One flavor, one file. The recorder and the player share a
// flavor, so a transcript means the same in both.
package flavors

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// All lists the flavors, one per protocol. Where several share a provider's
// name, the usual one comes first.
var All = []*Flavor{Codex, Claude, Cursor, OpenCode, ACP, CodexExec}

// ByProtocol returns the flavor of a protocol id such as "codex.app-server".
func ByProtocol(protocol string) (*Flavor, error) {
	for _, f := range All {
		if f.Protocol == protocol {
			return f, nil
		}
	}
	return nil, fmt.Errorf("unknown protocol %q: want %s", protocol, known(func(f *Flavor) string { return f.Protocol }))
}

// ByProvider returns the first flavor whose provider has the name.
func ByProvider(name string) (*Flavor, error) {
	for _, f := range All {
		if slices.Contains(f.Providers, name) {
			return f, nil
		}
	}
	return nil, fmt.Errorf("unknown provider %q: want %s", name, known(func(f *Flavor) string { return f.Providers[0] }))
}

func known(name func(*Flavor) string) string {
	names := make([]string, len(All))
	for i, f := range All {
		names[i] = name(f)
	}
	return strings.Join(names, ", ")
}

// Transport is what the provider's process speaks on.
type Transport uint8

// Stdio is newline-delimited messages on stdin and stdout.
const (
	Stdio Transport = iota
	HTTP
)

// Kind tells what a frame does in a conversation.
type Kind uint8

// A Request wants a Response; a Notification wants nothing.
const (
	Notification Kind = iota
	Request
	Response
)

// String returns the kind's name in lower case.
func (k Kind) String() string {
	return [...]string{"notification", "request", "response"}[k]
}

// Frame is one logical frame, classified.
type Frame struct {
	Kind   Kind
	Method string          // "" for a response whose frame does not carry it
	ID     json.RawMessage // the request id literal; nil where the frame has none
	Raw    json.RawMessage // the logical frame as it stands in a transcript
}

// Stray says whether f is a response to nothing: an error about a message
// whose id the provider could not read.
func (f Frame) Stray() bool {
	return f.Kind == Response && f.Method == "" && (f.ID == nil || string(f.ID) == "null")
}

// Flavor is what the toolkit knows of one protocol. Its functions are pure.
type Flavor struct {
	Providers []string // names a transcript's provider field may have; the first is the usual one
	Protocol  string
	Transport Transport
	Metadata  string // names the schema "metadata.NAME"; "" means the first provider

	// CheckArgs says whether a provider started with these arguments speaks
	// the protocol; nil where the arguments do not matter.
	CheckArgs func(args []string) error

	// Prose is true where the client's side is plain text: a codec gets its
	// bytes in pieces as they come, line ends included.
	Prose bool

	// Classify reads a logical frame. The error says why it is not one.
	Classify func(dir envelope.Direction, raw json.RawMessage) (Frame, error)

	// OnTape is Classify of a value that was scanned; nil leaves it to Classify.
	OnTape func(dir envelope.Direction, v envelope.Value) (Frame, error)

	// Verbatim says that every line of the wire is a frame as it stands,
	// whatever came before it: equal lines are equal frames.
	Verbatim bool

	// IDKey is the top-level key of a request or response that holds its id.
	// A logical frame may lack it; a response is then matched to the oldest
	// open request of its method.
	IDKey string

	// CheckID says whether a request id literal is legal for the protocol.
	CheckID func(id json.RawMessage) error

	// NewCodec returns the codec of one provider process.
	NewCodec func(Launch) Codec

	// Minimal returns the least legal answer to a client's request, as a
	// logical frame, for transcripts in which no answer was recorded; nil
	// where the request has none. The function is nil where a protocol never
	// needs it.
	Minimal func(request Frame) json.RawMessage

	// Unordered is true where requests travel on connections of their own:
	// those that wait together came in no order.
	Unordered bool

	// EndsAlone is true where the provider ends by itself once its client has
	// closed, however much is still to be said.
	EndsAlone bool

	// Refusal returns the protocol's error answer, on the wire and without
	// line end, to a client's request; nil where it has none.
	Refusal func(request Frame, message string) []byte

	// Address reads which address the provider's arguments tell it to serve
	// at: HOST:PORT, where port 0 is any. The error says that they start
	// something else. HTTP only.
	Address func(args []string) (string, error)

	// Serve returns the provider's arguments, changed so that it serves on a
	// loopback address with a port of its own choice. HTTP only.
	Serve func(args []string) []string

	// Ready is the line, with %s for the URL, that tells on stdout that the
	// provider serves. HTTP only.
	Ready string

	// Volatile lists the places whose values differ between two recordings of
	// one scenario although nothing changed in meaning.
	Volatile []Place

	// Chosen lists the places where the client itself invents a value that
	// comes back later (a session id, a prompt uuid): bound at first use.
	Chosen []Place

	// Exclusive lists requests that a client may not send while another one
	// with the same value at Path is unanswered.
	Exclusive []Place

	// References lists the places where the client names something the
	// provider has said before (a thread, a turn).
	References []Place

	// Ends lists inbound frames after which the value at Path is over.
	Ends []Place

	// Streams lists the texts that arrive in pieces, one per frame. Redaction
	// reads them joined.
	Streams []Stream

	// Threads lists the places where a frame says which thread of conversation
	// it belongs to: frames of one thread keep their order, those of several
	// may come in any.
	Threads []Place

	// Items lists the places where a notification names a piece of work within
	// its thread. The frames of one keep their order; those of several that are
	// under way at once may come in any.
	Items []Place

	// States lists notifications that tell what state the conversation is in,
	// once more or once less from run to run: which states are told counts, not
	// when or how often. Method may also be what Label calls the notification.
	// With a path, only notifications that have something there are meant.
	States []Place

	// VersionArgs makes the provider's own binary print its version.
	VersionArgs []string

	// VersionLine is what the binary then prints, with %s for the version;
	// "" means the version alone.
	VersionLine string

	// Noise lists the methods of notifications that a recorder leaves out: the
	// provider's housekeeping, which differs from start to start and says
	// nothing about the conversation.
	Noise []string

	// VendorText lists inbound places where a provider shows prose of its own:
	// help texts and instructions. They are not ours to publish and say nothing
	// about the conversation; a recorder puts a placeholder for the long ones.
	VendorText []Place

	// Label is what a recorder calls a notification; nil calls it by its
	// method.
	Label func(Frame) string

	// Probe reads facts for a transcript's metadata out of a frame, such as
	// {"model": "gpt-5.5"}; nil when the frame holds none. Keys are metadata
	// keys. A recorder also shows it the inbound wire messages that give no
	// frame: as a Frame without a method whose Raw is the message, which need
	// not be JSON.
	Probe func(dir envelope.Direction, f Frame) map[string]string

	// Version reads of a classified frame what Probe has as "providerVersion",
	// and nothing else, which is cheaper; "" where the frame does not tell it.
	// nil leaves it to Probe.
	Version func(dir envelope.Direction, f Frame) string
}

// Place names values inside frames.
type Place struct {
	Dir    envelope.Direction
	Method string // exact, or "*" for any
	// Path is a path below the frame in which "*" is any key or index and a
	// leading "**." any depth: "params.thread.id", "**.startedAtMs".
	Path string
}

// Stream names the place of a text that arrives in pieces. Paths are gjson's,
// below the frame.
type Stream struct {
	Dir    envelope.Direction
	Method string      // the frame's method or type; "*" for any
	Path   string      // of the piece, a string
	Key    []string    // paths whose values together tell which text it is
	Ends   [][2]string // method and path of what ends the texts whose first key has that value
}

// Launch is how a provider process was started, as far as a codec cares.
type Launch struct {
	Args []string // without the program's name
	// Header is the played transcript's; zero while recording.
	Header envelope.Header
}

// Codec turns wire messages of one provider process into logical frames and
// back. It is stateful and not safe for concurrent use. On stdio a wire
// message is a line without its end; on HTTP it is an HTTPMessage as JSON.
//
// A recorder calls Decode for both directions; a peer calls Decode for Out and
// Encode for In; a test client the other way round. A codec remembers which
// request an id belongs to in any of these roles.
type Codec interface {
	// Greeting appends what the provider writes before any frame; it is on
	// the wire only and never in a transcript.
	Greeting(dst []byte) []byte
	// Decode reads one wire message. Messages that mean nothing for a
	// transcript (keep-alives) give no frame. The raw frames may alias wire;
	// the slice is valid until the next call.
	Decode(dir envelope.Direction, wire []byte) ([]Frame, error)
	// End returns the frames that the end of a direction's input completes.
	End(dir envelope.Direction) ([]Frame, error)
	// Encode appends the wire messages of one logical frame to dst, each
	// ended by LF on stdio. id is the request id on the wire: of the request
	// itself, or of the one a response answers; nil leaves the frame's own.
	Encode(dst []byte, dir envelope.Direction, f Frame, id json.RawMessage) ([]byte, error)
}
