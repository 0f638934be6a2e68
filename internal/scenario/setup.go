package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"

	"github.com/jonboulle/clockwork"
)

// prepare makes everything the orchestrator stands on.
func (r *runner) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	r.clock, r.random = clockwork.NewRealClock(), nil
	if r.cfg.Live == nil {
		r.clock = clockwork.NewFakeClockAt(epoch)
		r.random = &lockedReader{r: rand.NewChaCha8(seed)}
	} else if len(r.instances) > 1 {
		return &skip{"a scenario of several providers is not played live"}
	}
	for _, in := range r.instances {
		r.place(in)
		if err := r.makeAgent(in); err != nil {
			return err
		}
		in.agent = r.cfg.faults.agent(in.agent)
	}
	if missing := lacking(r.instances[0].agent.Capabilities(), r.sc.Needs); len(missing) > 0 {
		return &skip{fmt.Sprintf("%s lacks the capability %s", r.provider, strings.Join(missing, ", "))}
	}
	if _, err := exec.LookPath("git"); err != nil {
		return err
	}
	return makeWorkspace(ctx, r.workspace, r.cfg.Env, r.sc.Workspace)
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
