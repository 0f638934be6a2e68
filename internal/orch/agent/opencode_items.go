package agent

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// openCodeItem is a part of a message that is not complete.
type openCodeItem struct {
	call     string // of a tool; "" for text
	told     bool   // it was passed on
	declined bool   // the user did not allow it
	last     orch.ProviderItem
	text     strings.Builder // that grows
}

// part takes a part of a message, whole. Parts of a user's message are the
// prompt itself.
//
//	{"id":"prt_1","messageID":"msg_2","sessionID":"ses_1","type":"text","text":"","time":{"start":1}}
//	{"id":"prt_2",…,"type":"tool","tool":"bash","callID":"call_1","state":{"status":"running","input":{…}}}
func (c *openCodeFacts) part(p gjson.Result) {
	s := c.session(p.Get("sessionID").Str)
	message := p.Get("messageID").Str
	t := s.messages[message]
	if t == nil || t.status != "" {
		return
	}
	id := strings.Clone(p.Get("id").Str)
	if s.silent[message] {
		t.seen(id)
	}
	switch kind := p.Get("type").Str; {
	case kind == "compaction":
		c.emitItem(t, &openCodeItem{last: orch.ProviderItem{NativeID: id, Type: "compaction", Status: "completed"}})
	case s.silent[message]:
	case kind == "text":
		c.text(t, id, "assistant_message", p)
	case kind == "reasoning":
		c.text(t, id, "reasoning", p)
	case kind == "tool":
		c.tool(t, id, p)
	}
}

// text takes the text of an assistant. It is complete when it has an end.
func (c *openCodeFacts) text(t *openCodeTurn, id, kind string, p gjson.Result) {
	if p.Get("synthetic").Bool() || p.Get("ignored").Bool() {
		return
	}
	item := t.item(id, func() orch.ProviderItem { return orch.ProviderItem{Type: kind, Streaming: true} })
	item.last.Text = strings.Clone(p.Get("text").String())
	item.text.Reset()
	item.text.WriteString(item.last.Text)
	if p.Get("time.end").Exists() {
		c.completeText(t, item, "completed")
	}
}

func (c *openCodeFacts) completeText(t *openCodeTurn, item *openCodeItem, status string) {
	t.drop(item)
	item.last.Status, item.last.Text, item.last.Streaming = status, item.text.String(), false
	if item.last.Text == "" {
		return
	}
	if item.last.Type == "assistant_message" {
		t.answer = item.last.Text
	}
	c.emitItem(t, item)
}

// delta takes a piece of a text.
func (c *openCodeFacts) delta(p gjson.Result) {
	t := c.session(p.Get("sessionID").Str).messages[p.Get("messageID").Str]
	if t == nil || p.Get("field").Str != "text" {
		return
	}
	for _, item := range t.items {
		if item.last.NativeID == p.Get("partID").Str {
			item.text.WriteString(p.Get("delta").Str)
		}
	}
}

// tool takes what a tool call does. A pending one has no input yet. The tools
// of tasks, lists and questions are told of otherwise.
func (c *openCodeFacts) tool(t *openCodeTurn, id string, p gjson.Result) {
	name, state := p.Get("tool").Str, p.Get("state")
	switch name {
	case "task":
		c.task(t, id, state)
		return
	case "todowrite", "todoread", "question":
		return
	}
	item := t.item(id, func() orch.ProviderItem { return orch.ProviderItem{} })
	item.call = strings.Clone(p.Get("callID").Str)
	item.last = openCodeToolItem(name, state)
	item.last.NativeID, item.last.Status = id, "running"
	status := state.Get("status").Str
	if status == "pending" {
		return
	}
	switch status {
	case "completed":
		item.last.Status, item.last.Text = "completed", strings.Clone(state.Get("output").String())
		if exit := state.Get("metadata.exit"); t.stopping() && exit.Exists() && exit.Type == gjson.Null {
			item.last.Status = "interrupted" // a command that was killed
		}
	case "error":
		item.last.Status, item.last.Text = "failed", strings.Clone(state.Get("error").String())
		if item.declined {
			item.last.Status = "cancelled"
		} else if t.stopping() {
			item.last.Status = "interrupted"
		}
	}
	if item.last.Status != "running" {
		t.drop(item)
	}
	c.emitItem(t, item)
}

