package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"

	"github.com/jonboulle/clockwork"

	"github.com/replaypeer/replaypeer/internal/orch/agent"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// prepare makes everything the orchestrator stands on.
func (r *runner) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	r.clock = clockwork.NewRealClock()
	if r.cfg.Live == nil {
		r.fake = clockwork.NewFakeClockAt(epoch)
		r.clock = r.fake
		r.random = &lockedReader{r: rand.NewChaCha8(seed)}
	} else {
		for _, in := range r.instances[1:] {
			if len(r.cfg.Live.Instances[in.name]) == 0 {
				return &skip{fmt.Sprintf("there is no live provider for instance %s", in.name)}
			}
		}
	}
	if err := r.vary(); err != nil {
		return err
	}
	if r.fake == nil && r.sc.movesClock() {
		r.fake, r.stopClock = goingClock()
		r.clock = r.fake
	}
	for _, in := range r.instances {
		r.place(in)
		if err := r.makeAgent(in); err != nil {
			return err
		}
		in.agent = r.cfg.faults.agent(in.agent)
	}
	if _, err := exec.LookPath("git"); err != nil {
		return err
	}
	return makeWorkspace(ctx, r.workspace, r.cfg.Env, r.sc.Workspace)
}

// liveCommand wraps the real provider of an instance into the recorder where
// one is wanted.
func (r *runner) liveCommand(in *instance) []string {
	l := r.cfg.Live
	command, record := l.Command, l.Record
	if in.name != r.provider {
		command = l.Instances[in.name]
		if record != "" {
			record = l.RecordOf(in.name)
		}
	}
	if record == "" {
		return command
	}
	provider, protocol := agent.Recorded(in.provider)
	tap := "stdio"
	if f, err := flavors.ByProvider(provider); err == nil && protocol == "" && f.Transport == flavors.HTTP {
		tap = "http"
	}
	recorder := []string{l.Recorder, tap, "--provider", provider}
	if protocol != "" {
		recorder = append(recorder, "--protocol", protocol)
	}
	return slices.Concat(recorder, []string{
		"--scenario", r.sc.Name, "-o", record,
		"--source", l.Source, "--workspace", r.workspace, "--append",
		"--launches", l.LaunchesOf(in.name), "--",
	}, command)
}

// providerEnv leaves out what would configure the peer behind our back.
func (r *runner) providerEnv() []string {
	return slices.DeleteFunc(slices.Clone(r.cfg.Env), func(kv string) bool {
		return r.cfg.Live == nil && strings.HasPrefix(kv, "REPLAY_PEER_")
	})
}
