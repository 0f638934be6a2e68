package replay

import (
	"fmt"
	"strconv"
	"time"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// SelfCheck plays the transcript against itself: its own outbound frames, in
// recorded order, through the flavor's wire form, against a Player. The error
// tells why the transcript does not hold. Request ids are numbered anew, so
// that an answer that does not follow its request's id is found.
func SelfCheck(path string) error {
	s, err := Load(path, 0)
	if err != nil {
		return err
	}
	const workspace = "/workspace"
	var st State
	for {
		c := selfClient{script: s, ids: map[string]string{}, bound: State{}.bindings(workspace)}
		p, err := New(s, Options{Workspace: workspace}, st)
		if err != nil {
			return err
		}
		err = c.play(p)
		p.Stop()
		if err != nil {
			return err
		}
		if p.Failed() {
			return fmt.Errorf("%s", p.Report().Masked().Text())
		}
		st = p.State()
		if st.Cursor >= s.Total || p.Report().Verdict == Passed {
			return nil
		}
	}
}

// selfClient sends what the transcript expects.
type selfClient struct {
	script *Script
	bound  *bindings
	ids    map[string]string // recorded request id to the one used
	next   int
}

func (c *selfClient) play(p *Player) error {
	var now time.Duration
	for {
		switch act := p.Next(now); act.Kind {
		case Wait:
			sent := false
			for _, x := range p.window {
				if !x.met {
					p.Receive(c.frame(x))
					sent = true
					break
				}
			}
			if !sent {
				return fmt.Errorf("%s: the player waits for nothing", c.script.Path) // unreachable unless Wait is wrong
			}
		case Sleep: // for a frame that will not come
			now += act.Delay
		case Closing:
			cause := EndOfInput
			if p.closed != "" {
				cause = Terminated // the recorded client, too, had to end it by a signal
			}
			p.Close(cause)
		case Emit:
			if act.Channel != envelope.Protocol || act.Frame.Kind != flavors.Response || act.Frame.Stray() {
				continue
			}
			recorded := string(act.Frame.ID)
			switch {
			case act.ID == nil:
				return c.script.errorf(p.previous.Line, "inbound response %s answers no open request", recorded)
			case act.Frame.ID != nil && c.ids[recorded] != "" && c.ids[recorded] != string(act.ID):
				return c.script.errorf(p.previous.Line, "answer %s went to request %s", recorded, act.ID)
			}
		case Quit, Fail:
			return nil
		default:
			return fmt.Errorf("%s: held without a gate", c.script.Path) // unreachable unless Next is wrong
		}
	}
}

// frame is the frame that meets x, with an id of the client's own.
func (c *selfClient) frame(x *expectation) flavors.Frame {
	f := x.frame
	f.Raw = c.bound.sample(x.entry.Frame)
	if x.answers != nil {
		f.ID = x.answers
	}
	if f.Kind == flavors.Request {
		c.next++
		id := []byte(strconv.Itoa(1000 + c.next))
		c.ids[string(f.ID)] = string(id)
		f.ID = id
	}
	return f
}
