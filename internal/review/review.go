// Package review reads transcripts for people: it compares two by meaning and
// shows one as a conversation.
//
// A comparison sets aside what differs in every recording, as the flavor says:
// ids, clocks, durations, request ids. It compares thread by thread and, in
// each, answers apart from notifications, since those race; text that came in
// pieces is compared as a whole.
package review

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// unit is one frame of a transcript, or several pieces of one stream.
type unit struct {
	line   int
	label  string
	dir    envelope.Direction
	method string
	kind   flavors.Kind
	exit   bool
	lane   string
	thread int // 0 for none, then by first mention
	launch int
	value  *value
	item   string // the piece of work it is about; "" for none
	state  bool   // it tells a state
	ids    string // of the stream it belongs to
	piece  string // the text of its pieces
	at     string // the path of the pieces
	pieces int
	raw    json.RawMessage
}

// reading is a transcript taken apart.
type reading struct {
	file    string
	header  envelope.Header
	flavor  *flavors.Flavor
	units   []*unit
	threads map[string]int
	ids     map[string]bool
	open    []*unit // requests that wait for their answer
	openIDs []json.RawMessage
	launch  int
}

// read takes a transcript apart.
func read(t *envelope.Transcript) *reading {
	r := &reading{file: t.File, header: t.Header, threads: map[string]int{}, ids: map[string]bool{}, launch: 1}
	r.flavor, _ = flavors.ByProtocol(t.Header.Protocol)
	for _, e := range t.Entries {
		r.entry(e)
	}
	return r
}

func (r *reading) entry(e envelope.Entry) {
	u := &unit{launch: r.launch}
	u.line, u.label = e.Position()
	switch e := e.(type) {
	case *envelope.ExpectOutbound:
		u.dir, u.raw = envelope.Out, e.Frame
		r.frame(u, marks(e))
	case *envelope.EmitInbound:
		u.dir, u.raw = envelope.In, e.Frame
		if e.Channel == envelope.Stderr || e.Channel == envelope.Stdout {
			u.method = string(e.Channel)
			u.value, u.piece, u.pieces = &value{kind: 'p'}, envelope.Unquote(e.Frame), 1
			break
		}
		r.frame(u, "")
	case *envelope.RuntimeExit:
		u.exit, u.dir, u.method = true, envelope.In, "runtime_exit"
		u.raw = json.RawMessage(fmt.Sprintf(`{"status":%q}`, string(e.Status)))
		if e.Error != nil {
			u.raw = json.RawMessage(fmt.Sprintf(`{"status":%q,"error":%s}`, string(e.Status), e.Error))
		}
		u.value, _ = parse(u.raw, 0, nil, nil)
		r.open, r.openIDs = nil, nil
		r.launch++
	}
	r.units = append(r.units, u)
}

// marks are what an expectation says beside its frame.
func marks(e *envelope.ExpectOutbound) string {
	var m []string
	for _, f := range []struct {
		on   bool
		text string
	}{{e.Group != "", "group"}, {e.Optional, "optional"}, {e.Repeat, "repeat"}} {
		if f.on {
			m = append(m, f.text)
		}
	}
	return strings.Join(m, " ")
}

// frame classifies a protocol frame, finds its thread and sets aside what
// varies.
func (r *reading) frame(u *unit, extra string) {
	i := envelope.SkipSpace(u.raw, 0)
	if r.flavor == nil {
		u.value, _ = parse(u.raw, i, nil, &u.piece)
		return
	}
	f, err := r.flavor.Classify(u.dir, u.raw)
	if err != nil {
		u.value, _ = parse(u.raw, i, nil, &u.piece)
		return
	}
	u.method, u.kind = f.Method, f.Kind
	a := aside{}
	volatile := append(append([]flavors.Place{}, r.flavor.Volatile...), r.flavor.Chosen...)
	for _, s := range flavors.Spans(volatile, u.dir, f) {
		a[s[0]] = 'v'
		for _, id := range stringsIn(u.raw[s[0]:s[1]]) {
			r.ids[id] = true
		}
	}
	for _, p := range r.flavor.Streams {
		for _, s := range p.Spans(u.dir, f) {
			a[s[0]] = 'p'
			u.at, u.ids, u.pieces = p.Path, p.Name(f), 1
		}
	}
	if f.Kind != flavors.Notification {
		r.drop(u.raw, i, a)
	}
	r.threadOf(u, f)
	r.itemOf(u, f)
	r.correlate(u, f)
	u.value, _ = parse(u.raw, i, a, &u.piece)
	if extra != "" && u.value.kind == '{' {
		u.value.keys = append(u.value.keys, "(expectation)")
		u.value.inner = append(u.value.inner, &value{kind: '"', text: extra})
	}
}

