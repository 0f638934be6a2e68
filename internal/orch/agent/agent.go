// Package agent holds the adapters between the orchestrator's port and real
// providers: one file family per provider over a shared base for agents that
// speak line-delimited JSON-RPC on stdio.
//
//	rpc.go      one conversation: pending calls, requests of the peer, one writer
//	stdio.go    the process it runs on, and what a dead one had to say
//	events.go   the unbounded queue behind AgentSession.Events
//	held.go     events of threads that nothing has named yet
//	items.go    what items of every provider are made of
//	codex*.go   codex app-server
//	claude*.go  claude, in stream-json and its control protocol
//	cursor*.go  the Cursor Agent SDK, behind its bridge
//	opencode*.go opencode serve, over HTTP and server-sent events
//	acp*.go     agents of the Agent Client Protocol; acp_agents.go has their
//	            differences as data
//
// An adapter's frames depend on nothing but what it was asked to do and what
// the provider said before: no clock, no randomness. That is what lets a
// recording stand in for the provider.
package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// providers lists the adapters by provider name.
var providers = []struct {
	name string
	make func(command, env []string) orch.Agent
}{
	{"codex", func(command, env []string) orch.Agent {
		return NewCodex(CodexConfig{Command: command, Env: env})
	}},
	{"claude", func(command, env []string) orch.Agent {
		return NewClaude(ClaudeConfig{Command: command, Env: env})
	}},
	{"cursor", func(command, env []string) orch.Agent {
		return NewCursor(CursorConfig{Command: command, Env: env})
	}},
	{"opencode", func(command, env []string) orch.Agent {
		return NewOpenCode(OpenCodeConfig{Command: command, Env: env})
	}},
}

// New returns the adapter of a provider. command starts the provider's
// process, nil means the provider's usual command; env is its environment as
// KEY=value, nil means the caller's.
func New(provider string, command, env []string) (orch.Agent, error) {
	var known []string
	for _, p := range providers {
		if p.name == provider {
			return p.make(command, env), nil
		}
		known = append(known, p.name)
	}
	if _, ok := acpAgents[provider]; ok {
		return NewACP(ACPConfig{Agent: provider, Command: command, Env: env})
	}
	known = append(known, slices.Sorted(maps.Keys(acpAgents))...)
	return nil, fmt.Errorf("unknown provider %q: want %s", provider, strings.Join(known, ", "))
}

// Recorded names the provider of the transcripts that an adapter plays, and
// their protocol; "" where the flavor of that provider says it. An adapter may
// have another name than its provider, which may speak several protocols.
func Recorded(name string) (provider, protocol string) {
	if _, ok := acpAgents[name]; ok {
		return acpRecorded(name)
	}
	return name, ""
}
