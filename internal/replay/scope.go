package replay

import (
	"bytes"
	"fmt"
	"sort"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// scopes knows which exclusive scopes are busy: a flavor may say that no
// second request of a kind may be sent while one with the same value at a
// path is unanswered.
type scopes struct {
	busy map[string]string // scope to the request id that holds it
}

// open claims the scopes of a request; the message says which one is busy.
func (s *scopes) open(exclusive []flavors.Place, f flavors.Frame) string {
	for _, pl := range exclusive {
		if pl.Dir != envelope.Out || pl.Method != f.Method {
			continue
		}
		v := gjson.GetBytes(f.Raw, pl.Path)
		if !v.Exists() {
			continue
		}
		key := f.Method + " " + v.Raw
		if id, ok := s.busy[key]; ok {
			return fmt.Sprintf("%s for %s %s while request %s of the same is unanswered", f.Method, pl.Path, v.Raw, id)
		}
		if s.busy == nil {
			s.busy = map[string]string{}
		}
		s.busy[key] = idKey(f.ID)
	}
	return ""
}

// close frees what the request held.
func (s *scopes) close(id string) {
	for key, holder := range s.busy {
		if holder == id {
			delete(s.busy, key)
		}
	}
}

// ahead says why a frame that comes before the cursor can compare it can't be
// right at all: it names something the provider has not said yet, or
// something that has ended and is not named again. "" when it may wait.
func (p *Player) ahead(f flavors.Frame) string {
	if p.script.entries == nil {
		return "" // too large to search; the comparison will tell
	}
	played := p.script.entries[:min(p.cursor, len(p.script.entries))]
	rest := p.script.entries[len(played):]
	for _, pl := range p.script.Flavor.References {
		if pl.Dir != envelope.Out || pl.Method != "*" && pl.Method != f.Method {
			continue
		}
		v := gjson.GetBytes(f.Raw, pl.Path)
		if v.Type != gjson.String || v.Str == "" {
			continue
		}
		// A client that resumes knows the name from before this recording.
		said := mentions(played, envelope.In, v.Raw) || mentions(played, envelope.Out, v.Raw)
		if !said && mentions(rest, envelope.In, v.Raw) {
			return fmt.Sprintf("%s names %s, which the provider has not said yet", pl.Path, v.Raw)
		}
		if said && p.endedScope(played, v.Raw) && !mentions(rest, envelope.Out, v.Raw) {
			return fmt.Sprintf("%s names %s, which has ended", pl.Path, v.Raw)
		}
	}
	return ""
}

// endedScope says whether a played frame ended the scope with the value.
func (p *Player) endedScope(played []envelope.Entry, value string) bool {
	for _, e := range played {
		in, ok := e.(*envelope.EmitInbound)
		if !ok || !bytes.Contains(in.Frame, []byte(value)) {
			continue
		}
		for _, pl := range p.script.Flavor.Ends {
			f, err := p.script.Flavor.Classify(envelope.In, in.Frame)
			if err == nil && f.Method == pl.Method && gjson.GetBytes(in.Frame, pl.Path).Raw == value {
				return true
			}
		}
	}
	return false
}

func mentions(entries []envelope.Entry, dir envelope.Direction, value string) bool {
	for _, e := range entries {
		switch e := e.(type) {
		case *envelope.EmitInbound:
			if dir == envelope.In && bytes.Contains(e.Frame, []byte(value)) {
				return true
			}
		case *envelope.ExpectOutbound:
			if dir == envelope.Out && bytes.Contains(e.Frame, []byte(value)) {
				return true
			}
		}
	}
	return false
}

// openRequests lists the provider's unanswered requests for a message.
func (p *Player) openRequests() string {
	var open []string
	for id, done := range p.answered {
		if !done {
			open = append(open, id)
		}
	}
	if len(open) == 0 {
		return ": it has no open request"
	}
	sort.Strings(open)
	return ": open are " + strings.Join(open, ", ") + " (an answer carries the very id, type included)"
}
