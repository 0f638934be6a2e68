//go:build unix

package peer

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// TestACPCorpus plays every ACP file of the corpus over the real wire, as its
// own agent and as any other.
func TestACPCorpus(t *testing.T) {
	for _, path := range corpus(t, "grok.ndjson") {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			driver{}.drive(t, path).passed(t)
			out := driver{flags: []string{"--as", "registry"}}.drive(t, path)
			out.passed(t)
			if out.report.Transcript.Provider != "registry" {
				t.Errorf("the report is of %s", out.report.Transcript.Provider)
			}
		})
	}
}

// TestACPCorpusChanged changes one value of one frame at a time.
func TestACPCorpusChanged(t *testing.T) {
	for _, path := range corpus(t, "grok.ndjson") {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			tr, err := envelope.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, e := range tr.Entries {
				x, ok := e.(*envelope.ExpectOutbound)
				if !ok {
					continue
				}
				paths := leaves(x.Frame)
				for _, at := range []string{paths[0], paths[len(paths)-1]} {
					if strings.Contains(string(x.Frame), `"<any>"`) && at == "params.mcpServers" {
						continue
					}
					d := driver{change: func(i int, raw []byte) []byte {
						if i == n {
							return changed(raw, at)
						}
						return raw
					}}
					d.drive(t, path).failed(t, "outbound mismatch at "+at)
				}
				n++
			}
		})
	}
}

const (
	acpInit = `{"type":"expect_outbound","label":"initialize","frame":{"kind":"request","method":"initialize","params":{"protocolVersion":1}}}
{"type":"emit_inbound","label":"initialize","frame":{"kind":"response","method":"initialize","result":{"protocolVersion":1}}}`
	acpEnd = `{"type":"runtime_exit","status":"success"}`
)

func expects(frame string) string {
	return `{"type":"expect_outbound","label":"x","frame":` + frame + `}`
}
func emits(frame string) string { return `{"type":"emit_inbound","label":"x","frame":` + frame + `}` }

// crosswise has two prompts in flight that are answered in the other order,
// and two permissions that are.
func crosswise(t *testing.T, ids [4]string) string {
	prompt := func(id, session string) string {
		return `{"kind":"request","id":` + id + `,"method":"session/prompt","params":{"sessionId":"` + session + `","prompt":[]}}`
	}
	ask := func(id, session string) string {
		return `{"kind":"request","id":` + id + `,"method":"session/request_permission","params":{"sessionId":"` + session + `"}}`
	}
	allow := func(id, option string) string {
		return `{"kind":"response","id":` + id + `,"method":"session/request_permission","result":{"outcome":{"outcome":"selected","optionId":"` + option + `"}}}`
	}
	stop := func(id, reason string) string {
		return `{"kind":"response","id":` + id + `,"method":"session/prompt","result":{"stopReason":"` + reason + `"}}`
	}
	return transcriptFile(t, "grok", acpInit,
		expects(prompt("11", "A")), expects(prompt("12", "B")),
		emits(ask(ids[0], "A")), emits(ask(ids[1], "B")),
		expects(allow(ids[1], "yes")), expects(allow(ids[0], "no")),
		emits(stop("12", "end_turn")), emits(stop("11", "cancelled")),
		emits(ask(ids[2], "A")), emits(ask(ids[3], "A")),
		expects(allow(ids[3], "yes")), expects(allow(ids[2], "no")),
		acpEnd)
}

