package model

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
)

// prompt is what a request asks, in no API's terms.
type prompt struct {
	point
	model  string
	stream bool // the answer is to come in events
	usage  bool // Chat Completions: the client wants the usage in the stream
}

// point is a point of a conversation.
type point struct {
	user        string // the latest user message
	toolResults int    // after it
	agent       string
	tools       bool // tools are offered
	probe       bool // a single token is wanted
}

// hear takes a user message, unless the agent wrote it itself.
func (p *point) hear(text string) {
	if !isContext(text) {
		p.user, p.toolResults = text, 0
	}
}

// String describes the point for an error message.
func (p point) String() string {
	user := []rune(p.user)
	if len(user) > 200 {
		user = append(user[:200], '…')
	}
	s := fmt.Sprintf("user message %q with %d tool results", string(user), p.toolResults)
	if p.agent != "" {
		s += fmt.Sprintf(" of agent %q", p.agent)
	}
	if p.probe {
		s += ", a probe"
	}
	return s
}

// messageText is the text of a message's content: a string, or parts of which
// those that an agent wrote itself are left out when others are left.
func messageText(content gjson.Result) string {
	if content.Type == gjson.String {
		return content.Str
	}
	var all, own []string
	for _, c := range content.Array() {
		if t := c.Get("text"); t.Exists() {
			all = append(all, t.Str)
			if !isContext(t.Str) {
				own = append(own, t.Str)
			}
		}
	}
	if len(own) == 0 {
		own = all
	}
	return strings.Join(own, "\n")
}

// isContext tells messages in the user's name that an agent wrote itself:
// they are wrapped in a tag as a whole.
func isContext(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "<") && strings.HasSuffix(text, ">")
}
