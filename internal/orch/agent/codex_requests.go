package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// codexRequest is a question of the server that was not answered.
type codexRequest struct {
	method         string
	thread, turnID string
	params         gjson.Result
}

// codexAsk says how a request of the server is put to the user, and what an
// answer looks like on the wire.
type codexAsk struct {
	kind   string
	title  []string // params to take the title from, first that is not empty
	detail []string // params to pass on
	answer func(d orch.Decision, params gjson.Result) (any, error)
}

var codexAsks = map[string]codexAsk{
	"item/commandExecution/requestApproval": {
		kind: "command", title: []string{"reason", "command"},
		detail: []string{"command", "cwd", "reason", "commandActions", "availableDecisions"}, answer: answerApproval,
	},
	"item/fileChange/requestApproval": {
		kind: "file-change", title: []string{"reason"}, detail: []string{"reason", "grantRoot"}, answer: answerApproval,
	},
	"item/permissions/requestApproval": {
		kind: "command", title: []string{"reason"}, detail: []string{"reason", "cwd", "permissions"}, answer: answerPermissions,
	},
	"item/tool/requestUserInput": {
		kind: "user_input", title: []string{"questions.0.question"}, detail: []string{"questions"}, answer: answerQuestions,
	},
	"mcpServer/elicitation/request": {
		kind: "user_input", title: []string{"message"},
		detail: []string{"serverName", "mode", "message", "requestedSchema", "url"}, answer: answerElicitation,
	},
}

// request takes a question of the server; false when it is one that this
// client can't put to anyone.
func (c *codexFacts) request(id, method string, p gjson.Result) bool {
	ask, ok := codexAsks[method]
	if !ok {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	threadID, turnID := p.Get("threadId").String(), p.Get("turnId").String()
	c.turn(threadID, turnID)
	c.requests[id] = &codexRequest{method: method, thread: threadID, turnID: turnID, params: p}
	c.emit(c.thread(threadID), orch.RequestOpened{
		NativeThreadID: threadID, NativeTurnID: turnID, NativeRequestID: id,
		NativeItemID: p.Get("itemId").String(),
		Kind:         ask.kind, Title: pickText(p, ask.title), Detail: pick(p, ask.detail),
	})
	return true
}

// respond takes an open request off the list and returns its answer.
func (c *codexFacts) respond(id string, d orch.Decision) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.requests[id]
	if r == nil {
		return nil, errors.New("it is not open")
	}
	answer, err := codexAsks[r.method].answer(d, r.params)
	if err == nil {
		delete(c.requests, id)
	}
	return answer, err
}

// requestResolved closes a request that the server dropped. The one that
// follows an answer finds nothing to close.
func (c *codexFacts) requestResolved(id string) {
	r := c.requests[id]
	if r == nil {
		return
	}
	delete(c.requests, id)
	c.emit(c.thread(r.thread), orch.RequestClosed{NativeThreadID: r.thread, NativeRequestID: id})
}

// closeRequests closes what a turn leaves unanswered, in the order asked.
func (c *codexFacts) closeRequests(t *codexTurnFacts) {
	var ids []string
	for id, r := range c.requests {
		if r.turnID == t.id {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	for _, id := range ids {
		c.requestResolved(id)
	}
}

func answerApproval(d orch.Decision, _ gjson.Result) (any, error) {
	switch d.Kind {
	case "accept", "acceptForSession", "decline", "cancel":
		return struct {
			Decision string `json:"decision"`
		}{d.Kind}, nil
	}
	return nil, wrongDecision(d, "accept, acceptForSession, decline or cancel")
}

// answerPermissions grants what was asked for, or nothing.
func answerPermissions(d orch.Decision, p gjson.Result) (any, error) {
	type grant struct {
		Permissions json.RawMessage `json:"permissions"`
		Scope       string          `json:"scope"`
	}
	switch asked := raw(p.Get("permissions")); d.Kind {
	case "accept":
		return grant{asked, "turn"}, nil
	case "acceptForSession":
		return grant{asked, "session"}, nil
	case "decline", "cancel":
		return grant{json.RawMessage("{}"), "turn"}, nil
	}
	return nil, wrongDecision(d, "accept, acceptForSession, decline or cancel")
}

// answerQuestions sends answers by question id; a decision without answers
// leaves every question unanswered.
func answerQuestions(d orch.Decision, _ gjson.Result) (any, error) {
	type answers struct {
		Answers []string `json:"answers"`
	}
	result := struct {
		Answers map[string]answers `json:"answers"` // encoded in the order of its keys
	}{map[string]answers{}}
	switch d.Kind {
	case "":
		for question, texts := range d.Answers {
			result.Answers[question] = answers{append([]string{}, texts...)}
		}
		return result, nil
	case "decline", "cancel":
		return result, nil
	}
	return nil, wrongDecision(d, "answers, decline or cancel")
}

func answerElicitation(d orch.Decision, _ gjson.Result) (any, error) {
	result := struct {
		Action  string         `json:"action"`
		Content map[string]any `json:"content"`
	}{Action: d.Kind}
	switch d.Kind {
	case "decline", "cancel":
		return result, nil
	case "", "accept", "acceptForSession":
		result.Action, result.Content = "accept", map[string]any{}
		for field, texts := range d.Answers {
			if len(texts) == 1 {
				result.Content[field] = texts[0]
			} else {
				result.Content[field] = texts
			}
		}
		return result, nil
	}
	return nil, wrongDecision(d, "answers, accept, decline or cancel")
}

func wrongDecision(d orch.Decision, want string) error {
	return fmt.Errorf("decision %q: want %s", d.Kind, want)
}

// pickText returns the first of a value's members that has text.
func pickText(v gjson.Result, paths []string) string {
	for _, path := range paths {
		if s := v.Get(path).Str; s != "" {
			return strings.Clone(s)
		}
	}
	return ""
}

// pick returns an object of those members of v that are there, in the order
// of the names.
func pick(v gjson.Result, names []string) json.RawMessage {
	out := []byte{'{'}
	for _, name := range names {
		member := v.Get(name)
		if !member.Exists() || member.Type == gjson.Null {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, '"')
		out = append(out, name...)
		out = append(out, '"', ':')
		out = append(out, member.Raw...)
	}
	return append(out, '}')
}
