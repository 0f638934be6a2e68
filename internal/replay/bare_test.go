package replay

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// Transcripts whose frames carry no request ids: the wire has them, and they
// are given and followed by order and method.

var bareHeader = strings.NewReplacer("codex.app-server", "acp.ndjson-jsonrpc", `"codex"`, `"grok"`).Replace(testHeader)

func bare(kind, method, rest string) string {
	return `{"kind":"` + kind + `","method":"` + method + `",` + rest + `}`
}

func rpc(members string) string { return `{"jsonrpc":"2.0",` + members + `}` }

// TestBareRequests has two calls of one method in flight: the oldest is
// answered first.
func TestBareRequests(t *testing.T) {
	s := load(t, bareHeader,
		out("m", bare("request", "x/m", `"params":{"n":1}`)), out("m", bare("request", "x/m", `"params":{"n":2}`)), out("o", bare("request", "x/o", `"params":{}`)),
		in("o", bare("response", "x/o", `"result":{}`)), in("m", bare("response", "x/m", `"result":{"of":1}`)), in("m", bare("response", "x/m", `"result":{"of":2}`)))
	p := perform(t, s, Options{}, State{}, []turn{
		{"send " + rpc(`"id":"a","method":"x/m","params":{"n":1}`), "wait"},
		{"send " + rpc(`"id":5,"method":"x/m","params":{"n":2}`), "wait"},
		{"send " + rpc(`"id":6,"method":"x/o","params":{}`),
			rpc(`"id":6,"result":{}`) + "\n" + rpc(`"id":"a","result":{"of":1}`) + "\n" + rpc(`"id":5,"result":{"of":2}`) + "\nclosing"},
	})
	wantCounts(t, p, "passed entries 6+0/6 outbound 3+0/3 inbound 3")
}

// TestBareAnswers has the provider ask twice: each answer must go to the
// request that the recorded one answered.
func TestBareAnswers(t *testing.T) {
	s := load(t, bareHeader,
		in("ask", bare("request", "x/ask", `"params":{"n":1}`)), in("ask", bare("request", "x/ask", `"params":{"n":2}`)),
		out("first", bare("response", "x/ask", `"result":{"ok":true}`)), out("second", bare("response", "x/ask", `"result":{"ok":true}`)))
	asked := turn{"", rpc(`"id":0,"method":"x/ask","params":{"n":1}`) + "\n" + rpc(`"id":1,"method":"x/ask","params":{"n":2}`) + "\nwait"}
	p := perform(t, s, Options{}, State{}, []turn{
		asked, {"send " + rpc(`"id":0,"result":{"ok":true}`), "wait"}, {"send " + rpc(`"id":1,"result":{"ok":true}`), "closing"},
	})
	wantCounts(t, p, "passed entries 4+0/4 outbound 2+0/2 inbound 2")

	p = perform(t, s, Options{}, State{}, []turn{asked, {"send " + rpc(`"id":1,"result":{"ok":true}`), "fail mismatch frame"}})
	want := []Difference{{Path: "id", Kind: "changed", Expected: json.RawMessage("0"), Actual: json.RawMessage("1")}}
	if d := cmp.Diff(want, p.Report().Failure.Differences); d != "" {
		t.Errorf("differences (-want +got):\n%s", d)
	}
	if n := p.Report().Failure.Nearest; n == nil || n.Line != 5 || len(n.Differences) > 0 {
		t.Errorf("nearest is %+v: want line 5 without a difference", n)
	}
}

// TestUnansweredRequests finds, launch by launch, the requests whose answer
// was not recorded.
func TestUnansweredRequests(t *testing.T) {
	claude := strings.NewReplacer("codex.app-server", "claude-agent-sdk.query", `"codex"`, `"claude"`).Replace(testHeader)
	open := out("open", `{"type":"query.open","options":{}}`)
	interrupt := out("stop", `{"type":"query.interrupt"}`)
	stopped := in("stop", `{"type":"query.response","method":"query.interrupt","response":{}}`)
	s := load(t, claude, open, interrupt, interrupt, stopped, exit("success"), interrupt, stopped, exit("success"), open, interrupt, stopped)
	if d := cmp.Diff(map[int]bool{0: true, 2: true, 8: true}, s.unanswered); d != "" {
		t.Errorf("unanswered (-want +got):\n%s", d)
	}
	// A session that could not be resumed, then one that died of something else.
	s = load(t, claude, open, exit("error"), open, interrupt, stopped, exit("error"))
	if d := cmp.Diff(map[int]bool{2: true}, s.unanswered); d != "" {
		t.Errorf("unanswered of broken launches (-want +got):\n%s", d)
	}
}

func TestMinimalAnswers(t *testing.T) {
	s := load(t, ask(1, "a"), ask(2, "b"), answer(2, "b"), ask(3, "c"), exit("success"))
	flavor := *s.Flavor
	flavor.Minimal = func(f flavors.Frame) json.RawMessage {
		if f.Method == "c" {
			return nil // has none
		}
		return json.RawMessage(`{"id":` + string(f.ID) + `,"result":{}}`)
	}
	s.Flavor, s.unanswered = &flavor, map[int]bool{0: true, 3: true}
	p := perform(t, s, Options{}, State{}, []turn{
		{"send " + request(7, "a"), `{"id":7,"result":{}}` + "\nwait"},
		{"send " + request(7, "b"), `{"id":7,"result":"b"}` + "\nwait"}, // the id is free again
		{"send " + request(7, "c"), "closing"},
	})
	wantCounts(t, p, "passed entries 5+0/5 outbound 3+0/3 inbound 2")
}

// TestEndsAlone keeps the recorded pace after the client has closed.
func TestEndsAlone(t *testing.T) {
	s := notes(t)
	flavor := *s.Flavor
	flavor.EndsAlone = true
	s.Flavor = &flavor
	perform(t, s, Options{Pace: Pace{Factor: 1}}, State{}, []turn{
		{start, "sleep 100ms"},
		{"close end_of_input", "sleep 100ms"},
		{"clock 100ms", said("a", "sleep 100ms")},
		{"clock 200ms", said("b", "sleep 100ms")},
		{"close parent_gone", "fail aborted parent_gone"},
	})
}
