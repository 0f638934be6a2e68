package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// openCodeSession is the body of a call that opens or changes a session. A
// session with a title is not asked for one, which would be a request of its
// own to the model.
type openCodeSession struct {
	Title      string         `json:"title,omitempty"`
	Permission []openCodeRule `json:"permission,omitempty"`
}

// openCodeRule says what becomes of a permission. Of the rules that fit, the
// last one counts; those of a session come after those of its agent.
type openCodeRule struct {
	Permission string `json:"permission"`
	Pattern    string `json:"pattern"`
	Action     string `json:"action"` // allow, ask or deny
}

type openCodePrompt struct {
	Model   *openCodeModel `json:"model,omitempty"`
	Agent   string         `json:"agent"`
	Variant string         `json:"variant,omitempty"`
	Parts   []openCodeText `json:"parts"`
}

type openCodeModel struct {
	ProviderID string `json:"providerID"`
	ModelID    string `json:"modelID"`
}

type openCodeText struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	Text string `json:"text"`
}

type openCodeMessageRef struct {
	MessageID string `json:"messageID,omitempty"`
}

type openCodeReply struct {
	Reply   string `json:"reply"` // once, always or reject
	Message string `json:"message,omitempty"`
}

type openCodeAnswers struct {
	Answers [][]string `json:"answers"`
}

// newOpenCodePrompt returns the body of a prompt. A model is named
// PROVIDER/MODEL; another name leaves the choice to the server.
func newOpenCodePrompt(in orch.TurnInput, part string) openCodePrompt {
	p := openCodePrompt{Agent: "build", Parts: []openCodeText{{ID: part, Type: "text", Text: in.Text}}}
	if provider, model, ok := strings.Cut(in.Options.Model, "/"); ok {
		p.Model = &openCodeModel{ProviderID: provider, ModelID: model}
	}
	if in.Options.InteractionMode == "plan" {
		p.Agent = "plan"
	}
	if gjson.ValidBytes(in.Options.Options) {
		p.Variant = gjson.GetBytes(in.Options.Options, "variant").Str
	}
	return p
}

// openCodePartMark begins the part ids that are ours; the server's own go on
// with digits of the time.
const openCodePartMark = "prt_turn"

// openCodePart names the text of a prompt. The server names no turns and is
// never told of ours, so the text tells whose turn a message is: the name
// begins with what openCodeTurnMark makes of the turn.
func openCodePart(turnID, messageID string) string {
	return openCodeTurnMark(turnID) + openCodeHash(messageID, 8)
}

func openCodeTurnMark(turnID string) string { return openCodePartMark + openCodeHash(turnID, 16) }

func openCodeHash(s string, digits int) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])[:digits]
}

// openCodeHarmless lists what is not asked for where every change is.
var openCodeHarmless = []string{"read", "glob", "grep", "list", "lsp", "todoread", "todowrite", "task", "question", "skill"}

// openCodeRules maps a runtime mode. Full access asks nothing and may do all;
// auto asks nothing and stays in the workspace; auto-accept-edits asks for all
// but edits; everything else, and what is not known, for what is not harmless.
// Planning never edits. Rules are added to those that a session has, so each
// list says it all.
func openCodeRules(runtimeMode, interactionMode string) []openCodeRule {
	all := func(action string) []openCodeRule { return []openCodeRule{{"*", "*", action}} }
	var rules []openCodeRule
	switch runtimeMode {
	case "full-access":
		rules = all("allow")
	case "auto":
		rules = append(all("allow"), openCodeRule{"external_directory", "*", "deny"})
	default:
		rules = all("ask")
		for _, name := range openCodeHarmless {
			rules = append(rules, openCodeRule{name, "*", "allow"})
		}
		rules = append(rules, openCodeRule{"read", "*.env", "ask"}, openCodeRule{"read", "*.env.*", "ask"})
		if runtimeMode == "auto-accept-edits" {
			rules = append(rules, openCodeRule{"edit", "*", "allow"})
		}
	}
	if interactionMode == "plan" {
		rules = append(rules, openCodeRule{"edit", "*", "deny"})
	}
	return rules
}

// openCodeGrants tells what a mode lets a subagent do without a question: the
// server gives a session's rules to no child of it, and asks.
func openCodeGrants(runtimeMode, permission string) bool {
	switch runtimeMode {
	case "full-access":
		return true
	case "auto":
		return permission != "external_directory"
	case "auto-accept-edits":
		return permission == "edit"
	}
	return false
}
