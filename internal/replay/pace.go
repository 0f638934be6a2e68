package replay

import (
	"fmt"
	"strconv"
	"time"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// Pace says how recorded delays (afterMs) are kept. The zero value keeps none.
type Pace struct {
	// Factor multiplies recorded delays: 1 is recorded speed, 0.5 twice as
	// fast, 0 instant.
	Factor float64
	// Virtual counts delays on a clock that only Advance moves.
	Virtual bool
}

// ParsePace reads "instant", "recorded", "virtual" or a factor.
func ParsePace(s string) (Pace, error) {
	switch s {
	case "", "instant":
		return Pace{}, nil
	case "recorded":
		return Pace{Factor: 1}, nil
	case "virtual":
		return Pace{Virtual: true}, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= 0 && f <= 1e6) {
		return Pace{}, fmt.Errorf("pace %q: want instant, recorded, virtual or a factor such as 0.5", s)
	}
	return Pace{Factor: f}, nil
}

// pacer tells how long the entry at the cursor has to wait.
type pacer struct {
	pace    Pace
	last    time.Duration // when the entry before was played
	virtual time.Duration // the virtual clock
	asked   bool          // last is set
}

// left returns the time until e is due, 0 when it is, and -1 when only the
// virtual clock can tell.
func (c *pacer) left(e envelope.Entry, now time.Duration) time.Duration {
	if c.pace == (Pace{}) {
		return 0
	}
	var after *int64
	switch e := e.(type) {
	case *envelope.EmitInbound:
		after = e.AfterMs
	case *envelope.RuntimeExit:
		after = e.AfterMs
	}
	if after == nil || *after == 0 {
		return 0
	}
	if c.pace.Virtual {
		if c.last+time.Duration(*after)*time.Millisecond > c.virtual {
			return -1
		}
		return 0
	}
	if !c.asked {
		c.asked, c.last = true, now
	}
	due := c.last + time.Duration(float64(*after)*c.pace.Factor*float64(time.Millisecond))
	return max(due-now, 0)
}

func (c *pacer) played(now time.Duration) {
	c.asked = true
	c.last = now
	if c.pace.Virtual {
		c.last = c.virtual
	}
}

// gates hold playing at labels, or everywhere while paused.
type gates struct {
	hold     []gate
	seen     map[string]int // how often each label was passed, by all launches
	paused   bool
	steps    int // entries that may pass while paused
	open     bool
	reached  string
	released map[gate]int // releases given before the gate was reached
}

type gate struct {
	label string
	nth   int // 0 for every occurrence
}

// newGates reads the settings of a launch that starts at entry number at.
func newGates(s *Script, hold []string, at int) (gates, error) {
	g := gates{seen: map[string]int{}, released: map[gate]int{}}
	for _, h := range hold {
		if !s.HasLabel(h) {
			return g, fmt.Errorf("hold %q: %s has no entry with this label", h, s.Path)
		}
		if s.labels[h] > 0 {
			g.hold = append(g.hold, gate{h, 0})
			continue
		}
		label, nth := splitLabel(h)
		g.hold = append(g.hold, gate{label, nth})
	}
	if len(hold) == 0 || at == 0 {
		return g, nil
	}
	f, err := s.open(0)
	if err != nil {
		return g, err
	}
	defer f.close()
	for range at {
		e, err := f.next()
		if err != nil || e == nil {
			return g, err
		}
		_, label := e.Position()
		g.seen[label]++
	}
	return g, nil
}

// held says whether the entry with the label, at the cursor, is held back.
func (g *gates) held(label string) bool {
	if !g.open {
		g.reached = ""
		g.open = g.pass(label)
	}
	if !g.open {
		g.reached = label
		return true
	}
	return g.paused && g.steps == 0
}

// pass says whether no gate holds the label, or a release given before opens
// it.
func (g *gates) pass(label string) bool {
	nth := g.seen[label] + 1
	for _, h := range g.hold {
		if h.label != label || h.nth != 0 && h.nth != nth {
			continue
		}
		for _, r := range []gate{{label, nth}, {label, 0}} {
			if g.released[r] > 0 {
				g.released[r]--
				return true
			}
		}
		return false
	}
	return true
}

// passed moves on to the next entry.
func (g *gates) passed(label string) {
	g.open = false
	g.reached = ""
	if g.paused && g.steps > 0 {
		g.steps--
	}
	if len(g.hold) > 0 {
		g.seen[label]++
	}
}

// release opens the gate r now, or when it is reached.
func (g *gates) release(r gate) bool {
	for _, h := range g.hold {
		if h.label != r.label || h.nth != 0 && r.nth != 0 && h.nth != r.nth {
			continue
		}
		if g.reached == r.label && (r.nth == 0 || r.nth == g.seen[r.label]+1) {
			g.open, g.reached = true, ""
		} else {
			g.released[r]++
		}
		return true
	}
	return false
}

// Pause holds everything from the next entry on.
func (p *Player) Pause() { p.gates.paused, p.gates.steps = true, 0 }

// Resume ends a pause; gates stay.
func (p *Player) Resume() { p.gates.paused = false }

// Step lets one entry pass while paused.
func (p *Player) Step() { p.gates.steps++ }

// Release opens the gate at LABEL or LABEL#N, once: now, or when it is
// reached. The error says that there is no such gate.
func (p *Player) Release(label string) error {
	base, nth := splitLabel(label)
	if p.gates.release(gate{label, 0}) || p.gates.release(gate{base, nth}) {
		return nil
	}
	return fmt.Errorf("no gate at label %q", label)
}

// Advance moves the virtual clock.
func (p *Player) Advance(d time.Duration) error {
	if !p.pacer.pace.Virtual {
		return fmt.Errorf("advance needs the virtual pace")
	}
	p.pacer.virtual += d
	return nil
}

// Reached returns the label of the gate that holds playing, "" for none.
func (p *Player) Reached() string { return p.gates.reached }

// Paused says whether playing is paused.
func (p *Player) Paused() bool { return p.gates.paused }
