package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// ACPConfig says how to run an agent that speaks the Agent Client Protocol.
type ACPConfig struct {
	// Agent is one of the names in acpAgents: "gemini", or "registry" for any
	// agent that keeps to the protocol.
	Agent   string
	Command []string // nil: the agent's usual command
	Env     []string // KEY=value; nil: the caller's environment
}

// NewACP returns the adapter of an ACP agent on stdio. It speaks version 1 of
// the protocol, and the draft of version 2 with agents that are asked for it.
// What one agent does otherwise than another stands in acpAgents, as data.
func NewACP(cfg ACPConfig) (orch.Agent, error) {
	kind, ok := acpAgents[cfg.Agent]
	if !ok {
		return nil, fmt.Errorf("unknown ACP agent %q", cfg.Agent)
	}
	if len(cfg.Command) == 0 {
		cfg.Command = kind.command
	}
	return &acp{cfg, kind}, nil
}

type acp struct {
	cfg  ACPConfig
	kind acpAgent
}

func (a *acp) Driver() string { return a.cfg.Agent }

// Capabilities: the protocol names no turns, steers none, and keeps no history
// that could be cut.
func (a *acp) Capabilities() orch.Capabilities {
	return orch.Capabilities{
		SteeringByRestart: true,
		Interrupt:         true,
		Approvals:         true,
		Questions:         a.kind.questions,
		Subagents:         a.kind.subagents,
		ChildThreadIDs:    a.kind.subagents,
		Resume:            true,
	}
}

// Open starts the agent and shakes hands.
func (a *acp) Open(ctx context.Context, cfg orch.SessionConfig) (orch.AgentSession, error) {
	if len(a.cfg.Command) == 0 {
		return nil, fmt.Errorf("open %s: it has no usual command: say how it is started", a.cfg.Agent)
	}
	s := &acpSession{agent: a, cfg: cfg, events: newEventQueue()}
	s.facts = newACPFacts(a.kind, s.events.push)
	s.io = stdio{name: a.cfg.Agent}
	s.io.rpc = newRPC(s.handle, cfg.Diagnostics)
	s.io.rpc.wire.encode = encodeACP
	if err := s.io.open(ctx, a.cfg.Command, cfg.Cwd, a.cfg.Env, s.events, s.handshake); err != nil {
		return nil, err
	}
	return s, nil
}

// acpSession is one process, in which one session is open.
type acpSession struct {
	agent  *acp
	cfg    orch.SessionConfig
	io     stdio
	events *eventQueue
	facts  *acpFacts
	says   acpAgentSays // set by the handshake, then read only
}

// acpAgentSays is what an agent says of itself.
type acpAgentSays struct {
	version      int64 // of the protocol: 1 or 2
	load, resume bool  // how a session is taken up again
}

func (s *acpSession) handshake(ctx context.Context) error {
	want := s.agent.kind.version()
	result, err := s.io.rpc.call(ctx, "initialize", newACPInitialize(s.agent.kind), nil)
	if err != nil {
		return err
	}
	v := result.Get("protocolVersion").Int()
	if v < 1 || v > want {
		return fmt.Errorf("initialize: the agent speaks protocol version %s: want at most %d", result.Get("protocolVersion").Raw, want)
	}
	s.says = acpAgentSays{version: v, load: result.Get("agentCapabilities.loadSession").Bool()}
	// The second version has resume in its base.
	s.says.resume = v > 1 || result.Get("agentCapabilities.sessionCapabilities.resume").IsObject()
	s.facts.speaks(v)
	return nil
}

// handle takes what the agent says on its own account.
func (s *acpSession) handle(m rpcMessage) {
	if m.ID == "" {
		for _, a := range s.facts.notification(m.Method, m.Params) {
			s.io.rpc.enqueue(rpcFrame{ID: []byte(a.id), Result: a.result})
		}
		return
	}
	answer, ok := s.facts.request(m.ID, m.Method, m.Params)
	switch {
	case !ok:
		s.io.rpc.refuse(m.ID, codeNoMethod, m.Method+" is not supported by this client")
	case answer != nil:
		s.io.rpc.enqueue(rpcFrame{ID: []byte(m.ID), Result: answer})
	}
}

func (s *acpSession) Events() <-chan orch.ProviderEvent { return s.events.out }

func (s *acpSession) Close(ctx context.Context) error { return s.io.close(ctx) }

func (s *acpSession) StartThread(ctx context.Context, t orch.ThreadOptions) (orch.NativeThread, error) {
	id := ""
	params := acpNewSession{Cwd: s.cwd(t), MCPServers: []struct{}{}}
	err := s.openSession(ctx, "session/new", params, func(result gjson.Result) string {
		id = result.Get("sessionId").String()
		return id
	})
	switch {
	case err != nil:
		return orch.NativeThread{}, err
	case id == "":
		return orch.NativeThread{}, errors.New("session/new: the answer names no session")
	}
	return orch.NativeThread{ID: id}, nil
}

