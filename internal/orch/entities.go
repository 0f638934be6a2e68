package orch

import (
	"encoding/json"
	"time"
)

// Entities are what events carry and projections hold: always whole, last
// write wins by id. Their JSON is stored, so a field is never renamed or given
// another meaning; new ones are added at the end.

// Ref is an optional id or text: "" stands for none and is null in JSON. It is
// decoded like any string, which null leaves as it is: a large thread has
// hundreds of thousands.
type Ref string

// MarshalJSON encodes "" as null.
func (r Ref) MarshalJSON() ([]byte, error) {
	if r == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(r))
}

// NativeRef is a provider's own name of something: evidence, never identity.
type NativeRef struct {
	Driver   string `json:"driver"`
	NativeID string `json:"nativeId"`
	Strength string `json:"strength"` // strong, weak or none
}

// ModelSelection says which provider instance and model answer.
type ModelSelection struct {
	InstanceID string          `json:"instanceId"`
	Model      string          `json:"model"`
	Options    json.RawMessage `json:"options,omitempty"`
}

// AppThread is one conversation of the application.
type AppThread struct {
	ID                     string         `json:"id"`
	ProjectID              string         `json:"projectId"`
	Title                  string         `json:"title"`
	CreatedBy              string         `json:"createdBy"`      // user, agent or system
	CreationSource         string         `json:"creationSource"` // web, mobile, mcp, provider or server
	ProviderInstanceID     string         `json:"providerInstanceId"`
	ModelSelection         ModelSelection `json:"modelSelection"`
	RuntimeMode            string         `json:"runtimeMode"`     // approval-required, auto-accept-edits, auto, full-access
	InteractionMode        string         `json:"interactionMode"` // default or plan
	Branch                 Ref            `json:"branch"`
	WorktreePath           Ref            `json:"worktreePath"`
	ActiveProviderThreadID Ref            `json:"activeProviderThreadId"`
	Lineage                Lineage        `json:"lineage"`
	ForkedFrom             *ForkPoint     `json:"forkedFrom"`
	CreatedAt              time.Time      `json:"createdAt"`
	UpdatedAt              time.Time      `json:"updatedAt"`
	ArchivedAt             *time.Time     `json:"archivedAt"`
	DeletedAt              *time.Time     `json:"deletedAt"`
}

// Lineage places a thread among its relatives.
type Lineage struct {
	ParentThreadID       Ref    `json:"parentThreadId"`
	RelationshipToParent Ref    `json:"relationshipToParent"` // fork, subagent or none
	RootThreadID         string `json:"rootThreadId"`
}

// ForkPoint is where a thread left its source.
type ForkPoint struct {
	Type     string `json:"type"` // run, node or provider_thread
	ThreadID string `json:"threadId"`
	ID       string `json:"id"`
}

// Run is one user turn of a thread, over all its attempts.
type Run struct {
	ID                 string         `json:"id"`
	ThreadID           string         `json:"threadId"`
	Ordinal            int            `json:"ordinal"` // 1..n, monotone in its thread
	ProviderInstanceID string         `json:"providerInstanceId"`
	ModelSelection     ModelSelection `json:"modelSelection"`
	ProviderThreadID   Ref            `json:"providerThreadId"` // none until the provider named it
	UserMessageID      string         `json:"userMessageId"`
	RootNodeID         string         `json:"rootNodeId"`
	ActiveAttemptID    Ref            `json:"activeAttemptId"`
	Status             string         `json:"status"` // preparing, queued, starting, running, waiting, completed, interrupted, failed, cancelled, rolled_back
	QueuePosition      *int           `json:"queuePosition"`
	RequestedAt        time.Time      `json:"requestedAt"`
	StartedAt          *time.Time     `json:"startedAt"`
	CompletedAt        *time.Time     `json:"completedAt"`
	CheckpointID       Ref            `json:"checkpointId"`
	ContextHandoffID   Ref            `json:"contextHandoffId"`
	SourcePlanRef      Ref            `json:"sourcePlanRef"`
}

// RunAttempt is one try at a run; at most one is active.
type RunAttempt struct {
	ID                 string     `json:"id"`
	RunID              string     `json:"runId"`
	AttemptOrdinal     int        `json:"attemptOrdinal"` // 1..n
	RootNodeID         string     `json:"rootNodeId"`
	ProviderInstanceID string     `json:"providerInstanceId"`
	ProviderThreadID   Ref        `json:"providerThreadId"`
	ProviderTurnID     Ref        `json:"providerTurnId"`
	Reason             string     `json:"reason"` // initial, steering_restart, retry, provider_recovery
	Status             string     `json:"status"` // pending, running, completed, interrupted, failed, cancelled, superseded
	StartedAt          *time.Time `json:"startedAt"`
	CompletedAt        *time.Time `json:"completedAt"`
}

