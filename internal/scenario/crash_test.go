package scenario

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/replaypeer/replaypeer/internal/orch"
	"github.com/replaypeer/replaypeer/internal/orch/checkpoint"
	"github.com/replaypeer/replaypeer/internal/orch/sqlite"
)

// crashPlan says how many processes are killed, and by which seed: a dozen by
// a fixed one, unless SCENARIO_TESTS=full asks for 200. CRASH_SEED repeats
// what an earlier run printed.
func crashPlan(t *testing.T) (points int, seed uint64) {
	points, seed = 12, 1
	if os.Getenv("SCENARIO_TESTS") == "full" {
		points, seed = 200, rand.Uint64()
	}
	if text := os.Getenv("CRASH_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return points, seed
}

// TestCrash kills the orchestrator's process, at the passages between it and
// its ports and at any moment, in the middle of scenarios, and builds it again
// on what it left: everything that was accepted is there, nothing that was
// done is done again, nothing is left open, and the next message works.
func TestCrash(t *testing.T) {
	if raced {
		t.Skip("SKIPPED under the race detector, with which a process takes longer to start than a scenario lasts")
	}
	if testing.Short() {
		t.Skip("kills many processes")
	}
	points, seed := crashPlan(t)
	random := rand.New(rand.NewPCG(seed, 0))
	scenarios, err := LoadAll("../../transcripts", "transcripts")
	if err != nil {
		t.Fatal(err)
	}
	var pairs []crashJob
	for _, sc := range scenarios {
		for _, provider := range sc.ProviderNames() {
			pairs = append(pairs, crashJob{Scenario: sc.dir, Provider: provider})
		}
	}
	var mu sync.Mutex
	phases := map[string]int{}
	t.Cleanup(func() {
		t.Logf("seed %d, %d kills of %d pairs of scenario and provider, by phase:\n%s", seed, points, len(pairs), table(phases))
	})
	lengths := sync.Map{} // by scenario and provider: func() crashLength
	for i := range points {
		job, share, outside := pairs[random.IntN(len(pairs))], random.Float64(), random.IntN(4) == 0
		name := filepath.Base(job.Scenario) + "/" + job.Provider
		t.Run(fmt.Sprintf("%d/%s", i+1, name), func(t *testing.T) {
			t.Parallel()
			length, _ := lengths.LoadOrStore(name, sync.OnceValue(func() crashLength { return measure(t, job) }))
			c := &crash{t: t, job: job, share: share, outside: outside, length: length.(func() crashLength)()}
			phase := c.kill()
			mu.Lock()
			phases[phase]++
			mu.Unlock()
			c.rebuild()
			if t.Failed() {
				t.Logf("seed %d, killed at %s, passage %d", seed, phase, c.job.At)
			}
		})
	}
}

func table(phases map[string]int) string {
	var b strings.Builder
	for _, phase := range slices.Sorted(maps.Keys(phases)) {
		fmt.Fprintf(&b, "  %4d  %s\n", phases[phase], phase)
	}
	return b.String()
}

// crashLength is how long a scenario is.
type crashLength struct {
	passages int
	took     time.Duration
}

// measure plays a scenario that nobody kills.
func measure(t *testing.T, job crashJob) crashLength {
	job.Dir = t.TempDir()
	job.Log = filepath.Join(job.Dir, "seam.log")
	begin := time.Now()
	if !job.play(t, 0) {
		t.Fatal("killed by somebody else")
	}
	took := time.Since(begin)
	return crashLength{len(readSeam(t, job.Log).passes), took}
}

// seamLog is what a seam kept.
type seamLog struct {
	passes   []string
	accepted map[string]int64 // sequence by command id
	given    []string
}

func readSeam(t *testing.T, path string) seamLog {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	log := seamLog{accepted: map[string]int64{}}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		kind, rest, _ := strings.Cut(lines.Text(), " ")
		switch kind {
		case "pass":
			_, phase, _ := strings.Cut(rest, " ")
			log.passes = append(log.passes, phase)
		case "accepted":
			id, sequence, _ := strings.Cut(rest, " ")
			if log.accepted[id], err = strconv.ParseInt(sequence, 10, 64); err != nil {
				t.Fatal(err)
			}
		case "given":
			log.given = append(log.given, rest)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return log
}

// crash is one process that was killed, and what stands up after it.
type crash struct {
	t       *testing.T
	job     crashJob
	share   float64 // of the scenario, before the kill
	outside bool    // killed at any moment, by somebody else
	length  crashLength

	run      string // the run's folder
	seam     *seam
	raw      *rawStore
	store    *sqlite.Store
	watched  *watchedStore
	orc      *orch.Orchestrator
	before   seamLog
	outbox   map[string]rawEffect
	instance string // that answers the next message
	model    string // which it is asked for
	file     string // the provider whose transcripts it plays
	as       string // the provider as which it plays them; "" for the same
	report   string // of its peer
}

// kill plays the scenario until it is killed and returns at what phase. What
// came to its end all the same is played again, not as far.
func (c *crash) kill() string {
	c.t.Helper()
	for {
		c.job.Dir = c.t.TempDir()
		c.job.Log = filepath.Join(c.job.Dir, "seam.log")
		var after time.Duration
		if c.outside {
			after = max(time.Duration(c.share*float64(c.length.took)), time.Millisecond)
		} else {
			c.job.At = 1 + int(c.share*float64(c.length.passages))
		}
		finished := c.job.play(c.t, after)
		if found, _ := filepath.Glob(filepath.Join(c.job.Dir, "orch-run-*")); !finished && len(found) == 1 {
			c.run = found[0]
			break
		}
		if finished {
			c.share *= 0.9
		} else {
			c.share = c.share*1.2 + 0.01 // it had not begun; starting may take longer than the scenario
		}
	}
	c.gone()
	c.before = readSeam(c.t, c.job.Log)
	passes := c.before.passes
	switch {
	case c.outside && len(passes) == 0:
		return "any moment, before the first passage"
	case c.outside:
		return "any moment, after " + passes[len(passes)-1]
	}
	return passes[len(passes)-1]
}

// gone waits until nothing runs any more that the process had started.
func (c *crash) gone() {
	c.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		left := leftover(c.run, "ORCH_RUN_DIR="+c.run)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("outlived the orchestrator: %v", left)
		}
		time.Sleep(2 * time.Millisecond) // processes of others: there is nothing to wait on
	}
}

