package replay

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestClose takes every cause in every state of a launch.
func TestClose(t *testing.T) {
	waiting := []turn{{"", "wait"}}
	held := []turn{{start, said("a", "held b")}}
	paused := []turn{{"", "wait"}, {"pause", "wait"}, {start, "held"}}
	slow := []turn{{start, "sleep 100ms"}}
	ended := []turn{{start, said("a b a c", "closing")}}
	for _, c := range []struct {
		name   string
		opt    Options
		before []turn
		cause  Cause
		want   string
	}{
		{"waiting", Options{}, waiting, EndOfInput, "fail leftover end_of_input"},
		{"waiting", Options{}, waiting, OutputClosed, "fail aborted output_closed"},
		{"waiting", Options{}, waiting, ParentGone, "fail aborted parent_gone"},
		{"waiting", Options{}, waiting, Terminated, "fail aborted terminated"},
		{"waiting", Options{}, waiting, Idle, "fail timeout idle"},
		{"held", Options{Hold: []string{"b"}}, held, EndOfInput, "fail leftover end_of_input"},
		{"held", Options{Hold: []string{"b"}}, held, Terminated, "fail aborted terminated"},
		{"held", Options{Hold: []string{"b"}}, held, Idle, "fail timeout idle"},
		{"paused", Options{}, paused, EndOfInput, "fail leftover end_of_input"},
		{"paused", Options{}, paused, Idle, "fail timeout idle"},
		{"slow", Options{Pace: Pace{Factor: 1}}, slow, EndOfInput, said("a b a c", "quit success 0")},
		{"slow", Options{Pace: Pace{Factor: 1}}, slow, ParentGone, "fail aborted parent_gone"},
		{"ended", Options{}, ended, EndOfInput, "quit success 0"},
		{"ended", Options{}, ended, OutputClosed, "fail aborted output_closed"},
		{"ended", Options{}, ended, ParentGone, "quit success 0"},
		{"ended", Options{}, ended, Terminated, "quit success 0"},
		{"ended", Options{}, ended, Idle, "quit success 0"},
	} {
		t.Run(c.name+" "+string(c.cause), func(t *testing.T) {
			stg := &stage{p: newPlayer(t, notes(t), c.opt, State{})}
			for _, turn := range c.before {
				if d := cmp.Diff(turn.want, lines(stg.do(turn.event))); d != "" {
					t.Fatalf("%q (-want +got):\n%s", turn.event, d)
				}
			}
			if d := cmp.Diff(c.want, lines(stg.do("close "+string(c.cause)))); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestCloseAfterEndOfInput has a client that stops reading before the rest
// could be written.
func TestCloseAfterEndOfInput(t *testing.T) {
	s := notes(t)
	stg := &stage{p: newPlayer(t, s, Options{}, State{})}
	stg.p.Next(0)
	f, err := s.Flavor.Classify(0, []byte(request(1, "go")))
	if err != nil {
		t.Fatal(err)
	}
	stg.p.Receive(f)
	stg.p.Close(EndOfInput)
	if act := stg.p.Next(0); act.Kind != Emit {
		t.Fatalf("action %d: want an emission", act.Kind)
	}
	stg.p.Close(Idle) // is no news
	if act := stg.p.Next(0); act.Kind != Emit {
		t.Fatalf("action %d: want an emission", act.Kind)
	}
	if got := lines(stg.do("close output_closed")); got != "fail aborted output_closed" {
		t.Errorf("%s: want a failure", got)
	}
}

func TestExits(t *testing.T) {
	for _, c := range []struct{ name, exit, want string }{
		{"none", "", "closing"},
		{"success", exit("success"), "closing"},
		{"success with code", exit("success", `"error":{"exitCode":3}`), "closing"},
		{"cancelled", exit("cancelled"), "closing"},
		{"error", exit("error"), "quit error 1"},
		{"null", exit("error", `"error":null`), "quit error 1"},
		{"code", exit("error", `"error":{"exitCode":3,"more":[1]}`), "quit error 3"},
		{"code at the end of input", exit("error", `"error":{"exitCode":3,"inputClosed":true}`), "closing"},
		{"signal and text", exit("error", `"error":{"exitCode":137,"signal":"SIGKILL","stderr":"oh\u00e9"}`), `quit error 137 SIGKILL "ohé"`},
		{"plain text", exit("error", `"error":"it broke"`), `quit error 1 "it broke\n"`},
		{"another shape", exit("error", `"error":{"exitCode":"three"}`), `quit error 1 "{\"exitCode\":\"three\"}"`},
		{"a list", exit("error", `"error":[1]`), `quit error 1 "[1]"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			entries := []string{ask(1, "go"), answer(1, "go")}
			if c.exit != "" {
				entries = append(entries, c.exit)
			}
			p := perform(t, load(t, entries...), Options{}, State{}, []turn{{start, `{"id":9,"result":"go"}` + "\n" + c.want}})
			if r := p.Report(); r.Verdict != Passed {
				t.Errorf("verdict is %s: want passed", r.Verdict)
			}
		})
	}
	p := perform(t, load(t, ask(1, "go"), exit("error", `"error":{"exitCode":3}`)), Options{}, State{}, []turn{{start, "quit error 3"}})
	if p.Report().ExitCode != 3 {
		t.Errorf("exit code is %d: want the recorded 3", p.Report().ExitCode)
	}
}

// TestNothingServed passes nothing: no frame was compared or sent.
func TestNothingServed(t *testing.T) {
	for _, entries := range [][]string{
		{exit("success")},
		{out("maybe", `{"method":"maybe"}`, `"optional":true`), exit("success")},
	} {
		perform(t, load(t, entries...), Options{}, State{}, []turn{{"", "fail leftover empty"}})
	}
	p := perform(t, load(t, in("hello", `{"method":"hello"}`)), Options{}, State{}, []turn{{"", said("hello", "closing")}})
	wantCounts(t, p, "passed entries 1+0/1 outbound 0+0/0 inbound 1")
}

// launches is a recording of three processes, one of which fails by itself.
func launches(t *testing.T) *Script {
	return load(t,
		out("open", `{"id":1,"method":"open","params":{"key":"<bind:key>","session":"s-recorded"}}`), answer(1, "open"),
		in("note", `{"method":"note"}`), exit("error", `"error":{"exitCode":2}`),
		out("again", `{"id":1,"method":"again","params":["<bind:key>","s-recorded"]}`),
		in("again", `{"id":1,"result":["<bind:key>","s-recorded"]}`), in("note", `{"method":"note"}`), exit("success"),
		in("note", `{"method":"note"}`), out("last", `{"id":1,"method":"last"}`), exit("cancelled"))
}

// TestLaunches carries the state from process to process, through its file
// form.
func TestLaunches(t *testing.T) {
	s := launches(t)
	flavor := *s.Flavor
	flavor.Chosen = testChosen
	s.Flavor = &flavor
	opt := Options{Hold: []string{"note#3"}}
	const key = `{"b":1.0,"a":"<x>\u2028"}`

	p := perform(t, s, opt, State{}, []turn{
		{`send {"id":7,"method":"open","params":{"session":"mine","key":` + key + `}}`, `{"id":7,"result":"open"}` + "\n" + `{"method":"note"}` + "\nquit error 2"},
	})
	wantCounts(t, p, "running entries 4+0/11 outbound 1+0/3 inbound 2")
	st := again(t, s, p)
	p = perform(t, s, opt, st, []turn{
		{`send {"id":7,"method":"again","params":[{"a":"<x>\u2028","b":1.0},"mine"]}`, `{"id":7,"result":[` + key + `,"mine"]}` + "\n" + `{"method":"note"}` + "\nclosing"},
		{"close terminated", "quit success 0"},
	})
	wantCounts(t, p, "running entries 8+0/11 outbound 2+0/3 inbound 4")
	st = again(t, s, p)
	p = perform(t, s, opt, st, []turn{
		{"", "held note"}, // the third of the whole recording
		{"release note#3", said("note", "wait")},
		{`send {"id":7,"method":"last"}`, "closing"},
		{"close end_of_input", "quit cancelled 0"},
	})
	wantCounts(t, p, "passed entries 11+0/11 outbound 3+0/3 inbound 5")
	if p.Report().Launches != 3 {
		t.Errorf("%d launches: want 3", p.Report().Launches)
	}
	if err := p.State().Claim(s); err == nil || err.Error() != "launch 3 played the last entry: the recording has no launch 4" {
		t.Errorf("a fourth launch gives %v", err)
	}
}

// again puts a state through its file form and claims the next launch.
func again(t *testing.T, s *Script, p *Player) State {
	t.Helper()
	st, err := ReadState(p.State().Encode())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(p.State(), st); d != "" {
		t.Errorf("state, written and read (-want +got):\n%s", d)
	}
	if err := st.Claim(s); err != nil {
		t.Fatal(err)
	}
	return st
}

func TestClaimErrors(t *testing.T) {
	s := launches(t)
	open := turn{`send {"id":7,"method":"open","params":{"session":"s-recorded","key":1}}`, `{"id":7,"result":"open"}` + "\n" + `{"method":"note"}` + "\nquit error 2"}
	st := func(turns ...turn) State { return perform(t, s, Options{}, State{}, turns).State() }
	other := st(open)
	other.Transcript = "x"
	for want, state := range map[string]State{
		"": {},
		"launch 1 was ended before it reached its runtime_exit: its segment can't be claimed twice":                   st(turn{"", "wait"}),
		"launch 1 of this run failed (unexpected): nothing is played after a failure":                                 st(open, turn{"send " + request(1, "x"), "fail unexpected after_end"}),
		"launch 1 of this run failed (timeout): nothing is played after a failure":                                    st(turn{"close idle", "fail timeout idle"}),
		"the state belongs to another transcript, or t.ndjson has changed since: remove the state file to start anew": other,
		"launch 0 of this run failed (): nothing is played after a failure":                                           {Version: 1, Transcript: s.SHA256, Ended: true},
	} {
		got := ""
		if err := state.Claim(s); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("claim gives %q: want %q", got, want)
		}
	}
}

func TestReadState(t *testing.T) {
	if st, err := ReadState(nil); err != nil || cmp.Diff(State{}, st) != "" {
		t.Errorf("empty content gives %+v, %v", st, err)
	}
	for _, text := range []string{"x", "{}", `{"version":2}`, `{"version":1,"cursor":-1}`, `[]`} {
		if st, err := ReadState([]byte(text)); err == nil || cmp.Diff(State{}, st) != "" {
			t.Errorf("%s gives %+v, %v: want an error", text, st, err)
		}
	}
	st := State{Version: 1, Names: map[string]json.RawMessage{"n": json.RawMessage(`"<any>"`)}}
	if d := cmp.Diff(`{"version":1,"transcript":"","cursor":0,"launches":0,"ended":false,"verdict":"","played":0,"matched":0,"emitted":0,"names":{"n":"<any>"}}`+"\n", string(st.Encode())); d != "" {
		t.Errorf("state file (-want +got):\n%s", d)
	}
}
