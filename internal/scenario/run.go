package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/replaypeer/replaypeer/internal/orch"
	"github.com/replaypeer/replaypeer/internal/orch/checkpoint"
	"github.com/replaypeer/replaypeer/internal/orch/sqlite"
	"github.com/replaypeer/replaypeer/internal/proc"
)

const (
	setupTimeout    = 30 * time.Second // for git, the database, recovery
	shutdownTimeout = 15 * time.Second
	liveTimeout     = 2 * time.Minute // least wait for a live provider
)

// epoch and seed are the same in every replayed run.
var (
	epoch = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	seed  = [32]byte([]byte("replaypeer scenario, fixed seed."))
)

// Config says how scenarios are run.
type Config struct {
	// Peer is the program that plays the provider: replay-peer, or any program
	// that serves links as peer.Linked tells. Not used for a live provider.
	Peer string
	// Live is the real provider to use in place of a peer; nil for none.
	Live *Live
	// Keep is a folder for what a run leaves; "" keeps nothing. See Run.
	Keep string
	// Env is the environment of git and the provider; nil is an empty one.
	Env []string
	// Temp is where run folders are made; "" means the system's place.
	Temp string
	// Probes are checks to ride along beside those a scenario names.
	Probes []string
	// Split makes peers write at most so many bytes at a time; 0 as they like.
	Split int
	// Points are sequences, rising, at which a snapshot is taken, wherever the
	// steps are; each must come to the same end as the stream after a step's.
	Points []int64

	faults *faults // nil for none; tests break the ports with it
}

// Live is a real provider.
type Live struct {
	Command []string // program and arguments
	// Instances are the commands of the scenario's other instances, by name.
	Instances map[string][]string
	Source    string // what stands behind the provider: live or scripted-model
	// Record is a transcript to write; "" records nothing. Those of other
	// instances stand beside it, each as NAME.ndjson. Recorder is the
	// replay-record program that does it, and tells in the folder Launches what
	// became of each launch; both are wanted with Record.
	Record, Recorder, Launches string
	// ModelLog is where the scripted model logs the requests it gets, for
	// assertions on them; "" leaves those out.
	ModelLog string
}

// RecordOf names the recording of another instance.
func (l *Live) RecordOf(instance string) string {
	return filepath.Join(filepath.Dir(l.Record), instance+".ndjson")
}

// LaunchesOf names the file that tells of an instance's launches.
func (l *Live) LaunchesOf(instance string) string {
	return filepath.Join(l.Launches, instance+".ndjson")
}

// runner is one run of one scenario with one provider.
type runner struct {
	cfg      Config
	sc       *Scenario
	provider string
	settings Provider
	without  string // capability whose lack decides what is played; "" for none

	dir, workspace, db string
	mark               string // environment variable that all of the provider's processes carry

	instances []*instance // the first is the provider's own

	clock     clockwork.Clock
	fake      *clockwork.FakeClock // clock, where steps can move it; else nil
	stopClock func()               // nil when it does not go by itself
	random    io.Reader

	frames   func(instance string, outbound bool, wire []byte) // nil keeps none
	store    *sqlite.Store
	watched  *watchedStore // what the orchestrator has of store
	orc      *orch.Orchestrator
	feed     *feed
	thread   string
	selected orch.ModelSelection // what the thread's last run selects
	commands []dispatched
	refusals int
	captured map[string][]byte // projection JSON by snapshot key
	named    map[string]string // thread ids by the name that a step gave them
	final    map[string][]byte // projection JSON by thread id, once all is over
	reports  map[string]json.RawMessage
	streams  []*stream
	points   []int64 // at which no snapshot was taken yet
	pointed  func()  // ends the goroutine that waits for them
	started  bool    // the first step was reached
	log      proc.Tail
}

