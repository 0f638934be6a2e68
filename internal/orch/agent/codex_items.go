package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// codexItem is an item that was started and not completed.
type codexItem struct {
	last      orch.ProviderItem // as last emitted, or as it would have been
	text      strings.Builder   // deltas
	processID string            // of a command
}

// codexItemKinds says how an item of a type is seen; other types mean nothing
// here: user messages are known, hooks and sleeps are the provider's own
// business, and agent tool calls become subagents.
var codexItemKinds = map[string]func(item gjson.Result) orch.ProviderItem{
	"agentMessage":      codexMessage,
	"reasoning":         codexReasoning,
	"plan":              codexPlan,
	"commandExecution":  codexCommand,
	"fileChange":        codexFileChange,
	"webSearch":         codexWebSearch,
	"mcpToolCall":       codexMCPTool,
	"dynamicToolCall":   codexDynamicTool,
	"imageView":         codexImageView,
	"imageGeneration":   codexImageGeneration,
	"contextCompaction": func(gjson.Result) orch.ProviderItem { return orch.ProviderItem{Type: "compaction"} },
}

func codexMessage(item gjson.Result) orch.ProviderItem {
	p := orch.ProviderItem{Type: "assistant_message", Text: item.Get("text").String()}
	if phase := item.Get("phase").Str; phase != "" {
		p.Detail = detail(struct {
			Phase string `json:"phase"`
		}{phase})
	}
	return p
}

func codexReasoning(item gjson.Result) orch.ProviderItem {
	parts := item.Get("summary").Array()
	if len(parts) == 0 {
		parts = item.Get("content").Array()
	}
	var texts []string
	for _, part := range parts {
		texts = append(texts, part.String())
	}
	return orch.ProviderItem{Type: "reasoning", Text: strings.Join(texts, "\n\n")}
}

func codexPlan(item gjson.Result) orch.ProviderItem {
	return orch.ProviderItem{Type: "proposed_plan", Text: item.Get("text").String()}
}

func codexCommand(item gjson.Result) orch.ProviderItem {
	d := struct {
		Command  string `json:"command"`
		Cwd      string `json:"cwd"`
		ExitCode *int64 `json:"exitCode"`
	}{Command: item.Get("command").String(), Cwd: item.Get("cwd").String()}
	if code := item.Get("exitCode"); code.Type == gjson.Number {
		n := code.Int()
		d.ExitCode = &n
	}
	return orch.ProviderItem{
		Type: "command_execution", Title: d.Command, Text: item.Get("aggregatedOutput").String(), Detail: detail(d),
	}
}

func codexFileChange(item gjson.Result) orch.ProviderItem {
	type change struct {
		Path     string `json:"path"`
		Kind     string `json:"kind"` // add, update, delete
		MovePath string `json:"movePath,omitempty"`
		Diff     string `json:"diff"`
	}
	d := struct {
		Changes []change `json:"changes"`
	}{[]change{}}
	for _, ch := range item.Get("changes").Array() {
		kind := ch.Get("kind")
		if kind.IsObject() {
			kind = kind.Get("type")
		}
		d.Changes = append(d.Changes, change{
			ch.Get("path").String(), kind.String(), ch.Get("kind.move_path").Str, ch.Get("diff").String(),
		})
	}
	title := fmt.Sprintf("%d files", len(d.Changes))
	if len(d.Changes) == 1 {
		title = d.Changes[0].Path
	}
	return orch.ProviderItem{Type: "file_change", Title: title, Detail: detail(d)}
}

func codexWebSearch(item gjson.Result) orch.ProviderItem {
	query := item.Get("query").String()
	return orch.ProviderItem{Type: "web_search", Title: query, Detail: detail(struct {
		Query  string          `json:"query"`
		Action json.RawMessage `json:"action,omitempty"`
	}{query, raw(item.Get("action"))})}
}

func codexMCPTool(item gjson.Result) orch.ProviderItem {
	server, tool := item.Get("server").String(), item.Get("tool").String()
	return orch.ProviderItem{Type: "dynamic_tool", Title: server + "." + tool, Detail: detail(struct {
		Server    string          `json:"server"`
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments,omitempty"`
		Result    json.RawMessage `json:"result,omitempty"`
		Error     string          `json:"error,omitempty"`
	}{server, tool, raw(item.Get("arguments")), raw(item.Get("result")), item.Get("error.message").String()})}
}

func codexDynamicTool(item gjson.Result) orch.ProviderItem {
	tool := item.Get("tool").String()
	return orch.ProviderItem{Type: "dynamic_tool", Title: tool, Detail: detail(struct {
		Namespace string          `json:"namespace,omitempty"`
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments,omitempty"`
		Result    json.RawMessage `json:"result,omitempty"`
	}{item.Get("namespace").Str, tool, raw(item.Get("arguments")), raw(item.Get("contentItems"))})}
}

func codexImageView(item gjson.Result) orch.ProviderItem {
	return toolItem("view_image", struct {
		Path string `json:"path"`
	}{item.Get("path").String()})
}

func codexImageGeneration(item gjson.Result) orch.ProviderItem {
	return toolItem("generate_image", struct {
		Prompt string `json:"prompt"`
		Path   string `json:"path"`
	}{item.Get("revisedPrompt").String(), item.Get("savedPath").String()})
}

func toolItem(title string, d any) orch.ProviderItem {
	return orch.ProviderItem{Type: "dynamic_tool", Title: title, Detail: detail(d)}
}