// ExecutionNode is one piece of work in the tree below a root turn.
type ExecutionNode struct {
	ID                string     `json:"id"`
	ThreadID          string     `json:"threadId"`
	RunID             Ref        `json:"runId"`
	ParentNodeID      Ref        `json:"parentNodeId"`
	RootNodeID        string     `json:"rootNodeId"`
	Kind              string     `json:"kind"`   // root_turn, assistant_message, reasoning, plan, todo_list, tool_call, approval_request, user_input_request, subagent, hook, system
	Status            string     `json:"status"` // pending, running, waiting, completed, interrupted, failed, cancelled, rolled_back
	CountsForRun      bool       `json:"countsForRun"`
	ProviderThreadID  Ref        `json:"providerThreadId"`
	ProviderTurnID    Ref        `json:"providerTurnId"`
	NativeItemRef     *NativeRef `json:"nativeItemRef"`
	RuntimeRequestID  Ref        `json:"runtimeRequestId"`
	CheckpointScopeID Ref        `json:"checkpointScopeId"`
	StartedAt         *time.Time `json:"startedAt"`
	CompletedAt       *time.Time `json:"completedAt"`
}

// Subagent is a child agent; its id is its node's id.
type Subagent struct {
	ID                 string     `json:"id"`
	ThreadID           string     `json:"threadId"`
	RunID              Ref        `json:"runId"`
	ParentNodeID       string     `json:"parentNodeId"`
	Origin             string     `json:"origin"` // provider_native or app_owned
	CreatedBy          string     `json:"createdBy"`
	Driver             string     `json:"driver"`
	ProviderInstanceID string     `json:"providerInstanceId"`
	ProviderThreadID   Ref        `json:"providerThreadId"`
	ChildThreadID      Ref        `json:"childThreadId"`
	NativeTaskRef      *NativeRef `json:"nativeTaskRef"`
	Prompt             string     `json:"prompt"`
	Title              string     `json:"title"`
	Model              Ref        `json:"model"`
	Status             string     `json:"status"` // as ExecutionNode
	Progress           Ref        `json:"progress"`
	Result             Ref        `json:"result"`
	StartedAt          *time.Time `json:"startedAt"`
	CompletedAt        *time.Time `json:"completedAt"`
}

// Message is one message of the conversation; user text is stored as the user
// wrote it, whatever context is added on its way to a provider.
type Message struct {
	ID          string       `json:"id"`
	ThreadID    string       `json:"threadId"`
	RunID       Ref          `json:"runId"`
	NodeID      Ref          `json:"nodeId"`
	Role        string       `json:"role"` // user or assistant
	Text        string       `json:"text"`
	Attachments []Attachment `json:"attachments"`
	Streaming   bool         `json:"streaming"`
	CreatedAt   time.Time    `json:"createdAt"`
	UpdatedAt   time.Time    `json:"updatedAt"`
}

// Attachment is a file that goes with a message.
type Attachment struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	MediaType string `json:"mediaType"`
	Path      string `json:"path"`
}

// TurnItem is one line of a thread's timeline. Ordinals lie in bands of
// 1,000,000 per run, so that a late item of run 1 stays before run 2.
type TurnItem struct {
	ID               string     `json:"id"`
	ThreadID         string     `json:"threadId"`
	RunID            Ref        `json:"runId"`
	NodeID           Ref        `json:"nodeId"`
	ProviderThreadID Ref        `json:"providerThreadId"`
	ProviderTurnID   Ref        `json:"providerTurnId"`
	NativeItemRef    *NativeRef `json:"nativeItemRef"`
	ParentItemID     Ref        `json:"parentItemId"`
	Ordinal          int64      `json:"ordinal"`
	Type             string     `json:"type"`
	Status           string     `json:"status"` // running, waiting, completed, interrupted, failed, cancelled
	Title            string     `json:"title"`
	StartedAt        *time.Time `json:"startedAt"`
	CompletedAt      *time.Time `json:"completedAt"`

	// Fields of some types only.
	InputIntent  string          `json:"inputIntent,omitempty"` // user_message: turn_start, queued_turn, steer, promoted_queued_to_steer
	MessageID    string          `json:"messageId,omitempty"`
	Text         string          `json:"text,omitempty"`
	RequestID    string          `json:"requestId,omitempty"`
	CheckpointID string          `json:"checkpointId,omitempty"`
	PlanID       string          `json:"planId,omitempty"`
	SubagentID   string          `json:"subagentId,omitempty"`
	HandoffID    string          `json:"handoffId,omitempty"`
	Prompt       string          `json:"prompt,omitempty"`
	Result       string          `json:"result,omitempty"`
	Detail       json.RawMessage `json:"detail,omitempty"` // per-type facts of the provider, normalized

	Answers map[string][]string `json:"answers,omitempty"` // user_input_request: question id to answers
}

// PlanArtifact is a plan in words or a list of steps.
type PlanArtifact struct {
	ID        string          `json:"id"`
	ThreadID  string          `json:"threadId"`
	RunID     Ref             `json:"runId"`
	NodeID    Ref             `json:"nodeId"`
	Kind      string          `json:"kind"`   // proposed_plan or todo_list
	Status    string          `json:"status"` // draft, active, completed, superseded
	Markdown  string          `json:"markdown"`
	Steps     json.RawMessage `json:"steps,omitempty"`
	CreatedAt time.Time       `json:"createdAt"`
	UpdatedAt time.Time       `json:"updatedAt"`
}
