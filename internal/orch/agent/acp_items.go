package agent

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// acpSegment is text of one kind, up to other text or a tool: messages have no
// end of their own.
type acpSegment struct {
	item    orch.ProviderItem
	message string // its id with the agent; "" for none
	text    strings.Builder
}

// chunk adds to the open segment, or opens one.
func (c *acpFacts) chunk(t *acpThread, itemType, message, text string) {
	s := t.turn.segment
	if s != nil && (s.item.Type != itemType || message != "" && s.message != "" && message != s.message) {
		c.closeSegment(t, "completed")
		s = nil
	}
	if text == "" {
		return
	}
	if s == nil {
		t.turn.segments++
		s = &acpSegment{message: strings.Clone(message)}
		s.item = orch.ProviderItem{NativeID: "text:" + strconv.Itoa(t.turn.segments), Type: itemType, Status: "running", Streaming: true}
		t.turn.segment = s
		c.emit(t, s.item)
	}
	s.text.WriteString(text)
}

// whole takes the text of a message, or what it is now, in version 2.
func (c *acpFacts) whole(t *acpThread, itemType, message string, content gjson.Result) {
	if !content.IsArray() {
		return // only an annotation changed
	}
	if s := t.turn.segment; s != nil && s.message == message {
		s.text.Reset()
	}
	c.chunk(t, itemType, message, acpContentText(content))
}

// closeSegment ends the open text, if there is any. status is the turn's.
func (c *acpFacts) closeSegment(t *acpThread, status string) {
	s := t.turn.segment
	if s == nil {
		return
	}
	t.turn.segment = nil
	s.item.Text, s.item.Streaming, s.item.Status = s.text.String(), false, "completed"
	if status == "interrupted" || status == "cancelled" {
		s.item.Status = status
	}
	if s.item.Type == "assistant_message" {
		t.turn.answer = s.item.Text
	}
	c.emit(t, s.item)
}

// acpContentText is the text of a content block, or of a list of them.
func acpContentText(content gjson.Result) string {
	if !content.IsArray() {
		return content.Get("text").String()
	}
	var texts []string
	for _, block := range content.Array() {
		texts = append(texts, block.Get("text").String())
	}
	return strings.Join(texts, "")
}

// todoUpdated makes one item of all the task lists of a turn.
func (c *acpFacts) todoUpdated(t *acpThread, entries gjson.Result) {
	var steps []todoStep
	done := true
	for _, e := range entries.Array() {
		status := e.Get("status").String()
		done = done && status == "completed"
		steps = append(steps, todoStep{e.Get("content").String(), status})
	}
	if t.turn.todo == nil {
		t.turn.todo = &orch.ProviderItem{NativeID: "todo", Type: "todo_list"}
	}
	t.turn.todo.Status, t.turn.todo.Detail = "running", todoDetail(steps)
	if done && len(steps) > 0 {
		t.turn.todo.Status = "completed"
	}
	c.emit(t, *t.turn.todo)
}

// acpTool is a tool call of a turn, as far as it is known.
type acpTool struct {
	id, kind, title, status string
	input, output           gjson.Result
	content                 []gjson.Result
	path                    string
	printed                 string // what a terminal of the agent's own showed
	exit                    *int64 // and how it ended
	declined                bool
	last                    orch.ProviderItem // as emitted
}

func (t *acpTurn) tool(id string) *acpTool {
	if i := slices.IndexFunc(t.tools, func(tool *acpTool) bool { return tool.id == id }); i >= 0 {
		return t.tools[i]
	}
	return nil
}

// toolUpdated takes what is new of a tool call. Some agents announce a call
// only in the question whether it may be made, or twice.
func (c *acpFacts) toolUpdated(t *acpThread, u gjson.Result) {
	id := u.Get("toolCallId").String()
	if id == "" {
		return
	}
	tool := t.turn.tool(id)
	if tool == nil {
		c.closeSegment(t, "completed")
		tool = &acpTool{id: strings.Clone(id)}
		t.turn.tools = append(t.turn.tools, tool)
	}
	for _, text := range []struct {
		to   *string
		name string
	}{{&tool.kind, "kind"}, {&tool.title, "title"}, {&tool.status, "status"}, {&tool.path, "locations.0.path"}} {
		if v := u.Get(text.name); v.Type == gjson.String {
			*text.to = strings.Clone(v.Str)
		}
	}
	if v := u.Get("rawInput"); v.IsObject() && len(v.Raw) > 2 || v.Type == gjson.String {
		tool.input = v
	}
	if v := u.Get("rawOutput"); v.Exists() && v.Type != gjson.Null {
		tool.output = v
	}
	if v := u.Get("content"); v.IsArray() {
		tool.content = v.Array()
	}
	// Two agents show their terminals beside the protocol.
	tool.printed += u.Get("_meta.terminal_output_delta.data").String()
	if code := u.Get("_meta.terminal_exit.exit_code"); code.Type == gjson.Number {
		n := code.Int()
		tool.exit = &n
	}
	c.emitTool(t, tool)
}

// toolContent adds content to a tool call, in version 2.
func (c *acpFacts) toolContent(t *acpThread, u gjson.Result) {
	if tool := t.turn.tool(u.Get("toolCallId").String()); tool != nil {
		tool.content = append(tool.content, u.Get("content"))
		c.emitTool(t, tool)
	}
}

