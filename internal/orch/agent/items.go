package agent

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// todoStep is a step of a to-do list, as every adapter tells it.
type todoStep struct {
	Step   string `json:"step"`
	Status string `json:"status"` // pending, in_progress, completed, cancelled
}

// todoDetail is the detail of a to-do list that is nothing but its steps.
func todoDetail(steps []todoStep) json.RawMessage {
	if steps == nil {
		steps = []todoStep{}
	}
	return detail(struct {
		Steps []todoStep `json:"steps"`
	}{steps})
}

// searchItem is a search of the web.
func searchItem(query string) orch.ProviderItem {
	return orch.ProviderItem{Type: "web_search", Title: query, Detail: detail(struct {
		Query string `json:"query"`
	}{query})}
}

// callItem is the call of a tool that is no kind of item of its own.
func callItem(name string, input gjson.Result) orch.ProviderItem {
	return orch.ProviderItem{Type: "dynamic_tool", Title: strings.Clone(name), Detail: detail(struct {
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments,omitempty"`
	}{name, raw(input)})}
}

// raw returns the JSON of a value, nil for none.
func raw(r gjson.Result) json.RawMessage {
	if !r.Exists() || r.Type == gjson.Null {
		return nil
	}
	return json.RawMessage(strings.Clone(r.Raw))
}

// detail encodes per-type fields.
func detail(v any) json.RawMessage {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil // unreachable unless a raw value that was valid no longer is
	}
	return bytes.TrimSpace(buf.Bytes())
}
