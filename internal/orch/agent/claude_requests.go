package agent

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// claudeRequest is a question of the provider that was not answered.
type claudeRequest struct {
	id   string // id literal on the wire
	name string // the call it is about, else the id
	ask  gjson.Result
}

// claudePermission answers a question whether a tool may be used.
type claudePermission struct {
	Behavior           string            `json:"behavior"` // allow or deny
	UpdatedInput       json.RawMessage   `json:"updatedInput,omitempty"`
	UpdatedPermissions []json.RawMessage `json:"updatedPermissions,omitempty"`
	Message            string            `json:"message,omitempty"`
	Interrupt          bool              `json:"interrupt,omitempty"`
	ToolUseID          string            `json:"toolUseID,omitempty"`
}

// ask takes a question. One that has its answer already is not put to anyone:
// the answer is returned.
func (c *claudeFacts) ask(id string, p gjson.Result) *claudePermission {
	c.mu.Lock()
	defer c.mu.Unlock()
	tool, call := p.Get("tool_name").String(), strings.Clone(p.Get("tool_use_id").String())
	deny := func(message string) *claudePermission {
		return &claudePermission{Behavior: "deny", Message: message, ToolUseID: call}
	}
	t := c.speaking()
	switch {
	case t == nil:
		return deny("There is nobody to ask.")
	case tool == "ExitPlanMode":
		return deny("The plan was taken down. Stop here; the user will answer in another message.")
	case tool == "AskUserQuestion":
		return deny("Ask in plain text instead; the user will answer in another message.")
	}
	r := &claudeRequest{id: strings.Clone(id), name: firstText(call, strings.Trim(id, `"`)), ask: p}
	c.requests = append(c.requests, r)
	open := orch.RequestOpened{
		NativeThreadID: c.thread, NativeTurnID: t.id, NativeRequestID: r.name, Kind: claudeAskKind(tool),
		Title:  pickText(p, []string{"title", "description", "input.command", "input.file_path", "input.description", "display_name", "tool_name"}),
		Detail: pick(p, []string{"tool_name", "input", "description", "decision_reason", "blocked_path", "permission_suggestions", "agent_id"}),
	}
	if t.tool(call) != nil {
		open.NativeItemID = call
	}
	c.push(open)
	return nil
}

func claudeAskKind(tool string) string {
	switch strings.ToLower(tool) {
	case "read", "glob", "grep", "ls":
		return "file-read"
	case "edit", "multiedit", "notebookedit", "write":
		return "file-change"
	}
	return "command"
}

// respond takes an open request off the list and returns its id literal and
// answer.
func (c *claudeFacts) respond(name string, d orch.Decision) (string, claudePermission, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.requests, func(r *claudeRequest) bool { return r.name == name })
	if i < 0 {
		return "", claudePermission{}, errors.New("it is not open")
	}
	r := c.requests[i]
	a := claudePermission{ToolUseID: r.ask.Get("tool_use_id").String()}
	switch d.Kind {
	case "accept", "acceptForSession":
		a.Behavior, a.UpdatedInput = "allow", raw(r.ask.Get("input"))
		if d.Kind == "acceptForSession" {
			a.UpdatedPermissions = sessionRules(r.ask)
		}
	case "decline", "cancel":
		a.Behavior, a.Message = "deny", "The user declined this."
		a.Interrupt = d.Kind == "cancel"
		if t := c.turn; t != nil {
			if tool := t.tool(a.ToolUseID); tool != nil {
				tool.declined = true
			}
		}
	default:
		return "", a, wrongDecision(d, "accept, acceptForSession, decline or cancel")
	}
	c.requests = slices.Delete(c.requests, i, i+1)
	return r.id, a, nil
}

// sessionRules are the rules that the provider suggests, for its session only;
// without any the tool itself. A change of mode would allow more than asked.
func sessionRules(ask gjson.Result) []json.RawMessage {
	type rule struct {
		Type        string          `json:"type"`
		Rules       json.RawMessage `json:"rules,omitempty"`
		Directories json.RawMessage `json:"directories,omitempty"`
		Behavior    string          `json:"behavior,omitempty"`
		Destination string          `json:"destination"`
	}
	var rules []json.RawMessage
	for _, s := range ask.Get("permission_suggestions").Array() {
		if typ := s.Get("type").Str; typ == "addRules" || typ == "addDirectories" {
			rules = append(rules, detail(rule{typ, raw(s.Get("rules")), raw(s.Get("directories")), s.Get("behavior").Str, "session"}))
		}
	}
	if rules == nil {
		tool := detail([]struct {
			ToolName string `json:"toolName"`
		}{{ask.Get("tool_name").String()}})
		rules = append(rules, detail(rule{Type: "addRules", Rules: tool, Behavior: "allow", Destination: "session"}))
	}
	return rules
}

// dropRequest closes a request, by id literal, that the provider no longer
// wants an answer to.
func (c *claudeFacts) dropRequest(id string) {
	i := slices.IndexFunc(c.requests, func(r *claudeRequest) bool { return r.id == id })
	if i < 0 {
		return
	}
	name := c.requests[i].name
	c.requests = slices.Delete(c.requests, i, i+1)
	c.push(orch.RequestClosed{NativeThreadID: c.thread, NativeRequestID: name})
}
