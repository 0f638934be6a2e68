package replay

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// wantText compares what people read.
func wantText(t *testing.T, p *Player, want string) {
	t.Helper()
	if d := cmp.Diff(strings.TrimPrefix(want, "\n"), p.Report().Text()); d != "" {
		t.Errorf("text (-want +got):\n%s", d)
	}
}

func TestTextOfAMismatch(t *testing.T) {
	s := load(t, ask(1, "hello"), answer(1, "hello"),
		out("turn/start", `{"id":2,"method":"turn/start","params":{"model":"m-1","cwd":"<workspace>","effort":1,"input":[{"text":"hi <any>"}]}}`))
	p := perform(t, s, Options{Workspace: "/ws"}, State{}, []turn{
		{"send " + request(1, "hello"), `{"id":1,"result":"hello"}` + "\nwait"},
		{`send {"id":2,"method":"turn/start","params":{"model":"m-2","cwd":"/ws2","input":[{"text":"ho"},null],"extra":{"a":1.0}}}`, "fail mismatch frame"},
	})
	wantText(t, p, `
t.ndjson:4: outbound mismatch at params.model (label "turn/start")
  changed params.model
    want "m-1"
    got  "m-2"
  changed params.cwd
    want "<workspace>"
    got  "/ws2"
  missing params.effort
    want 1
  changed params.input.0.text
    want "hi <any>"
    got  "ho"
  extra params.input.1
    got  null
  extra params.extra
    got  {"a":1.0}
  played last: line 3 emit_inbound (label "hello")
`)
}

func TestTextOfManyDifferences(t *testing.T) {
	var members []string
	for i := range 15 {
		members = append(members, fmt.Sprintf(`"k%d":%d`, i, i))
	}
	p := perform(t, load(t, out("a", `{"method":"a","params":{`+strings.Join(members, ",")+`}}`)), Options{}, State{}, []turn{
		{`send {"method":"a","params":{}}`, "fail mismatch frame"},
	})
	if text := p.Report().Text(); !strings.HasSuffix(text, "  missing params.k11\n    want 11\n  … and 3 more (all of them in the report)\n") {
		t.Errorf("text:\n%s", text)
	}
	if n := len(p.Report().Failure.Differences); n != 15 {
		t.Errorf("%d differences in the report: want 15", n)
	}
}

func TestTextOfTheNearest(t *testing.T) {
	s := load(t, out("one", `{"method":"m","params":{"a":1,"b":1,"c":1}}`), in("n", `{"method":"n"}`),
		out("two", `{"method":"m","params":{"a":2,"b":2,"c":1}}`), out("three", `{"method":"m","params":{"a":2,"b":2,"c":3}}`), out("four", `{"method":"m","params":{"a":2,"b":2,"c":3}}`), out("five", `{"method":"q"}`))
	p := perform(t, s, Options{}, State{}, []turn{{`send {"method":"m","params":{"a":2,"b":2,"c":3}}`, "fail mismatch frame"}})
	wantText(t, p, `
t.ndjson:2: outbound mismatch at params.a (label "one")
  changed params.a
    want 1
    got  2
  changed params.b
    want 1
    got  2
  changed params.c
    want 1
    got  3
  nearer is line 5 (label "three"), which it matches: sent too early, or something before it is missing
`)
	p = perform(t, s, Options{}, State{}, []turn{{`send {"method":"m","params":{"a":2,"b":2,"c":4}}`, "fail mismatch frame"}})
	if text := p.Report().Text(); !strings.HasSuffix(text, `
  nearer is line 4 (label "two"), which it misses at
    changed params.c
      want 1
      got  4
`) {
		t.Errorf("text:\n%s", text)
	}
	p = perform(t, s, Options{}, State{}, []turn{{`send {"method":"other"}`, "fail mismatch frame"}})
	if n := p.Report().Failure.Nearest; n != nil {
		t.Errorf("nearest is %+v: want none for another method", n)
	}
}