// drop leaves out the request id.
func (r *reading) drop(raw []byte, i int, a aside) {
	if r.flavor.IDKey == "" || raw[i] != '{' {
		return
	}
	for _, s := range flavors.Spans([]flavors.Place{{Method: "*", Path: r.flavor.IDKey}}, envelope.Out, flavors.Frame{Raw: raw}) {
		a[s[0]] = 'd'
	}
}

func (r *reading) threadOf(u *unit, f flavors.Frame) {
	for _, s := range flavors.Spans(r.flavor.Threads, u.dir, f) {
		id := "" // null is the conversation itself
		switch {
		case u.raw[s[0]] == '"':
			id = envelope.Unquote(u.raw[s[0]:s[1]])
		case string(u.raw[s[0]:s[1]]) != "null":
			continue
		}
		if r.threads[id] == 0 {
			r.threads[id] = len(r.threads) + 1
		}
		u.thread = r.threads[id]
		return
	}
}

// correlate gives an answer the method and the thread of its request.
func (r *reading) correlate(u *unit, f flavors.Frame) {
	switch f.Kind {
	case flavors.Request:
		r.open, r.openIDs = append(r.open, u), append(r.openIDs, f.ID)
	case flavors.Response:
		for i, q := range r.open {
			if q.dir == u.dir || f.ID != nil && r.openIDs[i] != nil && string(f.ID) != string(r.openIDs[i]) ||
				(f.ID == nil || r.openIDs[i] == nil) && f.Method != q.method {
				continue
			}
			u.method = q.method
			if q.thread > 0 {
				u.thread = q.thread
			}
			r.open = append(r.open[:i:i], r.open[i+1:]...)
			r.openIDs = append(r.openIDs[:i:i], r.openIDs[i+1:]...)
			return
		}
	}
}

// stringsIn returns the strings of a value that may be ids.
func stringsIn(raw []byte) (all []string) {
	for i := 0; i < len(raw); {
		if raw[i] != '"' {
			i++
			continue
		}
		end := envelope.SkipString(raw, i)
		if s := envelope.Unquote(raw[i:end]); len(s) >= 8 && len(s) < 200 && strings.ContainsAny(s, "0123456789") {
			all = append(all, s)
		}
		i = end
	}
	return all
}

// lanes joins pieces, replaces ids and sorts the units into the sequences
// that are compared.
func (r *reading) lanes() (names []string, lanes map[string][]*unit) {
	var pairs []string
	for id := range r.ids {
		pairs = append(pairs, id)
	}
	sort.Slice(pairs, func(i, j int) bool {
		return len(pairs[i]) > len(pairs[j]) || len(pairs[i]) == len(pairs[j]) && pairs[i] < pairs[j]
	})
	var list []string
	for _, id := range pairs {
		list = append(list, id, "<id>")
	}
	replace := strings.NewReplacer(list...)
	lanes = map[string][]*unit{}
	for _, u := range r.units {
		u.value.settle(replace)
		if u.dir == envelope.In && u.kind == flavors.Notification && r.flavor != nil && slices.Contains(r.flavor.Noise, u.method) {
			continue // an older recorder did not leave it out
		}
		u.lane = fmt.Sprintf("%d/%d/%d", u.launch, u.dir, u.thread)
		switch {
		case u.dir == envelope.In && u.kind == flavors.Response:
			u.lane += "/answers"
		case u.state:
			u.lane += "/states"
		case u.exit || u.dir == envelope.In && u.thread == 0 && r.flavor != nil && len(r.flavor.Threads) > 0:
			u.lane += "/" + u.method
		}
		if lanes[u.lane] == nil {
			names = append(names, u.lane)
		}
		if u.pieces == 0 || !joined(lanes[u.lane], u) {
			lanes[u.lane] = append(lanes[u.lane], u)
		}
	}
	for name, lane := range lanes {
		lanes[name] = calm(lane)
	}
	for _, u := range r.units {
		u.piece = chance.ReplaceAllString(replace.Replace(u.piece), "<id>")
	}
	return names, lanes
}

// joined adds a piece to its stream when that has begun.
func joined(lane []*unit, u *unit) bool {
	for i := len(lane) - 1; i >= 0; i-- {
		o := lane[i]
		if o.pieces > 0 && o.method == u.method && o.ids == u.ids && same(o.value, u.value) {
			o.piece += u.piece
			o.pieces++
			return true
		}
	}
	return false
}
