package orch

import (
	"context"
	"encoding/json"
)

// This file is the port to agents (providers). An adapter implements Agent
// and AgentSession; the orchestrator never looks at a provider's name, only
// at Capabilities.

// Capabilities says what a provider can do. Policy reads nothing else.
type Capabilities struct {
	ActiveSteering    bool `json:"activeSteering"`    // a running turn takes more input
	SteeringByRestart bool `json:"steeringByRestart"` // interrupt, then a new turn under the same run
	Interrupt         bool `json:"interrupt"`
	// NativeTurnIDs is false where the provider names no turns; the adapter
	// then derives "turn:<attempt id>" and the ref is weak.
	NativeTurnIDs          bool `json:"nativeTurnIds"`
	Rollback               bool `json:"rollback"`
	RollbackReturnsHistory bool `json:"rollbackReturnsHistory"`
	Fork                   bool `json:"fork"`
	ForkAtTurn             bool `json:"forkAtTurn"`
	Approvals              bool `json:"approvals"`
	Questions              bool `json:"questions"`
	Subagents              bool `json:"subagents"`
	ChildThreadIDs         bool `json:"childThreadIds"`
	Resume                 bool `json:"resume"`
	ThreadsPerSession      bool `json:"threadsPerSession"` // one session holds many threads
}

// Agent opens sessions of one provider kind. Safe for concurrent use.
type Agent interface {
	// Driver is the provider's name in refs and projections: "codex".
	Driver() string
	Capabilities() Capabilities
	// Open starts the provider and completes its handshake. The session lives
	// until Close, not until ctx ends; ctx bounds the handshake only.
	Open(ctx context.Context, cfg SessionConfig) (AgentSession, error)
}

// SessionConfig is what a session needs to start.
type SessionConfig struct {
	Cwd   string
	Model string
	// RuntimeMode is approval-required, auto-accept-edits, auto or full-access.
	RuntimeMode     string
	InteractionMode string // default or plan
	// Diagnostics receives raw frames for the rotating log; nil drops them.
	Diagnostics func(outbound bool, wire []byte)
}

// AgentSession is one running provider process (or connection). Its methods
// block until the provider acknowledged, and carry no facts that belong into
// the store: those arrive on Events, in wire order, so that the order of
// stored events does not depend on goroutine scheduling.
type AgentSession interface {
	StartThread(ctx context.Context, t ThreadOptions) (NativeThread, error)
	// ResumeThread fails with ErrResume when the provider refuses the ref.
	ResumeThread(ctx context.Context, nativeID string, t ThreadOptions) (NativeThread, error)
	// ForkThread copies a thread up to and including a turn; "" copies it all.
	// A turn whose head was told is named by that.
	ForkThread(ctx context.Context, nativeID, throughTurnID string, t ThreadOptions) (NativeThread, error)
	// Rollback drops every turn after keepThroughTurnID; "" drops all of them.
	// A turn whose head was told is named by that. dropped is how many turns
	// that is. The thread may have another id from then on.
	Rollback(ctx context.Context, nativeID, keepThroughTurnID string, dropped int) (NativeThread, error)
	StartTurn(ctx context.Context, in TurnInput) error
	// Steer adds input to the active turn. ErrTurnNotActive when there is none.
	Steer(ctx context.Context, nativeThreadID, nativeTurnID string, in TurnInput) error
	// Interrupt asks the turn to stop; its end arrives on Events.
	// ErrTurnNotActive when there is nothing to interrupt.
	Interrupt(ctx context.Context, nativeThreadID, nativeTurnID string) error
	// Respond answers a runtime request of the provider.
	Respond(ctx context.Context, nativeRequestID string, d Decision) error
	// Events ends (is closed) after SessionEnded. One reader.
	Events() <-chan ProviderEvent
	// Close ends the provider gracefully, by force when ctx ends first, and
	// returns when its process is gone. Idempotent.
	Close(ctx context.Context) error
}

