package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// crashEnv tells the test binary that it is the process to be killed.
const crashEnv = "SCENARIO_CRASH_CHILD"

// crashJob is what such a process plays.
type crashJob struct {
	Dir      string // for everything it writes
	Scenario string // folder
	Provider string
	Log      string // see seam
	At       int    // the passage at which it kills itself; 0: none
}

// crashChild plays a scenario until it is killed. It is a process of its own,
// so that nothing of it is tidied up: what it leaves is what a crash leaves.
func crashChild(raw string) int {
	var job crashJob
	if err := json.Unmarshal([]byte(raw), &job); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	sc, err := Load(job.Scenario, job.Scenario)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	sc.Timeout = Duration(time.Minute)
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	sm, err := openSeam(job.Log, job.At)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	res := Run(context.Background(), Config{Peer: self, Env: os.Environ(), Temp: job.Dir, faults: sm.faults()}, sc, job.Provider)
	if res.Status != Passed {
		fmt.Fprintf(os.Stderr, "%s: %s\n", res.Status, res.Reason)
		return 3
	}
	sm.note("finished %d", sm.n)
	return 0
}

// seam is what passes between the orchestrator and its ports. It keeps a log,
// a line each, which outlives the process:
//
//	pass 12 fact: planned
//	accepted command:message:1 7
//	given turn message:…
//	finished 140
//
// and at one passage ends the process, as abruptly as a process can end.
type seam struct {
	log *os.File
	at  int

	mu sync.Mutex
	n  int
}

func openSeam(path string, at int) (*seam, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	return &seam{log: f, at: at}, err
}

func (s *seam) note(format string, args ...any) {
	fmt.Fprintf(s.log, format+"\n", args...)
}

// pass is one passage.
func (s *seam) pass(phase string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	s.note("pass %d %s", s.n, phase)
	if s.n == s.at {
		p, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = p.Kill()
		}
		if err != nil {
			panic(err)
		}
		select {} // the signal is on its way
	}
}

func (s *seam) faults() *faults {
	return &faults{
		wrapAgent:       func(a orch.Agent) orch.Agent { return seamAgent{a, s} },
		wrapStore:       func(st orch.Store) orch.Store { return seamStore{st, s} },
		wrapCheckpoints: func(c orch.Checkpoints) orch.Checkpoints { return seamCheckpoints{c, s} },
	}
}

type seamStore struct {
	orch.Store
	s *seam
}

func (t seamStore) Commit(ctx context.Context, req orch.CommitRequest, decide func() (orch.Batch, error)) (orch.CommitResult, error) {
	what := "fact"
	if req.CommandID != "" {
		what = "command"
	}
	t.s.pass(what + ": before")
	result, err := t.Store.Commit(ctx, req, func() (orch.Batch, error) {
		b, err := decide()
		t.s.pass(what + ": planned, in the transaction")
		return b, err
	})
	if r := result.Receipt; err == nil && r.Status == "accepted" {
		t.s.note("accepted %s %d", r.CommandID, r.Sequence)
	}
	t.s.pass(what + ": stored")
	return result, err
}

func (t seamStore) ClaimEffect(ctx context.Context, c orch.Claim) (*orch.Effect, error) {
	e, err := t.Store.ClaimEffect(ctx, c)
	if e != nil {
		t.s.pass("effect: leased")
	}
	return e, err
}

func (t seamStore) SettleEffect(ctx context.Context, s orch.Settlement) (bool, error) {
	t.s.pass("effect: done, not settled")
	held, err := t.Store.SettleEffect(ctx, s)
	t.s.pass("effect: settled")
	return held, err
}

func (t seamStore) RecoverEffects(ctx context.Context, safe []string, now time.Time) error {
	t.s.pass("recovery: before")
	err := t.Store.RecoverEffects(ctx, safe, now)
	t.s.pass("recovery: effects decided")
	return err
}

type seamCheckpoints struct {
	orch.Checkpoints
	s *seam
}

func (c seamCheckpoints) Capture(ctx context.Context, r orch.CaptureRequest) (orch.Capture, error) {
	c.s.pass("checkpoint: before")
	got, err := c.Checkpoints.Capture(ctx, r)
	c.s.pass("checkpoint: taken")
	return got, err
}

func (c seamCheckpoints) Restore(ctx context.Context, cwd, ref string) error {
	c.s.pass("checkpoint: before the restore")
	err := c.Checkpoints.Restore(ctx, cwd, ref)
	c.s.pass("checkpoint: restored")
	return err
}

type seamAgent struct {
	orch.Agent
	s *seam
}

func (a seamAgent) Open(ctx context.Context, cfg orch.SessionConfig) (orch.AgentSession, error) {
	a.s.pass("provider: before it starts")
	inner, err := a.Agent.Open(ctx, cfg)
	a.s.pass("provider: started")
	if err != nil {
		return nil, err
	}
	out := make(chan orch.ProviderEvent)
	go func() {
		defer close(out)
		for e := range inner.Events() {
			a.s.pass("provider: event")
			out <- e
		}
	}()
	return seamSession{inner, a.s, out}, nil
}

type seamSession struct {
	orch.AgentSession
	s   *seam
	out chan orch.ProviderEvent
}

func (s seamSession) Events() <-chan orch.ProviderEvent { return s.out }

// around makes a call to the provider.
func (s seamSession) around(call func() error) error {
	s.s.pass("provider: before a call")
	err := call()
	s.s.pass("provider: called")
	return err
}

func (s seamSession) StartThread(ctx context.Context, t orch.ThreadOptions) (n orch.NativeThread, err error) {
	err = s.around(func() error { n, err = s.AgentSession.StartThread(ctx, t); return err })
	return n, err
}

func (s seamSession) ResumeThread(ctx context.Context, id string, t orch.ThreadOptions) (n orch.NativeThread, err error) {
	err = s.around(func() error { n, err = s.AgentSession.ResumeThread(ctx, id, t); return err })
	return n, err
}

func (s seamSession) StartTurn(ctx context.Context, in orch.TurnInput) error {
	s.s.note("given turn %s", in.MessageID)
	return s.around(func() error { return s.AgentSession.StartTurn(ctx, in) })
}

func (s seamSession) Steer(ctx context.Context, thread, turn string, in orch.TurnInput) error {
	s.s.note("given turn %s", in.MessageID)
	return s.around(func() error { return s.AgentSession.Steer(ctx, thread, turn, in) })
}

func (s seamSession) Respond(ctx context.Context, id string, d orch.Decision) error {
	s.s.note("given answer %s", id)
	return s.around(func() error { return s.AgentSession.Respond(ctx, id, d) })
}

func (s seamSession) Close(ctx context.Context) error {
	return s.around(func() error { return s.AgentSession.Close(ctx) })
}

// play starts the process of a job and waits for its end; after a while, which
// 0 leaves out, it is killed from outside. finished tells that the scenario
// came to its end.
func (job crashJob) play(t *testing.T, after time.Duration) (finished bool) {
	t.Helper()
	raw, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), crashEnv+"="+string(raw))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if after > 0 {
		defer time.AfterFunc(after, func() { cmd.Process.Kill() }).Stop()
	}
	err = cmd.Wait()
	if err != nil && cmd.ProcessState.ExitCode() != -1 {
		t.Fatalf("%s with %s: %v\n%s", job.Scenario, job.Provider, err, stderr.String())
	}
	return err == nil
}
