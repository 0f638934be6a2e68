package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// OpenCodeConfig says how to run opencode.
type OpenCodeConfig struct {
	Command []string // without its arguments; nil: {"opencode"}
	Env     []string // KEY=value; nil: the caller's environment
}

// NewOpenCode returns the adapter of `opencode serve`: calls over HTTP, and
// events on a connection of their own. It was written against 1.18.33.
//
// What an answer and an event tell comes in either order. So facts are made of
// events alone, and answers only tell that a call was taken or refused.
func NewOpenCode(cfg OpenCodeConfig) orch.Agent {
	if len(cfg.Command) == 0 {
		cfg.Command = []string{"opencode"}
	}
	return &openCode{cfg}
}

type openCode struct{ cfg OpenCodeConfig }

func (c *openCode) Driver() string { return "opencode" }

func (c *openCode) Capabilities() orch.Capabilities {
	return orch.Capabilities{
		ActiveSteering:         true,
		SteeringByRestart:      true,
		Interrupt:              true,
		Rollback:               true,
		RollbackReturnsHistory: true,
		Fork:                   true,
		ForkAtTurn:             true,
		Approvals:              true,
		Questions:              true,
		Subagents:              true,
		ChildThreadIDs:         true,
		Resume:                 true,
	}
}

// Open starts the server and opens its event stream.
func (c *openCode) Open(ctx context.Context, cfg orch.SessionConfig) (orch.AgentSession, error) {
	s := &openCodeAgentSession{events: newEventQueue()}
	s.facts = newOpenCodeFacts(s.events.push)
	s.server.trace = cfg.Diagnostics
	s.server.handle = s.handle
	if err := s.server.start(ctx, c.cfg.Command, cfg.Cwd, c.cfg.Env, s.events.end); err != nil {
		s.events.close()
		s.events.discard()
		return nil, fmt.Errorf("open opencode: %w", err)
	}
	return s, nil
}

// openCodeAgentSession is one server process.
type openCodeAgentSession struct {
	server openCodeServer
	events *eventQueue
	facts  *openCodeFacts

	// calls is held by what starts, steers or stops a turn. A prompt that comes
	// while an abort is not answered would be dropped by it.
	calls sync.Mutex
	rules string // the mode whose rules the session has; "" when not known
}

func (s *openCodeAgentSession) Events() <-chan orch.ProviderEvent { return s.events.out }

func (s *openCodeAgentSession) Close(ctx context.Context) error { return s.server.close(ctx) }

// handle takes an event. A question that has its answer already is answered.
func (s *openCodeAgentSession) handle(event gjson.Result) {
	granted := s.facts.event(event)
	if granted == "" {
		return
	}
	s.server.wg.Go(func() {
		_, _ = s.call(context.Background(), "/permission/"+granted+"/reply", openCodeReply{Reply: "once"}) // else the turn is stuck, and can be interrupted
	})
}

// call posts.
func (s *openCodeAgentSession) call(ctx context.Context, path string, in any) (gjson.Result, error) {
	return s.server.call(ctx, http.MethodPost, path, in)
}

func (s *openCodeAgentSession) StartThread(ctx context.Context, t orch.ThreadOptions) (orch.NativeThread, error) {
	s.calls.Lock()
	defer s.calls.Unlock()
	body := openCodeSession{Title: "orchestrated", Permission: openCodeRules(t.RuntimeMode, t.InteractionMode)}
	thread, err := s.openThread(ctx, "/session", body)
	if err == nil {
		s.rules = t.RuntimeMode + " " + t.InteractionMode
	}
	return thread, err
}

// openThread makes a call that answers with a session of ours.
func (s *openCodeAgentSession) openThread(ctx context.Context, path string, in any) (orch.NativeThread, error) {
	answer, err := s.call(ctx, path, in)
	if err != nil {
		return orch.NativeThread{}, err
	}
	id := strings.Clone(answer.Get("id").Str)
	if id == "" {
		return orch.NativeThread{}, fmt.Errorf("POST %s: the answer names no session", path)
	}
	s.facts.own(id)
	return orch.NativeThread{ID: id}, nil
}

func (s *openCodeAgentSession) ResumeThread(ctx context.Context, nativeID string, _ orch.ThreadOptions) (orch.NativeThread, error) {
	_, err := s.server.call(ctx, http.MethodGet, "/session/"+nativeID, nil)
	var refusal *openCodeError
	if errors.As(err, &refusal) && refusal.status < http.StatusInternalServerError {
		return orch.NativeThread{}, fmt.Errorf("%w: %w", orch.ErrResume, err)
	}
	if err != nil {
		return orch.NativeThread{}, err
	}
	s.facts.own(nativeID)
	return orch.NativeThread{ID: nativeID}, nil
}

// ForkThread copies the messages before the one that follows the turn.
func (s *openCodeAgentSession) ForkThread(ctx context.Context, nativeID, throughTurnID string, _ orch.ThreadOptions) (orch.NativeThread, error) {
	var end openCodeMessageRef
	if throughTurnID != "" {
		var err error
		if end.MessageID, err = s.messageAfter(ctx, nativeID, throughTurnID); err != nil {
			return orch.NativeThread{}, fmt.Errorf("fork thread: %w", err)
		}
	}
	return s.openThread(ctx, "/session/"+nativeID+"/fork", end)
}