// TestGroupMemberMeant compares with the member that fits best.
func TestGroupMemberMeant(t *testing.T) {
	s := load(t, out("x", `{"method":"x","params":{"a":1}}`, `"group":"g"`), out("y", `{"method":"y","params":{"a":1}}`, `"group":"g"`))
	failing(t, s, Options{}, `t.ndjson:3: outbound mismatch at params.a (label "y")`,
		turn{`send {"method":"y","params":{"a":2}}`, "fail mismatch frame"})
}

func TestTextOfADuplicate(t *testing.T) {
	p := perform(t, load(t, out("a", `{"method":"a"}`), out("b", `{"method":"b"}`)), Options{}, State{}, []turn{
		{`send {"method":"a"}`, "wait"}, {`send {"method":"a"}`, "fail mismatch frame"},
	})
	wantText(t, p, `
t.ndjson:3: outbound mismatch at method (label "b")
  changed method
    want "b"
    got  "a"
  the same frame met line 2 (label "a") before: sent twice?
  played last: line 2 expect_outbound (label "a")
`)
}

func TestTextOfLeftovers(t *testing.T) {
	entries := []string{out("x", `{"method":"x"}`, `"group":"g"`), out("y", `{"method":"y"}`, `"group":"g"`)}
	for i := range 60 {
		entries = append(entries, in(fmt.Sprintf("n%d", i), `{"method":"n"}`))
	}
	p := perform(t, load(t, append(entries, exit("success"))...), Options{}, State{}, []turn{
		{`send {"method":"x"}`, "wait"}, {"close end_of_input", "fail leftover end_of_input"},
	})
	wantText(t, p, `
t.ndjson:3: the client closed its output before the recording ended (label "y")
  awaited:
    line 3 expect_outbound (label "y")
  not played:
    line 3 expect_outbound (label "y")
    line 4 emit_inbound (label "n0")
    line 5 emit_inbound (label "n1")
    line 6 emit_inbound (label "n2")
    line 7 emit_inbound (label "n3")
    line 8 emit_inbound (label "n4")
    line 9 emit_inbound (label "n5")
    line 10 emit_inbound (label "n6")
    line 11 emit_inbound (label "n7")
    line 12 emit_inbound (label "n8")
    … and 52 more
  played last: line 2 expect_outbound (label "x")
`)
	if f := p.Report().Failure; len(f.Leftover) != maxLeftover || f.LeftoverCount != 62 {
		t.Errorf("%d of %d leftovers: want %d of 62", len(f.Leftover), f.LeftoverCount, maxLeftover)
	}
}

// TestTextOfLostFrames has a client that stops reading when all was played,
// with another launch to come.
func TestTextOfLostFrames(t *testing.T) {
	s := load(t, ask(1, "go"), answer(1, "go"), exit("success"), out("b", `{"method":"b"}`))
	p := perform(t, s, Options{}, State{}, []turn{{start, `{"id":9,"result":"go"}` + "\nclosing"}, {"close output_closed", "fail aborted output_closed"}})
	wantText(t, p, `
t.ndjson:4: the client stopped reading before it had the last frames
  not played:
    line 5 expect_outbound (label "b")
  played last: line 4 runtime_exit (label "")
`)
	if n := p.Report().Failure.LeftoverCount; n != 1 {
		t.Errorf("%d leftovers: want 1", n)
	}
}

