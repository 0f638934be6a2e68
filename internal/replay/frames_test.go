package replay

import (
	"testing"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// testChosen is the place of a client-chosen value, for copies of a flavor.
var testChosen = []flavors.Place{{Dir: envelope.Out, Method: "open", Path: "params.session"}, {Dir: envelope.In, Method: "*", Path: "ignored"}}

// failing plays turns of which the last fails, and checks the first line that
// people see.
func failing(t *testing.T, s *Script, opt Options, headline string, turns ...turn) *Player {
	t.Helper()
	p := perform(t, s, opt, State{}, turns)
	if got := p.Report().Headline(); got != headline {
		t.Errorf("headline %q: want %q", got, headline)
	}
	if r := p.Report(); r.ExitCode != ExitFailed {
		t.Errorf("exit code is %d: want %d", r.ExitCode, ExitFailed)
	}
	return p
}

func refused(p *Player) string {
	switch f := p.Refusal(); {
	case f == nil:
		return ""
	case f.ID == nil:
		return "no id"
	default:
		return string(f.ID)
	}
}

func TestIllegalFrames(t *testing.T) {
	for _, c := range []struct{ frame, verdict, headline, refused string }{
		{`[]`, "fail mismatch illegal_frame", `t.ndjson:2: not a legal frame: a batch array: send one message per line (label "a")`, ""},
		{`oops`, "fail mismatch illegal_frame", `t.ndjson:2: not a legal frame: not JSON (label "a")`, ""},
		{`{"id":1.5,"method":"a"}`, "fail mismatch illegal_frame", `t.ndjson:2: not a legal frame: request id 1.5: want a string or an integer (label "a")`, "1.5"},
		{`{"id":null,"method":"a"}`, "fail mismatch illegal_frame", `t.ndjson:2: not a legal frame: request id null: want a string or an integer (label "a")`, "null"},
		{`{"id":3,"result":1}`, "fail mismatch answer", `t.ndjson:2: outbound response answers request 3, which the provider has not sent: it has no open request (label "a")`, ""},
		{`{"method":"a"}`, "fail mismatch frame", `t.ndjson:2: outbound mismatch at id (label "a")`, ""},
		{`{"id":4,"method":"b"}`, "fail mismatch frame", `t.ndjson:2: outbound mismatch at method (label "a")`, "4"},
	} {
		s := load(t, ask(1, "a"), answer(1, "a"))
		p := failing(t, s, Options{}, c.headline, turn{"send " + c.frame, c.verdict})
		if got := refused(p); got != c.refused {
			t.Errorf("%s: refused request %q: want %q", c.frame, got, c.refused)
		}
	}
}

func TestDuplicateRequestID(t *testing.T) {
	for _, id := range []string{`"x"`, `"\u0078"`} {
		p := failing(t, load(t, ask(1, "a"), ask(2, "b"), answer(1, "a"), answer(2, "b")), Options{},
			`t.ndjson:3: not a legal frame: request id `+id+` is in flight already (label "b")`,
			turn{`send {"id":"x","method":"a"}`, "wait"},
			turn{`send {"id":` + id + `,"method":"b"}`, "fail mismatch illegal_frame"})
		if refused(p) != id {
			t.Errorf("refused request %q: want %s", refused(p), id)
		}
	}
	perform(t, load(t, ask(1, "a"), answer(1, "a"), ask(2, "b"), answer(2, "b")), Options{}, State{}, []turn{
		{"send " + request(1, "a"), `{"id":1,"result":"a"}` + "\nwait"},
		{"send " + request(1, "b"), `{"id":1,"result":"b"}` + "\nclosing"}, // free again
	})
}

func TestWrongAnswers(t *testing.T) {
	ask0 := []string{ask(1, "a"), in("q", `{"id":0,"method":"q"}`), in("r", `{"id":7,"method":"r"}`), out("q", `{"id":0,"result":1}`), out("r", `{"id":7,"result":1}`)}
	begin := turn{"send " + request(1, "a"), `{"id":0,"method":"q"}` + "\n" + `{"id":7,"method":"r"}` + "\nwait"}
	failing(t, load(t, ask0...), Options{},
		`t.ndjson:5: outbound response answers request "0", which the provider has not sent: open are 0, 7 (an answer carries the very id, type included) (label "q")`,
		begin, turn{`send {"id":"0","result":1}`, "fail mismatch answer"})
	failing(t, load(t, ask0...), Options{},
		`t.ndjson:6: outbound response answers request 0 a second time (label "r")`,
		begin, turn{`send {"id":0,"result":1}`, "wait"}, turn{`send {"id":0,"result":1}`, "fail mismatch answer"})
	failing(t, load(t, ask0...), Options{},
		`t.ndjson:5: outbound mismatch at result (label "q")`,
		begin, turn{`send {"id":0,"result":2}`, "fail mismatch frame"})
	failing(t, load(t, ask0...), Options{},
		`t.ndjson:5: outbound mismatch at id (label "q")`,
		begin, turn{`send {"id":7,"result":1}`, "fail mismatch frame"})
}

// TestFailureIsSticky goes on after a failure: nothing changes any more.
func TestFailureIsSticky(t *testing.T) {
	s := load(t, ask(1, "a"), answer(1, "a"))
	p := failing(t, s, Options{}, `t.ndjson:2: outbound mismatch at method (label "a")`,
		turn{"send " + request(1, "x"), "fail mismatch frame"},
		turn{"send " + request(2, "a"), "fail mismatch frame"},
		turn{"illegal zzz", "fail mismatch frame"},
		turn{"close end_of_input", "fail mismatch frame"},
		turn{"close idle", "fail mismatch frame"})
	p.FailLaunch("more")
	if got := string(p.Report().Verdict); got != "mismatch" || !p.Failed() {
		t.Errorf("verdict is %s after further news: want mismatch", got)
	}
}

func TestFrameAfterTheEnd(t *testing.T) {
	headline := `t.ndjson:4: outbound frame after the end of the recording`
	p := failing(t, load(t, ask(1, "a"), answer(1, "a"), exit("success")), Options{}, headline,
		turn{"send " + request(1, "a"), `{"id":1,"result":"a"}` + "\nclosing"},
		turn{"send " + request(5, "a"), "fail unexpected after_end"})
	if refused(p) != "5" || p.Report().Failure.DuplicateOf == nil {
		t.Errorf("refused %q, duplicate of %v: want request 5, which came before", refused(p), p.Report().Failure.DuplicateOf)
	}
	// It came together with the last good frame, or after the client closed.
	s := load(t, ask(1, "a"))
	stg := &stage{p: newPlayer(t, s, Options{}, State{})}
	for _, id := range []int{1, 2} {
		frame := []byte(request(id, "a"))
		f, err := s.Flavor.Classify(envelope.Out, frame)
		if err != nil {
			t.Fatal(err)
		}
		stg.p.Receive(f)
	}
	stg.p.Close(EndOfInput)
	if got := stg.drain(); got[0] != "fail unexpected after_end" {
		t.Errorf("%v: want a failure", got)
	}
}

func TestExclusive(t *testing.T) {
	turnOf := func(id, thread string) string {
		return `{"id":` + id + `,"method":"turn","params":{"thread":"` + thread + `"}}`
	}
	s := load(t, out("t1", turnOf("1", "A")), out("t2", turnOf("2", "B")), in("t1", `{"id":1,"result":0}`), out("t3", turnOf("3", "A")), in("t2", `{"id":2,"result":0}`))
	flavor := *s.Flavor
	flavor.Exclusive = []flavors.Place{{Dir: envelope.Out, Method: "turn", Path: "params.thread"}}
	s.Flavor = &flavor
	perform(t, s, Options{}, State{}, []turn{
		{"send " + turnOf("1", "A"), "wait"},
		{"send " + turnOf("2", "B"), `{"id":1,"result":0}` + "\nwait"},
		{"send " + turnOf("3", "A"), `{"id":2,"result":0}` + "\nclosing"},
	})
	failing(t, s, Options{},
		`t.ndjson:3: not a legal frame: turn for params.thread "A" while request 1 of the same is unanswered (label "t2")`,
		turn{"send " + turnOf("1", "A"), "wait"},
		turn{"send " + turnOf("9", "A"), "fail mismatch illegal_frame"})
}

// threads has frames that name what the provider says, with a gate before the
// end of the turn.
func threads(t *testing.T) *Script {
	return load(t,
		ask(1, "start"), in("started", `{"id":1,"result":{"thread":{"id":"T"}}}`),
		in("turn", `{"method":"turn/started","params":{"turn":{"id":"U"}}}`),
		in("done", `{"method":"turn/completed","params":{"turn":{"id":"U"}}}`),
		in("more", `{"method":"more"}`),
		out("steer", `{"method":"steer","params":{"threadId":"T","turnId":"V"}}`),
		in("late", `{"method":"turn/started","params":{"turn":{"id":"W"}}}`))
}

func TestFrameNamesTheFuture(t *testing.T) {
	start := turn{"send " + request(1, "start"), "held started"}
	failing(t, threads(t), Options{Hold: []string{"started"}},
		`t.ndjson:3: outbound frame came too early: params.threadId names "T", which the provider has not said yet (label "started")`,
		start, turn{`send {"method":"steer","params":{"threadId":"T"}}`, "fail mismatch ahead"})
	// What the recording never says may be the client's own; it waits.
	perform(t, threads(t), Options{Hold: []string{"started"}}, State{}, []turn{
		start, {`send {"method":"steer","params":{"threadId":"mine"}}`, "held started"},
	})
}

func TestFrameNamesTheEnded(t *testing.T) {
	told := `{"id":1,"result":{"thread":{"id":"T"}}}` + "\n" + `{"method":"turn/started","params":{"turn":{"id":"U"}}}` + "\n"
	ended := turn{"send " + request(1, "start"), told + `{"method":"turn/completed","params":{"turn":{"id":"U"}}}` + "\nheld more"}
	failing(t, threads(t), Options{Hold: []string{"more"}},
		`t.ndjson:6: outbound frame came too early: params.turnId names "U", which has ended (label "more")`,
		ended, turn{`send {"method":"steer","params":{"threadId":"T","turnId":"U"}}`, "fail mismatch ahead"})
	// The recording itself names it once more.
	again := load(t, in("done", `{"method":"turn/completed","params":{"turn":{"id":"U"}}}`), in("more", `{"method":"more"}`),
		out("read", `{"method":"read","params":{"turnId":"U"}}`))
	perform(t, again, Options{Hold: []string{"more"}}, State{}, []turn{
		{"", `{"method":"turn/completed","params":{"turn":{"id":"U"}}}` + "\nheld more"},
		{`send {"method":"read","params":{"turnId":"U"}}`, "held more"},
		{"release more", `{"method":"more"}` + "\nclosing"},
	})
	// Before it has ended, and for what goes on, a frame waits for its turn.
	perform(t, threads(t), Options{Hold: []string{"done", "more"}}, State{}, []turn{
		{"send " + request(1, "start"), told + "held done"},
		{`send {"method":"steer","params":{"threadId":"T","turnId":"V"}}`, "held done"},
		{"release done", `{"method":"turn/completed","params":{"turn":{"id":"U"}}}` + "\nheld more"},
		{"release more", `{"method":"more"}` + "\n" + `{"method":"turn/started","params":{"turn":{"id":"W"}}}` + "\nclosing"},
	})
}

func TestTooManyEarlyFrames(t *testing.T) {
	s := load(t, ask(1, "a"), in("b", `{"method":"b"}`))
	stg := &stage{p: newPlayer(t, s, Options{}, State{})}
	for range maxQueue + 1 {
		stg.p.Receive(flavors.Frame{Kind: flavors.Notification, Method: "x", Raw: []byte(`{"method":"x"}`)})
	}
	if got := stg.drain(); got[0] != "fail mismatch ahead" {
		t.Errorf("%v: want a failure", got)
	}
}