// Run plays a scenario with one of its providers. With Config.Keep it writes,
// below KEEP/SCENARIO/PROVIDER, events.ndjson, projection.json, report.json,
// run.db, and the last raw frames as package framelog keeps them: bounded, with
// secrets masked. In the first three the run's workspace is written <workspace>,
// its other files <run>/…, and the transcript as messages name it; two
// replayed runs of one build write the same bytes.
func Run(ctx context.Context, cfg Config, sc *Scenario, provider string) *Result {
	begin := time.Now()
	r := &runner{cfg: cfg, sc: sc, provider: provider, settings: sc.Providers[provider], captured: map[string][]byte{}, named: map[string]string{}, reports: map[string]json.RawMessage{}}
	res := &Result{Scenario: sc.Name, Provider: provider}
	r.instances, r.points = r.makeInstances(), cfg.Points
	res.Transcript = r.instances[0].shown
	err := r.run(ctx, res)
	if text := strings.TrimSpace(r.log.String()); err != nil && text != "" {
		err = fmt.Errorf("%w\norchestrator log:\n  %s", err, strings.ReplaceAll(text, "\n", "\n  "))
	}
	res.judge(err, r.started)
	res.Without = r.without
	res.Reason = r.render(res.Reason)
	res.DurationMs = since(begin)
	return res
}

func (r *runner) run(ctx context.Context, res *Result) error {
	if err := r.forget(); err != nil {
		return in(Setup, err)
	}
	dir, err := os.MkdirTemp(r.cfg.Temp, "orch-run-")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return in(Setup, err)
	}
	defer os.RemoveAll(dir)
	defer func() {
		if r.stopClock != nil {
			r.stopClock()
		}
	}()
	r.dir = dir
	r.workspace = filepath.Join(dir, "workspace")
	r.db = filepath.Join(dir, "run.db")
	r.mark = "ORCH_RUN_DIR=" + dir

	if err := r.prepare(ctx); err != nil {
		return in(Setup, err)
	}
	stop, err := r.keepFrames()
	if err != nil {
		return in(Setup, err)
	}
	defer stop()
	if err := r.up(ctx, nil); err != nil {
		return in(Setup, err)
	}
	stepErr := r.steps(ctx)
	return r.finish(ctx, res, stepErr)
}

// up builds the orchestrator on the database. before are the events that the
// feed begins with.
func (r *runner) up(ctx context.Context, before []orch.StoredEvent) error {
	setup, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	store, err := sqlite.Open(setup, r.db)
	if err != nil {
		return err
	}
	watched := watch(store)
	agents := map[string]orch.Agent{}
	for _, in := range r.instances {
		agents[in.name] = in.agent
	}
	orc, err := orch.Start(setup, orch.Config{
		Store:       r.cfg.faults.store(watched),
		Agents:      agents,
		Checkpoints: r.cfg.faults.checkpoints(checkpoint.New(checkpoint.Config{Env: r.cfg.Env, TempDir: r.dir})),
		Clock:       r.clock,
		Random:      r.random,
		Log:         r.logger(),
		Diagnostics: r.frames,
	})
	if err != nil {
		return errors.Join(fmt.Errorf("start orchestrator: %w", err), store.Close())
	}
	r.store, r.watched, r.orc = store, watched, orc
	r.feed = follow(context.WithoutCancel(ctx), orc, before)
	r.waitForPoints(context.WithoutCancel(ctx))
	return nil
}

// down tears the orchestrator down, as the end of its process would, and
// returns all that is stored. Streams are read to the end first: they stop
// with the orchestrator.
func (r *runner) down(ctx context.Context) ([]orch.StoredEvent, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	before, err := Stored(ctx, r.store, 0)
	err = in(Persistence, errors.Join(err, r.endPoints(ctx, before), r.endStreams(ctx, before)))
	r.feed.stop()
	err = errors.Join(err, in(Cleanup, r.orc.Shutdown(ctx)))
	events, readErr := Stored(ctx, r.store, 0)
	return events, errors.Join(err, in(Persistence, readErr))
}

// logger keeps the end of what the orchestrator complains about, for failures.
func (r *runner) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(&r.log, &slog.HandlerOptions{
		Level: slog.LevelWarn,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{} // it is the real clock's
			}
			return a
		},
	}))
}

// lockedReader makes a random source safe for concurrent use.
type lockedReader struct {
	mu sync.Mutex
	r  io.Reader
}

func (l *lockedReader) Read(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.r.Read(b)
}
