package agent

import (
	"encoding/json"
)

// acpAuthRequired is the code of the error that wants the client to log in.
const acpAuthRequired = -32000

// acpFrame is a frame of JSON-RPC 2.0.
type acpFrame struct {
	JSONRPC string `json:"jsonrpc"`
	rpcFrame
}

func encodeACP(f rpcFrame) any { return acpFrame{"2.0", f} }

// Outbound parameters of ACP. Field order is the order on the wire.

type acpInitialize struct {
	ProtocolVersion    int           `json:"protocolVersion"`
	ClientCapabilities *acpClientCan `json:"clientCapabilities,omitempty"` // version 1
	ClientInfo         *acpInfo      `json:"clientInfo,omitempty"`
	Capabilities       *acpClientCan `json:"capabilities,omitempty"` // version 2
	Info               *acpInfo      `json:"info,omitempty"`
}

type acpInfo struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Version string `json:"version"`
}

// acpClientCan is what this client can do: it puts forms to the user and
// follows subagents. Files and commands are the agent's own business.
type acpClientCan struct {
	FS          *acpFS         `json:"fs,omitempty"`
	Terminal    *bool          `json:"terminal,omitempty"`
	Elicitation acpElicitation `json:"elicitation"`
	Subagents   *struct{}      `json:"subagents,omitempty"`
}

type acpFS struct {
	Read  bool `json:"readTextFile"`
	Write bool `json:"writeTextFile"`
}

type acpElicitation struct {
	Form struct{} `json:"form"`
}

// newACPInitialize introduces this client. An agent that is asked for version
// 2 and knows only 1 takes it for a client that can do nothing.
func newACPInitialize(kind acpAgent) acpInitialize {
	info := &acpInfo{Name: "replaypeer_orchestrator", Title: "replaypeer orchestrator", Version: "1"}
	first := &acpClientCan{FS: &acpFS{}, Terminal: new(bool)}
	if kind.subagents {
		first.Subagents = &struct{}{}
	}
	p := acpInitialize{ProtocolVersion: int(kind.version()), ClientCapabilities: first, ClientInfo: info}
	if kind.version() > 1 {
		p = acpInitialize{ProtocolVersion: int(kind.version()), Capabilities: &acpClientCan{}, Info: info}
	}
	return p
}

type acpAuthenticate struct {
	MethodID string `json:"methodId"`
}

// acpNewSession are the parameters of session/new, session/load and
// session/resume.
type acpNewSession struct {
	SessionID  string     `json:"sessionId,omitempty"`
	Cwd        string     `json:"cwd"`
	MCPServers []struct{} `json:"mcpServers"`
}

type acpSessionRef struct {
	SessionID string `json:"sessionId"`
}

type acpPrompt struct {
	SessionID string    `json:"sessionId"`
	Prompt    []acpText `json:"prompt"`
}

type acpText struct {
	Type string `json:"type"` // text
	Text string `json:"text"`
}

type acpSetMode struct {
	SessionID string `json:"sessionId"`
	ModeID    string `json:"modeId"`
}

type acpSetModel struct {
	SessionID string `json:"sessionId"`
	ModelID   string `json:"modelId"`
}

type acpSetConfig struct {
	SessionID string `json:"sessionId"`
	ConfigID  string `json:"configId"`
	Type      string `json:"type,omitempty"` // "id" in version 2
	Value     string `json:"value"`
}

// acpOutcome answers session/request_permission.
type acpOutcome struct {
	Outcome struct {
		Outcome  string `json:"outcome"` // selected or cancelled
		OptionID string `json:"optionId,omitempty"`
	} `json:"outcome"`
	Meta json.RawMessage `json:"_meta,omitempty"`
}

func acpSelected(optionID string) acpOutcome {
	var o acpOutcome
	o.Outcome.Outcome, o.Outcome.OptionID = "selected", optionID
	return o
}

func acpCancelled() acpOutcome {
	var o acpOutcome
	o.Outcome.Outcome = "cancelled"
	return o
}
