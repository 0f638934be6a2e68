package peer

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// buildPeer builds the real replay-peer.
func buildPeer(t testing.TB) string {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "replay-peer")
	if out, err := exec.Command("go", "build", "-o", exe, "../../cmd/replay-peer").CombinedOutput(); err != nil {
		t.Fatalf("build replay-peer: %v\n%s", err, out)
	}
	return exe
}

// claudeEntry is an entry of a transcript that a claudeClient plays the other
// side of. It knows nothing of pkg/flavors: the wire is spelled out here.
type claudeEntry struct {
	out, exit bool
	frame     string
	typ       string
}

func readClaude(t testing.TB, file string) []claudeEntry {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := envelope.NewReader(file, f)
	if _, err := r.Header(); err != nil {
		t.Fatal(err)
	}
	var all []claudeEntry
	for {
		e, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		c := claudeEntry{}
		switch e := e.(type) {
		case *envelope.ExpectOutbound:
			c.out, c.frame = true, string(e.Frame)
		case *envelope.EmitInbound:
			c.frame = string(e.Frame)
		case *envelope.RuntimeExit:
			c.exit = true
		}
		c.typ = gjson.Get(c.frame, "type").Str
		all = append(all, c)
	}
}

// claudeArgs are the arguments the Agent SDK passes for options.
func claudeArgs(options gjson.Result) []string {
	args := []string{"--output-format", "stream-json", "--verbose", "--input-format", "stream-json"}
	names := map[string]string{
		"model": "--model=", "permissionMode": "--permission-mode=", "sessionId": "--session-id=", "resume": "--resume=",
		"resumeSessionAt": "--resume-session-at=", "allowedTools": "--allowedTools=", "disallowedTools": "--disallowedTools=", "tools": "--tools=",
		"allowDangerouslySkipPermissions": "--allow-dangerously-skip-permissions", "forkSession": "--fork-session",
	}
	options.ForEach(func(k, v gjson.Result) bool {
		text := v.Str
		switch {
		case v.Type == gjson.False:
			return true
		case v.IsObject():
			text = "default"
		case v.IsArray():
			var all []string
			for _, item := range v.Array() {
				all = append(all, item.Str)
			}
			text = strings.Join(all, ",")
		}
		args = append(args, names[k.Str]+text)
		return true
	})
	// What a transcript of before does not tell apart.
	return append(args, "--permission-prompt-tool=stdio", "--setting-sources=user,project", "--add-dir=/somewhere")
}

// claudeClient plays the client of a transcript over the wire.
type claudeClient struct {
	t       *testing.T
	exe     string
	dir     string
	file    string
	session string // the session id it uses instead of the recorded one; "" keeps it

	p        *process
	recorded string            // the session id as recorded
	open     map[string]bool   // its control requests without an answer
	asked    map[string]string // open permission requests: tool use to request_id
	n        int
}

// play plays all launches. The error is the first thing that was not as
// recorded.
func (c *claudeClient) play(entries []claudeEntry) error {
	for _, e := range entries {
		var err error
		switch {
		case e.typ == "query.open":
			c.launch(e)
			err = c.control(`{"subtype":"initialize","systemPrompt":[""]}`)
		case c.p == nil:
			return fmt.Errorf("%s outside a launch", e.typ)
		case e.exit:
			err = c.leave()
		case e.out:
			err = c.send(e)
		default:
			err = c.want(e)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", e.typ, err)
		}
	}
	return nil
}

func (c *claudeClient) launch(e claudeEntry) {
	c.open, c.asked = map[string]bool{}, map[string]string{}
	if id := gjson.Get(e.frame, "options.sessionId").Str; id != "" {
		c.recorded = id
	}
	env := []string{
		"REPLAY_PEER_TRANSCRIPT=" + c.file, "REPLAY_PEER_REPORT=" + filepath.Join(c.dir, "report.json"),
		"REPLAY_PEER_STATE=" + filepath.Join(c.dir, "state"), "REPLAY_PEER_IDLE_TIMEOUT=20s",
	}
	link := filepath.Join(c.dir, "claude")
	if _, err := os.Lstat(link); err != nil {
		if err := os.Symlink(c.exe, link); err != nil {
			c.t.Fatal(err)
		}
	}
	c.p = newBinary(c.t, c.dir, link, env, claudeArgs(gjson.Parse(c.own(gjson.Get(e.frame, "options").Raw)))...)
	c.p.start(c.t)
}