func TestTextOfIdling(t *testing.T) {
	idle := turn{"close idle", "fail timeout idle"}
	for _, c := range []struct {
		opt   Options
		turns []turn
		want  string
	}{
		{Options{}, []turn{{"", "wait"}}, `t.ndjson:2: nothing came from the client within the idle timeout (label "go")`},
		{Options{Hold: []string{"c"}}, []turn{{start, said("a b a", "held c")}}, `t.ndjson:6: the gate at label "c" was not released within the idle timeout (label "c")`},
		{Options{}, []turn{{"", "wait"}, {"pause", "wait"}, {start, "held"}}, `t.ndjson:3: playing was paused and not resumed within the idle timeout (label "a")`},
		{Options{Pace: Pace{Virtual: true}}, []turn{{start, "held"}}, `t.ndjson:3: the virtual clock was not advanced within the idle timeout (label "a")`},
	} {
		failing(t, notes(t), c.opt, c.want, append(c.turns, idle)...)
	}
	p := perform(t, notes(t), Options{Hold: []string{"b"}}, State{}, []turn{{start, said("a", "held b")}, {`send {"method":"early"}`, "held b"}, idle})
	wantText(t, p, `
t.ndjson:4: the gate at label "b" was not released within the idle timeout (label "b")
  awaited:
    line 4 emit_inbound (label "b")
  not played:
    line 4 emit_inbound (label "b")
    line 5 emit_inbound (label "a")
    line 6 emit_inbound (label "c")
    line 7 runtime_exit (label "")
  came early and was not compared: {"method":"early"}
  played last: line 3 emit_inbound (label "a")
`)
}

func TestTextOfWhatIsNoFrame(t *testing.T) {
	p := perform(t, load(t, ask(1, "a")), Options{}, State{}, []turn{{"send oops\x01", "fail mismatch illegal_frame"}})
	wantText(t, p, `
t.ndjson:2: not a legal frame: not JSON (label "a")
  got "oops\u0001"
  awaited:
    line 2 expect_outbound (label "a")
`)
}

// TestReportForMachines holds the names that readers of the file rely on.
func TestReportForMachines(t *testing.T) {
	p := perform(t, load(t, ask(1, "a"), out("b", `{"method":"b","params":"<any>x"}`)), Options{}, State{}, []turn{
		{"send " + request(1, "a"), "wait"}, {`send {"method":"b","params":"y\u2028"}`, "fail mismatch frame"},
	})
	r := p.Report()
	r.Transcript.SHA256 = "…"
	want := `{"version":1,"verdict":"mismatch","transcript":{"path":"t.ndjson","sha256":"…","provider":"codex","protocol":"codex.app-server","scenario":"test"},` +
		`"entries":{"total":2,"played":1},"outbound":{"expected":2,"matched":1},"inbound":{"emitted":0},"launches":1,` +
		`"failure":{"reason":"frame","message":"outbound mismatch","file":"t.ndjson","line":3,"label":"b","actual":{"method":"b","params":"y\u2028"},` +
		`"differences":[{"path":"params","kind":"changed","expected":"<any>x","actual":"y\u2028"}],` +
		`"previous":{"line":2,"label":"a","type":"expect_outbound"},"awaiting":{"line":3,"label":"b","type":"expect_outbound"}},"exitCode":97}` + "\n"
	if d := cmp.Diff(want, string(r.Encode())); d != "" {
		t.Errorf("report (-want +got):\n%s", d)
	}
}

// TestLongValues cuts on the screen and not in the report, and never inside a
// character.
func TestLongValues(t *testing.T) {
	for pad := range 4 {
		long := quote(strings.Repeat("x", pad) + strings.Repeat("é", 400))
		p := perform(t, load(t, out("a", `{"method":"a","params":"b"}`)), Options{}, State{}, []turn{
			{`send {"method":"a","params":` + long + `}`, "fail mismatch frame"},
		})
		text := p.Report().Text()
		if !utf8.ValidString(text) || !strings.Contains(text, fmt.Sprintf("é… (%d bytes)\n", len(long))) {
			t.Errorf("pad %d: text:\n%s", pad, text)
		}
		var back Report
		if err := json.Unmarshal(p.Report().Masked().Encode(), &back); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(long, string(back.Failure.Differences[0].Actual)); d != "" {
			t.Errorf("value in the report (-want +got):\n%s", d)
		}
	}
}
