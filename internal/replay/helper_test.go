package replay

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

const testHeader = `{"type":"transcript_start","provider":"codex","protocol":"codex.app-server","version":"0","scenario":"test"}`

// out, in and exit are entry lines; more holds further fields.
func out(label, frame string, more ...string) string {
	return line("expect_outbound", label, frame, more)
}

func in(label, frame string, more ...string) string {
	return line("emit_inbound", label, frame, more)
}

func exit(status string, more ...string) string {
	return `{"type":"runtime_exit","status":"` + status + `"` + strings.Join(append([]string{""}, more...), ",") + "}"
}

func line(typ, label, frame string, more []string) string {
	return fmt.Sprintf(`{"type":%q,"label":%q,"frame":%s%s}`, typ, label, frame, strings.Join(append([]string{""}, more...), ","))
}

// ask and answer are an ordinary pair of entries.
func ask(id int, method string, more ...string) string {
	return out(method, request(id, method), more...)
}

func answer(id int, method string, more ...string) string {
	return in(method, fmt.Sprintf(`{"id":%d,"result":%q}`, id, method), more...)
}

func request(id int, method string) string { return fmt.Sprintf(`{"id":%d,"method":%q}`, id, method) }

// writeScript writes a transcript; a first line that is no header gets one.
func writeScript(t testing.TB, lines ...string) string {
	t.Helper()
	if len(lines) == 0 || !strings.Contains(lines[0], "transcript_start") {
		lines = append([]string{testHeader}, lines...)
	}
	path := filepath.Join(t.TempDir(), "t.ndjson")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t testing.TB, lines ...string) *Script {
	t.Helper()
	s, err := Load(writeScript(t, lines...), 0)
	if err != nil {
		t.Fatal(err)
	}
	s.Path = "t.ndjson" // the same in every run
	return s
}

func newPlayer(t testing.TB, s *Script, opt Options, st State) *Player {
	t.Helper()
	p, err := New(s, opt, st)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

// stage is a Player and its driver's clock.
type stage struct {
	p    *Player
	now  time.Duration
	wire flavors.Codec // made when first needed
}

func (s *stage) codec() flavors.Codec {
	if s.wire == nil {
		s.wire = s.p.script.Flavor.NewCodec(flavors.Launch{})
	}
	return s.wire
}

// do is one event, in words:
//
//	send FRAME | illegal TEXT | close CAUSE | pause | resume | step | release LABEL | advance DUR | clock DUR
//
// and "" for none. A frame that the protocol does not know is illegal. It
// returns what the driver has then to do: any number of Emits, as wire text or
// "channel: text", and the action that follows them.
func (s *stage) do(event string) []string {
	var said []string
	word, arg, _ := strings.Cut(event, " ")
	switch word {
	case "":
	case "send":
		frames, err := s.codec().Decode(envelope.Out, []byte(arg))
		if err != nil {
			s.p.Illegal([]byte(arg), err)
			break
		}
		for _, f := range frames {
			s.p.Receive(f)
		}
	case "illegal":
		s.p.Illegal([]byte(arg), fmt.Errorf("so it says"))
	case "close":
		s.p.Close(Cause(arg))
	case "pause":
		s.p.Pause()
	case "resume":
		s.p.Resume()
	case "step":
		s.p.Step()
	case "release":
		if err := s.p.Release(arg); err != nil {
			said = append(said, "error: "+err.Error())
		}
	case "advance":
		if err := s.p.Advance(duration(arg)); err != nil {
			said = append(said, "error: "+err.Error())
		}
	case "clock":
		s.now = duration(arg)
	default:
		panic("event " + event)
	}
	return append(said, s.drain()...)
}

// drain asks what to do until it is not Emit. It gives up after more steps
// than any transcript under test has.
func (s *stage) drain() []string {
	var said []string
	for range 10000 {
		act := s.p.Next(s.now)
		if act.Kind != Emit {
			return append(said, s.describe(act))
		}
		if act.Channel != envelope.Protocol {
			said = append(said, string(act.Channel)+": "+envelope.Unquote(act.Frame.Raw))
			continue
		}
		wire, err := s.codec().Encode(nil, envelope.In, act.Frame, act.ID)
		if err != nil {
			panic(err)
		}
		said = append(said, strings.TrimSuffix(string(wire), "\n"))
	}
	panic("the player emits without end")
}

func (s *stage) describe(act Action) string {
	switch act.Kind {
	case Wait:
		return "wait"
	case Sleep:
		return "sleep " + act.Delay.String()
	case Held:
		return strings.TrimSpace("held " + s.p.Reached())
	case Closing:
		return "closing"
	case Quit:
		text := strings.TrimSpace(fmt.Sprintf("quit %s %d %s", act.Exit.Status, act.Exit.Code, act.Exit.Signal))
		if act.Exit.Stderr != "" {
			text += fmt.Sprintf(" %q", act.Exit.Stderr)
		}
		return text
	case Fail:
		return "fail " + string(s.p.Report().Verdict) + " " + s.p.Report().Failure.Reason
	}
	return fmt.Sprintf("action %d", act.Kind)
}

func duration(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		panic(err)
	}
	return d
}

// turn is an event and what must come of it, one line each.
type turn struct {
	event string
	want  string
}

// perform plays the turns and returns the player.
func perform(t *testing.T, s *Script, opt Options, st State, turns []turn) *Player {
	t.Helper()
	stg := &stage{p: newPlayer(t, s, opt, st)}
	for i, turn := range turns {
		got := strings.Join(stg.do(turn.event), "\n")
		if d := cmp.Diff(turn.want, got); d != "" {
			t.Fatalf("turn %d, %q (-want +got):\n%s%s", i, turn.event, d, stg.p.Report().Text())
		}
	}
	return stg.p
}

// counts are the books of a report in one line.
func counts(r *Report) string {
	return fmt.Sprintf("%s entries %d+%d/%d outbound %d+%d/%d inbound %d", r.Verdict,
		r.Entries.Played, r.Entries.Skipped, r.Entries.Total,
		r.Outbound.Matched, r.Outbound.Repeated, r.Outbound.Expected, r.Inbound.Emitted)
}

func lines(list []string) string { return strings.Join(list, "\n") }

func wantCounts(t *testing.T, p *Player, want string) {
	t.Helper()
	if got := counts(p.Report()); got != want {
		t.Errorf("counts are %q: want %q\n%s", got, want, p.Report().Text())
	}
}

// matching is one comparison outside of a player.
type matching struct {
	ignore []string
	sites  []string // of client-chosen values
	idKey  string   // "" compares everything
	bound  *bindings
}

func (m *matching) compile(want string) *pattern {
	parse := func(paths []string) (list []place) {
		for _, text := range paths {
			p, err := parsePlace(text)
			if err != nil {
				panic(err)
			}
			list = append(list, p)
		}
		return list
	}
	if m.bound == nil {
		m.bound = State{}.bindings("/ws")
	}
	return compile(json.RawMessage(want), &rules{ignore: parse(m.ignore), idKey: m.idKey, workspace: "/ws"}, parse(m.sites))
}

// match compares, and checks that diff says the same.
func (m *matching) match(t testing.TB, want, got string) bool {
	t.Helper()
	p := m.compile(want)
	request := m.idKey != ""
	diffs := m.bound.diff(p, []byte(got), request)
	ok := m.bound.match(m.compile(want), []byte(got), request)
	if ok != (len(diffs) == 0) {
		t.Errorf("want %s\ngot  %s\nmatch is %v, but the differences are %+v", want, got, ok, diffs)
	}
	return ok
}