// rebuild builds the orchestrator again, as production would, and looks at
// what it makes of what is there.
func (c *crash) rebuild() {
	t := c.t
	t.Helper()
	db := filepath.Join(c.run, "run.db")
	if _, err := os.Stat(db); err != nil {
		return // killed before there was a database: nothing was accepted
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var err error
	if c.store, err = sqlite.Open(ctx, db); err != nil {
		t.Fatal(err)
	}
	defer c.store.Close()
	c.raw = openRaw(t, db)
	c.outbox = c.raw.effects()
	if c.seam, err = openSeam(filepath.Join(c.job.Dir, "after.log"), 0); err != nil {
		t.Fatal(err)
	}
	defer c.seam.log.Close()
	agents := c.agents(ctx)
	c.watched = watch(seamStore{c.store, c.seam})
	c.orc, err = orch.Start(ctx, orch.Config{
		Store: c.watched, Agents: agents, Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
		Checkpoints: checkpoint.New(checkpoint.Config{Env: os.Environ(), TempDir: c.job.Dir}),
	})
	if err != nil {
		t.Fatal(err)
	}
	c.quiet(ctx)
	c.checkAccepted(ctx)
	c.checkEffects()
	c.checkLegal(ctx)
	c.next(ctx)
	c.checkOnce()
	if err := c.orc.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	c.checkReport()
	c.checkAccepted(ctx)
}

// events are all that is stored, and the threads they are of.
func (c *crash) events(ctx context.Context) (events []orch.StoredEvent, threads []string) {
	c.t.Helper()
	events, err := Stored(ctx, c.store, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, e := range events {
		if !slices.Contains(threads, e.Event.ThreadID) {
			threads = append(threads, e.Event.ThreadID)
		}
	}
	return events, threads
}

// quiet waits until no effect is left.
func (c *crash) quiet(ctx context.Context) {
	c.t.Helper()
	_, threads := c.events(ctx)
	for _, thread := range threads {
		if err := c.watched.quiet(ctx, thread); err != nil {
			c.t.Fatal(err)
		}
	}
}
