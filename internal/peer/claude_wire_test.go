//go:build unix

package peer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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
	code      int  // of an exit
	killed    bool // the exit was the client's doing
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
			c.exit, c.code = true, int(gjson.GetBytes(e.Error, "exitCode").Int())
			c.killed = e.Status == envelope.Cancelled
		}
		c.typ = gjson.Get(c.frame, "type").Str
		all = append(all, c)
	}
}

// claudeArgs are the arguments the Agent SDK passes for options.
func claudeArgs(options gjson.Result, more ...string) []string {
	args := append([]string{"--output-format", "stream-json", "--verbose", "--input-format", "stream-json"}, more...)
	names := map[string]string{
		"canUseTool": "--permission-prompt-tool=stdio", "settingSources": "--setting-sources=",
		"includePartialMessages": "--include-partial-messages", "maxTurns": "--max-turns=",
		"model": "--model=", "permissionMode": "--permission-mode=", "sessionId": "--session-id=", "resume": "--resume=",
		"resumeSessionAt": "--resume-session-at=", "allowedTools": "--allowedTools=", "disallowedTools": "--disallowedTools=", "tools": "--tools=",
		"allowDangerouslySkipPermissions": "--allow-dangerously-skip-permissions", "forkSession": "--fork-session",
	}
	options.ForEach(func(k, v gjson.Result) bool {
		text, known := v.Str, names[k.Str]
		switch {
		case v.Type == gjson.False || known == "":
			return true // not an argument
		case v.Type == gjson.Number:
			text = v.Raw
		case v.IsObject():
			text = "default"
		case v.IsArray():
			var all []string
			for _, item := range v.Array() {
				all = append(all, item.Str)
			}
			text = strings.Join(all, ",")
		}
		args = append(args, known+text)
		return true
	})
	return args
}

// claudeInitialize is the initialize request that goes with options.
func claudeInitialize(options gjson.Result) string {
	body := `{"subtype":"initialize"`
	if !options.Get("systemPrompt").Bool() {
		body += `,"systemPrompt":[""]`
	} else {
		body += `,"systemPrompt":["secret"]`
	}
	if options.Get("hooks").Exists() {
		body += `,"hooks":{"PreToolUse":[{"matcher":"Bash","hookCallbackIds":["hook_0"]}]}`
	}
	if options.Get("agents").Exists() {
		body += `,"agents":{"reader":{"prompt":"secret"}}`
	}
	if servers := options.Get("sdkMcpServers"); servers.Exists() {
		body += `,"sdkMcpServers":` + servers.Raw
	}
	return body + "}"
}

// uncompared are arguments that a transcript of before does not tell apart.
var uncompared = []string{"--permission-prompt-tool=stdio", "--setting-sources=user,project", "--add-dir=/somewhere"}

// claudeClient plays the client of a transcript over the wire.
type claudeClient struct {
	t       *testing.T
	exe     string
	dir     string
	file    string
	session string // the session id it uses instead of the recorded one; "" keeps it

	p        *process
	recorded string            // the session id as recorded
	open     map[string]string // its control requests without an answer: id to method
	asked    map[string]string // requests of the provider: tool use or method to request_id
	n        int
	code     int // of the last launch that ended
}

