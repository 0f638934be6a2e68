// Package assistant asks Codex one question through its app server.
package assistant

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
)

// Unavailable is what a user reads when the provider fails: an assistant that
// is away is no reason to crash.
const Unavailable = "The assistant is not available."

// Ask returns the answer to a prompt about the workspace.
func Ask(workspace, prompt string) string {
	cmd := exec.Command("codex", "app-server")
	cmd.Dir = workspace
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return Unavailable
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return Unavailable
	}
	if err := cmd.Start(); err != nil {
		return Unavailable
	}
	c := &conn{in: stdin, out: bufio.NewReader(stdout)}
	answer, err := c.turn(workspace, prompt)
	stdin.Close()
	io.Copy(io.Discard, c.out)
	if cmd.Wait() != nil || err != nil {
		return Unavailable
	}
	return answer
}

type object = map[string]any

// message is a request, an answer or a notification of JSON-RPC.
type message struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// conn is one app server.
type conn struct {
	in     io.Writer
	out    *bufio.Reader
	lastID int
}

func (c *conn) turn(workspace, prompt string) (string, error) {
	if _, err := c.request("initialize", object{
		"clientInfo":   object{"name": "replaypeer_orchestrator", "title": "replaypeer orchestrator", "version": "1"},
		"capabilities": object{"experimentalApi": true},
	}); err != nil {
		return "", err
	}
	if err := c.send(object{"method": "initialized"}); err != nil {
		return "", err
	}
	result, err := c.request("thread/start", object{"cwd": workspace, "model": "scripted-model"})
	if err != nil {
		return "", err
	}
	var started struct{ Thread struct{ ID string } }
	if err := json.Unmarshal(result, &started); err != nil {
		return "", err
	}
	if _, err := c.request("turn/start", object{
		"threadId": started.Thread.ID, "cwd": workspace, "model": "scripted-model",
		"input":          []object{{"type": "text", "text": prompt}},
		"approvalPolicy": "never", "approvalsReviewer": "user",
		"sandboxPolicy": object{"type": "dangerFullAccess"},
	}); err != nil {
		return "", err
	}
	return c.answer()
}

// answer reads to the end of the turn and returns the agent's last words.
func (c *conn) answer() (string, error) {
	var text string
	for {
		m, err := c.receive()
		if err != nil {
			return "", err
		}
		switch m.Method {
		case "item/completed":
			var p struct{ Item struct{ Type, Text string } }
			if err := json.Unmarshal(m.Params, &p); err != nil {
				return "", err
			}
			if p.Item.Type == "agentMessage" {
				text = p.Item.Text
			}
		case "turn/completed":
			return text, nil
		}
	}
}

func (c *conn) request(method string, params object) (json.RawMessage, error) {
	c.lastID++
	if err := c.send(object{"id": c.lastID, "method": method, "params": params}); err != nil {
		return nil, err
	}
	for {
		m, err := c.receive()
		switch {
		case err != nil:
			return nil, err
		case m.Method != "" || m.ID != c.lastID:
			continue // a notification
		case m.Error != nil:
			return nil, fmt.Errorf("%s: %s", method, m.Error)
		}
		return m.Result, nil
	}
}

func (c *conn) send(m object) error { return json.NewEncoder(c.in).Encode(m) }

func (c *conn) receive() (m message, err error) {
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(line, &m)
}
