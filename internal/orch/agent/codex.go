package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// CodexConfig says how to run codex.
type CodexConfig struct {
	Command []string // nil: {"codex", "app-server"}
	Env     []string // KEY=value; nil: the caller's environment
	// ClientVersion is what initialize says of this client; "" means "1". It
	// is part of a recording.
	ClientVersion string
}

// NewCodex returns the adapter of `codex app-server` on stdio. It was written
// against 0.171.0 and takes older servers back to 0.120.0.
func NewCodex(cfg CodexConfig) orch.Agent {
	if len(cfg.Command) == 0 {
		cfg.Command = []string{"codex", "app-server"}
	}
	if cfg.ClientVersion == "" {
		cfg.ClientVersion = "1"
	}
	return &codex{cfg}
}

type codex struct{ cfg CodexConfig }

func (c *codex) Driver() string { return "codex" }

func (c *codex) Capabilities() orch.Capabilities {
	return orch.Capabilities{
		ActiveSteering:         true,
		SteeringByRestart:      true,
		Interrupt:              true,
		NativeTurnIDs:          true,
		Rollback:               true,
		RollbackReturnsHistory: true,
		Fork:                   true,
		ForkAtTurn:             true,
		Approvals:              true,
		Questions:              true,
		Subagents:              true,
		ChildThreadIDs:         true,
		Resume:                 true,
		ThreadsPerSession:      true,
	}
}

// Open starts the server and shakes hands.
func (c *codex) Open(ctx context.Context, cfg orch.SessionConfig) (orch.AgentSession, error) {
	s := &codexSession{cfg: cfg, events: newEventQueue()}
	s.facts = newCodexFacts(s.events.push)
	s.io = stdio{name: "codex"}
	s.io.rpc = newRPC(s.handle, cfg.Diagnostics)
	shake := func(ctx context.Context) error { return s.handshake(ctx, c.cfg.ClientVersion) }
	if err := s.io.open(ctx, c.cfg.Command, cfg.Cwd, c.cfg.Env, s.events, shake); err != nil {
		return nil, err
	}
	return s, nil
}

// codexSession is one app-server process.
type codexSession struct {
	cfg     orch.SessionConfig
	io      stdio
	events  *eventQueue
	facts   *codexFacts
	version codexVersion // set by the handshake, then read only
}

func (s *codexSession) handshake(ctx context.Context, clientVersion string) error {
	params := codexInitialize{
		ClientInfo:   codexClientInfo{Name: "replaypeer_orchestrator", Title: "replaypeer orchestrator", Version: clientVersion},
		Capabilities: codexClientCapabilities{ExperimentalAPI: true},
	}
	result, err := s.io.rpc.call(ctx, "initialize", params, nil)
	if err != nil {
		return err
	}
	s.version = parseCodexVersion(result.Get("userAgent").Str)
	return s.io.rpc.notify(ctx, "initialized", nil)
}

// handle takes what the server says on its own account.
func (s *codexSession) handle(m rpcMessage) {
	if m.ID == "" {
		s.facts.notification(m.Method, m.Params)
		return
	}
	if !s.facts.request(m.ID, m.Method, m.Params) {
		s.io.rpc.refuse(m.ID, codeNoMethod, m.Method+" is not supported by this client")
	}
}

func (s *codexSession) Events() <-chan orch.ProviderEvent { return s.events.out }

func (s *codexSession) Close(ctx context.Context) error { return s.io.close(ctx) }

func (s *codexSession) StartThread(ctx context.Context, t orch.ThreadOptions) (orch.NativeThread, error) {
	return s.openThread(ctx, "thread/start", codexThreadParams{Cwd: t.Cwd, Model: t.Model})
}

func (s *codexSession) ResumeThread(ctx context.Context, nativeID string, t orch.ThreadOptions) (orch.NativeThread, error) {
	s.facts.own(nativeID) // a turn of it may speak before the answer
	thread, err := s.openThread(ctx, "thread/resume", codexThreadParams{ThreadID: nativeID, Cwd: t.Cwd, Model: t.Model})
	var refusal *rpcError
	if errors.As(err, &refusal) && refusal.Code != codeInternal {
		return thread, fmt.Errorf("%w: %w", orch.ErrResume, err)
	}
	return thread, err
}

func (s *codexSession) ForkThread(ctx context.Context, nativeID, throughTurnID string, t orch.ThreadOptions) (orch.NativeThread, error) {
	params := codexThreadParams{ThreadID: nativeID, Cwd: t.Cwd, Model: t.Model}
	if throughTurnID == "" || s.version.forksAtTurn() {
		params.LastTurnID = throughTurnID
		return s.openThread(ctx, "thread/fork", params)
	}
	// Older servers copy whole threads: drop the rest from the copy.
	_, dropped, err := s.facts.after(nativeID, throughTurnID)
	if err != nil {
		return orch.NativeThread{}, fmt.Errorf("thread/fork: %w", err)
	}
	fork, err := s.openThread(ctx, "thread/fork", params)
	if err != nil || dropped == 0 {
		return fork, err
	}
	return s.openThread(ctx, "thread/rollback", codexRollback{ThreadID: fork.ID, NumTurns: dropped})
}

