package scenario

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/internal/orch"
	"github.com/replaypeer/replaypeer/internal/orch/agent"
	"github.com/replaypeer/replaypeer/internal/orch/checkpoint"
	"github.com/replaypeer/replaypeer/internal/orch/sqlite"
	"github.com/replaypeer/replaypeer/internal/peer"
	"github.com/replaypeer/replaypeer/internal/replay"
)

// crowd is many threads at once in one orchestrator, each on an instance of
// its own with its own peer, in one workspace.
type crowd struct {
	t         *testing.T
	dir       string
	scenario  *Scenario // simple
	providers []string  // that have a transcript of it, in turn
	orc       *orch.Orchestrator
}

func (c *crowd) instance(i int) string {
	return fmt.Sprintf("%s-%d", c.providers[i%len(c.providers)], i)
}

// words are what only one thread says.
func words(i int) string { return fmt.Sprintf("words of thread %03d", i) }

// agent makes the peer of one thread: the simple turn with words and ids of
// its own.
func (c *crowd) agent(i int) orch.Agent {
	c.t.Helper()
	provider := c.providers[i%len(c.providers)]
	data, err := os.ReadFile(filepath.Join("../../transcripts/simple", provider+".ndjson"))
	if err != nil {
		c.t.Fatal(err)
	}
	// The answer comes whole, and in the pieces that the model made of it.
	text := strings.NewReplacer("fixture simple ok", words(i), `"fixtu"`, strconv.Quote(words(i)), `"re sim"`, `""`, `"ple ok"`, `""`,
		`"fixture simple "`, strconv.Quote(words(i)), `"ok"`, `""`).Replace(string(data))
	text = uuid.ReplaceAllStringFunc(text, func(id string) string { return id[:24] + fmt.Sprintf("%06x", i) + id[30:] })
	self, err := os.Executable()
	if err != nil {
		c.t.Fatal(err)
	}
	place := filepath.Join(c.dir, c.instance(i))
	transcript := filepath.Join(place, "t.ndjson")
	if err := os.MkdirAll(place, 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(transcript, []byte(text), 0o644); err != nil {
		c.t.Fatal(err)
	}
	link, err := peer.Link(filepath.Join(place, "bin"), provider, self, peer.Config{
		Transcript: transcript, Report: c.report(i), State: filepath.Join(place, "state"),
		Workspace: filepath.Join(c.dir, "workspace"), IdleTimeout: 2 * time.Minute,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	a, err := agent.New(provider, []string{link}, os.Environ())
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

func (c *crowd) report(i int) string { return filepath.Join(c.dir, c.instance(i), "report.json") }

// work lets threads have a turn each, all at once, and tears everything down.
func (c *crowd) work(ctx context.Context, threads int) {
	t := c.t
	t.Helper()
	c.dir = t.TempDir()
	if err := makeWorkspace(ctx, filepath.Join(c.dir, "workspace"), os.Environ(), nil); err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(ctx, filepath.Join(c.dir, "crowd.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	agents := map[string]orch.Agent{}
	for i := range threads {
		agents[c.instance(i)] = c.agent(i)
	}
	c.orc, err = orch.Start(ctx, orch.Config{
		Store: store, Agents: agents, Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
		Checkpoints: checkpoint.New(checkpoint.Config{Env: os.Environ(), TempDir: c.dir}),
	})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range threads {
		wg.Go(func() { c.turn(ctx, i) })
	}
	wg.Wait()
	events, err := Stored(ctx, store, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkSequences(events); err != nil {
		t.Error(err)
	}
	for i := range threads {
		c.check(ctx, events, i)
	}
	if err := c.orc.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	for i := range threads {
		report, err := replay.ReadReport(c.report(i))
		if err != nil || report.Verdict != replay.Passed {
			t.Errorf("%s: %v, %+v", c.instance(i), err, report)
		}
	}
}

// turn is one thread's.
func (c *crowd) turn(ctx context.Context, i int) {
	thread := fmt.Sprint("thread-", i)
	settings := c.scenario.Providers[c.providers[i%len(c.providers)]]
	_, err := c.orc.Dispatch(ctx, orch.CreateThread{
		CommandID: "create-" + thread, ThreadID: thread, WorktreePath: filepath.Join(c.dir, "workspace"),
		RuntimeMode: orElse(settings.RuntimeMode, "full-access"), ModelSelection: orch.ModelSelection{InstanceID: c.instance(i), Model: settings.Model},
	})
	if err == nil {
		_, err = c.orc.Dispatch(ctx, orch.DispatchMessage{CommandID: "message-" + thread, ThreadID: thread, Text: "Respond with exactly: " + words(i)})
	}
	if err != nil {
		c.t.Error(err)
		return
	}
	p := &orch.Projection{}
	for e, err := range c.orc.Events(ctx, 0) {
		if err == nil && e.Event.ThreadID == thread {
			err = p.Apply(e)
		}
		if err != nil {
			c.t.Errorf("%s: %v", thread, err)
			return
		}
		if len(p.Runs) == 1 && terminal(p.Runs[0].Status) {
			if p.Runs[0].Status != "completed" {
				c.t.Errorf("%s: run is %s\n%s", thread, p.Runs[0].Status, asJSON(c.t, p.TurnItems))
			}
			return
		}
	}
	c.t.Errorf("%s: no end", thread)
}

// check wants a thread to have its own words and nobody else's.
func (c *crowd) check(ctx context.Context, events []orch.StoredEvent, i int) {
	thread := fmt.Sprint("thread-", i)
	p, _, err := c.orc.Snapshot(ctx, thread)
	if err != nil {
		c.t.Error(err)
		return
	}
	doc := asJSON(c.t, p)
	if diff := cmp.Diff(asJSON(c.t, orch.Fold(events, thread)), doc); diff != "" {
		c.t.Errorf("%s is not the fold of its events:\n%s", thread, diff)
	}
	if own, all := strings.Count(doc, words(i)), strings.Count(doc, "words of thread "); own == 0 || own != all {
		c.t.Errorf("%s has its words %d times of %d", thread, own, all)
	}
	for _, m := range p.Messages {
		if !strings.Contains(m.Text, words(i)) {
			c.t.Errorf("%s: the %s's message is %q", thread, m.Role, m.Text)
		}
	}
	if n := len(p.Messages); n != 2 || len(p.ProviderTurns) != 1 || len(p.ProviderSessions) != 1 {
		c.t.Errorf("%s: %d messages, %d provider turns, %d sessions", thread, n, len(p.ProviderTurns), len(p.ProviderSessions))
	}
}

// held is what a process holds.
type held struct {
	goroutines, files int
	heap              uint64
}

func holding() held {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers freed
	runtime.ReadMemStats(&m)
	files, _ := os.ReadDir("/proc/self/fd")
	return held{runtime.NumGoroutine(), len(files), m.HeapAlloc}
}

// TestFiftyThreads has fifty threads work at once, on every provider that has
// the simple scenario in turn. None hears of another, and afterwards nothing
// is left of them.
func TestFiftyThreads(t *testing.T) {
	if testing.Short() {
		t.Skip("starts fifty processes")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	sc, err := Load("../../transcripts/simple", "transcripts/simple")
	if err != nil {
		t.Fatal(err)
	}
	c := &crowd{t: t, scenario: sc, providers: slices.DeleteFunc(sc.ProviderNames(), func(name string) bool {
		return sc.Providers[name].Retarget != "" // plays another's transcript
	})}
	c.work(ctx, len(c.providers)) // what is made once is made
	before := holding()
	c.work(ctx, 50)
	after := holding()
	for after.goroutines > before.goroutines && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond) // they have been told to end: nothing tells that they have
		after = holding()
	}
	t.Logf("%d providers; before %+v, after %+v", len(c.providers), before, after)
	if after.goroutines > before.goroutines {
		stacks := make([]byte, 1<<20)
		t.Errorf("%d goroutines are left, of %d\n%s", after.goroutines, before.goroutines, stacks[:runtime.Stack(stacks, true)])
	}
	if after.files > before.files {
		t.Errorf("%d files are open, of %d", after.files, before.files)
	}
	const slack = 4 << 20
	if after.heap > before.heap+slack {
		t.Errorf("the heap grew from %d to %d bytes", before.heap, after.heap)
	}
}
