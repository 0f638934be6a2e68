package replay

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// scripts is the small set of transcripts that random clients meet.
func scripts(t testing.TB) []*Script {
	note := func(label string) string { return in(label, `{"method":"note"}`, `"afterMs":50`) }
	return []*Script{
		load(t, ask(1, "a"), note("n"), answer(1, "a"), ask(2, "b"), note("n"), answer(2, "b"), exit("success")),
		load(t, ask(1, "a", `"group":"g"`), ask(2, "b", `"group":"g"`), ask(3, "c", `"group":"g"`, `"optional":true`),
			note("n"), answer(2, "b"), answer(3, "c"), answer(1, "a"), out("note", `{"method":"note"}`)),
		load(t, ask(1, "a", `"repeat":true`), ask(2, "b", `"optional":true`, `"repeat":true`), answer(2, "b"), note("n"), answer(1, "a"),
			ask(3, "c"), note("m"), answer(3, "c"), exit("cancelled")),
		load(t, in("q", `{"id":0,"method":"q"}`), in("q", `{"id":1,"method":"q"}`), out("q", `{"id":1,"result":1}`), out("q", `{"id":0,"result":0}`),
			out("x", `{"id":5,"method":"x","params":{"v":"<bind:v>"}}`), in("x", `{"id":5,"result":{"<bind:v>":"<bind:v>, <workspace>"}}`), exit("error", `"error":{"exitCode":4}`)),
		load(t, ask(1, "a"), answer(1, "a"), exit("error"), note("n"), ask(1, "a", `"optional":true`), answer(1, "a"), exit("success"), ask(1, "b", `"repeat":true`), answer(1, "b")),
		load(t, out("m", `{"method":"m","params":"<bind:v>"}`, `"optional":true`), ask(1, "a"), in("n", `{"method":"n","params":"<bind:v>"}`)),
		load(t, exit("success"), exit("error"), exit("cancelled")),
	}
}

// randomClient plays any number of launches with events made from bytes and
// returns all that was said. It checks what holds after every event.
type randomClient struct {
	t      testing.TB
	script *Script
	opt    Options
	stage  *stage
	before Verdict
	log    []string
}

func playRandom(t testing.TB, s *Script, events []byte) []string {
	c := &randomClient{t: t, script: s}
	if len(events) > 0 {
		c.opt = []Options{
			{Workspace: "/ws"}, {Hold: []string{"n"}}, {Hold: []string{"n#2", "a"}}, {Pace: Pace{Factor: 2}}, {Pace: Pace{Virtual: true}},
		}[events[0]%5]
		for _, h := range c.opt.Hold {
			if !s.HasLabel(h) {
				c.opt.Hold = nil
			}
		}
		events = events[1:]
	}
	var frames []string
	for _, e := range s.entriesForTest(t) {
		if e, ok := e.(*envelope.ExpectOutbound); ok {
			frames = append(frames, strings.ReplaceAll(string(e.Frame), "<bind:v>", "v"))
		}
	}
	c.launch(State{})
	for i, b := range events {
		if !c.event(c.eventOf(b, i, frames)) {
			break
		}
	}
	return c.log
}

// entriesForTest reads the entries however the script keeps them.
func (s *Script) entriesForTest(t testing.TB) []envelope.Entry {
	f, err := s.open(0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	var list []envelope.Entry
	for {
		e, err := f.next()
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			return list
		}
		list = append(list, e)
	}
}

// eventOf turns a byte into an event: mostly a frame that is awaited, or one of
// the recording under whatever id.
func (c *randomClient) eventOf(b byte, i int, frames []string) string {
	if w := c.stage.p.window; b < 140 && len(w) > 0 {
		return "send " + withID(strings.ReplaceAll(string(w[int(b)%len(w)].entry.Frame), "<bind:v>", "v"), 100+i)
	}
	if b < 180 && len(frames) > 0 {
		return "send " + withID(frames[int(b)%len(frames)], int(b)%5)
	}
	events := []string{
		"pause", "resume", "step", "release n", "release n#2", "release a", "advance 50ms", "", fmt.Sprintf("clock %dms", 60*i),
		"close end_of_input", "close terminated", "close output_closed", "close idle", "close parent_gone",
		"illegal x", `send {"method":"unknown"}`, `send {"id":0,"result":0}`, `send {"id":"0","result":0}`, "advance 1h", "resume",
	}
	return events[int(b)%len(events)]
}

