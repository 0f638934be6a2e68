package agent

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// acpFed is what facts make of notifications, one line each.
func acpFed(t *testing.T, name string, feed func(c *acpFacts, say func(method, params string))) []string {
	t.Helper()
	var lines []string
	c := newACPFacts(acpAgents[name], func(e orch.ProviderEvent) {
		switch e := e.(type) {
		case orch.TurnStarted:
			lines = append(lines, "started "+e.NativeThreadID+" "+e.NativeTurnID)
		case orch.TurnEnded:
			lines = append(lines, "ended "+e.NativeThreadID+" "+e.NativeTurnID+" "+e.Status)
		case orch.SubagentUpdated:
			lines = append(lines, fmt.Sprintf("subagent %s of %s %s %q %q %q", e.ChildNativeThreadID, e.NativeTurnID, e.Status, e.Title, e.Prompt, e.Result))
		case orch.ItemUpdated:
			if !e.Item.Streaming {
				lines = append(lines, "item "+e.NativeThreadID+" "+e.Item.Type+" "+e.Item.Status+" "+e.Item.Text)
			}
		case orch.RequestOpened:
			lines = append(lines, "asked "+e.NativeThreadID+" "+e.NativeTurnID+" "+e.Kind)
		}
	})
	c.opened("P", gjson.Result{})
	if err := c.begin("P", "T", "approval-required"); err != nil {
		t.Fatal(err)
	}
	feed(c, func(method, params string) {
		if !gjson.Valid(params) {
			t.Fatalf("not JSON: %s", params)
		}
		c.notification(method, gjson.Parse(params))
	})
	return lines
}

func acpSay(session, update string) string {
	return `{"sessionId":"` + session + `","update":{"sessionUpdate":` + update + `}}`
}