// own puts the client's session id in the recorded one's place.
func (c *claudeClient) own(text string) string {
	if c.session == "" || c.recorded == "" {
		return text
	}
	return strings.ReplaceAll(text, c.recorded, c.session)
}

func (c *claudeClient) control(request string) error {
	c.n++
	id := fmt.Sprintf("req%d", c.n)
	c.open[id] = true
	return c.p.send(fmt.Appendf(nil, `{"request_id":%q,"type":"control_request","request":%s}`, id, request))
}

func (c *claudeClient) send(e claudeEntry) error {
	switch e.typ {
	case "prompt.offer":
		message := gjson.Get(e.frame, "message").Raw
		return c.p.send([]byte(message[:len(message)-1] + `,"session_id":""}`))
	case "permission.response":
		result := gjson.Get(e.frame, "result")
		id := c.asked[result.Get("toolUseID").Str]
		if id == "" { // a changed answer: to the only request
			for _, only := range c.asked {
				id = only
			}
		}
		return c.p.send(fmt.Appendf(nil, `{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":%s}}`, id, result.Raw))
	}
	body := strings.Replace(e.frame, `"type":"query.`, `"subtype":"`, 1)
	return c.control(body)
}

// want reads the next message but the answers to control requests.
func (c *claudeClient) want(e claudeEntry) error {
	for {
		line, err := c.p.recv()
		if err != nil {
			return err
		}
		if gjson.Get(line, "type").Str == "control_response" {
			if err := c.answered(line); err != nil {
				return err
			}
			continue
		}
		if e.typ == "permission.request" {
			return c.permission(e, line)
		}
		if want := c.own(e.frame); line != want {
			return fmt.Errorf("got %s: want %s", line, want)
		}
		return nil
	}
}

func (c *claudeClient) answered(line string) error {
	id := gjson.Get(line, "response.request_id").Str
	if !c.open[id] || gjson.Get(line, "response.subtype").Str != "success" || !json.Valid([]byte(line)) {
		return fmt.Errorf("answer %s: want a success, once", line)
	}
	delete(c.open, id)
	return nil
}

func (c *claudeClient) permission(e claudeEntry, line string) error {
	for wire, path := range map[string]string{
		"request.tool_name": "toolName", "request.input": "input", "request.tool_use_id": "options.toolUseID",
		"request.permission_suggestions": "options.suggestions", "request.blocked_path": "options.blockedPath", "request.display_name": "options.displayName",
	} {
		if got, want := gjson.Get(line, wire).Raw, gjson.Get(e.frame, path).Raw; got != want {
			return fmt.Errorf("%s is %s: want %s", wire, got, want)
		}
	}
	c.asked[gjson.Get(line, "request.tool_use_id").Str] = gjson.Get(line, "request_id").Str
	return nil
}

// leave closes stdin and waits for the process to end.
func (c *claudeClient) leave() error {
	c.p.in.Close()
	rest, err := c.p.rest()
	if err != nil {
		return err
	}
	for line := range strings.Lines(rest) {
		if gjson.Get(line, "type").Str != "control_response" {
			return fmt.Errorf("more than recorded: %s", line)
		}
		if err := c.answered(strings.TrimSuffix(line, "\n")); err != nil {
			return err
		}
	}
	if len(c.open) > 0 {
		return fmt.Errorf("unanswered: %v", c.open)
	}
	if code, sig := c.p.wait(c.t); code != 0 || sig != 0 {
		return fmt.Errorf("exit code %d, signal %d\n%s", code, sig, c.p.errors(c.t))
	}
	c.p = nil
	return nil
}

// outcome ends what still runs and reads the report.
func (c *claudeClient) outcome() (report *replay.Report, code int) {
	if c.p != nil {
		c.p.in.Close()
		_, _ = c.p.rest() // what a failed peer still said
		code, _ = c.p.wait(c.t)
	}
	return readReport(c.t, c.dir, "report.json"), code
}
