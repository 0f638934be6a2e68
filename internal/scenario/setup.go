package scenario

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jonboulle/clockwork"

	"github.com/replaypeer/replaypeer/internal/orch/agent"
	"github.com/replaypeer/replaypeer/internal/peer"
	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// prepare makes everything the orchestrator stands on.
func (r *runner) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	command := []string(nil)
	if r.cfg.Live == nil {
		if err := r.checkTranscript(); err != nil {
			return err
		}
		link, err := peer.Link(filepath.Join(r.dir, "bin"), r.provider, r.cfg.Peer, r.peerConfig())
		if err != nil {
			return fmt.Errorf("link the peer: %w", err)
		}
		command = []string{link}
		r.clock = clockwork.NewFakeClockAt(epoch)
		r.random = &lockedReader{r: rand.NewChaCha8(seed)}
	} else {
		command = r.liveCommand()
		r.clock = clockwork.NewRealClock()
	}
	var err error
	r.agent, err = agent.New(r.provider, command, append(r.providerEnv(), r.mark))
	if err != nil {
		return err
	}
	if missing := lacking(r.agent.Capabilities(), r.sc.Needs); len(missing) > 0 {
		return &skip{fmt.Sprintf("%s lacks the capability %s", r.provider, strings.Join(missing, ", "))}
	}
	if len(r.sc.gates()) > 0 && r.cfg.Live != nil {
		return &skip{"a live provider has no gates to release"}
	}
	if _, err := exec.LookPath("git"); err != nil {
		return err
	}
	return makeWorkspace(ctx, r.workspace, r.cfg.Env, r.sc.Workspace)
}

// checkTranscript reads the transcript and wants it to be what the scenario
// takes it for.
func (r *runner) checkTranscript() error {
	f, err := os.Open(r.transcript)
	if err != nil {
		return fmt.Errorf("%s: no transcript: %w", r.shown, errors.Unwrap(err))
	}
	defer f.Close()
	t, err := envelope.Read(r.shown, f)
	if err != nil {
		return err
	}
	switch h := t.Header; {
	case h.Provider != r.provider:
		return fmt.Errorf("%s:%d: transcript is of provider %q: want %q", r.shown, h.Line, h.Provider, r.provider)
	case h.Scenario != r.sc.Name:
		return fmt.Errorf("%s:%d: transcript is of scenario %q: want %q", r.shown, h.Line, h.Scenario, r.sc.Name)
	}
	return nil
}

// peerConfig gives the peer half the patience that the steps have, because it
// can say better what was awaited.
func (r *runner) peerConfig() peer.Config {
	cfg := peer.Config{
		Transcript:  r.transcript,
		Report:      r.report,
		State:       filepath.Join(r.dir, "state.json"),
		Workspace:   r.workspace,
		IdleTimeout: r.sc.shortestWait() / 2,
	}
	if cfg.Hold = r.sc.gates(); len(cfg.Hold) > 0 {
		cfg.Control = filepath.Join(r.dir, "control")
	}
	return cfg
}

// liveCommand wraps the real provider into the recorder where one is wanted.
func (r *runner) liveCommand() []string {
	l := r.cfg.Live
	if l.Record == "" {
		return l.Command
	}
	return append([]string{
		l.Recorder, "stdio", "--provider", r.provider, "--scenario", r.sc.Name, "-o", l.Record,
		"--source", l.Source, "--workspace", r.workspace, "--append", "--",
	}, l.Command...)
}

// providerEnv leaves out what would configure the peer behind our back.
func (r *runner) providerEnv() []string {
	return slices.DeleteFunc(slices.Clone(r.cfg.Env), func(kv string) bool {
		return r.cfg.Live == nil && strings.HasPrefix(kv, "REPLAY_PEER_")
	})
}