// openCodeToolItem says how a tool is seen.
func openCodeToolItem(name string, state gjson.Result) orch.ProviderItem {
	input := state.Get("input")
	switch name {
	case "bash":
		command := strings.Clone(input.Get("command").String())
		var exit *int64
		if v := state.Get("metadata.exit"); v.Type == gjson.Number {
			n := v.Int()
			exit = &n
		}
		return orch.ProviderItem{Type: "command_execution", Title: command, Detail: detail(struct {
			Command     string `json:"command"`
			Description string `json:"description,omitempty"`
			ExitCode    *int64 `json:"exitCode"`
		}{command, input.Get("description").Str, exit})}
	case "edit", "multiedit", "write", "patch", "apply_patch":
		path := pickText(input, []string{"filePath", "path"})
		return orch.ProviderItem{Type: "file_change", Title: firstText(path, state.Get("title").Str), Detail: detail(struct {
			Tool  string          `json:"tool"`
			Path  string          `json:"path,omitempty"`
			Input json.RawMessage `json:"input,omitempty"`
		}{name, path, raw(input)})}
	case "glob", "grep", "list":
		pattern := pickText(input, []string{"pattern", "path"})
		return orch.ProviderItem{Type: "file_search", Title: pattern, Detail: detail(struct {
			Tool  string          `json:"tool"`
			Input json.RawMessage `json:"input,omitempty"`
		}{name, raw(input)})}
	case "webfetch", "websearch", "codesearch":
		query := pickText(input, []string{"query", "url"})
		return searchItem(query)
	}
	return callItem(name, input)
}

// todos makes one item of all the lists of a turn; it is open to the end.
func (c *openCodeFacts) todos(s *openCodeFactsSession, list gjson.Result) {
	t := s.turn
	if t == nil {
		return
	}
	var steps []todoStep
	for _, todo := range list.Array() {
		steps = append(steps, todoStep{todo.Get("content").String(), todo.Get("status").String()})
	}
	item := t.item("todo:"+t.id, func() orch.ProviderItem { return orch.ProviderItem{Type: "todo_list"} })
	item.last.Status, item.last.Detail = "running", todoDetail(steps)
	c.emitItem(t, item)
}

// item returns an open item; the first mention makes it.
func (t *openCodeTurn) item(id string, fresh func() orch.ProviderItem) *openCodeItem {
	for _, item := range t.items {
		if item.last.NativeID == id {
			return item
		}
	}
	item := &openCodeItem{last: fresh()}
	item.last.NativeID = id
	t.items = append(t.items, item)
	return item
}

// calling returns the open item of a tool call, nil when there is none.
func (t *openCodeTurn) calling(call string) *openCodeItem {
	i := slices.IndexFunc(t.items, func(item *openCodeItem) bool { return call != "" && item.call == call })
	if i < 0 {
		return nil
	}
	return t.items[i]
}

func (t *openCodeTurn) drop(item *openCodeItem) {
	t.items = slices.DeleteFunc(t.items, func(other *openCodeItem) bool { return other == item })
}

// closeItems ends what a turn left open.
func (c *openCodeFacts) closeItems(t *openCodeTurn) {
	for len(t.items) > 0 {
		item := t.items[0]
		status := t.status
		switch item.last.Type {
		case "assistant_message", "reasoning":
			c.completeText(t, item, status)
			continue
		case "todo_list":
		default:
			if status == "completed" {
				status = "failed" // it did not tell its end
			}
		}
		t.drop(item)
		item.last.Status = status
		if item.told {
			c.emitItem(t, item)
		}
	}
}

func (c *openCodeFacts) emitItem(t *openCodeTurn, item *openCodeItem) {
	item.told = true
	c.emit(t.session, orch.ItemUpdated{NativeThreadID: t.session.id, NativeTurnID: t.id, Item: item.last})
}
