package replay

import (
	"strings"
	"testing"
	"time"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

const unorderedHeader = `{"type":"transcript_start","provider":"opencode","protocol":"opencode-sdk.sse","version":"0","scenario":"test"}`

func unordered(t *testing.T) (p *Player, call func(name, id string)) {
	s := load(t, unorderedHeader,
		out("a", `{"type":"session.list","input":{}}`), in("a", `{"type":"sdk.response","operation":"session.list","data":[]}`),
		out("b", `{"type":"path.get","input":{}}`), in("b", `{"type":"sdk.response","operation":"path.get","data":{}}`),
		exit("success"))
	p = newPlayer(t, s, Options{}, State{})
	return p, func(name, id string) {
		f, err := flavors.OpenCode.Classify(envelope.Out, []byte(`{"type":"`+name+`","input":{}}`))
		if err != nil {
			t.Fatal(err)
		}
		f.ID = []byte(id)
		p.Receive(f)
	}
}

// Where requests have no order, one that came before the other waits for it.
func TestUnordered(t *testing.T) {
	p, call := unordered(t)
	call("path.get", "1")
	act := p.Next(time.Second)
	if act.Kind != Sleep || act.Delay != stray {
		t.Fatalf("%+v: want to sleep for %v", act, stray)
	}
	call("session.list", "2")
	for _, want := range []string{"2", "1"} {
		if act := p.Next(time.Second + stray/2); act.Kind != Emit || string(act.ID) != want {
			t.Fatalf("%+v, ID %s: want the answer to %s", act, act.ID, want)
		}
	}
	if act := p.Next(time.Second + stray); act.Kind != Closing || p.Report().Verdict != Passed {
		t.Errorf("%+v, %s", act, p.Report().Verdict)
	}
}

// It waits so long and no longer, and not at all for a client that is gone.
func TestUnorderedStray(t *testing.T) {
	for name, wait := range map[string]func(*Player) time.Duration{
		"late": func(*Player) time.Duration { return stray },
		"gone": func(p *Player) time.Duration { p.Close(EndOfInput); return 0 },
	} {
		p, call := unordered(t)
		call("path.get", "1")
		p.Next(0)
		act := p.Next(wait(p))
		if r := p.Report(); act.Kind != Fail || r.Verdict != Mismatch || !strings.Contains(r.Text(), `t.ndjson:2: outbound mismatch`) {
			t.Errorf("%s: %+v, %s", name, act, r.Text())
		}
	}
}
