package scenario

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/replaypeer/replaypeer/internal/orch"
	"github.com/replaypeer/replaypeer/internal/orch/agent"
	"github.com/replaypeer/replaypeer/internal/peer"
	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// instance is one provider instance of a run, with a peer of its own.
type instance struct {
	name     string // of the instance
	provider string
	model    string

	transcript, shown string // "" for a live provider
	retarget          string // provider that the transcript is of; "" for its own
	report, state     string
	control           string // "" when nothing is held
	hold              []string
	agent             orch.Agent
}

// instances lists the provider a scenario is played with, then the others it
// goes to, by name.
func (r *runner) makeInstances() []*instance {
	main := &instance{name: r.provider, provider: r.provider, model: r.settings.Model}
	all := []*instance{main}
	var names []string
	for name := range r.settings.Instances {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		other := r.settings.Instances[name]
		all = append(all, &instance{name: name, provider: other.Provider, model: other.Model})
	}
	if r.cfg.Live != nil {
		return all
	}
	main.retarget = r.settings.Retarget
	main.transcript, main.shown = r.sc.transcript(orElse(main.retarget, r.provider), r.settings.Transcript)
	for _, in := range all[1:] {
		in.transcript, in.shown = r.sc.transcript(in.name, r.settings.Instances[in.name].Transcript)
	}
	return all
}

// place gives an instance its files in the run's folder.
func (r *runner) place(in *instance) {
	suffix := ""
	if in.name != r.provider {
		suffix = "." + in.name
	}
	in.report = filepath.Join(r.dir, "report"+suffix+".json")
	in.state = filepath.Join(r.dir, "state"+suffix+".json")
	if in.hold = r.sc.gates(in.name, r.provider); len(in.hold) > 0 {
		in.control = filepath.Join(r.dir, "control"+suffix)
	}
}

// make links the instance's peer, or takes the live command.
func (r *runner) makeAgent(in *instance) error {
	command := []string(nil)
	if r.cfg.Live == nil {
		if err := r.checkTranscript(in); err != nil {
			return err
		}
		dir := filepath.Join(r.dir, "bin")
		if in.name != r.provider {
			dir = filepath.Join(dir, in.name)
		}
		link, err := peer.Link(dir, in.provider, r.cfg.Peer, r.peerConfig(in))
		if err != nil {
			return fmt.Errorf("link the peer: %w", err)
		}
		command = []string{link}
	} else {
		command = r.liveCommand(in)
	}
	var err error
	in.agent, err = agent.New(in.provider, command, append(r.providerEnv(), r.mark))
	return err
}

// checkTranscript reads the transcript and wants it to be what the scenario
// takes it for.
func (r *runner) checkTranscript(in *instance) error {
	f, err := os.Open(in.transcript)
	if err != nil {
		return fmt.Errorf("%s: no transcript: %w", in.shown, unwrapped(err))
	}
	defer f.Close()
	t, err := envelope.Read(in.shown, f)
	if err != nil {
		return err
	}
	provider, protocol := agent.Recorded(orElse(in.retarget, in.provider))
	switch h := t.Header; {
	case h.Provider != provider:
		return fmt.Errorf("%s:%d: transcript is of provider %q: want %q", in.shown, h.Line, h.Provider, provider)
	case protocol != "" && h.Protocol != protocol:
		return fmt.Errorf("%s:%d: transcript is of protocol %q: want %q", in.shown, h.Line, h.Protocol, protocol)
	case h.Scenario != r.sc.Name:
		return fmt.Errorf("%s:%d: transcript is of scenario %q: want %q", in.shown, h.Line, h.Scenario, r.sc.Name)
	}
	return nil
}

// peerConfig gives the peer half the patience that the steps have, because it
// can say better what was awaited.
func (r *runner) peerConfig(in *instance) peer.Config {
	as := ""
	if in.retarget != "" {
		as, _ = agent.Recorded(in.provider)
	}
	return peer.Config{
		As:         as,
		Transcript: in.transcript, Report: in.report, State: in.state, Workspace: r.workspace,
		IdleTimeout: r.sc.shortestWait() / 2, Hold: in.hold, Control: in.control, Split: r.cfg.Split,
	}
}

// playing tells whether no peer has something to complain about so far. One
// that was not started yet has not.
func (r *runner) playing() bool {
	started := false
	for _, in := range r.instances {
		report, err := replay.ReadReport(in.report)
		if err != nil && !os.IsNotExist(unwrapped(err)) || err == nil && report.Verdict != replay.Running {
			return false
		}
		started = started || err == nil
	}
	return started
}

func unwrapped(err error) error {
	type wrapper interface{ Unwrap() error }
	if w, ok := err.(wrapper); ok {
		return w.Unwrap()
	}
	return err
}

// transcript returns the real path of a transcript and the one that messages
// name. file "" means NAME.ndjson.
func (s *Scenario) transcript(name, file string) (real, shown string) {
	if file == "" {
		file = name + ".ndjson"
	}
	return filepath.Join(s.dir, file), path.Join(path.Dir(filepath.ToSlash(s.File)), file)
}

// gates lists the labels that steps release for an instance; its peer holds
// them. Steps that name no instance are for the main one.
func (s *Scenario) gates(instance, main string) []string {
	var labels []string
	for _, step := range s.Steps {
		if g := step.ReleaseGate; g != nil && step.concerns(main) && orElse(g.Provider, main) == instance {
			labels = append(labels, g.Label)
		}
	}
	return labels
}

func orElse(s, fallback string) string {
	if strings.TrimSpace(s) == "" {
		return fallback
	}
	return s
}
