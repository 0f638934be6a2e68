package replay

import (
	"fmt"
	"testing"
)

func TestPlayInOrder(t *testing.T) {
	s := load(t,
		ask(1, "a"), answer(1, "a"), in("note", `{"method":"note","params":{"n":1.0}}`),
		in("", `"warning: \u00e9\n"`, `"channel":"stderr"`), in("", `"plain <workspace>\n"`, `"channel":"stdout"`),
		out("b", `{"method":"b"}`), exit("success"))
	p := perform(t, s, Options{}, State{}, []turn{
		{"", "wait"},
		{`send {"method":"a","id":"x"}`, `{"id":"x","result":"a"}` + "\n" + `{"method":"note","params":{"n":1.0}}` + "\nstderr: warning: é\n\nstdout: plain <workspace>\n\nwait"},
		{`send {"method":"b"}`, "closing"},
		{"close end_of_input", "quit success 0"},
	})
	wantCounts(t, p, "passed entries 7+0/7 outbound 2+0/2 inbound 4")
}

// TestAnswersCrosswise has two calls of one method in flight, answered in the
// other order: ids follow their requests.
func TestAnswersCrosswise(t *testing.T) {
	s := load(t,
		out("a", `{"id":1,"method":"m","params":1}`), out("b", `{"id":2,"method":"m","params":2}`),
		in("b", `{"id":2,"result":"two"}`), in("a", `{"result":"one","id":1}`))
	p := perform(t, s, Options{}, State{}, []turn{
		{`send {"id":"x","method":"m","params":1}`, "wait"},
		{`send {"id":0,"method":"m","params":2}`, `{"id":0,"result":"two"}` + "\n" + `{"result":"one","id":"x"}` + "\nclosing"},
		{"close end_of_input", "quit success 0"},
	})
	wantCounts(t, p, "passed entries 4+0/4 outbound 2+0/2 inbound 2")
}

// TestBothSidesAsk uses one id on both sides at once.
func TestBothSidesAsk(t *testing.T) {
	s := load(t,
		ask(1, "a"), in("q", `{"id":0,"method":"q"}`), in("r", `{"id":"0","method":"r"}`),
		out("r", `{"id":"0","result":{}}`), out("q", `{"id":0,"error":{}}`), answer(1, "a"))
	p := perform(t, s, Options{}, State{}, []turn{
		{`send {"id":0,"method":"a"}`, `{"id":0,"method":"q"}` + "\n" + `{"id":"0","method":"r"}` + "\nwait"},
		{`send {"id":"\u0030","result":{}}`, "wait"},
		{`send {"id":0,"error":{}}`, `{"id":0,"result":"a"}` + "\nclosing"},
	})
	wantCounts(t, p, "passed entries 6+0/6 outbound 3+0/3 inbound 3")
}

func TestGroup(t *testing.T) {
	s := load(t,
		ask(1, "a", `"group":"g"`), ask(2, "b", `"group":"g"`), ask(3, "c", `"group":"g"`), ask(4, "d", `"group":"h"`),
		answer(1, "a"), answer(2, "b"), answer(3, "c"), answer(4, "d"))
	p := perform(t, s, Options{}, State{}, []turn{
		{"send " + request(7, "c"), "wait"},
		{"send " + request(8, "a"), "wait"},
		{"send " + request(9, "b"), "wait"},
		{"send " + request(1, "d"), `{"id":8,"result":"a"}` + "\n" + `{"id":9,"result":"b"}` + "\n" + `{"id":7,"result":"c"}` + "\n" + `{"id":1,"result":"d"}` + "\nclosing"},
	})
	wantCounts(t, p, "passed entries 8+0/8 outbound 4+0/4 inbound 4")

	perform(t, s, Options{}, State{}, []turn{
		{"send " + request(7, "c"), "wait"},
		{"send " + request(8, "d"), "fail mismatch frame"}, // the next group
	})
	perform(t, s, Options{}, State{}, []turn{
		{"send " + request(7, "c"), "wait"},
		{"send " + request(8, "c"), "fail mismatch frame"}, // met already
	})
}

// optional has an optional request whose answer stands before a required
// frame.
func optional(t *testing.T) *Script {
	return load(t,
		ask(1, "a"), answer(1, "a"),
		ask(2, "maybe", `"optional":true`), answer(2, "maybe"),
		ask(3, "c"), answer(3, "c"), exit("success"))
}

func TestOptional(t *testing.T) {
	a, c, maybe := `{"id":1,"result":"a"}`+"\nwait", `{"id":3,"result":"c"}`+"\nclosing", `{"id":2,"result":"maybe"}`
	for _, test := range []struct {
		name   string
		turns  []turn
		counts string
	}{
		{"skipped", []turn{{"send " + request(1, "a"), a}, {"send " + request(3, "c"), c}, {"close end_of_input", "quit success 0"}},
			"passed entries 5+2/7 outbound 2+0/3 inbound 2"},
		{"in its place", []turn{{"send " + request(1, "a"), a}, {"send " + request(2, "maybe"), maybe + "\nwait"}, {"send " + request(3, "c"), c}},
			"passed entries 7+0/7 outbound 3+0/3 inbound 3"},
		{"after the end", []turn{{"send " + request(1, "a"), a}, {"send " + request(3, "c"), c}, {"send " + request(2, "maybe"), maybe + "\nclosing"}, {"close terminated", "quit success 0"}},
			"passed entries 7+0/7 outbound 3+0/3 inbound 3"},
		{"twice", []turn{{"send " + request(1, "a"), a}, {"send " + request(2, "maybe"), maybe + "\nwait"}, {"send " + request(9, "maybe"), "fail mismatch frame"}},
			"mismatch entries 4+0/7 outbound 2+0/3 inbound 2"},
		{"too early", []turn{{"send " + request(2, "maybe"), "fail mismatch frame"}},
			"mismatch entries 0+0/7 outbound 0+0/3 inbound 0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			wantCounts(t, perform(t, optional(t), Options{}, State{}, test.turns), test.counts)
		})
	}
}

