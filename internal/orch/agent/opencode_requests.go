package agent

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// openCodeRequest is a question of the server that was not answered.
type openCodeRequest struct {
	id        string
	turn      *openCodeTurn
	call      string   // tool call that it is about; "" for none
	questions []string // ids in their order; nil for a permission
}

// refusal returns the call that refuses the request.
func (r *openCodeRequest) refusal() (path string, body any) {
	if r.questions != nil {
		return "/question/" + r.id + "/reject", nil
	}
	return "/permission/" + r.id + "/reply", openCodeReply{Reply: "reject"}
}

// permissionAsked takes a question whether a tool may do something:
//
//	{"id":"per_1","sessionID":"ses_1","permission":"bash","patterns":["ls"],"tool":{"messageID":"msg_2","callID":"call_1"}}
//
// A subagent's is allowed without asking where the mode of the turn allows it;
// its id is then returned.
func (c *openCodeFacts) permissionAsked(p gjson.Result) (granted string) {
	s := c.session(p.Get("sessionID").Str)
	name := p.Get("permission").Str
	if s.isChild() && openCodeGrants(c.mode, name) {
		return strings.Clone(p.Get("id").Str)
	}
	c.open(s, p, openCodeAskKind(name), orch.RequestOpened{
		Title:  firstText(p.Get("metadata.command").String(), p.Get("patterns.0").String(), name),
		Detail: pick(p, []string{"permission", "patterns", "always", "metadata"}),
	}, nil)
	return ""
}

func openCodeAskKind(permission string) string {
	switch permission {
	case "bash":
		return "command"
	case "edit", "write", "multiedit", "patch", "apply_patch":
		return "file-change"
	case "read", "glob", "grep", "list", "external_directory":
		return "file-read"
	}
	return "dynamic_tool_call"
}

// questionAsked takes questions to the user. They have no ids: each gets its
// header, or, where several have the same, its number.
func (c *openCodeFacts) questionAsked(p gjson.Result) {
	type option struct {
		Label       string `json:"label"`
		Description string `json:"description"`
	}
	type question struct {
		ID       string   `json:"id"`
		Header   string   `json:"header"`
		Question string   `json:"question"`
		Options  []option `json:"options"`
		Multiple bool     `json:"multiple"`
	}
	list := struct {
		Questions []question `json:"questions"`
	}{[]question{}}
	ids := []string{}
	for i, q := range p.Get("questions").Array() {
		asked := question{
			ID: q.Get("header").String(), Header: q.Get("header").String(), Question: q.Get("question").String(),
			Options: []option{}, Multiple: q.Get("multiple").Bool(),
		}
		if asked.ID == "" || slices.Contains(ids, asked.ID) {
			asked.ID = strconv.Itoa(i + 1)
		}
		for _, o := range q.Get("options").Array() {
			asked.Options = append(asked.Options, option{o.Get("label").String(), o.Get("description").String()})
		}
		ids = append(ids, strings.Clone(asked.ID))
		list.Questions = append(list.Questions, asked)
	}
	c.open(c.session(p.Get("sessionID").Str), p, "user_input", orch.RequestOpened{
		Title: strings.Clone(p.Get("questions.0.question").String()), Detail: detail(list),
	}, ids)
}

// open puts a question to the user. One that comes before its tool call was
// told of brings the call along.
func (c *openCodeFacts) open(s *openCodeFactsSession, p gjson.Result, kind string, e orch.RequestOpened, questions []string) {
	t := s.turn
	if t == nil {
		return // nobody waits for it: an abort has left it behind
	}
	r := &openCodeRequest{
		id: strings.Clone(p.Get("id").Str), turn: t, call: strings.Clone(p.Get("tool.callID").Str), questions: questions,
	}
	c.requests = append(c.requests, r)
	if item := t.calling(r.call); item != nil {
		if !item.told {
			if item.last.Title == "" {
				item.last.Title = e.Title
			}
			c.emitItem(t, item)
		}
		e.NativeItemID = item.last.NativeID
	}
	e.NativeThreadID, e.NativeTurnID, e.NativeRequestID, e.Kind = s.id, t.id, r.id, kind
	c.emit(s, e)
}

// respond takes an open request off the list and returns the call that
// answers it.
func (c *openCodeFacts) respond(id string, d orch.Decision) (path string, body any, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.requests, func(r *openCodeRequest) bool { return r.id == id })
	if i < 0 {
		return "", nil, errors.New("it is not open")
	}
	r := c.requests[i]
	if path, body, err = r.answer(d); err != nil {
		return "", nil, err
	}
	if item := r.turn.calling(r.call); item != nil {
		item.declined = d.Kind == "decline" || d.Kind == "cancel"
	}
	c.requests = slices.Delete(c.requests, i, i+1)
	return path, body, nil
}

// answer returns the call for a decision. A refusal with words lets the model
// go on; one without ends its turn.
func (r *openCodeRequest) answer(d orch.Decision) (path string, body any, err error) {
	path = "/permission/" + r.id + "/reply"
	switch {
	case r.questions != nil && (d.Kind == "decline" || d.Kind == "cancel"), d.Kind == "cancel":
		path, body = r.refusal()
		return path, body, nil
	case r.questions != nil && d.Kind == "":
		answers := openCodeAnswers{Answers: [][]string{}}
		for _, id := range r.questions {
			answers.Answers = append(answers.Answers, append([]string{}, d.Answers[id]...))
		}
		return "/question/" + r.id + "/reply", answers, nil
	case r.questions != nil:
		return "", nil, wrongDecision(d, "answers, decline or cancel")
	case d.Kind == "accept":
		return path, openCodeReply{Reply: "once"}, nil
	case d.Kind == "acceptForSession":
		return path, openCodeReply{Reply: "always"}, nil
	case d.Kind == "decline":
		return path, openCodeReply{Reply: "reject", Message: "The user declined. Go on without it."}, nil
	}
	return "", nil, wrongDecision(d, "accept, acceptForSession, decline or cancel")
}

// closeRequest closes a question that was answered by somebody else, or went
// with another one. The event that follows an answer of ours finds nothing.
func (c *openCodeFacts) closeRequest(id string) {
	i := slices.IndexFunc(c.requests, func(r *openCodeRequest) bool { return r.id == id })
	if i < 0 {
		return
	}
	r := c.requests[i]
	c.requests = slices.Delete(c.requests, i, i+1)
	c.emit(r.turn.session, orch.RequestClosed{NativeThreadID: r.turn.session.id, NativeRequestID: r.id})
}

// closeRequests closes what a turn leaves unanswered. The server does not: who
// aborts the turn has to refuse it.
func (c *openCodeFacts) closeRequests(t *openCodeTurn) {
	for _, r := range slices.Clone(c.requests) {
		if r.turn == t {
			c.dangling = append(c.dangling, r)
			c.closeRequest(r.id)
		}
	}
}

// abandoned returns the questions that an aborted turn, or a subagent below it,
// has left without an answer, in the order asked. They are closed here.
func (c *openCodeFacts) abandoned(root *openCodeTurn) (left []*openCodeRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	mine := func(r *openCodeRequest) bool { return c.below(r.turn.session, root.session) }
	for _, r := range slices.Clone(c.requests) {
		if mine(r) {
			c.dangling = append(c.dangling, r)
			c.closeRequest(r.id)
		}
	}
	for _, r := range c.dangling {
		if mine(r) {
			left = append(left, r)
		}
	}
	c.dangling = slices.DeleteFunc(c.dangling, mine)
	return left
}
