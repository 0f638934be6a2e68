package flavors

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// acpAgent is what tells one ACP agent from another: the extensions of the
// protocol that are its own.
type acpAgent struct {
	name string   // a transcript's provider
	owns []string // prefixes of extension methods
}

// acpAgents lists the agents. The first one stands for any other.
var acpAgents = []acpAgent{
	{"registry", nil},
	{"grok", []string{"_x.ai/", "x.ai/"}},
	{"gemini", []string{"_gemini/"}},
	{"qwen", []string{"_qwencode/", "qwen/", "craft/"}},
	{"opencode", []string{"_opencode/"}},
	{"codex-acp", []string{"_auth/", "_codex/"}},
	{"claude-acp", []string{"_auth/", "_claude/"}},
}

// acpStandard lists the methods of the protocol itself: version 1 and its
// unstable part, the draft of version 2, and what older drafts had.
var acpStandard = []string{
	"$/cancel_request",
	"auth/login", "auth/logout", "auth/status", "auth/status_update", "authenticate",
	"document/didChange", "document/didClose", "document/didFocus", "document/didOpen", "document/didSave",
	"elicitation/complete", "elicitation/create",
	"fs/read_text_file", "fs/write_text_file",
	"initialize", "logout",
	"mcp/connect", "mcp/disconnect", "mcp/message",
	"nes/accept", "nes/close", "nes/reject", "nes/start", "nes/suggest",
	"providers/disable", "providers/list", "providers/set",
	"proxy/initialize", "proxy/successor",
	"session/archive", "session/cancel", "session/close", "session/delete", "session/elicitation",
	"session/fork", "session/list", "session/load", "session/new", "session/prompt",
	"session/request_permission", "session/resume", "session/set_config_option", "session/set_mode",
	"session/set_model", "session/set_title", "session/status", "session/unarchive", "session/update",
	"terminal/cancel", "terminal/create", "terminal/kill", "terminal/output", "terminal/release",
	"terminal/wait_for_exit", "tool_call/cancel",
}

func acpProviders() []string {
	names := make([]string, len(acpAgents))
	for i, a := range acpAgents {
		names[i] = a.name
	}
	return names
}

// Retarget says whether a transcript may be played as another agent of its
// protocol: only ACP has several. The returned function says of each frame,
// in any order, whether it stands in the way: an extension that the other
// agent does not own.
func Retarget(h *envelope.Header, as string) (check func(Frame) error, err error) {
	if h.Protocol != ACP.Protocol {
		return nil, fmt.Errorf("a %s transcript can't be played as %s: only one of %s can be retargeted", h.Protocol, as, ACP.Protocol)
	}
	if !slices.Contains(ACP.Providers, as) {
		return nil, fmt.Errorf("unknown agent %q: want %s", as, strings.Join(ACP.Providers, ", "))
	}
	return func(f Frame) error {
		name := extension(f)
		if name == "" || as == h.Provider {
			return nil
		}
		owners := extensionOwners(name)
		if slices.Contains(owners, as) {
			return nil
		}
		if len(owners) == 0 {
			owners = []string{h.Provider}
		}
		return fmt.Errorf("%s is an extension of %s: a transcript that holds it can't be played as %s", name, strings.Join(owners, " and "), as)
	}, nil
}

// extension names what a frame holds beyond the protocol: its method, or the
// kind of a session update; "" for nothing.
func extension(f Frame) string {
	if f.Method == "session/update" {
		if kind := gjson.GetBytes(f.Raw, "params.update.sessionUpdate").String(); strings.HasPrefix(kind, "_") {
			return kind
		}
	}
	if f.Method == "" || slices.Contains(acpStandard, f.Method) {
		return ""
	}
	return f.Method
}

func extensionOwners(name string) (owners []string) {
	for _, a := range acpAgents {
		if slices.ContainsFunc(a.owns, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			owners = append(owners, a.name)
		}
	}
	return owners
}