// play plays all launches. The error is the first thing that was not as
// recorded.
func (c *claudeClient) play(entries []claudeEntry) error {
	for _, e := range entries {
		var err error
		switch {
		case e.typ == "query.open":
			c.launch(e)
			err = c.control("query.open", claudeInitialize(gjson.Get(e.frame, "options")))
		case c.p == nil:
			return fmt.Errorf("%s outside a launch", e.typ)
		case e.exit:
			err = c.leave(e)
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
	c.open, c.asked = map[string]string{}, map[string]string{}
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
	options := gjson.Parse(c.own(gjson.Get(e.frame, "options").Raw))
	var more []string
	if !options.Get("settingSources").Exists() {
		more = uncompared
	}
	c.p = newBinary(c.t, c.dir, link, env, claudeArgs(options, more...)...)
	c.p.start(c.t)
}

// own puts the client's session id in the recorded one's place.
func (c *claudeClient) own(text string) string {
	if c.session == "" || c.recorded == "" {
		return text
	}
	return strings.ReplaceAll(text, c.recorded, c.session)
}

func (c *claudeClient) control(method, request string) error {
	c.n++
	id := fmt.Sprintf("req%d", c.n)
	c.open[id] = method
	return c.p.send(fmt.Appendf(nil, `{"request_id":%q,"type":"control_request","request":%s}`, id, request))
}

func (c *claudeClient) send(e claudeEntry) error {
	switch e.typ {
	case "prompt.offer":
		message := gjson.Get(e.frame, "message").Raw
		return c.p.send([]byte(message[:len(message)-1] + `,"session_id":""}`))
	case "permission.response", "hook.response", "mcp.response":
		return c.answer(e)
	}
	return c.control(e.typ, strings.Replace(e.frame, `"type":"query.`, `"subtype":"`, 1))
}

// answer answers a request of the provider.
func (c *claudeClient) answer(e claudeEntry) error {
	f := gjson.Parse(e.frame)
	id, body := c.asked[f.Get("result.toolUseID").Str], f.Get("result").Raw
	switch {
	case e.typ == "hook.response":
		id, body = c.asked["hook.request"], f.Get("output").Raw
	case e.typ == "mcp.response":
		id, body = c.asked["mcp.request"], `{"mcp_response":`+f.Get("message").Raw+`}`
	case id == "": // an error, or a changed answer: to the only request
		for _, only := range c.asked {
			id = only
		}
	}
	if text := f.Get("error"); text.Exists() {
		return c.p.send(fmt.Appendf(nil, `{"type":"control_response","response":{"subtype":"error","request_id":%q,"error":%s}}`, id, text.Raw))
	}
	return c.p.send(fmt.Appendf(nil, `{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":%s}}`, id, body))
}

// want reads the next message but the answers to control requests.
func (c *claudeClient) want(e claudeEntry) error {
	for {
		line, err := c.p.recv()
		if err != nil {
			return err
		}
		if e.typ == "query.response" {
			return c.recordedAnswer(e, line)
		}
		if gjson.Get(line, "type").Str == "control_response" {
			if err := c.answered(line); err != nil {
				return err
			}
			continue
		}
		switch e.typ {
		case "permission.request", "hook.request", "mcp.request":
			return c.request(e, line)
		case "permission.aborted":
			if id := c.asked[gjson.Get(e.frame, "toolUseID").Str]; gjson.Get(line, "type").Str != "control_cancel_request" || gjson.Get(line, "request_id").Str != id {
				return fmt.Errorf("got %s: want the end of request %s", line, id)
			}
			return nil
		}
		if want := c.own(e.frame); line != want {
			return fmt.Errorf("got %s: want %s", line, want)
		}
		return nil
	}
}

// answered takes an answer that was not recorded.
func (c *claudeClient) answered(line string) error {
	id := gjson.Get(line, "response.request_id").Str
	if c.open[id] == "" || gjson.Get(line, "response.subtype").Str != "success" || !json.Valid([]byte(line)) {
		return fmt.Errorf("answer %s: want a success, once", line)
	}
	delete(c.open, id)
	return nil
}

func (c *claudeClient) recordedAnswer(e claudeEntry, line string) error {
	in, want := gjson.Get(line, "response"), gjson.Parse(e.frame)
	id := in.Get("request_id").Str
	if c.open[id] != want.Get("method").Str || in.Get("response").Raw != want.Get("response").Raw || in.Get("error").Raw != want.Get("error").Raw {
		return fmt.Errorf("got %s: want the answer %s", line, e.frame)
	}
	delete(c.open, id)
	return nil
}

func (c *claudeClient) request(e claudeEntry, line string) error {
	for wire, path := range map[string]string{
		"tool_name": "toolName", "input": "input", "permission_suggestions": "options.suggestions", "blocked_path": "options.blockedPath",
		"display_name": "options.displayName", "callback_id": "callbackID", "server_name": "server", "message": "message",
	} {
		if got, want := gjson.Get(line, "request."+wire).Raw, c.own(gjson.Get(e.frame, path).Raw); got != want {
			return fmt.Errorf("%s is %s: want %s", wire, got, want)
		}
	}
	key := e.typ
	if e.typ == "permission.request" {
		key = gjson.Get(line, "request.tool_use_id").Str
	}
	c.asked[key] = gjson.Get(line, "request_id").Str
	return nil
}

// leave closes stdin, ends the process where the recorded client did, and
// waits for its end.
func (c *claudeClient) leave(e claudeEntry) error {
	c.p.in.Close()
	if e.killed {
		c.p.out.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		if rest, err := c.p.rest(); !errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("the end of input was enough to end it: %q, %v", rest, err)
		}
		c.p.out.SetReadDeadline(time.Now().Add(patience))
		if err := c.p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
	}
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
	code, sig := c.p.wait(c.t)
	if code != e.code || sig != 0 {
		err = fmt.Errorf("exit code %d, signal %d: want %d\n%s", code, sig, e.code, c.p.errors(c.t))
	}
	c.p, c.code = nil, code
	return err
}

// outcome ends what still runs and reads the report.
func (c *claudeClient) outcome() (report *replay.Report, code int) {
	if c.p != nil {
		c.p.in.Close()
		_, _ = c.p.rest() // what a failed peer still said
		c.code, _ = c.p.wait(c.t)
	}
	return readReport(c.t, c.dir, "report.json"), c.code
}

// claudeTranscript is a hand-written transcript.
func claudeTranscript(t testing.TB, scenario string) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join("testdata", "claude", scenario+".ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	return file
}
