// Package replaytest gives a Go test a recorded coding-agent provider: in the
// test's own process, or as a binary for code that starts one.
//
//	func TestAsk(t *testing.T) {
//		agent := replaytest.Start(t, "testdata/simple.ndjson", replaytest.Options{})
//		client := NewClient(agent.Stdin, agent.Stdout)
//		…
//	}
//
// The test fails at its end, with what differed, unless every recorded frame
// was played and every frame that the client sent was the recorded one. The
// client can't hide it by swallowing an error.
//
// Code that starts the provider itself gets a path from [Fake], which needs
// [Main] in TestMain. For clients in other languages there is the command
// orch-run exec.
//
// Names of this package stay; Options may get new fields, whose zero values
// change nothing.
package replaytest

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/replaypeer/replaypeer/internal/peer"
)

// settleLimit is how long a fake may still write its report when the test has
// ended.
const settleLimit = 30 * time.Second

// Options say how to play a transcript. The zero value works.
type Options struct {
	// Workspace is the value of <workspace>; "" is the provider's working
	// directory.
	Workspace string
	// Pace is "recorded", or a factor such as "2"; "" plays without waiting.
	Pace string
	// IdleTimeout fails a replay in which nothing happens; 0 means 30 seconds.
	IdleTimeout time.Duration
	// Args are what the client would start the provider with, for the
	// protocols that look at them. Start only.
	Args []string
}

func (o Options) config(transcript string) peer.Config {
	return peer.Config{Transcript: transcript, Workspace: o.Workspace, Pace: o.Pace, IdleTimeout: o.IdleTimeout}
}

// Peer is a provider in the test's own process. The pipes are like those of a
// child: what is written is buffered, and reading ends when the provider does.
type Peer struct {
	Stdin  io.WriteCloser // what the client sends; closing it ends the provider
	Stdout io.ReadCloser  // what the provider says
}

// Start plays a transcript until the test ends. It then closes Stdin, waits
// for the provider to end and fails the test unless the replay passed.
func Start(t testing.TB, transcript string, o Options) *Peer {
	t.Helper()
	stdin, toPeer, err := os.Pipe()
	if err != nil {
		t.Fatalf("replaytest: %v", err)
	}
	fromPeer, stdout, err := os.Pipe()
	if err != nil {
		t.Fatalf("replaytest: %v", err)
	}
	cfg := o.config(transcript)
	dir := t.TempDir()
	cfg.Report = filepath.Join(dir, "report.json")
	var served sync.WaitGroup
	served.Go(func() {
		peer.Serve(context.Background(), cfg, o.Args, stdin, stdout, io.Discard)
		stdout.Close()
		stdin.Close()
	})
	t.Cleanup(func() {
		t.Helper()
		toPeer.Close()
		io.Copy(io.Discard, fromPeer) // what the client did not read; an error means that it closed the pipe
		served.Wait()
		fromPeer.Close()
		list, err := peer.Reports(dir)
		if err != nil {
			t.Errorf("replaytest: %v", err)
		}
		check(t, filepath.Base(transcript), list)
	})
	return &Peer{Stdin: toPeer, Stdout: fromPeer}
}

// hasMain says that Main runs the tests.
var hasMain atomic.Bool

// Main runs the tests of a package that uses Fake, and returns the exit code:
//
//	func TestMain(m *testing.M) { os.Exit(replaytest.Main(m)) }
//
// The fakes are links to the test binary. Started through one, Main does not
// run the tests but plays the transcript.
func Main(m *testing.M) int {
	cfg, linked, err := peer.Linked(os.Args[0])
	switch {
	case err != nil:
		os.Stderr.WriteString("replaytest: " + err.Error() + "\n")
		return 2
	case linked:
		return peer.Serve(context.Background(), cfg, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	}
	hasMain.Store(true)
	return m.Run()
}

// Fake makes a provider binary of the given name, such as "codex", in a new
// folder, and returns its path. Each process started through it plays the next
// launch of the transcript. When the test ends, it fails unless all of them
// were started and passed. Code that looks for the name finds it when the
// folder comes first on the PATH:
//
//	fake := replaytest.Fake(t, "codex", "testdata/simple.ndjson", replaytest.Options{})
//	t.Setenv("PATH", filepath.Dir(fake)+string(os.PathListSeparator)+os.Getenv("PATH"))
func Fake(t testing.TB, name, transcript string, o Options) (path string) {
	t.Helper()
	if !hasMain.Load() {
		t.Fatalf("replaytest: Fake needs func TestMain(m *testing.M) { os.Exit(replaytest.Main(m)) }")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatalf("replaytest: %v", err)
	}
	dir := t.TempDir()
	fake, err := peer.NewFake(filepath.Join(dir, "bin"), name, exe, dir, o.config(transcript))
	if err != nil {
		t.Fatalf("replaytest: %v", err)
	}
	t.Cleanup(func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), settleLimit)
		defer cancel()
		if err := fake.Settle(ctx); err != nil {
			t.Errorf("replaytest: %v", err)
		}
		check(t, name, fake.Reports())
	})
	return fake.Path
}

// check fails the test unless the reports tell of a replay that passed.
func check(t testing.TB, name string, list []peer.NamedReport) {
	t.Helper()
	if len(list) == 0 {
		t.Errorf("replaytest: %s was never started", name)
	}
	if peer.Passed(list) {
		return
	}
	for _, r := range list {
		if r.Err != nil {
			t.Errorf("replaytest: %s: %v", name, r.Err)
			continue
		}
		p := r.Report
		t.Errorf("replaytest: %s: %s, %d of %d entries played\n%s", name, p.Verdict, p.Entries.Played, p.Entries.Total, p.Text())
	}
}