// TestOptionalLeavesItsBind skips the frame that captures what a later frame
// needs.
func TestOptionalLeavesItsBind(t *testing.T) {
	s := load(t,
		ask(1, "a"), out("maybe", `{"method":"maybe","params":"<bind:x>"}`, `"optional":true`),
		out("b", `{"method":"b"}`), in("use", `{"method":"use","params":"it is <bind:x>"}`))
	perform(t, s, Options{}, State{}, []turn{
		{"send " + request(1, "a"), "wait"},
		{`send {"method":"maybe","params":7}`, "wait"},
		{`send {"method":"b"}`, `{"method":"use","params":"it is 7"}` + "\nclosing"},
	})
	p := perform(t, s, Options{}, State{}, []turn{
		{"send " + request(1, "a"), "wait"},
		{`send {"method":"b"}`, "fail invalid transcript"},
	})
	if got, want := p.Report().Text(), "t.ndjson:5: <bind:x> was not captured: the frame that captures it has not come\n  played last: line 5 emit_inbound (label \"use\")\n"; got != want {
		t.Errorf("the text is %q: want %q", got, want)
	}
}

func TestRepeat(t *testing.T) {
	s := load(t, ask(1, "read", `"repeat":true`), answer(1, "read"), ask(2, "b"), answer(2, "b"), exit("success"))
	read := func(id int) string { return fmt.Sprintf(`{"id":%d,"result":"read"}`, id) }
	p := perform(t, s, Options{}, State{}, []turn{
		{"send " + request(1, "read"), read(1) + "\nwait"},
		{"send " + request(5, "read"), read(5) + "\nwait"},
		{"send " + request(1, "read"), read(1) + "\nwait"}, // the id is free again
		{"send " + request(2, "b"), `{"id":2,"result":"b"}` + "\nclosing"},
		{"send " + request(6, "read"), read(6) + "\nclosing"},
		{"close end_of_input", "quit success 0"},
	})
	wantCounts(t, p, "passed entries 5+0/5 outbound 2+3/2 inbound 5")
	perform(t, s, Options{}, State{}, []turn{
		{"send " + request(5, "read"), read(5) + "\nwait"},
		{`send {"id":6,"method":"read","params":{}}`, "fail mismatch frame"},
	})
}

// TestRepeatBeforeTheAnswer asks again while the first request is open: both
// get the answer when it comes.
func TestRepeatBeforeTheAnswer(t *testing.T) {
	s := load(t, ask(1, "read", `"repeat":true`), ask(2, "b"), answer(1, "read"), answer(2, "b"))
	p := perform(t, s, Options{}, State{}, []turn{
		{"send " + request(1, "read"), "wait"},
		{"send " + request(5, "read"), "wait"},
		{"send " + request(2, "b"), `{"id":1,"result":"read"}` + "\n" + `{"id":5,"result":"read"}` + "\n" + `{"id":2,"result":"b"}` + "\nclosing"},
	})
	wantCounts(t, p, "passed entries 4+0/4 outbound 2+1/2 inbound 3")
}

func TestOptionalRepeat(t *testing.T) {
	s := load(t, ask(1, "a"), ask(2, "read", `"repeat":true`, `"optional":true`), answer(2, "read"), ask(3, "c"))
	p := perform(t, s, Options{}, State{}, []turn{
		{"send " + request(1, "a"), "wait"},
		{"send " + request(2, "read"), `{"id":2,"result":"read"}` + "\nwait"},
		{"send " + request(9, "read"), `{"id":9,"result":"read"}` + "\nwait"},
		{"send " + request(3, "c"), "closing"},
	})
	wantCounts(t, p, "passed entries 4+0/4 outbound 3+1/3 inbound 2")
}

// TestSubstitution binds, chooses and puts the workspace in, across frames.
func TestSubstitution(t *testing.T) {
	s := load(t,
		out("open", `{"id":1,"method":"open","params":{"cwd":"<workspace>","key":"<bind:key>","session":"s-recorded"}}`),
		in("open", `{"id":1,"result":{"cwd":"<workspace>/x","key":"<bind:key>","log":"k=<bind:key>","session":"s-recorded"}}`),
		out("use", `{"method":"use","params":["<bind:key>","s-recorded"]}`))
	flavor := *s.Flavor
	flavor.Chosen = testChosen
	s.Flavor = &flavor
	p := perform(t, s, Options{Workspace: "/tmp/ws"}, State{}, []turn{
		{`send {"id":1,"method":"open","params":{"cwd":"/tmp/ws","key":12,"session":"mine"}}`,
			`{"id":1,"result":{"cwd":"/tmp/ws/x","key":12,"log":"k=12","session":"mine"}}` + "\nwait"},
		{`send {"method":"use","params":[12,"mine"]}`, "closing"},
	})
	wantCounts(t, p, "passed entries 3+0/3 outbound 2+0/2 inbound 1")
}
