package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// ClaudeConfig says how to run claude.
type ClaudeConfig struct {
	Command []string // nil: {"claude"}
	Env     []string // KEY=value; nil: the caller's environment
}

// NewClaude returns the adapter of the claude executable, which speaks
// stream-json and the control protocol on stdio. It was written against
// Claude Code 2.1.332.
//
// One process holds one thread, and the thread's settings are arguments of the
// process. So a session has no process before its thread is opened, and a
// rollback replaces it.
func NewClaude(cfg ClaudeConfig) orch.Agent {
	if len(cfg.Command) == 0 {
		cfg.Command = []string{"claude"}
	}
	return &claude{cfg}
}

type claude struct{ cfg ClaudeConfig }

func (c *claude) Driver() string { return "claude" }

func (c *claude) Capabilities() orch.Capabilities {
	return orch.Capabilities{
		ActiveSteering:         true,
		Interrupt:              true,
		Rollback:               true,
		RollbackReturnsHistory: true,
		Fork:                   true,
		ForkAtTurn:             true,
		Approvals:              true,
		Subagents:              true,
		Resume:                 true,
	}
}

// Open starts nothing: what the process is started with is known when its
// thread is.
func (c *claude) Open(_ context.Context, cfg orch.SessionConfig) (orch.AgentSession, error) {
	s := &claudeSession{agent: c, cfg: cfg, events: newEventQueue()}
	s.facts = newClaudeFacts(s.events.push)
	return s, nil
}

// headOf takes the name of a turn for its last message, which is all that the
// provider knows of turns. One in which nothing was said has none.
func headOf(turn string) (string, error) {
	if strings.HasPrefix(turn, turnOfAttempt("")) {
		return "", fmt.Errorf("%s has no message to go on from", turn)
	}
	return turn, nil
}

// claudeSession is one thread, in one process at a time.
type claudeSession struct {
	agent  *claude
	cfg    orch.SessionConfig
	events *eventQueue
	facts  *claudeFacts
	ended  sync.Once

	mu      sync.Mutex
	process *claudeProcess // nil before the thread is opened
	closed  bool
}

func (s *claudeSession) Events() <-chan orch.ProviderEvent { return s.events.out }

func (s *claudeSession) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	p := s.process
	s.mu.Unlock()
	var err error
	if p != nil {
		err = p.close(ctx)
	}
	s.end(nil)
	return err
}

func (s *claudeSession) StartThread(ctx context.Context, t orch.ThreadOptions) (orch.NativeThread, error) {
	if t.AttemptID == "" {
		return orch.NativeThread{}, errors.New("start thread: there is no attempt to name it after")
	}
	l := newClaudeLaunch(t)
	l.sessionID = claudeID("session", t.AttemptID)
	return s.openThread(ctx, t.Cwd, l.sessionID, l)
}

func (s *claudeSession) ResumeThread(ctx context.Context, nativeID string, t orch.ThreadOptions) (orch.NativeThread, error) {
	l := newClaudeLaunch(t)
	l.resume, l.at = nativeID, t.Head
	thread, err := s.openThread(ctx, t.Cwd, nativeID, l)
	if err == nil && t.Head != "" {
		s.facts.rolledBack()
	}
	return thread, err
}

func (s *claudeSession) ForkThread(ctx context.Context, nativeID, throughTurnID string, t orch.ThreadOptions) (orch.NativeThread, error) {
	if t.AttemptID == "" {
		return orch.NativeThread{}, errors.New("fork thread: there is no attempt to name it after")
	}
	l := newClaudeLaunch(t)
	l.resume, l.fork, l.sessionID = nativeID, true, claudeID("session", t.AttemptID)
	if throughTurnID != "" {
		var err error
		if l.at, err = headOf(throughTurnID); err != nil {
			return orch.NativeThread{}, fmt.Errorf("fork thread: %w", err)
		}
	}
	return s.openThread(ctx, t.Cwd, l.sessionID, l)
}

// openThread starts the process of a thread.
func (s *claudeSession) openThread(ctx context.Context, dir, id string, l claudeLaunch) (orch.NativeThread, error) {
	if err := s.launch(ctx, dir, l); err != nil {
		return orch.NativeThread{}, fmt.Errorf("open claude: %w", err)
	}
	s.facts.open(id)
	return orch.NativeThread{ID: id}, nil
}

