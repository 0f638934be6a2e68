package agent

import (
	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// Outbound parameters of codex app-server. Field order is the order on the
// wire; empty optional members are left out.

type codexInitialize struct {
	ClientInfo   codexClientInfo         `json:"clientInfo"`
	Capabilities codexClientCapabilities `json:"capabilities"`
}

type codexClientInfo struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Version string `json:"version"`
}

type codexClientCapabilities struct {
	ExperimentalAPI bool `json:"experimentalApi"`
}

// codexThreadParams are those of thread/start, thread/resume and thread/fork.
type codexThreadParams struct {
	ThreadID   string `json:"threadId,omitempty"`
	LastTurnID string `json:"lastTurnId,omitempty"`
	Cwd        string `json:"cwd,omitempty"`
	Model      string `json:"model,omitempty"`
}

type codexRollback struct {
	ThreadID string `json:"threadId"`
	NumTurns int    `json:"numTurns"`
}

type codexRevert struct {
	ThreadID     string `json:"threadId"`
	BeforeTurnID string `json:"beforeTurnId"`
}

type codexTurnRef struct {
	ThreadID string `json:"threadId"`
	TurnID   string `json:"turnId"`
}

type codexTerminate struct {
	ThreadID  string `json:"threadId"`
	ProcessID string `json:"processId"`
}

type codexSteer struct {
	ThreadID       string       `json:"threadId"`
	Input          []codexInput `json:"input"`
	ExpectedTurnID string       `json:"expectedTurnId"`
}

type codexInput struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func codexText(text string) []codexInput { return []codexInput{{Type: "text", Text: text}} }

type codexTurn struct {
	ThreadID          string                  `json:"threadId"`
	Input             []codexInput            `json:"input"`
	Cwd               string                  `json:"cwd,omitempty"`
	Model             string                  `json:"model,omitempty"`
	Effort            string                  `json:"effort,omitempty"`
	ApprovalPolicy    string                  `json:"approvalPolicy"`
	ApprovalsReviewer string                  `json:"approvalsReviewer"`
	SandboxPolicy     codexSandbox            `json:"sandboxPolicy"`
	CollaborationMode *codexCollaborationMode `json:"collaborationMode,omitempty"`
}

type codexSandbox struct {
	Type          string    `json:"type"`
	WritableRoots *[]string `json:"writableRoots,omitempty"`
	NetworkAccess *bool     `json:"networkAccess,omitempty"`
}

type codexCollaborationMode struct {
	Mode     string                     `json:"mode"`
	Settings codexCollaborationSettings `json:"settings"`
}

// codexCollaborationSettings with null instructions means the server's own.
type codexCollaborationSettings struct {
	Model                 string  `json:"model"`
	ReasoningEffort       *string `json:"reasoning_effort"`
	DeveloperInstructions *string `json:"developer_instructions"`
}

// newCodexTurn returns the parameters of turn/start. threadModel is the model
// of the thread, planned whether its last turn was in plan mode: a mode
// sticks, so the default one is only said to leave the other.
func newCodexTurn(in orch.TurnInput, threadModel string, planned bool) codexTurn {
	plan := in.Options.InteractionMode == "plan"
	t := codexTurn{
		ThreadID:          in.NativeThreadID,
		Input:             codexText(in.Text),
		Cwd:               in.Options.Cwd,
		Model:             in.Options.Model,
		ApprovalsReviewer: "user",
	}
	t.ApprovalPolicy, t.SandboxPolicy = codexPolicy(in.Options.RuntimeMode, plan)
	if gjson.ValidBytes(in.Options.Options) {
		t.Effort = gjson.GetBytes(in.Options.Options, "reasoningEffort").Str
	}
	if plan || planned {
		mode := codexCollaborationMode{Mode: "default"}
		if plan {
			mode.Mode = "plan"
		}
		if mode.Settings.Model = t.Model; t.Model == "" {
			mode.Settings.Model = threadModel
		}
		if t.Effort != "" {
			mode.Settings.ReasoningEffort = &t.Effort
		}
		t.CollaborationMode = &mode
	}
	return t
}

// codexPolicy maps a runtime mode. Full access asks nothing and may do all.
// Auto asks nothing and stays in the workspace. Auto-accept-edits asks only to
// leave it. Everything else asks before each command and edit; what was
// approved may write in the workspace. Planning never writes.
func codexPolicy(runtimeMode string, plan bool) (approval string, sandbox codexSandbox) {
	no, none := false, []string{}
	switch runtimeMode {
	case "full-access":
		approval, sandbox = "never", codexSandbox{Type: "dangerFullAccess"}
	case "auto":
		approval, sandbox = "never", codexSandbox{Type: "workspaceWrite", WritableRoots: &none, NetworkAccess: &no}
	case "auto-accept-edits":
		approval, sandbox = "on-request", codexSandbox{Type: "workspaceWrite", WritableRoots: &none, NetworkAccess: &no}
	default: // approval-required, and the safe side for what is not known
		approval, sandbox = "untrusted", codexSandbox{Type: "workspaceWrite", WritableRoots: &none, NetworkAccess: &no}
	}
	if plan {
		sandbox = codexSandbox{Type: "readOnly", NetworkAccess: &no}
	}
	return approval, sandbox
}
