package orch

import (
	"errors"
	"fmt"
	"time"
)

// Command is a request to change state. Each has a command id of the caller's
// choice, under which it is carried out at most once.
type Command interface {
	about() about
}

// about is what the commit algorithm needs to know of a command, or of facts,
// which have no id.
type about struct {
	id, kind, threadID string
	whenIdle           bool // fail with errBusy while the thread has a due effect
	end                bool // with whenIdle: it is the end of a session
}

// CreateThread starts a thread.
type CreateThread struct {
	CommandID       string         `json:"commandId"`
	ThreadID        string         `json:"threadId,omitempty"` // "" draws one
	ProjectID       string         `json:"projectId"`
	Title           string         `json:"title"`
	ModelSelection  ModelSelection `json:"modelSelection"`
	RuntimeMode     string         `json:"runtimeMode,omitempty"`     // "" is approval-required
	InteractionMode string         `json:"interactionMode,omitempty"` // "" is default
	Branch          string         `json:"branch,omitempty"`
	WorktreePath    string         `json:"worktreePath,omitempty"`
	CreatedBy       string         `json:"createdBy,omitempty"`      // "" is user
	CreationSource  string         `json:"creationSource,omitempty"` // "" is server
}

// Dispatch modes of a message.
const (
	ModeStart   = "start_immediately"
	ModeQueue   = "queue_after_active"
	ModeSteer   = "steer_active"   // needs TargetRunID
	ModeRestart = "restart_active" // needs TargetRunID
	ModeDefer   = "defer_start"    // until StartRun
)

// DispatchMessage sends a user message to a thread.
type DispatchMessage struct {
	CommandID      string          `json:"commandId"`
	ThreadID       string          `json:"threadId"`
	MessageID      string          `json:"messageId,omitempty"` // "" draws one
	Text           string          `json:"text"`
	Attachments    []Attachment    `json:"attachments,omitempty"`
	ModelSelection *ModelSelection `json:"modelSelection,omitempty"` // nil keeps the thread's
	SourcePlanRef  string          `json:"sourcePlanRef,omitempty"`
	Mode           string          `json:"dispatchMode,omitempty"` // "" is start_immediately
	TargetRunID    string          `json:"targetRunId,omitempty"`
	CreatedBy      string          `json:"createdBy,omitempty"`
	CreationSource string          `json:"creationSource,omitempty"`
}

// DetachSession ends the provider session that a thread uses; the next message
// opens one again and resumes the provider thread.
type DetachSession struct {
	CommandID         string `json:"commandId"`
	ThreadID          string `json:"threadId"`
	ProviderSessionID string `json:"providerSessionId,omitempty"` // "" is the active one
}

// InterruptRun asks the provider to stop a run. The run goes on until the
// provider says that its turn ended.
type InterruptRun struct {
	CommandID string `json:"commandId"`
	ThreadID  string `json:"threadId"`
	RunID     string `json:"runId"`
	Reason    string `json:"reason,omitempty"`
}

// RespondToRequest answers a pending runtime request.
type RespondToRequest struct {
	CommandID string              `json:"commandId"`
	ThreadID  string              `json:"threadId"`
	RequestID string              `json:"requestId"`
	Decision  string              `json:"decision,omitempty"` // accept, acceptForSession, decline or cancel; "" with answers
	Answers   map[string][]string `json:"answers,omitempty"`  // question id to answers
}

// CancelQueuedRun takes a run back that is queued, or deferred.
type CancelQueuedRun struct {
	CommandID string `json:"commandId"`
	ThreadID  string `json:"threadId"`
	RunID     string `json:"runId"`
}

// PromoteQueuedRun gives the message of a queued run to the run that is
// active, as a steer.
type PromoteQueuedRun struct {
	CommandID   string `json:"commandId"`
	ThreadID    string `json:"threadId"`
	QueuedRunID string `json:"queuedRunId"`
	TargetRunID string `json:"targetRunId"`
}

func (c InterruptRun) about() about {
	return about{id: c.CommandID, kind: "run.interrupt", threadID: c.ThreadID}
}
func (c RespondToRequest) about() about {
	return about{id: c.CommandID, kind: "runtime-request.respond", threadID: c.ThreadID}
}
func (c CancelQueuedRun) about() about {
	return about{id: c.CommandID, kind: "queued-run.cancel", threadID: c.ThreadID}
}
func (c PromoteQueuedRun) about() about {
	return about{id: c.CommandID, kind: "queued-message.promote-to-steer", threadID: c.ThreadID}
}
func (c CreateThread) about() about {
	return about{id: c.CommandID, kind: "thread.create", threadID: c.ThreadID}
}
func (c DispatchMessage) about() about {
	return about{id: c.CommandID, kind: "message.dispatch", threadID: c.ThreadID}
}
func (c DetachSession) about() about {
	return about{id: c.CommandID, kind: "provider-session.detach", threadID: c.ThreadID}
}

// Receipt is the durable answer to a command.
type Receipt struct {
	CommandID   string    `json:"commandId"`
	CommandType string    `json:"commandType"`
	ThreadID    string    `json:"threadId"`
	AcceptedAt  time.Time `json:"acceptedAt"`
	Sequence    int64     `json:"sequence"` // of the command's last event; 0 when rejected
	Status      string    `json:"status"`   // accepted or rejected
	// Duplicate is true when this dispatch found an earlier receipt and did
	// nothing. It is not stored.
	Duplicate bool   `json:"duplicate"`
	Code      string `json:"code,omitempty"`  // of a rejection
	Error     string `json:"error,omitempty"` // of a rejection
}

// Codes of a rejection.
const (
	CodeInvalid            = "invalid_command"
	CodeNotSupported       = "not_supported" // the provider or this version lacks the capability
	CodeUnknownThread      = "unknown_thread"
	CodeThreadExists       = "thread_exists"
	CodeUnknownProvider    = "unknown_provider_instance"
	CodeUnknownRun         = "unknown_run"
	CodeRunActive          = "run_active"
	CodeRunNotActive       = "run_not_active"
	CodeNotSteerable       = "run_not_steerable"
	CodeNotQueued          = "run_not_queued"
	CodeUnknownCheckpoint  = "unknown_checkpoint"
	CodeCheckpointNotReady = "checkpoint_not_ready"
	CodeUnknownRequest     = "unknown_request"
	CodeRequestClosed      = "request_closed" // answered, dropped, or of a lost session
	CodeNoSession          = "no_session"
	CodeDuplicateID        = "duplicate_id"
	CodeNothingToDo        = "nothing_to_do"
)

// ErrPreviouslyRejected is matched by the *RejectedError of a command that was
// rejected at an earlier dispatch.
var ErrPreviouslyRejected = errors.New("command was previously rejected")

// RejectedError says why a command was not carried out.
type RejectedError struct {
	Code     string
	Message  string
	Previous bool // from the receipt of an earlier dispatch
}

func (e *RejectedError) Error() string {
	if e.Previous {
		return fmt.Sprintf("%v: %s", ErrPreviouslyRejected, e.Message)
	}
	return "command rejected: " + e.Message
}

// Is matches ErrPreviouslyRejected.
func (e *RejectedError) Is(target error) bool {
	return e.Previous && target == ErrPreviouslyRejected
}

func reject(code, format string, args ...any) error {
	return &RejectedError{Code: code, Message: fmt.Sprintf(format, args...)}
}