// Rollback hides all from the first message that is dropped; the next prompt
// removes it.
func (s *openCodeAgentSession) Rollback(ctx context.Context, nativeID, keepThroughTurnID string, dropped int) (orch.NativeThread, error) {
	thread := orch.NativeThread{ID: nativeID}
	if dropped == 0 {
		return thread, nil
	}
	first, err := s.messageAfter(ctx, nativeID, keepThroughTurnID)
	if err != nil {
		return thread, fmt.Errorf("roll back: %w", err)
	}
	if first == "" {
		return thread, nil // what is dropped never reached the provider
	}
	_, err = s.call(ctx, "/session/"+nativeID+"/revert", openCodeMessageRef{first})
	return thread, err
}

// messageAfter returns the first message after a turn, "" when there is none.
// Before turn "" stands what a fork has inherited.
func (s *openCodeAgentSession) messageAfter(ctx context.Context, sessionID, turnID string) (string, error) {
	messages, err := s.server.call(ctx, http.MethodGet, "/session/"+sessionID+"/message", nil)
	if err != nil {
		return "", err
	}
	found := turnID == ""
	mark := openCodeTurnMark(turnID)
	for _, m := range messages.Array() {
		if m.Get("info.role").Str != "user" {
			continue
		}
		part := m.Get("parts.0.id").Str
		switch {
		case turnID != "" && strings.HasPrefix(part, mark):
			found = true
		case found && (turnID != "" || strings.HasPrefix(part, openCodePartMark)):
			return strings.Clone(m.Get("info.id").Str), nil
		}
	}
	if !found {
		return "", fmt.Errorf("session %s has no turn %q", sessionID, turnID)
	}
	return "", nil
}

// StartTurn first gives the session the turn's rules, where it has others.
func (s *openCodeAgentSession) StartTurn(ctx context.Context, in orch.TurnInput) error {
	s.calls.Lock()
	defer s.calls.Unlock()
	mode, plan := in.Options.RuntimeMode, in.Options.InteractionMode
	if rules := mode + " " + plan; s.rules != rules {
		body := openCodeSession{Permission: openCodeRules(mode, plan)}
		if _, err := s.server.call(ctx, http.MethodPatch, "/session/"+in.NativeThreadID, body); err != nil {
			return err
		}
		s.rules = rules
	}
	turn := turnOfAttempt(in.AttemptID)
	part := openCodePart(turn, in.MessageID)
	if err := s.facts.begin(in.NativeThreadID, turn, part, mode); err != nil {
		return err
	}
	err := s.prompt(ctx, in, part)
	if err != nil {
		s.facts.forget(turn)
	}
	return err
}

func (s *openCodeAgentSession) prompt(ctx context.Context, in orch.TurnInput, part string) error {
	_, err := s.call(ctx, "/session/"+in.NativeThreadID+"/prompt_async", newOpenCodePrompt(in, part))
	return err
}

// Steer queues a message at the running turn: the model gets it with its next
// step, and the turn ends after the answer to it.
func (s *openCodeAgentSession) Steer(ctx context.Context, _, nativeTurnID string, in orch.TurnInput) error {
	s.calls.Lock()
	defer s.calls.Unlock()
	part := openCodePart(nativeTurnID, in.MessageID)
	if !s.facts.steer(nativeTurnID, part) {
		return fmt.Errorf("steer: %w", orch.ErrTurnNotActive)
	}
	err := s.prompt(ctx, in, part)
	if err != nil {
		s.facts.unsteer(nativeTurnID, part)
	}
	return err
}

// Interrupt aborts the turn once the server works on it: an abort that comes
// before a prompt is taken up stops nothing. When ctx ends first the turn is
// aborted all the same, later.
func (s *openCodeAgentSession) Interrupt(ctx context.Context, nativeThreadID, nativeTurnID string) error {
	working := s.facts.working(nativeTurnID)
	if working == nil {
		return fmt.Errorf("interrupt: %w", orch.ErrTurnNotActive)
	}
	select {
	case <-working:
		return s.abort(ctx, nativeThreadID, nativeTurnID)
	case <-s.server.gone:
		return goneError{s.server.obit}
	case <-ctx.Done():
		s.server.wg.Go(func() {
			select {
			case <-working:
				_ = s.abort(context.Background(), nativeThreadID, nativeTurnID) // nobody waits for it
			case <-s.server.gone:
			}
		})
		return ctx.Err()
	}
}

// abort stops a turn. Questions outlive an abort, and what is allowed then
// still runs; so they are refused.
func (s *openCodeAgentSession) abort(ctx context.Context, nativeThreadID, nativeTurnID string) error {
	s.calls.Lock()
	defer s.calls.Unlock()
	turn := s.facts.interrupting(nativeTurnID)
	if turn == nil {
		return fmt.Errorf("interrupt: %w", orch.ErrTurnNotActive)
	}
	if _, err := s.call(ctx, "/session/"+nativeThreadID+"/abort", nil); err != nil {
		return err
	}
	for _, r := range s.facts.abandoned(turn) {
		path, body := r.refusal()
		_, err := s.call(ctx, path, body)
		var refusal *openCodeError
		if err != nil && (!errors.As(err, &refusal) || refusal.status != http.StatusNotFound) {
			return err // not found is one that went with another
		}
	}
	return nil
}

func (s *openCodeAgentSession) Respond(ctx context.Context, nativeRequestID string, d orch.Decision) error {
	path, body, err := s.facts.respond(nativeRequestID, d)
	if err == nil {
		_, err = s.call(ctx, path, body)
	}
	if err != nil {
		return fmt.Errorf("answer request %s: %w", nativeRequestID, err)
	}
	return nil
}