// A child that spoke before it was named is heard once it is; its end ends its
// own turn and not its parent's; a question of its own is put to the user in
// its own thread; it may be told to go on.
func TestACPSubagents(t *testing.T) {
	got := acpFed(t, "codex-acp", func(c *acpFacts, say func(method, params string)) {
		say("session/update", acpSay("C", `"agent_message_chunk","content":{"type":"text","text":"early"}`))
		say("session/update", acpSay("P", `"subagent_update","sessionId":"C","title":"First","state":{"state":"running"}`))
		say("session/update", acpSay("C", `"session_message","senderSessionId":"P","recipientSessionId":"C","content":[{"type":"text","text":"Do it"}]`))
		say("session/update", acpSay("C", `"session_message","senderSessionId":"C","recipientSessionId":"P","content":[{"type":"text","text":"Done"}]`))
		c.request("7", "session/request_permission", gjson.Parse(`{"sessionId":"C","toolCall":{"toolCallId":"x","kind":"execute"},"options":[]}`))
		say("session/update", acpSay("P", `"subagent_update","sessionId":"C","state":{"state":"idle","stopReason":"end_turn"}`))
		say("session/update", acpSay("P", `"subagent_update","sessionId":"C","state":{"state":"running"}`))
		say("session/update", acpSay("P", `"subagent_update","sessionId":"C","state":{"state":"idle","stopReason":"cancelled"}`))
		say("session/update", acpSay("P", `"subagent_update","sessionId":"P","title":"itself"`))
	})
	want := []string{
		"started P T",
		`subagent C of T running "First" "" ""`,
		"started C turn:C:1",
		`subagent C of T running "First" "Do it" ""`,
		"item C assistant_message completed early",
		"item C command_execution running ",
		"asked C turn:C:1 command",
		"item C command_execution interrupted ",
		"ended C turn:C:1 completed",
		`subagent C of T completed "First" "Do it" "early"`,
		`subagent C of T running "First" "Do it" "early"`,
		"started C turn:C:2",
		"ended C turn:C:2 cancelled",
		`subagent C of T cancelled "First" "Do it" "early"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Grok names its children beside the protocol, and may end a turn there too.
// The same frames of an agent that has no children mean nothing.
func TestACPGrok(t *testing.T) {
	feed := func(_ *acpFacts, say func(method, params string)) {
		say("session/update", acpSay("C", `"user_message_chunk","content":{"type":"text","text":"Do it"}`))
		say("_x.ai/session_notification", acpSay("P", `"subagent_spawned","child_session_id":"C","description":"First"`))
		say("_x.ai/session_notification", acpSay("P", `"subagent_finished","child_session_id":"C","status":"failed","error":"no"`))
		say("_x.ai/session_notification", acpSay("P", `"subagent_finished","child_session_id":"nobody","status":"completed"`))
		say("_x.ai/session/prompt_complete", `{"sessionId":"P","stopReason":"end_turn"}`)
	}
	want := []string{
		"started P T",
		`subagent C of T running "First" "" ""`,
		"started C turn:C:1",
		`subagent C of T running "First" "Do it" ""`,
		"ended C turn:C:1 failed",
		`subagent C of T failed "First" "Do it" ""`,
		"ended P T completed",
	}
	if diff := cmp.Diff(want, acpFed(t, "grok", feed)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want[:1], acpFed(t, "gemini", feed)); diff != "" {
		t.Error(diff)
	}
}

// Answers become the values that a form's fields want, choices by what they
// are called; an older draft has the answer one level down. What does not fit
// is an error, and the request stays open.
func TestACPForms(t *testing.T) {
	form := gjson.Parse(`{"sessionId":"P","mode":"form","message":"Well?","requestedSchema":{"type":"object","properties":{
		"one":{"type":"string","title":"One","oneOf":[{"const":"b","title":"Blue"}]},
		"many":{"type":"array","items":{"enum":["x","y"]}},
		"sure":{"type":"boolean"},"n":{"type":"integer"}}}}`)
	answers := map[string][]string{"one": {"Blue"}, "many": {"x", "y"}, "sure": {"true"}, "n": {"7"}}
	content := `{"action":"accept","content":{"many":["x","y"],"n":7,"one":"b","sure":true}}`
	acpFed(t, "registry", func(c *acpFacts, _ func(method, params string)) {
		for method, want := range map[string]string{"elicitation/create": content, "session/elicitation": `{"action":` + content + `}`} {
			if _, ok := c.request(`"e"`, method, form); !ok {
				t.Fatalf("%s is not put to the user", method)
			}
			for _, bad := range []map[string][]string{{"sure": {"maybe"}}, {"n": {"7", "8"}}, {"n": {"x"}}, {"other": {"1"}}} {
				if _, err := c.respond(`"e"`, orch.Decision{Answers: bad}); err == nil {
					t.Errorf("%s: %v was taken", method, bad)
				}
			}
			answer, err := c.respond(`"e"`, orch.Decision{Answers: answers})
			if got := string(detail(answer)); err != nil || got != want {
				t.Errorf("%s: %v\n got  %s\n want %s", method, err, got, want)
			}
		}
		if answer, _ := c.request("1", "elicitation/create", form); answer != nil {
			t.Errorf("answered without the user: %v", answer)
		}
		if answer, err := c.respond("1", orch.Decision{Kind: "decline"}); err != nil || string(detail(answer)) != `{"action":"decline"}` {
			t.Errorf("decline: %s, %v", detail(answer), err)
		}
	})
}

// What lasts longer than the session is not taken for it; full access is not
// asked at all.
func TestACPPermissionOptions(t *testing.T) {
	ask := gjson.Parse(`{"sessionId":"P","toolCall":{"toolCallId":"x","kind":"execute"},"options":[
		{"optionId":"proceed_always_project","kind":"allow_always"},{"optionId":"proceed_always","kind":"allow_always"},{"optionId":"once","kind":"allow_once"}]}`)
	for agent, want := range map[string]string{"registry": "proceed_always_project", "gemini": "proceed_always", "qwen": "once"} {
		acpFed(t, agent, func(c *acpFacts, _ func(method, params string)) {
			c.request("1", "session/request_permission", ask)
			answer, err := c.respond("1", orch.Decision{Kind: "acceptForSession"})
			if err != nil || !strings.Contains(string(detail(answer)), `"optionId":"`+want+`"`) {
				t.Errorf("%s: %s, %v: want %s", agent, detail(answer), err, want)
			}
			c.request("2", "session/request_permission", ask)
			if answer, err = c.respond("2", orch.Decision{Kind: "decline"}); err != nil || string(detail(answer)) != `{"outcome":{"outcome":"cancelled"}}` {
				t.Errorf("%s: %s, %v: want it cancelled, where nothing says no", agent, detail(answer), err)
			}
			c.threads["P"].turn.mode = "full-access"
			if answer, _ := c.request("3", "session/request_permission", ask); !strings.Contains(string(detail(answer)), `"optionId":"once"`) {
				t.Errorf("%s: full access was answered with %s", agent, detail(answer))
			}
		})
	}
}
