package orch

import "time"

// ProviderSession is one running provider process or connection.
type ProviderSession struct {
	ID                 string       `json:"id"`
	Driver             string       `json:"driver"`
	ProviderInstanceID string       `json:"providerInstanceId"`
	Status             string       `json:"status"` // starting, ready, running, waiting, stopped, error
	Cwd                string       `json:"cwd"`
	Model              string       `json:"model"`
	Capabilities       Capabilities `json:"capabilities"`
	LastError          Ref          `json:"lastError"`
	CreatedAt          time.Time    `json:"createdAt"`
	UpdatedAt          time.Time    `json:"updatedAt"`
}

// ProviderThread is a provider's conversation.
type ProviderThread struct {
	ID                        string              `json:"id"`
	Driver                    string              `json:"driver"`
	ProviderInstanceID        string              `json:"providerInstanceId"`
	ProviderSessionID         Ref                 `json:"providerSessionId"`
	AppThreadID               string              `json:"appThreadId"`
	OwnerNodeID               Ref                 `json:"ownerNodeId"`
	NativeThreadRef           *NativeRef          `json:"nativeThreadRef"`
	NativeConversationHeadRef *NativeRef          `json:"nativeConversationHeadRef"`
	Status                    string              `json:"status"` // not_loaded, idle, active, archived, closed, error
	FirstRunOrdinal           *int                `json:"firstRunOrdinal"`
	LastRunOrdinal            *int                `json:"lastRunOrdinal"`
	HandoffIDs                []string            `json:"handoffIds"`
	ForkedFrom                *ProviderForkSource `json:"forkedFrom"`
	CreatedAt                 time.Time           `json:"createdAt"`
	UpdatedAt                 time.Time           `json:"updatedAt"`
}

// ProviderForkSource is where a provider thread left another one.
type ProviderForkSource struct {
	ProviderThreadID string `json:"providerThreadId"`
	ProviderTurnID   Ref    `json:"providerTurnId"`
}

// ProviderTurn is one turn inside a provider thread. A child's has no attempt.
type ProviderTurn struct {
	ID               string     `json:"id"`
	ProviderThreadID string     `json:"providerThreadId"`
	NodeID           string     `json:"nodeId"`
	RunAttemptID     Ref        `json:"runAttemptId"`
	NativeTurnRef    *NativeRef `json:"nativeTurnRef"`
	NativeHeadRef    *NativeRef `json:"nativeHeadRef"` // where it ends in the conversation; nil where the provider does not tell
	Ordinal          int        `json:"ordinal"`       // 1..n in its provider thread
	Status           string     `json:"status"`        // pending, running, completed, interrupted, failed, cancelled
	StartedAt        *time.Time `json:"startedAt"`
	CompletedAt      *time.Time `json:"completedAt"`
}

// point names the end of a turn to the provider: by the head that it told,
// else by the turn.
func (t ProviderTurn) point() string {
	switch {
	case t.NativeHeadRef != nil:
		return t.NativeHeadRef.NativeID
	case t.NativeTurnRef != nil:
		return t.NativeTurnRef.NativeID
	}
	return ""
}

// RuntimeRequest is a provider asking the user.
type RuntimeRequest struct {
	ID                 string             `json:"id"`
	NodeID             string             `json:"nodeId"`
	ProviderTurnID     Ref                `json:"providerTurnId"`
	NativeRequestRef   *NativeRef         `json:"nativeRequestRef"`
	Kind               string             `json:"kind"`   // command, file-read, file-change, dynamic_tool_call, user_input, auth_refresh
	Status             string             `json:"status"` // pending, resolved, expired, cancelled
	ResponseCapability ResponseCapability `json:"responseCapability"`
	CreatedAt          time.Time          `json:"createdAt"`
	ResolvedAt         *time.Time         `json:"resolvedAt"`
	Decision           Ref                `json:"decision"` // how it was answered: accept, acceptForSession, decline, cancel or answered
}

// ResponseCapability says whether a request can still be answered, and where.
type ResponseCapability struct {
	Type              string `json:"type"`                        // live or not_resumable
	ProviderSessionID string `json:"providerSessionId,omitempty"` // live
	Reason            string `json:"reason,omitempty"`            // not_resumable
}

