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
	seen     map[string]int // how often each held label was passed
	paused   bool
	steps    int // entries that may pass while paused
	open     bool
	reached  string
	released map[string]int // releases given before the gate was reached
}

type gate struct {
	label string
	nth   int // 0 for every occurrence
}

func newGates(s *Script, hold []string) (gates, error) {
	g := gates{seen: map[string]int{}, released: map[string]int{}}
	for _, h := range hold {
		if !s.HasLabel(h) {
			return g, fmt.Errorf("hold %q: %s has no entry with this label", h, s.Path)
		}
		label, nth := h, 0
		if s.labels[h] == 0 {
			label, nth = splitLabel(h)
		}
		g.hold = append(g.hold, gate{label, nth})
	}
	return g, nil
}

// held says whether the entry with the label, at the cursor, is held back.
func (g *gates) held(label string) bool {
	if g.open {
		return false
	}
	g.reached = ""
	for _, h := range g.hold {
		if h.label != label || h.nth != 0 && h.nth != g.seen[label]+1 {
			continue
		}
		if g.released[label] > 0 {
			g.released[label]--
			g.open = true
			break
		}
		g.reached = label
		return true
	}
	return g.paused && g.steps == 0
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

// Pause holds everything from the next entry on.
func (p *Player) Pause() { p.gates.paused, p.gates.steps = true, 0 }

// Resume ends a pause; gates stay.
func (p *Player) Resume() { p.gates.paused = false }

// Step lets one entry pass while paused.
func (p *Player) Step() { p.gates.steps++ }

// Release opens the gate at the label, once: now, or when it is reached. The
// error says that there is no such gate.
func (p *Player) Release(label string) error {
	base, _ := splitLabel(label)
	for _, h := range p.gates.hold {
		if h.label != label && h.label != base {
			continue
		}
		if p.gates.reached == h.label {
			p.gates.open, p.gates.reached = true, ""
		} else {
			p.gates.released[h.label]++
		}
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
