package scenario

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// evidence is what a scenario holds, one line each:
//
//	runs.#.status equals ["completed"]              an assertion at the end, for codex and claude at least
//	codex: providerTurns length 1                   for one provider
//	probe runs.0.status equals "running"            in mid-scenario
//	child 1: runs length 0                          of another thread, the shell or a report
//	without questions: runtimeRequests length 0     where the capability is not there
//	refused without questions: not_supported        a step there that is refused
//	wire codex: turn/start x1                       so often the client says it
func evidence(t *testing.T, name string) map[string]bool {
	t.Helper()
	sc, err := Load("../../transcripts/"+name, name)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	add := func(prefix string, as []Assertion) {
		for _, a := range as {
			general := true
			for _, provider := range sc.ProviderNames() {
				if len(a.For) > 0 && !slices.Contains(a.For, provider) {
					general = general && provider != "codex" && provider != "claude"
					continue
				}
				found[prefix+provider+": "+a.text()] = true
			}
			found[prefix+a.text()] = found[prefix+a.text()] || general
		}
	}
	script := func(prefix string, steps []Step, final []Assertion) {
		for _, s := range steps {
			if s.Probe != nil {
				add(prefix+"probe ", s.Probe.Assertions)
			}
			if m := s.Message; m != nil && m.Refused != "" {
				found["refused "+prefix+m.Refused] = true
			}
			if b := s.Rollback; b != nil && b.Refused != "" {
				found["refused "+prefix+b.Refused] = true
			}
		}
		add(prefix, final)
	}
	script("", sc.Steps, sc.Assertions)
	for capability, v := range sc.Without {
		script("without "+capability+": ", v.Steps, v.Assertions)
	}
	files, err := filepath.Glob("../../transcripts/" + name + "/*.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		count := map[string]int{}
		for _, e := range frames(t, file) {
			count[e]++
		}
		for e, n := range count {
			if label, out := strings.CutPrefix(e, "out "); out {
				found[fmt.Sprintf("wire %s: %s x%d", strings.TrimSuffix(filepath.Base(file), ".ndjson"), label, n)] = true
			}
		}
	}
	return found
}

// commonEvidence names the rows of the tests that spoil what every scenario
// must keep, and of those that break the orchestrator.
func commonEvidence() map[string]bool {
	found := map[string]bool{}
	for _, row := range sharedTests {
		found["shared: "+row.name] = row.want != ""
	}
	for _, row := range sharedEventTests {
		found["shared: "+row.name] = row.want != ""
	}
	for _, row := range faultList {
		found["fault: "+row.name] = true
	}
	return found
}

// text is an assertion in one line, without whom it is for.
func (a Assertion) text() string {
	var b strings.Builder
	for _, of := range []string{a.Snapshot, a.Thread, a.Of} {
		if of != "" {
			b.WriteString(of + ": ")
		}
	}
	list := func(op string, values []json.RawMessage) {
		b.WriteString(op)
		for _, v := range values {
			fmt.Fprintf(&b, " %s", v)
		}
	}
	b.WriteString(a.Path + " ")
	switch {
	case a.Equals != nil:
		fmt.Fprintf(&b, "equals %s", a.Equals)
	case a.Length != nil:
		fmt.Fprintf(&b, "length %d", *a.Length)
	case a.Contains != nil:
		fmt.Fprintf(&b, "contains %s", a.Contains)
	case a.Matches != "":
		b.WriteString("matches " + a.Matches)
	case a.Exists:
		b.WriteString("exists")
	case a.Absent:
		b.WriteString("absent")
	case a.OneOf != nil:
		list("one of", a.OneOf)
	default:
		list("in order", a.Ordered)
	}
	return b.String()
}

// frames lists a transcript's frames, as "out LABEL" and "in LABEL".
func frames(t *testing.T, file string) (list []string) {
	t.Helper()
	transcript, err := envelope.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range transcript.Entries {
		switch e := e.(type) {
		case *envelope.ExpectOutbound:
			list = append(list, "out "+e.Label)
		case *envelope.EmitInbound:
			list = append(list, "in "+e.Label)
		}
	}
	return list
}

// inOrder tells whether the wanted stand in the list in this order.
func inOrder(want, list []string) bool {
	for _, e := range list {
		if len(want) > 0 && e == want[0] {
			want = want[1:]
		}
	}
	return len(want) == 0
}