// Rollback goes on in a new process at the last message of the turn that
// stays. The provider can't go back to before the first one.
func (s *claudeSession) Rollback(ctx context.Context, nativeID, keepThroughTurnID string, dropped int) (orch.NativeThread, error) {
	if dropped == 0 {
		return orch.NativeThread{ID: nativeID}, nil
	}
	if keepThroughTurnID == "" {
		return orch.NativeThread{}, errors.New("roll back: claude keeps at least the first turn")
	}
	head, err := headOf(keepThroughTurnID)
	if err != nil {
		return orch.NativeThread{}, fmt.Errorf("roll back: %w", err)
	}
	p, err := s.running()
	if err != nil {
		return orch.NativeThread{}, err
	}
	l := p.launch
	l.resume, l.at, l.sessionID, l.fork = nativeID, head, "", false
	thread, err := s.openThread(ctx, s.cfg.Cwd, nativeID, l)
	if err != nil {
		return thread, err
	}
	s.facts.rolledBack()
	thread.Head = head
	return thread, nil
}

// StartTurn first makes the process's settings those of the turn.
func (s *claudeSession) StartTurn(ctx context.Context, in orch.TurnInput) error {
	p, err := s.adjusted(ctx, in)
	if err != nil {
		return err
	}
	uuid := claudeID("prompt", in.AttemptID, in.MessageID)
	if err := s.facts.begin(turnOfAttempt(in.AttemptID), uuid); err != nil {
		return err
	}
	return p.rpc.notify(ctx, "user", newClaudePrompt(uuid, in.Text, ""))
}

// turnOfAttempt names a turn, which the provider does not.
func turnOfAttempt(attemptID string) string { return "turn:" + attemptID }

// adjusted returns the process with the settings that a turn wants. Some of
// them take a new one.
func (s *claudeSession) adjusted(ctx context.Context, in orch.TurnInput) (*claudeProcess, error) {
	p, err := s.running()
	if err != nil {
		return nil, err
	}
	has, want := &p.launch, newClaudeLaunch(in.Options)
	if want.effort != has.effort || want.mode != has.mode && want.mode == "bypassPermissions" {
		want.resume = in.NativeThreadID
		if s.facts.isRolledBack() {
			want.at = has.at
		}
		if _, err := s.openThread(ctx, in.Options.Cwd, in.NativeThreadID, want); err != nil {
			return nil, err
		}
		return s.running()
	}
	if want.model != has.model && want.model != "" {
		if _, err := p.rpc.call(ctx, "set_model", claudeSetModel{want.model}, nil); err != nil {
			return nil, err
		}
		has.model = want.model
	}
	if want.mode != has.mode {
		if _, err := p.rpc.call(ctx, "set_permission_mode", claudeSetMode{want.mode}, nil); err != nil {
			return nil, err
		}
		has.mode = want.mode
	}
	return p, nil
}

// Steer ends the provider's turn early and gives it another one, which counts
// as the same here.
func (s *claudeSession) Steer(ctx context.Context, _, nativeTurnID string, in orch.TurnInput) error {
	p, err := s.running()
	if err != nil {
		return err
	}
	uuid := claudeID("prompt", in.AttemptID, in.MessageID)
	if !s.facts.steer(nativeTurnID, uuid) {
		return fmt.Errorf("steer: %w", orch.ErrTurnNotActive)
	}
	return p.rpc.notify(ctx, "user", newClaudePrompt(uuid, in.Text, "now"))
}

// Interrupt also takes back the messages that did not get their turn yet.
func (s *claudeSession) Interrupt(ctx context.Context, _, nativeTurnID string) error {
	p, err := s.running()
	if err != nil {
		return err
	}
	if !s.facts.active(nativeTurnID) {
		return fmt.Errorf("interrupt: %w", orch.ErrTurnNotActive)
	}
	_, err = p.rpc.call(ctx, "interrupt", claudeInterrupt{CancelQueued: true}, func(gjson.Result) {
		s.facts.interrupted(nativeTurnID)
	})
	return err
}

func (s *claudeSession) Respond(ctx context.Context, nativeRequestID string, d orch.Decision) error {
	p, err := s.running()
	if err == nil {
		var id string
		var answer claudePermission
		if id, answer, err = s.facts.respond(nativeRequestID, d); err == nil {
			err = p.rpc.respond(ctx, id, answer)
		}
	}
	if err != nil {
		return fmt.Errorf("answer request %s: %w", nativeRequestID, err)
	}
	return nil
}

// handle takes what the provider says on its own account.
func (s *claudeSession) handle(p *claudeProcess, m rpcMessage) {
	s.mu.Lock()
	ready := p.ready
	if !ready && m.Method == "result" {
		p.complaint = errorsOf(m.Params)
	}
	s.mu.Unlock()
	switch {
	case m.ID == "":
		if ready {
			s.facts.message(m.Method, m.Params)
		}
	case m.Method == "can_use_tool":
		if answer := s.facts.ask(m.ID, m.Params); answer != nil {
			p.rpc.enqueue(rpcFrame{ID: []byte(m.ID), Result: answer})
		}
	default:
		p.rpc.refuse(m.ID, codeNoMethod, m.Method+" is not supported by this client")
	}
}
