//go:build unix

package peer

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// workspace is what <workspace> stands for in these tests.
const workspace = "/ws"

const header = `{"type":"transcript_start","provider":"codex","protocol":"codex.app-server","version":"0.171.0","scenario":"green","metadata":{"capturedAt":"2026-01-02T03:04:05Z","providerVersion":"0.171.0","model":"gpt-5.5","cwdPolicy":"workspace","source":"hand-written","recorder":{"name":"internal/peer tests","version":"0"},"redaction":{"ruleSet":"none","counts":{}}}}`

// entries makes transcript lines: "> LABEL FRAME" is outbound, "< LABEL
// FRAME" inbound, anything else stands for itself.
func entries(lines ...string) string {
	var b strings.Builder
	b.WriteString(header + "\n")
	for _, l := range lines {
		dir, rest, _ := strings.Cut(l, " ")
		label, frame, _ := strings.Cut(rest, " ")
		switch dir {
		case ">":
			fmt.Fprintf(&b, `{"type":"expect_outbound","label":%q,"frame":%s}`, label, frame)
		case "<":
			fmt.Fprintf(&b, `{"type":"emit_inbound","label":%q,"frame":%s}`, label, frame)
		default:
			b.WriteString(l)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

const exitSuccess = `{"type":"runtime_exit","status":"success"}`

// green is a conversation with one of everything that can go wrong: numbers
// JSON libraries break, a list, answers that cross, a line separator in a
// text, a placeholder inside a string, a request of the provider.
var green = []string{
	`> initialize {"id":1,"method":"initialize","params":{"clientInfo":{"name":"client","title":null},"limits":{"big":9007199254740993,"ratio":1.0,"none":null},"list":["a","b","c"]}}`,
	`< initialize {"id":1,"result":{"userAgent":"client/0.171.0 (hand-written)","big":9007199254740993}}`,
	`> initialized {"method":"initialized"}`,
	`> thread/start {"id":2,"method":"thread/start","params":{"cwd":"<workspace>","approvalPolicy":"untrusted"}}`,
	`< thread/start {"id":2,"result":{"thread":{"id":"th-1"},"cwd":"<workspace>"}}`,
	`< thread/started {"method":"thread/started","params":{"thread":{"id":"th-1"}}}`,
	`> list-a {"id":3,"method":"model/list","params":{"cursor":"a"}}`,
	`> list-b {"id":4,"method":"model/list","params":{"cursor":"b"}}`,
	`< list-b {"id":4,"result":{"data":["b"]}}`,
	`< list-a {"id":3,"result":{"data":["a"]}}`,
	"> turn/start {\"id\":5,\"method\":\"turn/start\",\"params\":{\"threadId\":\"th-1\",\"input\":[{\"type\":\"text\",\"text\":\"say\u2028hi\"},{\"type\":\"text\",\"text\":\"at <any> sharp\"}]}}",
	`< turn/start {"id":5,"result":{"turn":{"id":"tu-1","status":"inProgress"}}}`,
	"< turn/started {\"method\":\"turn/started\",\"params\":{\"threadId\":\"th-1\",\"note\":\"h\u00e9\u2028\U0001F600\"}}",
	`< approval {"id":0,"method":"item/commandExecution/requestApproval","params":{"threadId":"th-1","turnId":"tu-1","command":"ls","cwd":"<workspace>/sub"}}`,
	`> approve {"id":0,"result":{"decision":"accept"}}`,
	`< item/completed {"method":"item/completed","params":{"threadId":"th-1","turnId":"tu-1"}}`,
	`< turn/completed {"method":"turn/completed","params":{"threadId":"th-1","turn":{"id":"tu-1","status":"completed"}}}`,
	exitSuccess,
}

// op is one thing a client does.
type op struct {
	name string // "> LABEL" sends, "< LABEL" receives
	line []byte // what it sends, or wants to receive
	do   func(*process) error
}

// faithful derives a client from transcript lines: it sends what is expected
// and wants what is emitted.
func faithful(lines []string) []op {
	var ops []op
	for _, l := range lines {
		dir, rest, _ := strings.Cut(l, " ")
		label, frame, _ := strings.Cut(rest, " ")
		if dir != ">" && dir != "<" {
			continue
		}
		frame = strings.ReplaceAll(frame, "<workspace>", workspace)
		frame = strings.ReplaceAll(frame, "at <any> sharp", "at <noon or so> sharp")
		ops = append(ops, op{name: dir + " " + label, line: []byte(frame)})
	}
	return ops
}

// run does the ops until one fails.
func run(p *process, ops []op) error {
	for _, o := range ops {
		if err := o.run(p); err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
	}
	return nil
}

func (o op) run(p *process) error {
	switch {
	case o.do != nil:
		return o.do(p)
	case o.name[0] == '>':
		return p.send(o.line)
	}
	got, err := p.recv()
	if err == nil && got != string(o.line) {
		err = fmt.Errorf("got %s: want %s", got, o.line)
	}
	return err
}

// client is a faithful client that a test changes. Every change is checked to
// be one.
type client struct {
	t   testing.TB
	ops []op
}

func (c *client) at(name string) int {
	c.t.Helper()
	i := slices.IndexFunc(c.ops, func(o op) bool { return o.name == name })
	if i < 0 {
		c.t.Fatalf("no op %q", name)
	}
	return i
}

// edit replaces text in an op's line.
func (c *client) edit(name, from, to string) {
	c.t.Helper()
	o := &c.ops[c.at(name)]
	if strings.Count(string(o.line), from) != 1 {
		c.t.Fatalf("%q is not once in %s", from, o.line)
	}
	o.line = bytes.Replace(o.line, []byte(from), []byte(to), 1)
}

// set replaces the whole line.
func (c *client) set(name, line string) { c.ops[c.at(name)].line = []byte(line) }

func (c *client) before(name string, more ...op) {
	c.ops = slices.Insert(c.ops, c.at(name), more...)
}

func (c *client) after(name string, more ...op) {
	c.ops = slices.Insert(c.ops, c.at(name)+1, more...)
}

// cut ends the client after the op, or before it when name starts with "!".
func (c *client) cut(name string, more ...op) {
	if rest, ok := strings.CutPrefix(name, "!"); ok {
		c.ops = append(c.ops[:c.at(rest)], more...)
		return
	}
	c.ops = append(c.ops[:c.at(name)+1], more...)
}

func (c *client) drop(name string) {
	i := c.at(name)
	c.ops = slices.Delete(c.ops, i, i+1)
}

func (c *client) swap(a, b string) {
	i, j := c.at(a), c.at(b)
	c.ops[i], c.ops[j] = c.ops[j], c.ops[i]
}

func (c *client) line(name string) string { return string(c.ops[c.at(name)].line) }

func sends(line string) op { return op{name: "> extra", line: []byte(line)} }

// does is an op that is neither sending nor receiving.
func does(name string, fn func(*process) error) op { return op{name: name, do: fn} }