// CheckpointScope is one chain of checkpoints. Only root scopes advance the
// application's run count.
type CheckpointScope struct {
	ID                  string    `json:"id"`
	ThreadID            string    `json:"threadId"`
	RunID               Ref       `json:"runId"`
	NodeID              Ref       `json:"nodeId"`
	ParentScopeID       Ref       `json:"parentScopeId"`
	ProviderThreadID    Ref       `json:"providerThreadId"`
	Kind                string    `json:"kind"` // root_run, subagent, tool, provider_thread, manual
	OrdinalWithinParent int       `json:"ordinalWithinParent"`
	AdvancesAppRunCount bool      `json:"advancesAppRunCount"`
	Cwd                 string    `json:"cwd"`
	CreatedAt           time.Time `json:"createdAt"`
}

// Checkpoint is one snapshot of the workspace. Ordinal 0 of a root scope is
// its baseline, taken before the provider turn starts.
type Checkpoint struct {
	ID                 string           `json:"id"`
	ThreadID           string           `json:"threadId"`
	ScopeID            string           `json:"scopeId"`
	RunID              Ref              `json:"runId"`
	NodeID             Ref              `json:"nodeId"`
	ParentCheckpointID Ref              `json:"parentCheckpointId"`
	OrdinalWithinScope int              `json:"ordinalWithinScope"`
	AppRunOrdinal      *int             `json:"appRunOrdinal"` // none for baselines and child scopes
	Ref                string           `json:"ref"`
	Status             string           `json:"status"` // ready, missing, error, stale
	Files              []CheckpointFile `json:"files"`
	Error              Ref              `json:"error"`
	CapturedAt         time.Time        `json:"capturedAt"`
}

// ContextTransfer is context on its way from one conversation to another.
type ContextTransfer struct {
	ID               string              `json:"id"`
	Type             string              `json:"type"` // fork, provider_handoff, merge_back, subagent_spawn, subagent_result
	SourceThreadID   string              `json:"sourceThreadId"`
	TargetThreadID   string              `json:"targetThreadId"`
	SourcePoint      *TransferPoint      `json:"sourcePoint"`
	BasePoint        *TransferPoint      `json:"basePoint"`
	SourceInstanceID Ref                 `json:"sourceProviderInstanceId"`
	TargetInstanceID Ref                 `json:"targetProviderInstanceId"`
	TargetRunID      Ref                 `json:"targetRunId"`
	Status           string              `json:"status"` // pending, resolved_native, resolved_portable, failed, consumed, superseded
	Resolution       *TransferResolution `json:"resolution"`
	CreatedBy        string              `json:"createdBy"`
	Error            Ref                 `json:"error"`
	CreatedAt        time.Time           `json:"createdAt"`
	ConsumedAt       *time.Time          `json:"consumedAt"`

	SourceOrdinal int           `json:"sourceOrdinal,omitempty"` // of the source point's run
	Inherited     []VisibleItem `json:"inherited,omitempty"`     // fork: the source's timeline up to there
}

// TransferPoint is a point in a thread's history.
type TransferPoint struct {
	Type string `json:"type"` // run or checkpoint
	ID   string `json:"id"`
}

// TransferResolution says how a transfer was carried out.
type TransferResolution struct {
	Strategy string `json:"strategy"` // native_fork, portable_context, delta_context, fork_delta_context, checkpoint_context
}

// ContextHandoff is the text one provider thread is told about others.
type ContextHandoff struct {
	ID                    string       `json:"id"`
	TransferID            string       `json:"transferId"`
	ThreadID              string       `json:"threadId"`
	TargetRunID           string       `json:"targetRunId"`
	FromProviderThreadIDs []string     `json:"fromProviderThreadIds"`
	ToProviderThreadID    Ref          `json:"toProviderThreadId"`
	CoveredRunOrdinals    OrdinalRange `json:"coveredRunOrdinals"`
	Strategy              string       `json:"strategy"` // delta_since_target_last_seen, fork_delta_summary, full_thread_summary, checkpoint_summary, manual_context
	Status                string       `json:"status"`   // pending, ready, failed, superseded
	SummaryText           string       `json:"summaryText"`
	CreatedByInstanceID   string       `json:"createdByProviderInstanceId"`
	CreatedAt             time.Time    `json:"createdAt"`
}

// OrdinalRange is a range of runs, both ends included.
type OrdinalRange struct {
	From int `json:"from"`
	To   int `json:"to"`
}
