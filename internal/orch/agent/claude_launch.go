package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// claudeLaunch is what a process is started with.
type claudeLaunch struct {
	model, mode, effort string
	sessionID           string // of a new session, or of a copy
	resume              string // session to go on with, or to copy
	at                  string // last message of it that counts; "" for all
	fork                bool
}

// newClaudeLaunch takes the settings of a thread.
func newClaudeLaunch(t orch.ThreadOptions) claudeLaunch {
	l := claudeLaunch{model: t.Model, mode: claudeMode(t.RuntimeMode, t.InteractionMode)}
	if gjson.ValidBytes(t.Options) {
		l.effort = gjson.GetBytes(t.Options, "effort").Str
	}
	return l
}

// claudeMode maps a runtime mode. Full access asks nothing; auto lets the
// provider decide what to ask; auto-accept-edits asks for commands;
// everything else for what is not harmless. Planning never writes.
func claudeMode(runtimeMode, interactionMode string) string {
	if interactionMode == "plan" {
		return "plan"
	}
	switch runtimeMode {
	case "full-access":
		return "bypassPermissions"
	case "auto":
		return "auto"
	case "auto-accept-edits":
		return "acceptEdits"
	}
	return "default" // approval-required, and the safe side for what is not known
}

// args are the process's arguments, always in this order. Questions with
// choices can't be put to anyone, so the tool that asks them is not offered.
func (l claudeLaunch) args() []string {
	args := []string{
		"--output-format", "stream-json", "--verbose", "--input-format", "stream-json",
		"--permission-prompt-tool=stdio", "--disallowedTools=AskUserQuestion",
	}
	for _, flag := range []struct{ name, value string }{
		{"model", l.model}, {"permission-mode", l.mode}, {"effort", l.effort},
		{"resume", l.resume}, {"resume-session-at", l.at}, {"session-id", l.sessionID},
	} {
		if flag.value != "" {
			args = append(args, "--"+flag.name+"="+flag.value)
		}
	}
	if l.fork {
		args = append(args, "--fork-session")
	}
	return args
}

// claudeProcess is one process, which holds one thread.
type claudeProcess struct {
	stdio
	launch    claudeLaunch
	ready     bool   // it shook hands; its end is the session's
	replaced  bool   // another one takes over
	complaint string // what it said before it was ready
}

// launch starts a process in place of the one that runs, if any, and shakes
// hands.
func (s *claudeSession) launch(ctx context.Context, dir string, l claudeLaunch) error {
	if err := s.retire(ctx); err != nil {
		return err
	}
	p := &claudeProcess{launch: l}
	p.name = "claude"
	p.rpc = newRPC(func(m rpcMessage) { s.handle(p, m) }, s.cfg.Diagnostics)
	p.rpc.wire = claudeWire
	if dir == "" {
		dir = s.cfg.Cwd
	}
	command := slices.Concat(s.agent.cfg.Command, l.args())
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return goneError{errors.New("claude: the session was closed")}
	}
	err := p.start(command, dir, s.agent.cfg.Env, func(err error) { s.processEnded(p, err) })
	if err == nil {
		s.process = p
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	_, err = p.rpc.call(ctx, "initialize", nil, func(gjson.Result) {
		s.mu.Lock()
		p.ready = true
		s.mu.Unlock()
	})
	if err == nil {
		return nil
	}
	return errors.Join(s.refusal(p, err), s.retire(ctx))
}

// refusal explains a handshake that failed: a session that can't be resumed
// is refused before it.
func (s *claudeSession) refusal(p *claudeProcess, err error) error {
	s.mu.Lock()
	complaint := p.complaint
	s.mu.Unlock()
	if !errors.Is(err, orch.ErrSessionEnded) || p.launch.resume == "" {
		return err
	}
	if said := p.stderr.String(); complaint != "" || strings.Contains(said, "No conversation found") || strings.Contains(said, "No message found") {
		return fmt.Errorf("%w: %s: %v", orch.ErrResume, clip(complaint), err)
	}
	return err
}

// retire ends the process that runs without ending the session.
func (s *claudeSession) retire(ctx context.Context) error {
	s.mu.Lock()
	p := s.process
	if p != nil {
		p.replaced = true
		s.process = nil
	}
	s.mu.Unlock()
	if p == nil {
		return nil
	}
	return p.close(ctx)
}

// processEnded is called on the reading goroutine, after the last message.
func (s *claudeSession) processEnded(p *claudeProcess, err error) {
	s.mu.Lock()
	last := p.ready && !p.replaced
	if s.process == p && !p.ready {
		s.process = nil
	}
	s.mu.Unlock()
	if last {
		s.end(err)
	}
}

// end is the end of the session. Only the first one counts.
func (s *claudeSession) end(err error) {
	s.ended.Do(func() {
		s.facts.gone()
		s.events.end(err)
	})
}

// running returns the process.
func (s *claudeSession) running() (*claudeProcess, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return nil, errors.New("claude: no thread was opened")
	}
	return s.process, nil
}
