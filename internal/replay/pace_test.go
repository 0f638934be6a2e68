package replay

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// notes is a launch of notifications a, b, a, c, each 100 ms after the one
// before, that a request starts.
func notes(t *testing.T) *Script {
	after := func(label, ms string) string {
		return in(label, `{"method":"`+label+`"}`, `"afterMs":`+ms)
	}
	return load(t, ask(1, "go"), after("a", "100"), after("b", "100"), after("a", "100"), after("c", "100"), exit("success", `"afterMs":100`))
}

// said is what the driver hears for labels, and the action after them.
func said(labels, action string) string {
	var lines []string
	for _, l := range strings.Fields(labels) {
		lines = append(lines, `{"method":"`+l+`"}`)
	}
	return strings.Join(append(lines, action), "\n")
}

var start = "send " + request(9, "go")

func TestParsePace(t *testing.T) {
	for text, want := range map[string]Pace{"": {}, "instant": {}, "recorded": {Factor: 1}, "virtual": {Virtual: true}, "0.5": {Factor: 0.5}, "0": {}, "2": {Factor: 2}} {
		got, err := ParsePace(text)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%q (-want +got), error %v:\n%s", text, err, d)
		}
	}
	for _, text := range []string{"fast", "-1", "NaN", "Inf", "1e9", "1x"} {
		if got, err := ParsePace(text); err == nil {
			t.Errorf("%q is %+v: want an error", text, got)
		}
	}
}

func TestPaceRecorded(t *testing.T) {
	perform(t, notes(t), Options{Pace: Pace{Factor: 1}}, State{}, []turn{
		{"clock 1s", "wait"},
		{"clock 5s", "wait"},
		{start, "sleep 100ms"}, // from the frame's arrival
		{"clock 5.04s", "sleep 60ms"},
		{"clock 5.1s", said("a", "sleep 100ms")},
		{"clock 5.3s", said("b", "sleep 100ms")}, // late: the next one counts from then
		{"clock 5.4s", said("a", "sleep 100ms")},
		{"close end_of_input", said("c", "quit success 0")}, // nobody is left to wait for
	})
	perform(t, notes(t), Options{Pace: Pace{Factor: 0.25}}, State{}, []turn{
		{start, "sleep 25ms"},
		{"clock 25ms", said("a", "sleep 25ms")},
	})
	perform(t, notes(t), Options{Pace: Pace{Factor: 1}}, State{}, []turn{
		{"clock 5s", "wait"}, {start, "sleep 100ms"}, {"clock 5.1s", said("a", "sleep 100ms")}, {"clock 5.2s", said("b", "sleep 100ms")},
		{"clock 5.3s", said("a", "sleep 100ms")}, {"clock 5.4s", said("c", "sleep 100ms")}, {"clock 5.5s", "closing"},
	})
}

func TestPaceVirtual(t *testing.T) {
	p := perform(t, notes(t), Options{Pace: Pace{Virtual: true}}, State{}, []turn{
		{"advance 1h", "wait"}, // before there is anything to wait for
		{start, "held"},
		{"clock 1h", "held"}, // real time means nothing
		{"advance 99ms", "held"},
		{"advance 1ms", said("a", "held")},
		{"advance 250ms", said("b", "held")},
		{"advance 50ms", "held"}, // the clock stood at 250 ms when b went out
		{"advance 50ms", said("a", "held")},
		{"advance 1s", said("c", "held")},
		{"advance 100ms", "closing"},
	})
	wantCounts(t, p, "passed entries 6+0/6 outbound 1+0/1 inbound 4")
	perform(t, notes(t), Options{}, State{}, []turn{{"advance 1s", "error: advance needs the virtual pace\nwait"}})
}

