package agent

import "github.com/replaypeer/replaypeer/pkg/flavors"

// acpAgent is what tells one ACP agent from another, as data. The zero value
// keeps to the protocol: it is right for any agent that nobody looked at.
type acpAgent struct {
	// recorded is the provider that transcripts of the agent name; "" is the
	// adapter's own name.
	recorded string
	command  []string // that usually starts it; nil for none
	protocol int64    // version of the protocol to ask for; 0 means 1
	auth     string   // login method to use when the agent wants one; "" for none

	// modes maps a runtime mode, or "plan", to the mode of a session that the
	// agent has for it. What is missing leaves the session's mode alone; where
	// "plan" is missing the agent can't plan.
	modes map[string]string
	// forSession are the ids of permission options that last for the session.
	// Others of kind allow_always last longer with the agent, which is more than
	// a user says who accepts for the session: once is then all that is taken.
	// nil takes the first of that kind.
	forSession []string

	questions bool // it puts questions to the user
	// asks are requests beyond the protocol that put questions to the user.
	asks map[string]acpAsk
	// answers are requests beyond the protocol that have their answer already.
	answers map[string]string
	// subagents: it opens sessions of their own for subagents, and says so.
	subagents bool
	// notes are notifications beyond the protocol that tell of a session what
	// session/update does not.
	notes []string
	// ended is a notification that may stand in for the answer to a prompt; ""
	// for none.
	ended string
	// loads: it repeats a loaded session's history also after it said that it
	// is loaded, up to an update of this kind; "" for agents that do not.
	loads string
}

func (a acpAgent) version() int64 { return max(a.protocol, 1) }

// acpAgents lists the agents by name. Those of npm were measured in the
// versions that scripts/providers pins; Grok is known from what others wrote
// down of its traffic.
var acpAgents = map[string]acpAgent{
	"registry": {questions: true},
	"gemini": {
		command:    []string{"gemini", "--acp"},
		modes:      map[string]string{"approval-required": "default", "auto-accept-edits": "autoEdit", "auto": "autoEdit", "full-access": "yolo", "plan": "plan"},
		forSession: []string{"proceed_always"},
	},
	"qwen": {
		command:    []string{"qwen", "--acp"},
		modes:      map[string]string{"approval-required": "default", "auto-accept-edits": "auto-edit", "auto": "auto", "full-access": "yolo", "plan": "plan"},
		forSession: []string{},
		answers:    map[string]string{"craft/drainMidTurnQueue": `{}`, "_qwencode/start_turn": `{}`},
	},
	"opencode-acp": {
		recorded:   "opencode",
		command:    []string{"opencode", "acp"},
		modes:      map[string]string{"approval-required": "build", "auto-accept-edits": "build", "auto": "build", "full-access": "build", "plan": "plan"},
		forSession: []string{"always"},
	},
	"codex-acp":    codexACP(1),
	"codex-acp-2":  codexACP(2),
	"claude-acp":   claudeACP(1),
	"claude-acp-2": claudeACP(2),
	"grok": {
		command:   []string{"grok", "agent", "stdio"},
		questions: true,
		asks:      map[string]acpAsk{"_x.ai/ask_user_question": acpGrokQuestions},
		subagents: true,
		notes:     []string{"_x.ai/session_notification", "_x.ai/session/update"},
		ended:     "_x.ai/session/prompt_complete",
	},
}

func codexACP(protocol int64) acpAgent {
	return acpAgent{
		recorded:   "codex-acp",
		command:    []string{"codex-acp"},
		protocol:   protocol,
		modes:      map[string]string{"approval-required": "read-only", "auto-accept-edits": "workspace-write", "auto": "agent", "full-access": "agent-full-access"},
		forSession: []string{},
		subagents:  true,
	}
}

func claudeACP(protocol int64) acpAgent {
	return acpAgent{
		recorded:   "claude-acp",
		command:    []string{"claude-agent-acp"},
		protocol:   protocol,
		modes:      map[string]string{"approval-required": "default", "auto-accept-edits": "acceptEdits", "auto": "auto", "full-access": "bypassPermissions", "plan": "plan"},
		forSession: []string{},
		questions:  true,
		subagents:  true,
	}
}

// acpRecorded names the provider and protocol that transcripts of an agent
// have.
func acpRecorded(name string) (provider, protocol string) {
	return firstText(acpAgents[name].recorded, name), flavors.ACP.Protocol
}