// TestACPIds has calls of one method answered crosswise, with ids of every
// legal type on both sides: the client gets each answer under the id it used.
func TestACPIds(t *testing.T) {
	agents := map[string][4]string{
		"integers": {"0", "1", "2", "3"},
		"strings":  {`"0"`, "0", `""`, `"é\u0022"`},
		"uuids":    {`"6c1f2f0e-7d4e-4a3b-9d0a-000000000001"`, `"6c1f2f0e-7d4e-4a3b-9d0a-000000000002"`, "null", "-9223372036854775808"},
	}
	clients := map[string]func(int) string{
		"integers": func(n int) string { return fmt.Sprint(n) },
		"strings":  func(n int) string { return fmt.Sprintf(`"req \u00e9 %d"`, n) },
		"uuids":    func(n int) string { return fmt.Sprintf(`"9b2f6c1e-0000-4000-8000-%012d"`, n) },
		"null":     func(n int) string { return [...]string{"null", "null", `"null"`}[n] },
	}
	for agent, ids := range agents {
		for name, next := range clients {
			t.Run(agent+" of the agent, "+name+" of the client", func(t *testing.T) {
				driver{nextID: next}.drive(t, crosswise(t, ids)).passed(t)
			})
		}
	}
}

// TestACPWrongAnswers answers a request under the id of another, with the id in
// another type, and twice.
func TestACPWrongAnswers(t *testing.T) {
	path := crosswise(t, [4]string{"0", "1", `"a"`, `"b"`})
	answer := func(id, option string) []byte {
		return []byte(`{"jsonrpc":"2.0","id":` + id + `,"result":{"outcome":{"outcome":"selected","optionId":"` + option + `"}}}` + "\n")
	}
	for _, c := range []struct {
		name, id, option, want string
	}{
		{"the other request", "0", "yes", "outbound mismatch at"},
		{"the other type", `"1"`, "yes", `answers request "1", which the provider has not sent`},
		{"another answer", "1", "no", "outbound mismatch at result.outcome.optionId"},
		{"no such request", "7", "yes", "answers request 7, which the provider has not sent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			driver{inject: func(i int, wire []byte) []byte {
				if i == 3 {
					return answer(c.id, c.option)
				}
				return wire
			}}.drive(t, path).failed(t, c.want)
		})
	}
	driver{inject: func(i int, wire []byte) []byte {
		if i == 4 {
			return answer("1", "yes")
		}
		return wire
	}}.drive(t, path).failed(t, "answers request 1 a second time")
}

// TestACPWire sends what a logical frame can't show: each is refused.
func TestACPWire(t *testing.T) {
	path := transcriptFile(t, "grok", acpInit,
		expects(`{"kind":"request","method":"session/prompt","params":{"sessionId":"S"}}`),
		expects(`{"kind":"notification","method":"session/cancel","params":{"sessionId":"S"}}`),
		emits(`{"kind":"response","method":"session/prompt","result":{"stopReason":"cancelled"}}`), acpEnd)
	driver{}.drive(t, path).passed(t)
	for wire, want := range map[string]string{
		`{"id":5,"method":"session/prompt","params":{"sessionId":"S"}}`:                                  `want "jsonrpc":"2.0"`,
		`{"jsonrpc":"2.1","id":5,"method":"session/prompt","params":{"sessionId":"S"}}`:                  `want "jsonrpc":"2.0"`,
		`{"jsonrpc":"2.0","id":5,"method":"session/prompt","params":{"sessionId":"S"},"x":1}`:            `unknown key "x"`,
		`{"jsonrpc":"2.0","id":5,"method":"session/prompt","params":{"sessionId":"S"},"id":6}`:           `two members "id"`,
		`[{"jsonrpc":"2.0","id":5,"method":"session/prompt","params":{"sessionId":"S"}}]`:                `a batch array`,
		`{"jsonrpc":"2.0","id":5,"method":"session/prompt","params":{"sessionId":"S"},"result":{}}`:      `both a method and a result`,
		`{"jsonrpc":"2.0","id":5,"method":"session/prompt","params":"S"}`:                                `params of session/prompt`,
		`{"jsonrpc":"2.0","id":5.5,"method":"session/prompt","params":{"sessionId":"S"}}`:                `request id 5.5`,
		`{"jsonrpc":"2.0","id":{},"method":"session/prompt","params":{"sessionId":"S"}}`:                 `request id {}`,
		`{"jsonrpc":"2.0","method":"session/prompt","params":{"sessionId":"S"}}`:                         `outbound mismatch at`,
		`{"jsonrpc":"2.0","id":5,"result":{},"error":{"code":1,"message":"m"}}`:                          `exactly one of result and error`,
		`{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}`:                                             `a response without an id`,
		`{"jsonrpc":"2.0","id":5,"error":{"code":"1","message":"m"}}`:                                    `an integer code`,
		`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":77}}`:                        `withdraws request 77`,
		`{"jsonrpc":"2.0","id":5,"method":"session/prompt","params":{"sessionId":"S"}`:                   `not JSON`,
		`{"jsonrpc":"2.0","id":5,"method":"session/prompt","params":{"sessionId":"S","extra":null}}`:     `outbound mismatch at params.extra`,
		`{"jsonrpc":"2.0","id":5,"method":"session/prompt","params":{"sessionId":"S","sessionId":"S"} }`: `outbound mismatch at params`,
	} {
		driver{inject: func(i int, line []byte) []byte {
			if i == 1 {
				return []byte(wire + "\n")
			}
			return line
		}}.drive(t, path).failed(t, want)
	}
}

