package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
	"github.com/replaypeer/replaypeer/internal/orch/agent"
	"github.com/replaypeer/replaypeer/internal/peer"
)

// resumed are the providers of which a recorded resume can be played for any
// thread, with the path of its id. Others get a new thread, on an instance
// that the thread has not been on.
var resumed = map[string]string{
	"codex":  "frame.params.threadId",
	"claude": "frame.options.resume",
}

// settingsIgnored is what the next message may say otherwise than it was
// recorded: the words, which follow a handoff, and the scenario's settings.
var settingsIgnored = []string{
	"params.input", "params.approvalPolicy", "params.sandboxPolicy", "params.approvalsReviewer", "params.collaborationMode",
	"message.message.content", "options.permissionMode", "options.disallowedTools", "options.resumeSessionAt",
	"options.allowDangerouslySkipPermissions", "params.prompt", "prompt",
	"input.parts.*.text", "input.permission", "params.modeId", "params.value",
}

// setting finds what an ACP agent is told only where the scenario's settings
// differ from its own.
var setting = regexp.MustCompile(`^\{"type":"expect_outbound","label":"session/set_(mode|config_option)",`)

// alsoIgnored are paths that mean more with other providers.
var alsoIgnored = map[string][]string{
	"cursor":   {"message", "options.mode", "options.local.sandboxEnabled"},
	"opencode": {"input.agent"},
}

// newcomer is an instance that no scenario has.
const newcomer = "newcomer"

// agents are those of the scenario. The one that answers the next message has
// a peer, which plays a recorded turn, resumed where that can be.
func (c *crash) agents(ctx context.Context) map[string]orch.Agent {
	t := c.t
	t.Helper()
	sc, err := Load(c.job.Scenario, c.job.Scenario)
	if err != nil {
		t.Fatal(err)
	}
	providers := map[string]string{c.job.Provider: c.job.Provider}
	for name, in := range sc.Providers[c.job.Provider].Instances {
		providers[name] = in.Provider
	}
	events, threads := c.events(ctx)
	c.instance = c.job.Provider
	native := ""
	if len(threads) > 0 {
		p := orch.Fold(events, threads[0])
		c.instance = p.Thread.ProviderInstanceID
		for _, thread := range p.ProviderThreads {
			if thread.ProviderInstanceID == c.instance && thread.OwnerNodeID == "" && thread.Status != "closed" && thread.NativeThreadRef != nil {
				native = thread.NativeThreadRef.NativeID
			}
		}
	}
	provider := providers[c.instance]
	simple, err := Load("../../transcripts/simple", "transcripts/simple")
	if err != nil {
		t.Fatal(err)
	}
	c.model = simple.Providers[provider].Model
	c.file, c.as = provider, ""
	if other := simple.Providers[provider].Retarget; other != "" {
		c.file, c.as = other, provider
	}
	if native != "" && resumed[provider] == "" {
		native, c.instance = "", newcomer
	}
	providers[c.instance] = provider
	agents := map[string]orch.Agent{}
	for name, provider := range providers {
		command := []string{"/nonexistent"} // not to be started
		if name == c.instance {
			command = []string{c.link(provider, native)}
		}
		a, err := agent.New(provider, command, append(os.Environ(), "ORCH_RUN_DIR="+c.run))
		if err != nil {
			t.Fatal(err)
		}
		agents[name] = seamAgent{a, c.seam}
	}
	return agents
}

// link makes the peer of the next message.
func (c *crash) link(provider, native string) string {
	t := c.t
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	transcript := filepath.Join(c.job.Dir, "after.ndjson")
	if err := os.WriteFile(transcript, c.transcript(provider, native), 0o644); err != nil {
		t.Fatal(err)
	}
	c.report = filepath.Join(c.job.Dir, "after.json")
	link, err := peer.Link(filepath.Join(c.job.Dir, "after"), provider, self, peer.Config{
		Transcript: transcript, Report: c.report, State: filepath.Join(c.job.Dir, "after.state"),
		Workspace: filepath.Join(c.run, "workspace"), IdleTimeout: DefaultTimeout * 3, As: c.as,
	})
	if err != nil {
		t.Fatal(err)
	}
	return link
}

var uuid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// transcript is a recorded turn with other ids: on a new thread, or on native.
func (c *crash) transcript(provider, native string) []byte {
	t := c.t
	t.Helper()
	name := "simple"
	if native != "" {
		name = "multi_turn_restart"
	}
	data, err := os.ReadFile(filepath.Join("../../transcripts", name, c.file+".ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	var header map[string]any
	if err := json.Unmarshal([]byte(lines[0]), &header); err != nil {
		t.Fatal(err)
	}
	ignored := slices.Concat(settingsIgnored, alsoIgnored[provider])
	header["metadata"].(map[string]any)["match"] = map[string]any{"ignore": ignored}
	first, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	lines = lines[1:]
	recorded := ""
	if native != "" {
		for gjson.Get(lines[0], "type").Str != "runtime_exit" {
			lines = lines[1:]
		}
		lines = lines[1:]
		for _, line := range lines {
			if id := gjson.Get(line, resumed[provider]).Str; id != "" && recorded == "" {
				recorded = id
			}
		}
	}
	var b bytes.Buffer
	b.Write(first)
	for _, line := range lines {
		line = setting.ReplaceAllString(line, `${0}"optional":true,`)
		fmt.Fprintf(&b, "\n%s", uuid.ReplaceAllStringFunc(line, func(id string) string {
			if id == recorded {
				return native
			}
			return id[:24] + "c0ffee" + id[30:]
		}))
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// next sends the next message and waits until it is answered. The command
// that creates the thread comes again first, as a client would send it that
// has not heard of it.
func (c *crash) next(ctx context.Context) {
	t := c.t
	t.Helper()
	selection := orch.ModelSelection{InstanceID: c.instance, Model: c.model}
	created, err := c.orc.Dispatch(ctx, orch.CreateThread{
		CommandID: "command:create-thread", ProjectID: "project:scenario", ModelSelection: selection,
		RuntimeMode: "full-access", WorktreePath: filepath.Join(c.run, "workspace"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if sequence, known := c.before.accepted["command:create-thread"]; known != created.Duplicate && known || known && created.Sequence != sequence {
		t.Errorf("thread.create again: %+v, first accepted at %d", created, sequence)
	}
	sent, err := c.orc.Dispatch(ctx, orch.DispatchMessage{
		CommandID: "command:after", ThreadID: created.ThreadID, Text: "Go on.", ModelSelection: &selection,
	})
	if err != nil {
		t.Fatal(err)
	}
	p := &orch.Projection{}
	for e, err := range c.orc.Events(ctx, 0) {
		if err == nil && e.Event.ThreadID == created.ThreadID {
			err = p.Apply(e)
		}
		if err != nil {
			t.Fatalf("the next message is not answered: %v", err)
		}
		if e.Sequence < sent.Sequence || len(p.Runs) == 0 {
			continue
		}
		switch run := p.Runs[len(p.Runs)-1]; {
		case run.Status == "completed":
			c.quiet(ctx)
			return
		case terminal(run.Status):
			t.Fatalf("the next message's run is %s\n%s", run.Status, asJSON(t, p.TurnItems))
		}
	}
}