func (s *codexSession) Rollback(ctx context.Context, nativeID, keepThroughTurnID string, dropped int) (orch.NativeThread, error) {
	if dropped == 0 {
		return orch.NativeThread{ID: nativeID}, nil
	}
	rollback := codexRollback{ThreadID: nativeID, NumTurns: dropped}
	if !s.version.reverts() {
		thread, err := s.cutThread(ctx, "thread/rollback", rollback, nativeID, keepThroughTurnID)
		if !isUnknownMethod(err) {
			return thread, err
		}
	}
	first, _, err := s.facts.after(nativeID, keepThroughTurnID)
	if err != nil {
		return orch.NativeThread{}, fmt.Errorf("thread/revert: %w", err)
	}
	if first == "" {
		return orch.NativeThread{}, fmt.Errorf("thread/revert: thread %s has no turn after %q", nativeID, keepThroughTurnID)
	}
	revert := codexRevert{ThreadID: nativeID, BeforeTurnID: first}
	thread, err := s.cutThread(ctx, "thread/revert", revert, nativeID, keepThroughTurnID)
	if isUnknownMethod(err) && s.version.reverts() {
		return s.cutThread(ctx, "thread/rollback", rollback, nativeID, keepThroughTurnID)
	}
	return thread, err
}

// cutThread makes a call that drops the turns after one.
func (s *codexSession) cutThread(ctx context.Context, method string, params any, threadID, keepThroughTurnID string) (orch.NativeThread, error) {
	thread, err := s.openThread(ctx, method, params)
	if err == nil {
		s.facts.cut(threadID, keepThroughTurnID)
	}
	return thread, err
}

// openThread makes a call whose answer describes a thread of ours.
func (s *codexSession) openThread(ctx context.Context, method string, params any) (orch.NativeThread, error) {
	result, err := s.io.rpc.call(ctx, method, params, s.facts.opened)
	if err != nil {
		return orch.NativeThread{}, err
	}
	id := result.Get("thread.id").String()
	if id == "" {
		return orch.NativeThread{}, fmt.Errorf("%s: the answer names no thread", method)
	}
	return orch.NativeThread{ID: id}, nil
}

func (s *codexSession) StartTurn(ctx context.Context, in orch.TurnInput) error {
	model, plan := s.facts.settings(in.NativeThreadID)
	params := newCodexTurn(in, model, plan)
	_, err := s.io.rpc.call(ctx, "turn/start", params, func(result gjson.Result) {
		s.facts.turnAccepted(in.NativeThreadID, result.Get("turn.id").String(), in.Options.InteractionMode == "plan")
	})
	return err
}

func (s *codexSession) Steer(ctx context.Context, nativeThreadID, nativeTurnID string, in orch.TurnInput) error {
	if s.facts.turnEnded(nativeTurnID) {
		return fmt.Errorf("turn/steer: %w", orch.ErrTurnNotActive)
	}
	params := codexSteer{ThreadID: nativeThreadID, Input: codexText(in.Text), ExpectedTurnID: nativeTurnID}
	_, err := s.io.rpc.call(ctx, "turn/steer", params, nil)
	return activeTurnError(err)
}

// Interrupt also ends the commands that the turn leaves running: the server
// keeps them as background terminals otherwise.
func (s *codexSession) Interrupt(ctx context.Context, nativeThreadID, nativeTurnID string) error {
	if s.facts.turnEnded(nativeTurnID) {
		return fmt.Errorf("turn/interrupt: %w", orch.ErrTurnNotActive)
	}
	var running []string
	_, err := s.io.rpc.call(ctx, "turn/interrupt", codexTurnRef{ThreadID: nativeThreadID, TurnID: nativeTurnID}, func(gjson.Result) {
		running = s.facts.interrupted(nativeTurnID)
	})
	if err != nil {
		return activeTurnError(err)
	}
	for _, id := range running {
		_, err := s.io.rpc.call(ctx, "thread/backgroundTerminals/terminate", codexTerminate{ThreadID: nativeThreadID, ProcessID: id}, nil)
		var refusal *rpcError
		if err != nil && (!errors.As(err, &refusal) || refusal.Code == codeInternal) {
			return err // another refusal means that the command is gone already
		}
	}
	return nil
}

func (s *codexSession) Respond(ctx context.Context, nativeRequestID string, d orch.Decision) error {
	result, err := s.facts.respond(nativeRequestID, d)
	return s.io.rpc.decided(ctx, nativeRequestID, result, err)
}

// activeTurnError wraps ErrTurnNotActive around the server's ways to say it.
func activeTurnError(err error) error {
	var refusal *rpcError
	if errors.As(err, &refusal) && refusal.Code == codeInvalidRequest && strings.Contains(refusal.Message, "active turn") {
		return fmt.Errorf("%w: %w", orch.ErrTurnNotActive, err)
	}
	return err
}

// isUnknownMethod tells how the server refuses a method it does not have: as
// an invalid request, with the names of all those that it has.
func isUnknownMethod(err error) bool {
	var refusal *rpcError
	return errors.As(err, &refusal) && (refusal.Code == codeNoMethod ||
		refusal.Code == codeInvalidRequest && strings.Contains(refusal.Message, "unknown variant"))
}

// codexVersion is what the server says it is; the zero value is unknown and
// counts as the newest.
type codexVersion struct{ major, minor int }

// parseCodexVersion reads `client/0.171.0 (Debian 12; x86_64) …`.
func parseCodexVersion(userAgent string) codexVersion {
	var v codexVersion
	_, rest, _ := strings.Cut(userAgent, "/")
	if n, _ := fmt.Sscanf(rest, "%d.%d.", &v.major, &v.minor); n != 2 {
		return codexVersion{}
	}
	return v
}

func (v codexVersion) atLeast(minor int) bool {
	return v == codexVersion{} || v.major > 0 || v.minor >= minor
}

// reverts: 0.171.0 has thread/revert; 0.141.0 still had thread/rollback. In
// between the refusal of one leads to the other.
func (v codexVersion) reverts() bool { return v.atLeast(171) }

// forksAtTurn: 0.171.0 takes lastTurnId on thread/fork.
func (v codexVersion) forksAtTurn() bool { return v.atLeast(171) }