// terminalUpdated keeps what a terminal printed, in version 2.
func (c *acpFacts) terminalUpdated(t *acpThread, u gjson.Result) {
	if t.terminals == nil {
		t.terminals = map[string]string{}
	}
	id := strings.Clone(u.Get("terminalId").String())
	if u.Get("sessionUpdate").Str == "terminal_output_chunk" {
		t.terminals[id] += firstText(u.Get("text").String(), u.Get("output").String(), u.Get("data").String())
	} else if out := u.Get("output.text"); out.Exists() {
		t.terminals[id] = strings.Clone(out.String())
	}
}

// emitTool passes a tool call on as it is now. One that ended stays as it was.
func (c *acpFacts) emitTool(t *acpThread, tool *acpTool) {
	if tool.last.Status != "" && tool.last.Status != "running" {
		return
	}
	item := tool.item(t.terminals)
	item.Status = "running"
	switch {
	case tool.status == "completed":
		item.Status = "completed"
	case tool.status == "failed" && tool.declined:
		item.Status = "cancelled"
	case tool.status == "failed" && t.turn.interrupting:
		item.Status = "interrupted"
	case tool.status == "failed":
		item.Status = "failed"
	default:
		item.Streaming = item.Title == tool.last.Title && string(item.Detail) == string(tool.last.Detail)
	}
	tool.last = item
	c.emit(t, item)
}

// closeTools ends what a turn left open. Agents tell nothing more of a tool
// that was declined, or whose turn was cancelled.
func (c *acpFacts) closeTools(t *acpThread, status string) {
	if status == "completed" {
		status = "interrupted"
	}
	for _, tool := range t.turn.tools {
		if tool.last.Status != "running" {
			continue
		}
		item := tool.item(t.terminals)
		if item.Status = status; tool.declined {
			item.Status = "cancelled"
		}
		tool.last = item
		c.emit(t, item)
	}
	if todo := t.turn.todo; todo != nil && todo.Status == "running" {
		if todo.Status = status; status == "interrupted" && !t.turn.interrupting {
			todo.Status = "completed"
		}
		c.emit(t, *todo)
	}
}

// item says how a tool is seen. Kinds are the protocol's.
func (tool *acpTool) item(terminals map[string]string) orch.ProviderItem {
	p := orch.ProviderItem{NativeID: tool.id, Title: tool.title, Text: tool.text(terminals)}
	switch tool.kind {
	case "execute":
		command := firstText(acpCommand(tool.input), tool.title)
		p.Type, p.Title = "command_execution", command
		p.Detail = detail(struct {
			Command     string `json:"command"`
			Description string `json:"description,omitempty"`
			ExitCode    *int64 `json:"exitCode,omitempty"`
		}{command, tool.input.Get("description").Str, tool.exitCode()})
	case "edit", "delete", "move":
		path := firstText(tool.path, pickText(tool.input, []string{"file_path", "filePath", "path"}), tool.diffPath())
		p.Type, p.Title = "file_change", firstText(path, tool.title)
		p.Detail = detail(struct {
			Kind  string          `json:"kind"`
			Path  string          `json:"path"`
			Input json.RawMessage `json:"input,omitempty"`
		}{tool.kind, path, raw(tool.input)})
	case "search":
		p.Type, p.Detail = "file_search", detail(struct {
			Query string          `json:"query"`
			Input json.RawMessage `json:"input,omitempty"`
		}{tool.title, raw(tool.input)})
	case "fetch":
		p.Type, p.Detail = "web_search", searchItem(firstText(pickText(tool.input, []string{"query", "url"}), tool.title)).Detail
	default:
		p.Type, p.Detail = "dynamic_tool", callItem(tool.title, tool.input).Detail
	}
	return p
}

// acpCommand is the command line of a tool's input, whose form is the agent's.
func acpCommand(input gjson.Result) string {
	for _, name := range []string{"command", "cmd"} {
		switch v := input.Get(name); {
		case v.IsArray():
			var words []string
			for _, word := range v.Array() {
				words = append(words, word.String())
			}
			return strings.Join(words, " ")
		case v.Type == gjson.String && v.Str != "":
			return strings.Clone(v.Str)
		}
	}
	return ""
}

func (tool *acpTool) exitCode() *int64 {
	for _, name := range []string{"exit_code", "exitCode", "metadata.exit"} {
		if v := tool.output.Get(name); v.Type == gjson.Number {
			n := v.Int()
			return &n
		}
	}
	return tool.exit
}

// text is what a tool gave: its content, else its raw output where that is
// text.
func (tool *acpTool) text(terminals map[string]string) string {
	var texts []string
	for _, c := range tool.content {
		if s := firstText(c.Get("content.text").String(), terminals[c.Get("terminalId").Str]); s != "" {
			texts = append(texts, s)
		}
	}
	if len(texts) > 0 {
		return strings.Join(texts, "\n")
	}
	if tool.printed != "" {
		return tool.printed
	}
	if tool.output.Type == gjson.String {
		return strings.Clone(tool.output.Str)
	}
	return pickText(tool.output, []string{"output", "stdout", "aggregated_output", "formatted_output"})
}

func (tool *acpTool) diffPath() string {
	for _, c := range tool.content {
		if c.Get("type").Str == "diff" {
			return firstText(c.Get("path").String(), c.Get("changes.0.path").String())
		}
	}
	return ""
}