// ResumeThread takes a session up again without its history where the agent
// can, else lets the agent repeat it, which means nothing here. A refusal in
// any form leaves the thread to a new session.
func (s *acpSession) ResumeThread(ctx context.Context, nativeID string, t orch.ThreadOptions) (orch.NativeThread, error) {
	method := "session/resume"
	if !s.says.resume {
		method = "session/load"
	}
	if !s.says.resume && !s.says.load {
		return orch.NativeThread{}, fmt.Errorf("%w: the agent can't take up a session", orch.ErrResume)
	}
	params := acpNewSession{SessionID: nativeID, Cwd: s.cwd(t), MCPServers: []struct{}{}}
	err := s.openSession(ctx, method, params, func(gjson.Result) string { return nativeID })
	var refusal *rpcError
	if errors.As(err, &refusal) {
		return orch.NativeThread{}, fmt.Errorf("%w: %w", orch.ErrResume, err)
	}
	return orch.NativeThread{ID: nativeID}, err
}

// openSession makes a call that opens a session. named takes its answer and
// returns the session's id.
func (s *acpSession) openSession(ctx context.Context, method string, params any, named func(gjson.Result) string) error {
	open := func(result gjson.Result) {
		if id := named(result); id != "" {
			s.facts.opened(id, result)
		}
	}
	_, err := s.io.rpc.call(ctx, method, params, open)
	var refusal *rpcError
	if login := s.agent.kind.auth; login != "" && errors.As(err, &refusal) && refusal.Code == acpAuthRequired {
		if _, err := s.io.rpc.call(ctx, "authenticate", acpAuthenticate{login}, nil); err != nil {
			return err
		}
		_, err = s.io.rpc.call(ctx, method, params, open)
	}
	return err
}

func (s *acpSession) cwd(t orch.ThreadOptions) string { return firstText(t.Cwd, s.cfg.Cwd) }

// ForkThread: the fork of a session is no part of the protocol that is agreed
// on, and knows no turn to fork at.
func (s *acpSession) ForkThread(context.Context, string, string, orch.ThreadOptions) (orch.NativeThread, error) {
	return orch.NativeThread{}, fmt.Errorf("fork session: %w", errors.ErrUnsupported)
}

// Rollback has nothing in the protocol.
func (s *acpSession) Rollback(context.Context, string, string, int) (orch.NativeThread, error) {
	return orch.NativeThread{}, fmt.Errorf("roll back session: %w", errors.ErrUnsupported)
}

// Steer has nothing in version 1. In the draft a second prompt steers, but the
// agent does not say which turn took it.
func (s *acpSession) Steer(context.Context, string, string, orch.TurnInput) error {
	return fmt.Errorf("steer: %w", errors.ErrUnsupported)
}

// StartTurn first makes the session's settings those of the turn. The prompt
// is acknowledged by nothing but the end of the turn (in the draft by an
// answer), so it is enough that it was written.
func (s *acpSession) StartTurn(ctx context.Context, in orch.TurnInput) error {
	if err := s.adjust(ctx, in.NativeThreadID, in.Options); err != nil {
		return err
	}
	turn := turnOfAttempt(in.AttemptID)
	if err := s.facts.begin(in.NativeThreadID, turn, in.Options.RuntimeMode); err != nil {
		return err
	}
	params := acpPrompt{SessionID: in.NativeThreadID, Prompt: []acpText{{Type: "text", Text: in.Text}}}
	return s.io.rpc.post(ctx, "session/prompt", params, func(result gjson.Result, refusal *rpcError) {
		s.facts.prompted(turn, result, refusal)
	})
}

// Interrupt cancels the turn, and then answers what it still asks: agents wait
// for that.
func (s *acpSession) Interrupt(ctx context.Context, nativeThreadID, nativeTurnID string) error {
	answers, ok := s.facts.interrupt(nativeThreadID, nativeTurnID)
	if !ok {
		return fmt.Errorf("session/cancel: %w", orch.ErrTurnNotActive)
	}
	err := s.io.rpc.notify(ctx, "session/cancel", acpSessionRef{nativeThreadID})
	for _, a := range answers {
		if err == nil {
			err = s.io.rpc.respond(ctx, a.id, a.result)
		}
	}
	return err
}

func (s *acpSession) Respond(ctx context.Context, nativeRequestID string, d orch.Decision) error {
	result, err := s.facts.respond(nativeRequestID, d)
	return s.io.rpc.decided(ctx, nativeRequestID, result, err)
}