// read makes a provider item of one of the server's; false for a type that
// means nothing here.
func readCodexItem(item gjson.Result) (orch.ProviderItem, bool) {
	read := codexItemKinds[item.Get("type").Str]
	id := item.Get("id").String()
	if read == nil || id == "" {
		return orch.ProviderItem{}, false
	}
	p := read(item)
	p.NativeID = id
	return p, true
}

func (c *codexFacts) itemStarted(threadID, turnID string, item gjson.Result) {
	t := c.turn(threadID, turnID)
	if t == nil {
		return
	}
	c.agentItem(t, item, false)
	p, ok := readCodexItem(item)
	if !ok || t.item(p.NativeID) != nil || t.closed[p.NativeID] {
		return
	}
	if p.Type == "assistant_message" {
		c.cutMessage(t)
	}
	p.Status = "running"
	p.Streaming = streams(p.Type)
	open := &codexItem{last: p, processID: item.Get("processId").String()}
	t.items = append(t.items, open)
	c.emitItem(t, open)
}

func (c *codexFacts) itemCompleted(threadID, turnID string, item gjson.Result) {
	t := c.turn(threadID, turnID)
	if t == nil {
		return
	}
	c.agentItem(t, item, true)
	p, ok := readCodexItem(item)
	if !ok || t.closed[p.NativeID] {
		return
	}
	open := t.item(p.NativeID)
	if open == nil {
		open = &codexItem{}
	}
	if p.Text == "" {
		p.Text = open.text.String()
	}
	p.Status = itemStatus(item.Get("status").Str)
	open.last = p
	t.items = slices.DeleteFunc(t.items, func(i *codexItem) bool { return i == open })
	if p.Type == "assistant_message" {
		t.answer = p.Text
	}
	c.emitItem(t, open)
}

// todoUpdated makes one item of all the task lists of a turn.
func (c *codexFacts) todoUpdated(threadID, turnID string, p gjson.Result) {
	t := c.turn(threadID, turnID)
	if t == nil || t.ended {
		return
	}
	d := struct {
		Explanation string     `json:"explanation,omitempty"`
		Steps       []todoStep `json:"steps"`
	}{p.Get("explanation").Str, []todoStep{}}
	for _, s := range p.Get("plan").Array() {
		status := s.Get("status").String()
		if status == "inProgress" {
			status = "in_progress"
		}
		d.Steps = append(d.Steps, todoStep{s.Get("step").String(), status})
	}
	id := "todo:" + t.id
	item := t.item(id)
	if item == nil {
		item = &codexItem{}
		t.items = append(t.items, item)
	}
	item.last = orch.ProviderItem{NativeID: id, Type: "todo_list", Status: "running", Detail: detail(d)}
	c.emitItem(t, item)
}

func (c *codexFacts) textDelta(turnID, itemID, delta string) {
	if t := c.turns[turnID]; t != nil {
		if item := t.item(itemID); item != nil {
			item.text.WriteString(delta)
		}
	}
}

// cutMessage closes the message that another one follows: a steer cuts it
// short, and the server does not complete it.
func (c *codexFacts) cutMessage(t *codexTurnFacts) {
	t.items = slices.DeleteFunc(t.items, func(item *codexItem) bool {
		if item.last.Type != "assistant_message" {
			return false
		}
		c.closeItem(t, item, "interrupted")
		return true
	})
}

// closeItems ends what a turn left open. A server may start an item and never
// complete it: an interrupted command, a message cut short. A command of a
// turn that completed goes on in the background, and its own completion still
// comes.
func (c *codexFacts) closeItems(t *codexTurnFacts) {
	t.items = slices.DeleteFunc(t.items, func(item *codexItem) bool {
		status := t.status
		if status == "completed" && item.last.Type == "command_execution" {
			return false
		}
		if status == "completed" && item.last.Type != "todo_list" {
			status = "interrupted"
		}
		c.closeItem(t, item, status)
		return true
	})
}

// closeItem ends an item for the server; what it says of it later is ignored.
func (c *codexFacts) closeItem(t *codexTurnFacts, item *codexItem, status string) {
	item.last.Status, item.last.Streaming = status, false
	if item.last.Text == "" {
		item.last.Text = item.text.String()
	}
	if t.closed == nil {
		t.closed = map[string]bool{}
	}
	t.closed[item.last.NativeID] = true
	c.emitItem(t, item)
}

// emitItem passes an item on. Reasoning without text is not worth one: the
// server starts it for every step, mostly to keep it secret.
func (c *codexFacts) emitItem(t *codexTurnFacts, item *codexItem) {
	if item.last.Type == "reasoning" && item.last.Text == "" {
		return
	}
	c.emit(t.thread, orch.ItemUpdated{NativeThreadID: t.thread.id, NativeTurnID: t.id, Item: item.last})
}

func (t *codexTurnFacts) item(id string) *codexItem {
	for _, item := range t.items {
		if item.last.NativeID == id {
			return item
		}
	}
	return nil
}

// streams tells the types whose text grows by deltas.
func streams(itemType string) bool {
	return itemType == "assistant_message" || itemType == "reasoning" || itemType == "proposed_plan"
}

// itemStatus maps the status of a completed item; most types have none.
func itemStatus(s string) string {
	switch s {
	case "failed", "interrupted":
		return s
	case "declined":
		return "cancelled"
	default:
		return "completed"
	}
}