// TestACPOnePromptAtATime: a session of version 1 takes one prompt.
func TestACPOnePromptAtATime(t *testing.T) {
	prompt := `{"kind":"request","method":"session/prompt","params":{"sessionId":"S","prompt":[]}}`
	stop := emits(`{"kind":"response","method":"session/prompt","result":{"stopReason":"end_turn"}}`)
	driver{}.drive(t, transcriptFile(t, "grok", acpInit, expects(prompt), stop, expects(prompt), stop, acpEnd)).passed(t)
	path := transcriptFile(t, "grok", acpInit, expects(prompt), expects(prompt), stop, stop, acpEnd)
	driver{}.drive(t, path).failed(t, `session/prompt for params.sessionId "S" while request 1001 of the same is unanswered`)
}

// TestACPChosen: the client names its own terminal; the agent repeats the name
// that the client gave it.
func TestACPChosen(t *testing.T) {
	path := transcriptFile(t, "claude-acp", acpInit,
		emits(`{"kind":"request","method":"terminal/create","params":{"command":"ls"}}`),
		expects(`{"kind":"response","method":"terminal/create","result":{"terminalId":"recorded"}}`),
		emits(`{"kind":"request","method":"terminal/output","params":{"terminalId":"recorded"}}`),
		expects(`{"kind":"response","method":"terminal/output","result":{"output":"","truncated":false}}`), acpEnd)
	var wire []byte
	out := driver{
		change: func(_ int, raw []byte) []byte { return bytes.ReplaceAll(raw, []byte("recorded"), []byte("mine")) },
		seen: func(dir envelope.Direction, line []byte) {
			if dir == envelope.In {
				wire = append(wire, line...)
			}
		},
	}.drive(t, path)
	if !bytes.Contains(wire, []byte(`"method":"terminal/output","params":{"terminalId":"mine"}`)) {
		t.Errorf("the agent did not take the client's name: %s", wire)
	}
	if out.err == nil || !strings.Contains(out.err.Error(), "mine") {
		t.Errorf("the driver compares with the recording: %v", out.err)
	}
}

// TestACPLongFrame plays a frame of 600 KB each way.
func TestACPLongFrame(t *testing.T) {
	long := strings.Repeat("command ", 600<<10/8)
	path := transcriptFile(t, "qwen", acpInit,
		emits(`{"kind":"notification","method":"session/update","params":{"sessionId":"S","update":{"sessionUpdate":"available_commands_update","availableCommands":["`+long+`"]}}}`),
		expects(`{"kind":"request","method":"session/prompt","params":{"sessionId":"S","prompt":[{"type":"text","text":"`+long+`"}]}}`),
		emits(`{"kind":"response","method":"session/prompt","result":{"stopReason":"end_turn"}}`), acpEnd)
	driver{}.drive(t, path).passed(t)
	driver{flags: []string{"--split", "1000"}}.drive(t, path).passed(t)
	driver{flags: []string{"--max-line", "500000"}}.drive(t, path).failed(t, "longer than 500000")
}

