// Package redact takes secrets and personal data out of transcripts.
//
// It looks at decoded strings and keys and splices what it replaces into the
// frame, so that all other bytes stay. What it knows:
//
//   - the shapes of credentials (Rules), members with telling keys, the values
//     of secret-looking environment variables, and wherever else a value
//     stands that was once told a secret by its surroundings
//   - the machine's directories, user and host names, e-mail addresses,
//     private git remotes
//   - data of accounts, plans and rate limits, a vendor's instructions
//
// Strings are read as they stand and with JSON, percent and base64 encoding
// and terminal sequences taken off, also one inside the other. Text that
// arrives in pieces is read joined.
//
// What is replaced has a placeholder of its own (placeholder.go): the same
// secret always the same one, two secrets never the same. Ids, methods, keys,
// the types of values and the order of entries stay, which is checked for
// every frame that changes.
package redact

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// Config says what to look for besides the rules.
type Config struct {
	// Directories of the machine; "" looks for none.
	Workspace, Home, Tmp string
	// Names of users and hosts of the machine.
	Users, Hosts []string
	// Env is an environment, KEY=VALUE: values of variables whose names tell
	// of a secret are looked for.
	Env []string
	// Streams tells which frames carry pieces of a longer text.
	Streams []Stream
	// ProseKeys are keys under which a provider shows its own instructions.
	ProseKeys map[string]bool
	// Wire says that frames come from the wire: text in them that reads like
	// a placeholder is literal and gets escaped. Otherwise they come from a
	// transcript, and placeholders are left alone.
	Wire bool
	// NoBinds leaves <bind:…> out, for transcripts that ignore parts of
	// outbound frames, where nothing might be captured.
	NoBinds bool
	// Hold is how many bytes of text must follow a piece of a stream before
	// it is let go, and how long a secret may be to be found although it is
	// split; 0 means 1024. Negative holds everything until Flush.
	Hold int
}

// Stream names the place of a text that arrives in pieces, one per frame.
type Stream struct {
	Dir    envelope.Direction
	Method string      // the frame's method or type; "*" for any
	Path   string      // of the piece, a string below the frame
	Key    []string    // paths whose values together tell which text it is
	Ends   [][2]string // method and path of what ends the texts whose first key has that value
}

// Redactor redacts one transcript, entry by entry. Not safe for concurrent
// use.
type Redactor struct {
	config  Config
	find    finder
	numbers numbers
	streams map[string]*stream
	queue   []*held
	size    int // bytes of the queue's frames
	counts  map[string]int
	lines   map[string][]int // per rule, the lines of entries that were read from a file
	err     error
	closed  func(key string) // of a check: does what else is done at a stream's end
}

const (
	proseRule = "vendorProse"
	proseText = "<vendor-prose>"
	// proseMin is how long an instructions string is, in bytes, to be a
	// vendor's.
	proseMin = 400
)

// New returns a Redactor.
func New(c Config) *Redactor {
	r := &Redactor{
		config: c, numbers: newNumbers(), streams: map[string]*stream{},
		counts: map[string]int{}, lines: map[string][]int{},
	}
	r.find = finder{rules: compile(), dirs: directories(&c), wire: c.Wire}
	for _, u := range c.Users {
		r.addName(u, "user")
	}
	for _, h := range c.Hosts {
		r.addName(h, "host")
		if short, _, ok := strings.Cut(h, "."); ok {
			r.addName(short, "host")
		}
	}
	for _, kv := range c.Env {
		if key, value, _ := strings.Cut(kv, "="); secretVariable(key, value) {
			r.find.known = append(r.find.known, known{value: value, rule: "variable"})
		}
	}
	return r
}

func (r *Redactor) addName(text, rule string) {
	if n := newName(text, rule); n != nil {
		r.find.names = append(r.find.names, n)
	}
}

// Reserve reads a line that stands in the transcript already, so that its
// placeholders are not given to other secrets.
func (r *Redactor) Reserve(line []byte) { r.numbers.reserve(line) }

// Counts returns how often each rule replaced something.
func (r *Redactor) Counts() map[string]int { return maps.Clone(r.counts) }

// Lines returns for each rule the lines it changed, in order, as far as they
// were read from a file.
func (r *Redactor) Lines() map[string][]int {
	lines := map[string][]int{}
	for rule, list := range r.lines {
		lines[rule] = slices.Compact(slices.Sorted(slices.Values(list)))
	}
	return lines
}

// Second begins a second pass over what the first one wrote, with all that
// the first one learned.
func (r *Redactor) Second() {
	r.config.Wire, r.find.wire = false, false
	r.streams, r.queue, r.size = map[string]*stream{}, nil, 0
	r.numbers.restart()
}

// Text redacts a string that is not part of a frame.
func (r *Redactor) Text(text string) string {
	raw := r.rewrite(context{dir: envelope.In}, envelope.AppendString(nil, text), nil, 0)
	return envelope.Unquote(raw)
}

