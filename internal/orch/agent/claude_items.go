package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// claudeTool is a tool call without a result.
type claudeTool struct {
	last     orch.ProviderItem
	declined bool
}

// assistant takes a message of the model, block by block. Those of a subagent
// stay with it.
func (c *claudeFacts) assistant(m gjson.Result) {
	t := c.speaking()
	if t == nil || m.Get("parent_tool_use_id").Str != "" {
		return
	}
	if m.Get("error").Exists() || m.Get("isApiErrorMessage").Bool() {
		// Words of the provider's own in place of an answer. The result repeats
		// them as the turn's failure.
		t.failure = strings.Clone(m.Get("message.content.0.text").String())
		return
	}
	uuid := m.Get("uuid").String()
	if uuid != "" {
		t.head = strings.Clone(uuid)
	}
	status := "completed"
	if m.Get("aborted").Bool() {
		status = "interrupted"
	}
	for i, block := range m.Get("message.content").Array() {
		id := strings.Clone(firstText(uuid, m.Get("message.id").String()))
		if i > 0 {
			id = fmt.Sprintf("%s.%d", id, i)
		}
		switch block.Get("type").Str {
		case "text":
			if text := block.Get("text").String(); text != "" {
				t.spoke = true
				c.emit(t, orch.ProviderItem{NativeID: id, Type: "assistant_message", Status: status, Text: strings.Clone(text)})
			}
		case "thinking":
			if text := block.Get("thinking").String(); text != "" {
				c.emit(t, orch.ProviderItem{NativeID: id, Type: "reasoning", Status: status, Text: strings.Clone(text)})
			}
		case "tool_use", "server_tool_use", "mcp_tool_use":
			c.toolUse(t, block)
		}
	}
}

// toolUse takes the call of a tool. Agents become subagents, plans are text.
func (c *claudeFacts) toolUse(t *claudeTurn, block gjson.Result) {
	id, name, input := strings.Clone(block.Get("id").String()), block.Get("name").String(), block.Get("input")
	switch name {
	case "Agent", "Task":
		c.agentCalled(id, input)
		return
	case "ExitPlanMode":
		if plan := input.Get("plan").String(); plan != "" {
			c.emit(t, orch.ProviderItem{NativeID: id, Type: "proposed_plan", Status: "completed", Text: strings.Clone(plan)})
		}
		return
	}
	if id == "" || t.tool(id) != nil || t.todoCalled(id, name, input) {
		return
	}
	tool := &claudeTool{last: claudeToolItem(name, input)}
	tool.last.NativeID, tool.last.Status = id, "running"
	t.tools = append(t.tools, tool)
	c.emit(t, tool.last)
}

func (t *claudeTurn) tool(id string) *claudeTool {
	if i := slices.IndexFunc(t.tools, func(tool *claudeTool) bool { return tool.last.NativeID == id }); i >= 0 {
		return t.tools[i]
	}
	return nil
}

// claudeToolItem says how a tool is seen.
func claudeToolItem(name string, input gjson.Result) orch.ProviderItem {
	switch strings.ToLower(name) {
	case "bash":
		command := strings.Clone(input.Get("command").String())
		return orch.ProviderItem{Type: "command_execution", Title: command, Detail: detail(struct {
			Command     string `json:"command"`
			Description string `json:"description,omitempty"`
		}{command, input.Get("description").Str})}
	case "edit", "multiedit", "notebookedit", "write":
		path := strings.Clone(pickText(input, []string{"file_path", "notebook_path"}))
		return orch.ProviderItem{Type: "file_change", Title: path, Detail: detail(struct {
			Tool  string          `json:"tool"`
			Path  string          `json:"path"`
			Input json.RawMessage `json:"input,omitempty"`
		}{name, path, raw(input)})}
	case "websearch", "webfetch":
		query := strings.Clone(pickText(input, []string{"query", "url"}))
		return searchItem(query)
	}
	return callItem(name, input)
}

// toolResults takes a message to the model, which may hold results of tools.
func (c *claudeFacts) toolResults(m gjson.Result) {
	if m.Get("parent_tool_use_id").Str != "" || m.Get("isReplay").Bool() {
		return
	}
	t := c.speaking()
	if uuid := m.Get("uuid").Str; t != nil && uuid != "" {
		t.head = strings.Clone(uuid)
	}
	for _, block := range m.Get("message.content").Array() {
		if block.Get("type").Str != "tool_result" {
			continue
		}
		id, failed := block.Get("tool_use_id").String(), block.Get("is_error").Bool()
		if c.agentReturned(id, m, block) || t == nil || c.todoAnswered(t, id, m, failed) {
			continue
		}
		tool := t.tool(id)
		if tool == nil {
			continue
		}
		t.tools = slices.DeleteFunc(t.tools, func(other *claudeTool) bool { return other == tool })
		tool.last.Text = strings.Clone(blockText(block.Get("content")))
		switch {
		case tool.declined:
			tool.last.Status = "cancelled"
		case failed && t.interrupting:
			tool.last.Status = "interrupted"
		case failed:
			tool.last.Status = "failed"
		default:
			tool.last.Status = "completed"
		}
		c.emit(t, tool.last)
	}
}

// blockText is the text of a tool's result: a string, or a list of blocks.
func blockText(content gjson.Result) string {
	if !content.IsArray() {
		return content.String()
	}
	var texts []string
	for _, block := range content.Array() {
		if text := block.Get("text"); text.Type == gjson.String {
			texts = append(texts, text.Str)
		}
	}
	return strings.Join(texts, "\n")
}