// ThreadOptions are the settings of a provider thread or turn.
type ThreadOptions struct {
	Cwd             string
	Model           string
	Options         json.RawMessage // provider options of the model selection; may be nil
	RuntimeMode     string
	InteractionMode string
	// AttemptID is the app id of the attempt that the thread is opened for;
	// basis of the name of a thread that the client names. "" when there is none.
	AttemptID string
	// Head is the conversation head to resume at, as NativeThread had it; "" is
	// the end of the conversation.
	Head string
}

// NativeThread is a provider's own name of a thread.
type NativeThread struct {
	ID string
	// Head is the provider's conversation head after a rollback or fork; "" where
	// the provider has none.
	Head string
}

// TurnInput is one user turn.
type TurnInput struct {
	NativeThreadID string
	AttemptID      string // app id; basis of a weak turn ref
	MessageID      string // app id of the user's message
	Text           string
	Options        ThreadOptions
}

// Decision answers a runtime request.
type Decision struct {
	Kind    string              // accept, acceptForSession, decline, cancel; "" for answers
	Answers map[string][]string // question id to answers; nil unless Kind is ""
}

// ProviderEvent is one normalized fact from a provider. NativeThreadID names
// the thread it concerns, which may be a child's. The concrete types are the
// ones below.
type ProviderEvent interface{ providerEvent() }

// TurnStarted is sent once per turn, as soon as the provider names it.
type TurnStarted struct {
	NativeThreadID, NativeTurnID string
}

// TurnEnded is the terminal event of a turn. Status is completed,
// interrupted, failed or cancelled.
type TurnEnded struct {
	NativeThreadID, NativeTurnID string
	Status                       string
	Error                        string
}

// ItemUpdated is the whole of one item, started or changed or ended.
type ItemUpdated struct {
	NativeThreadID, NativeTurnID string
	Item                         ProviderItem
}

// ProviderItem is one normalized piece of a turn.
type ProviderItem struct {
	NativeID string
	ParentID string // native id of the item it belongs to; "" for none
	// Type is a turn item type: assistant_message, reasoning, proposed_plan,
	// todo_list, command_execution, file_change, file_search, web_search,
	// dynamic_tool, subagent, compaction, error …
	Type   string
	Status string // running, completed, failed, interrupted, cancelled
	Title  string
	Text   string          // assistant text, reasoning, plan markdown, command output
	Detail json.RawMessage // per-type fields, already normalized; nil for none
	// Streaming is true while Text still grows.
	Streaming bool
}

// RequestOpened is the provider asking the user.
type RequestOpened struct {
	NativeThreadID, NativeTurnID string
	NativeRequestID              string
	NativeItemID                 string // the item it guards; "" for none
	Kind                         string // command, file-read, file-change, dynamic_tool_call, user_input, auth_refresh
	Title                        string
	Detail                       json.RawMessage
}

// RequestClosed is the provider dropping a request that was not answered.
type RequestClosed struct {
	NativeThreadID, NativeRequestID string
}

// SubagentUpdated is a child agent of a turn, started, changed or ended.
type SubagentUpdated struct {
	NativeThreadID, NativeTurnID string // of the parent
	NativeTaskID                 string // identity of the task in the parent
	ChildNativeThreadID          string // "" where the provider names none
	Prompt, Title, Model         string
	Status                       string // running, completed, failed, interrupted, cancelled
	Result                       string
}

// HeadChanged is a new conversation head, for providers that resume at a
// message: where a turn ends, or, without a turn, where the thread stands
// apart from its end.
type HeadChanged struct {
	NativeThreadID, NativeTurnID, Head string
}

// SessionEnded is the last event: the process is gone. Err is nil after Close.
type SessionEnded struct {
	Err error
}

func (TurnStarted) providerEvent()     {}
func (TurnEnded) providerEvent()       {}
func (ItemUpdated) providerEvent()     {}
func (RequestOpened) providerEvent()   {}
func (RequestClosed) providerEvent()   {}
func (SubagentUpdated) providerEvent() {}
func (HeadChanged) providerEvent()     {}
func (SessionEnded) providerEvent()    {}