// entry redacts an entry whose pieces are clear. The entry itself stays as it
// is; a changed one is a copy.
func (r *Redactor) entry(h *held) (envelope.Entry, error) {
	line, _ := h.entry.Position()
	c := context{dir: envelope.In, wire: r.config.Wire}
	switch e := h.entry.(type) {
	case *envelope.ExpectOutbound:
		x := *e
		c.dir, c.binds = envelope.Out, !r.config.NoBinds && e.Group == "" && !e.Optional
		x.Frame, x.Extra = r.rewrite(c, e.Frame, h.pieces, line), r.members(e.Extra, line)
		return &x, r.err
	case *envelope.EmitInbound:
		x := *e
		c.binds = !r.config.NoBinds && (e.Channel == "" || e.Channel == envelope.Protocol)
		x.Frame, x.Extra = r.rewrite(c, e.Frame, h.pieces, line), r.members(e.Extra, line)
		return &x, r.err
	case *envelope.RuntimeExit:
		x := *e
		if e.Error != nil {
			x.Error = r.rewrite(c, e.Error, nil, line)
		}
		x.Extra = r.members(e.Extra, line)
		return &x, r.err
	}
	return nil, fmt.Errorf("redact: entry of type %T", h.entry) // unreachable unless an Entry is added
}

// members redacts fields beside the frame. Placeholders mean nothing there.
func (r *Redactor) members(list []envelope.Member, line int) []envelope.Member {
	list = slices.Clone(list)
	for i := range list {
		list[i].Value = r.rewrite(context{dir: envelope.In}, list[i].Value, nil, line)
	}
	return list
}

// rewrite returns raw with what must not stay replaced, raw itself when there
// is nothing.
func (r *Redactor) rewrite(c context, raw json.RawMessage, pieces []*piece, line int) json.RawMessage {
	var out []byte
	kept := 0 // raw up to here is in out
	put := func(start, end int, text, rule string) {
		out = append(append(out, raw[kept:start]...), text...)
		kept = end
		if rule == "" {
			return
		}
		r.counts[rule]++
		if line > 0 {
			r.lines[rule] = append(r.lines[rule], line)
		}
	}
	for _, x := range r.look(c, raw, pieces) {
		t := x.token
		if x.whole != "" {
			put(t.start, t.end, x.whole, x.rule)
			continue
		}
		at := c
		at.key = t.kind == tokenKey
		if !c.wire {
			r.numbers.see(x.text, c.dir == envelope.Out && c.binds && !at.key)
		}
		for _, e := range locate(raw[t.start:t.end], r.numbers.edits(at, x.text, x.spans)) {
			put(t.start+e.start, t.start+e.end, e.text, e.rule)
		}
	}
	if kept == 0 {
		return raw
	}
	out = append(out, raw[kept:]...)
	if err := sameFrame(raw, out); err != nil && r.err == nil {
		r.err = fmt.Errorf("redact: %w", err) // unreachable unless an edit is wrong
	}
	return out
}

// seen is a token and what is to become of it.
type seen struct {
	token
	text  string // decoded
	spans []span
	whole string // what replaces all of it, as JSON; "" for nothing
	rule  string // for whole
}

// look finds what must not stay in a frame. What one member tells counts for
// those before it, too.
func (r *Redactor) look(c context, raw json.RawMessage, pieces []*piece) []seen {
	for {
		known := r.Known()
		var list []seen
		walk(raw, func(_ *walker, t token) {
			switch {
			case t.kind == tokenNumber:
				if text := r.number(c, t, raw[t.start:t.end]); text != "" {
					list = append(list, seen{token: t, whole: text, rule: "rate-limit"})
				}
			case t.fixed():
			case t.kind == tokenString && c.dir == envelope.In && planKey(t.key):
				if string(raw[t.start:t.end]) != planUnknown {
					list = append(list, seen{token: t, whole: planUnknown, rule: "plan"})
				}
			default:
				text := envelope.Unquote(raw[t.start:t.end])
				list = append(list, seen{token: t, text: text, spans: r.spans(c, t, text, pieces)})
			}
		})
		if r.Known() == known {
			return list
		}
	}
}

// planUnknown is what Codex itself calls a plan it does not know.
const planUnknown = `"unknown"`

// spans finds what must not stay in one string.
func (r *Redactor) spans(c context, t token, text string, pieces []*piece) []span {
	for _, p := range pieces {
		if p.start == t.start {
			return p.spans
		}
	}
	switch {
	case t.kind == tokenKey:
		return r.find.find(text, false)
	case c.dir == envelope.In && r.config.ProseKeys[t.key] && len(text) >= proseMin:
		return []span{{start: 0, end: len(text), rule: proseRule}}
	case c.dir == envelope.In && t.limits && t.key == "balance" && !opaque.MatchString(text):
		return []span{{start: 0, end: len(text), rule: "rate-limit", secret: text}}
	}
	return r.find.member(t.key, text, t.id())
}

// number returns what replaces a number, "" to leave it: those that tell how
// much of a limit is used up, and until when, become zero.
func (r *Redactor) number(c context, t token, raw []byte) string {
	if c.dir != envelope.In || !t.limits || strings.Contains(strings.ToLower(t.key), "window") || strings.Trim(string(raw), "-0.") == "" {
		return ""
	}
	if strings.ContainsAny(string(raw), ".eE") {
		return "0.0"
	}
	return "0"
}

// Known returns how many secrets are known by their value: those that were
// told from the start, and those their surroundings gave away so far. A second
// pass can find more when it has grown.
func (r *Redactor) Known() int { return len(r.find.known) }

// Header returns the header with its metadata redacted and metadata.redaction
// brought up to date.
func (r *Redactor) Header(h envelope.Header) (envelope.Header, error) {
	c := context{dir: envelope.In}
	if h.Metadata != nil {
		h.Metadata = r.rewrite(c, h.Metadata, nil, h.Line)
	}
	h.Extra = r.members(h.Extra, h.Line)
	var err error
	h.Metadata, err = withRedaction(h.Metadata, r.counts)
	return h, err
}
