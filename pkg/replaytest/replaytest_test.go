package replaytest_test

import (
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/replaypeer/replaypeer/pkg/replaytest"
)

// failing is a test whose failures are collected.
type failing struct {
	testing.TB
	cleanup []func()
	errors  []string
}

func (f *failing) Helper()           {}
func (f *failing) Cleanup(fn func()) { f.cleanup = append(f.cleanup, fn) }
func (f *failing) Errorf(format string, args ...any) {
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}

// end runs the cleanups and returns what failed.
func (f *failing) end() string {
	for i := len(f.cleanup) - 1; i >= 0; i-- {
		f.cleanup[i]()
	}
	return strings.Join(f.errors, "\n")
}

const (
	good  = `{"id":7,"method":"hello","params":{"name":"world"}}` + "\n"
	wrong = `{"id":7,"method":"hello","params":{"name":"moon"}}` + "\n"
)

// TestFailures holds that no client gets away: each of them ignores what it is
// told.
func TestFailures(t *testing.T) {
	const hello = "testdata/hello.ndjson"
	const different = "mismatch, 0 of 3 entries played\ntestdata/hello.ndjson:2: outbound mismatch at params.name"
	for _, c := range []struct {
		name, transcript string
		start            []string // what is sent to a peer in the process; nil for a fake
		launches         []string // what is sent to each launch of a fake
		want             string   // "" passes
	}{
		{name: "start, nothing wrong", transcript: hello, start: []string{good}},
		{name: "start, one field", transcript: hello, start: []string{wrong}, want: different},
		{name: "start, nothing sent", transcript: hello, start: []string{}, want: "leftover, 0 of 3 entries played"},
		{name: "start, one too many", transcript: hello, start: []string{good, good}, want: "unexpected"},
		{name: "start, no transcript", transcript: "testdata/none.ndjson", start: []string{good}, want: "invalid"},
		{name: "fake, nothing wrong", transcript: hello, launches: []string{good}},
		{name: "fake, one field", transcript: hello, launches: []string{wrong}, want: "outbound mismatch at params.name"},
		{name: "fake, never started", transcript: hello, want: "replaytest: codex was never started"},
		{name: "fake, started twice", transcript: hello, launches: []string{good, good}, want: "the recording has no launch 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &failing{TB: t}
			if c.start != nil {
				agent := replaytest.Start(f, c.transcript, replaytest.Options{})
				for _, line := range c.start {
					io.WriteString(agent.Stdin, line) // a peer that has ended is what the test is about
				}
			} else {
				fake := replaytest.Fake(f, "codex", c.transcript, replaytest.Options{})
				for _, line := range c.launches {
					cmd := exec.Command(fake)
					cmd.Stdin = strings.NewReader(line)
					cmd.Run() // the same
				}
			}
			got := f.end()
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("failures %q: want %q", got, c.want)
			}
		})
	}
}