func TestGates(t *testing.T) {
	for _, c := range []struct {
		name  string
		hold  []string
		turns []turn
	}{
		{"every occurrence", []string{"a"}, []turn{
			{start, "held a"}, {"", "held a"}, {"release a", said("a b", "held a")}, {"release a", said("a c", "closing")}}},
		{"one occurrence", []string{"a#2"}, []turn{
			{start, said("a b", "held a")}, {"release a#1", "error: no gate at label \"a#1\"\nheld a"}, {"release a#2", said("a c", "closing")}}},
		{"by the bare label", []string{"a#2"}, []turn{
			{start, said("a b", "held a")}, {"release a", said("a c", "closing")}}},
		{"released before", []string{"a"}, []turn{
			{"release a", "wait"}, {start, said("a b", "held a")}, {"release a", said("a c", "closing")}}},
		{"the second released before", []string{"a#1", "a#2"}, []turn{
			{"release a#2", "wait"}, {start, "held a"}, {"release a#1", said("a b a c", "closing")}}},
		{"the second of all released before", []string{"a"}, []turn{
			{"release a#2", "wait"}, {start, "held a"}, {"release a", said("a b a c", "closing")}}},
		{"the next one released while held", []string{"a", "c"}, []turn{
			{start, "held a"}, {"release c", "held a"}, {"release a", said("a b", "held a")}, {"release a", said("a c", "closing")}}},
		{"at the request", []string{"go"}, []turn{
			{"", "held go"}, {start, "held go"}, {"release go", said("a b a c", "closing")}}},
		{"unknown", []string{"c"}, []turn{
			{"release b", "error: no gate at label \"b\"\nwait"}, {"release c#x", "error: no gate at label \"c#x\"\nwait"}}},
		{"end of input", []string{"b"}, []turn{
			{start, said("a", "held b")}, {"close end_of_input", "fail leftover end_of_input"}}},
	} {
		t.Run(c.name, func(t *testing.T) { perform(t, notes(t), Options{Hold: c.hold}, State{}, c.turns) })
	}
}

// TestGateLabels has labels that look like occurrences.
func TestGateLabels(t *testing.T) {
	s := load(t, ask(1, "go"), in("a#2", `{"method":"x"}`), in("a", `{"method":"y"}`), in("a", `{"method":"z"}`))
	perform(t, s, Options{Hold: []string{"a#2"}}, State{}, []turn{
		{start, "held a#2"}, {"release a#2", said("x y z", "closing")},
	})
	for name, has := range map[string]bool{"a": true, "a#1": true, "a#2": true, "a#3": false, "b": false, "a#0": false, "a#2#1": true, "": false} {
		if s.HasLabel(name) != has {
			t.Errorf("label %q: %v: want %v", name, !has, has)
		}
	}
	if p, err := New(s, Options{Hold: []string{"a", "b"}}, State{}); err == nil || err.Error() != `hold "b": t.ndjson has no entry with this label` {
		t.Errorf("a gate nowhere gives %v, %v", p, err)
	}
}

func TestPause(t *testing.T) {
	perform(t, notes(t), Options{}, State{}, []turn{
		{"", "wait"}, {"pause", "wait"}, {start, "held"},
		{"step", said("a", "held")}, {"step", said("b", "held")},
		{"", "held"},
		{"resume", said("a c", "closing")},
	})
	perform(t, notes(t), Options{}, State{}, []turn{
		{"step", "wait"}, {"", "wait"}, {"pause", "wait"}, {start, "held"}, // a step before the pause is not saved
		{"close end_of_input", "fail leftover end_of_input"},
	})
}

// TestPauseAtAGate opens a gate while everything is paused.
func TestPauseAtAGate(t *testing.T) {
	perform(t, notes(t), Options{Hold: []string{"b"}}, State{}, []turn{
		{start, said("a", "held b")},
		{"pause", "held b"},
		{"release b", "held"},
		{"", "held"},
		{"step", said("b", "held")},
		{"resume", said("a c", "closing")},
	})
	perform(t, notes(t), Options{Hold: []string{"b"}}, State{}, []turn{
		{"", "wait"}, {"pause", "wait"}, {start, "held"}, {"step", said("a", "held b")},
		{"resume", "held b"}, {"release b", said("b a c", "closing")},
	})
}

// TestEarlyFrames come while a gate holds, and are compared in their turn.
func TestEarlyFrames(t *testing.T) {
	s := load(t, ask(1, "go"), in("x", `{"method":"x"}`), ask(2, "b"), answer(2, "b"), ask(3, "c"), answer(3, "c"))
	hold := Options{Hold: []string{"x"}}
	x := `{"method":"x"}` + "\n"
	p := perform(t, s, hold, State{}, []turn{
		{start, "held x"}, {"send " + request(2, "b"), "held x"}, {"send " + request(3, "c"), "held x"},
		{"release x", x + `{"id":2,"result":"b"}` + "\n" + `{"id":3,"result":"c"}` + "\nclosing"},
	})
	wantCounts(t, p, "passed entries 6+0/6 outbound 3+0/3 inbound 3")
	p = perform(t, s, hold, State{}, []turn{
		{start, "held x"}, {"send " + request(3, "c"), "held x"}, {"send " + request(2, "b"), "held x"},
		{"release x", x + "fail mismatch frame"},
	})
	if got := refused(p); got != "3" {
		t.Errorf("refused request is %q: want 3", got)
	}
}