// TestACPErrorWithoutID: an agent may complain without saying about what.
func TestACPErrorWithoutID(t *testing.T) {
	var wire []string
	path := transcriptFile(t, "codex-acp", acpInit,
		emits(`{"kind":"response","error":{"code":-32601,"message":"m"}}`),
		emits(`{"kind":"response","id":null,"error":{"code":-32700,"message":"m"}}`),
		expects(`{"kind":"notification","method":"session/cancel","params":{"sessionId":"S"}}`), acpEnd)
	driver{seen: func(dir envelope.Direction, line []byte) {
		if dir == envelope.In {
			wire = append(wire, string(line))
		}
	}}.drive(t, path).passed(t)
	want := []string{`{"jsonrpc":"2.0","error":{"code":-32601,"message":"m"}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}`}
	if len(wire) != 3 || wire[1] != want[0] || wire[2] != want[1] {
		t.Errorf("on the wire %q: want %q", wire, want)
	}
}

// TestACPRetarget: extensions keep a transcript with their owner.
func TestACPRetarget(t *testing.T) {
	path := transcriptFile(t, "grok", acpInit,
		emits(`{"kind":"request","method":"_x.ai/ask_user_question","params":{"question":"?"}}`),
		expects(`{"kind":"response","method":"_x.ai/ask_user_question","result":{"outcome":"accepted"}}`), acpEnd)
	driver{}.drive(t, path).passed(t)
	driver{flags: []string{"--as", "grok"}}.drive(t, path).passed(t)
	for _, as := range []string{"registry", "qwen"} {
		driver{flags: []string{"--as", as}}.drive(t, path).failed(t,
			":4: _x.ai/ask_user_question is an extension of grok: a transcript that holds it can't be played as "+as)
	}
	if _, err := Link(t.TempDir(), "agent", "/bin/true", Config{Transcript: path, As: "vim"}); err == nil ||
		!strings.Contains(err.Error(), `unknown agent "vim": want registry, grok, `) {
		t.Errorf("link: %v", err)
	}
	if _, err := Link(t.TempDir(), "agent", "/bin/true", Config{Transcript: path, As: "gemini"}); err == nil ||
		!strings.Contains(err.Error(), "is an extension of grok") {
		t.Errorf("link: %v", err)
	}
}

// TestACPCancelRequest: the agent withdraws a question of its own, which the
// client leaves open; the client withdraws a request, which is refused.
func TestACPCancelRequest(t *testing.T) {
	driver{nextID: func(n int) string { return fmt.Sprint(n) }}.drive(t, transcriptFile(t, "claude-acp", acpInit,
		expects(`{"kind":"request","id":1,"method":"session/prompt","params":{"sessionId":"S"}}`),
		emits(`{"kind":"request","id":0,"method":"session/request_permission","params":{"sessionId":"S"}}`),
		expects(`{"kind":"notification","method":"session/cancel","params":{"sessionId":"S"}}`),
		emits(`{"kind":"notification","method":"$/cancel_request","params":{"requestId":0}}`),
		emits(`{"kind":"response","id":1,"method":"session/prompt","result":{"stopReason":"cancelled"}}`),
		expects(`{"kind":"request","id":2,"method":"session/list","params":{}}`),
		expects(`{"kind":"notification","method":"$/cancel_request","params":{"requestId":2}}`),
		emits(`{"kind":"response","id":2,"method":"session/list","error":{"code":-32800,"message":"m"}}`), acpEnd)).passed(t)
}