// withID gives a request another id; an answer keeps its own.
func withID(frame string, id int) string {
	n, _ := parseNode([]byte(frame), 0)
	if n.keys[0].name != "id" || !strings.Contains(frame, `"method"`) {
		return frame
	}
	return fmt.Sprintf(`{"id":%d%s`, id, frame[len(`{"id":`)+len(n.keys[0].value.raw):])
}

func (c *randomClient) launch(st State) {
	p := newPlayer(c.t, c.script, c.opt, st)
	c.stage, c.before = &stage{p: p}, Running
	c.hear("launch", c.stage.do(""))
}

// event returns false when no launch is left.
func (c *randomClient) event(event string) bool {
	last := c.hear(event, c.stage.do(event))
	p := c.stage.p
	r := p.Report()
	if p.Failed() != strings.HasPrefix(last, "fail ") || p.Failed() != (r.Text() != "") || p.Failed() != (r.ExitCode == ExitFailed) {
		c.t.Errorf("%q: failed is %v, exit code %d, text %q", last, p.Failed(), r.ExitCode, r.Text())
	}
	if failed := c.before != Running && c.before != Passed; failed && r.Verdict != c.before {
		c.t.Errorf("verdict went from %s to %s", c.before, r.Verdict)
	}
	c.before = r.Verdict
	if r.Entries.Played+r.Entries.Skipped > r.Entries.Total || r.Outbound.Matched > r.Outbound.Expected || r.Entries.Skipped < 0 {
		c.t.Errorf("counts are beyond the recording: %s", counts(r))
	}
	if r.Verdict == Passed && (r.Entries.Played+r.Entries.Skipped != r.Entries.Total || r.Entries.Skipped == 0 && r.Outbound.Matched != r.Outbound.Expected) {
		c.t.Errorf("a pass with open counts: %s", counts(r))
	}
	for _, file := range [][]byte{r.Encode(), r.Masked().Encode(), p.State().Encode()} {
		if !json.Valid(file) || string(file) == "{}\n" {
			c.t.Errorf("not a file to read again: %s", file)
		}
	}
	if !strings.HasPrefix(last, "quit") {
		return !p.Failed()
	}
	st, err := ReadState(p.State().Encode())
	if err != nil {
		c.t.Fatal(err)
	}
	if st.Claim(c.script) != nil {
		return false
	}
	c.launch(st)
	return true
}

func (c *randomClient) hear(event string, said []string) string {
	c.log = append(append(c.log, "> "+event), said...)
	return said[len(said)-1]
}

func FuzzPlayer(f *testing.F) {
	for i := range 7 {
		f.Add(i, []byte{0, 0, 1, 2, 3, 4, 5, 169})
		f.Add(i, []byte{1, 96, 97, 98, 163, 0, 163, 1, 169})
		f.Add(i, []byte{2, 160, 0, 162, 1, 164, 165, 97, 168, 98})
		f.Add(i, []byte{4, 0, 166, 1, 166, 2, 166, 171, 172})
	}
	list := scripts(f)
	f.Fuzz(func(t *testing.T, which int, events []byte) {
		playRandom(t, list[(which%len(list)+len(list))%len(list)], events[:min(len(events), 200)])
	})
}

// TestStreamedLikeInMemory has the same random client play a transcript from
// memory and from its file.
func TestStreamedLikeInMemory(t *testing.T) {
	for i, memory := range scripts(t) {
		streamed := *memory
		streamed.entries = nil
		var lines []string
		header := envelope.AppendHeader(nil, &memory.Header)
		for _, e := range memory.entries {
			line, err := envelope.AppendEntry(nil, e)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, strings.TrimSuffix(string(line), "\n"))
		}
		streamed.Path = writeScript(t, append([]string{strings.TrimSuffix(string(header), "\n")}, lines...)...)
		passed := 0
		for seed := range uint64(400) {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			events := make([]byte, 1+r.IntN(30))
			for k := range events {
				if events[k] = byte(r.Uint32()); seed%2 == 0 && k > 0 && k%4 != 0 {
					events[k] &= 0x7f // what is awaited
				}
			}
			want, got := playRandom(t, memory, events), playRandom(t, &streamed, events)
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("transcript %d, seed %d (-memory +streamed):\n%s", i, seed, d)
			}
			if slices.ContainsFunc(want, func(s string) bool { return s == "closing" || strings.HasPrefix(s, "quit") }) {
				passed++
			}
		}
		if passed < 3 {
			t.Errorf("transcript %d: %d of 400 clients play to the end: they say little", i, passed)
		}
	}
}
