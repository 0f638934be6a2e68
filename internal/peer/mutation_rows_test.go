//go:build unix

package peer

import (
	"bytes"
	"strings"
	"syscall"

	"github.com/replaypeer/replaypeer/internal/replay"
)

// edited is a client with one text of one frame replaced.
func edited(name, from, to string) func(*client) {
	return func(c *client) { c.edit(name, from, to) }
}

// valueMutations change what a frame holds.
var valueMutations = []variant{
	frameRow("extra field", "initialize", edited("> initialize", `"list":`, `"more":1,"list":`)),
	frameRow("extra field deep inside", "initialize", edited("> initialize", `"title":null`, `"title":null,"version":"1"`)),
	frameRow("extra field at the top", "initialized", edited("> initialized", `}`, `,"params":{}}`)),
	frameRow("missing field", "thread/start", edited("> thread/start", `,"approvalPolicy":"untrusted"`, ``)),
	frameRow("missing field, with null recorded", "initialize", edited("> initialize", `,"none":null`, ``)),
	frameRow("null for a missing field", "thread/start", edited("> thread/start", `"cwd"`, `"model":null,"cwd"`)),
	frameRow("changed string", "thread/start", edited("> thread/start", `untrusted`, `never`)),
	frameRow("changed letter case of a key", "thread/start", edited("> thread/start", `approvalPolicy`, `approvalpolicy`)),
	frameRow("duplicated field", "thread/start", edited("> thread/start", `"approvalPolicy"`, `"approvalPolicy":"untrusted","approvalPolicy"`)),
	frameRow("duplicated field, other value first", "thread/start", edited("> thread/start", `"approvalPolicy"`, `"approvalPolicy":"never","approvalPolicy"`)),
	frameRow("extra array element", "initialize", edited("> initialize", `"c"]`, `"c","d"]`)),
	frameRow("missing array element", "initialize", edited("> initialize", `"b",`, ``)),
	frameRow("reordered array elements", "initialize", edited("> initialize", `"a","b"`, `"b","a"`)),
	frameRow("object for array", "initialize", edited("> initialize", `["a","b","c"]`, `{"0":"a","1":"b","2":"c"}`)),
	frameRow("2^53+1 rounded to 2^53", "initialize", edited("> initialize", `9007199254740993`, `9007199254740992`)),
	frameRow("2^53+1 as a float", "initialize", edited("> initialize", `9007199254740993`, `9007199254740993.0`)),
	frameRow("1 for 1.0", "initialize", edited("> initialize", `1.0`, `1`)),
	frameRow("1e0 for 1.0", "initialize", edited("> initialize", `1.0`, `1e0`)),
	frameRow("string for number", "initialize", edited("> initialize", `9007199254740993`, `"9007199254740993"`)),
	frameRow("false for null", "initialize", edited("> initialize", `"none":null`, `"none":false`)),
	frameRow("U+2028 became a space", "turn/start", edited("> turn/start", "\u2028", " ")),
	frameRow("U+2028 became a line end", "turn/start", edited("> turn/start", "\u2028", `\n`)),
	frameRow("invalid UTF-8", "turn/start", edited("> turn/start", "\u2028", "\xe2\x80")),
	frameRow("text changed before the in-string <any>", "turn/start", edited("> turn/start", `at <`, `on <`)),
	frameRow("text changed after the in-string <any>", "turn/start", edited("> turn/start", `sharp`, `sharp!`)),
	frameRow("workspace is a sibling", "thread/start", edited("> thread/start", `/ws`, `/ws2`)),
	frameRow("workspace is a folder inside", "thread/start", edited("> thread/start", `/ws`, `/ws/sub`)),
	frameRow("workspace with a slash at the end", "thread/start", edited("> thread/start", `/ws`, `/ws/`)),
	frameRow("another thread id", "turn/start", edited("> turn/start", `th-1`, `th-2`)),
	frameRow("empty params", "thread/start", func(c *client) { c.set("> thread/start", `{"id":2,"method":"thread/start","params":{}}`) }),
	frameRow("a long line with an extra field", "turn/start", func(c *client) {
		c.edit("> turn/start", "noon or so", strings.Repeat("x", 1<<17)+`","x":"`)
	}),
	illegalRow("a line beyond the limit", "turn/start", func(c *client) {
		c.edit("> turn/start", "noon or so", strings.Repeat("x", 1<<16))
	}).with(func(cfg *Config) { cfg.MaxLine = 1 << 15 }),
	illegalRow("a line of 20 MB beyond the limit", "turn/start", func(c *client) {
		c.edit("> turn/start", "noon or so", strings.Repeat("x", 20<<20))
	}).with(func(cfg *Config) { cfg.MaxLine = 1 << 20 }),
}

// frameMutations change which frames are sent, and whether they are any.
var frameMutations = []variant{
	frameRow("extra notification", "thread/start", func(c *client) { c.after("> initialized", sends(`{"method":"client/hello"}`)) }),
	frameRow("extra request", "thread/start", func(c *client) { c.after("> initialized", sends(`{"id":77,"method":"account/read"}`)) }),
	frameRow("missing notification", "initialized", func(c *client) { c.drop("> initialized") }),
	frameRow("missing request", "thread/start", func(c *client) {
		for _, name := range []string{"> thread/start", "< thread/start", "< thread/started"} {
			c.drop(name)
		}
	}),
	frameRow("swapped frames", "initialized", func(c *client) { c.swap("> initialized", "> thread/start") }),
	frameRow("two calls of one method swapped", "list-a", func(c *client) { c.swap("> list-a", "> list-b") }),
	frameRow("arguments of two calls swapped", "list-a", func(c *client) {
		c.edit("> list-a", `"a"`, `"b"`)
		c.edit("> list-b", `"b"`, `"a"`)
	}),
	frameRow("duplicate notification", "thread/start", func(c *client) { c.after("> initialized", sends(c.line("> initialized"))) }),
	frameRow("retry with a new id", "list-a", func(c *client) {
		c.after("< thread/started", sends(strings.Replace(c.line("> thread/start"), `"id":2`, `"id":99`, 1)))
	}),
	illegalRow("retry with the same id in flight", "list-b", func(c *client) { c.after("> list-a", sends(c.line("> list-a"))) }),
	illegalRow("another request with an id in flight", "list-b", func(c *client) { c.edit("> list-b", `"id":4`, `"id":3`) }),
	frameRow("request as notification", "list-a", edited("> list-a", `"id":3,`, ``)),
	frameRow("notification as request", "initialized", edited("> initialized", `{`, `{"id":50,`)),
	frameRow("method changed", "thread/start", edited("> thread/start", `thread/start`, `thread/resume`)),
	frameRow("jsonrpc member added", "initialize", edited("> initialize", `{"id"`, `{"jsonrpc":"2.0","id"`)),
	illegalRow("null id", "initialize", edited("> initialize", `"id":1,`, `"id":null,`)),
	illegalRow("float id", "initialize", edited("> initialize", `"id":1,`, `"id":1.0,`)),
	illegalRow("boolean id", "initialize", edited("> initialize", `"id":1,`, `"id":true,`)),
	illegalRow("object id", "initialize", edited("> initialize", `"id":1,`, `"id":{},`)),
	illegalRow("two ids", "initialize", edited("> initialize", `"id":1,`, `"id":1,"id":2,`)),
	illegalRow("malformed JSON", "thread/start", edited("> thread/start", `}}`, `}`)),
	illegalRow("not JSON", "initialized", func(c *client) { c.set("> initialized", `Content-Length: 26`) }),
	illegalRow("two frames on one line", "initialized", func(c *client) { c.edit("> initialized", `}`, `}{"method":"initialized"}`) }),
	illegalRow("a batch array", "initialized", func(c *client) { c.set("> initialized", `[{"method":"initialized"}]`) }),
	illegalRow("an empty object", "initialized", func(c *client) { c.set("> initialized", `{}`) }),
	illegalRow("a NUL byte", "initialized", func(c *client) { c.edit("> initialized", `}`, "}\x00") }),
	illegalRow("a byte order mark", "initialize", func(c *client) { c.edit("> initialize", `{"id"`, "\uFEFF"+`{"id"`) }),
	{
		name: "a frame after the end", verdict: replay.Unexpected, reason: "after_end",
		change: func(c *client) { c.after("< turn/completed", sends(`{"id":6,"method":"account/read"}`), untilEnd) },
	}, {
		name: "a frame sent with the last one", verdict: replay.Unexpected, reason: "after_end",
		change: func(c *client) { c.edit("> approve", `}}`, "}}\n"+`{"method":"client/hello"}`) },
	}, {
		name: "garbage after the end", verdict: replay.Mismatch, reason: "illegal_frame",
		change: func(c *client) { c.after("< turn/completed", sends(`bye`), untilEnd) },
	},
}

// answerMutations are wrong answers to the provider's request.
var answerMutations = []variant{
	answerRow("answer with another id", edited("> approve", `"id":0`, `"id":1`)),
	answerRow("answer with a string id", edited("> approve", `"id":0`, `"id":"0"`)),
	answerRow("answer with a float id", edited("> approve", `"id":0`, `"id":0.0`)),
	answerRow("answer with a null id", edited("> approve", `"id":0`, `"id":null`)),
	answerRow("answer to the client's own request", edited("> approve", `"id":0`, `"id":5`)),
	{
		name: "answered twice", verdict: replay.Mismatch, reason: "answer",
		change: func(c *client) { c.edit("> approve", `}}`, "}}\n"+c.line("> approve")) },
	}, {
		name: "answered before asked", verdict: replay.Mismatch, reason: "answer", label: "initialize",
		change: func(c *client) { c.before("> initialize", sends(c.line("> approve"))) },
	},
	frameRow("wrong decision", "approve", edited("> approve", `accept`, `decline`)),
	frameRow("null for the result", "approve", edited("> approve", `{"decision":"accept"}`, `null`)),
	frameRow("error for result", "approve", func(c *client) { c.set("> approve", `{"id":0,"error":{"code":-32601,"message":"no"}}`) }),
	frameRow("answer with an extra member", "approve", edited("> approve", `{"id"`, `{"extra":1,"id"`)),
	illegalRow("result and error", "approve", edited("> approve", `}}`, `},"error":null}`)),
	illegalRow("neither result nor error", "approve", func(c *client) { c.set("> approve", `{"id":0}`) }),
	illegalRow("method and result", "approve", edited("> approve", `{"id"`, `{"method":"x","id"`)),
}

// endMutations end the conversation too early, or never.
var endMutations = []variant{
	{
		name: "answers nothing, then the end of input", verdict: replay.Leftover, reason: "end_of_input", label: "approve",
		change: func(c *client) { c.cut("< approval") },
	}, {
		name: "answers nothing, then idles", verdict: replay.Timeout, reason: "idle", label: "approve",
		change: func(c *client) { c.cut("< approval", untilEnd) }, cfg: soon,
	}, {
		name: "idles from the start", verdict: replay.Timeout, reason: "idle", label: "initialize",
		change: func(c *client) { c.ops = []op{untilEnd} }, cfg: soon,
	}, {
		name: "half a frame, then idles", verdict: replay.Timeout, reason: "idle", label: "initialize",
		change: func(c *client) {
			half := bytes.Clone([]byte(c.line("> initialize")[:30]))
			c.ops = []op{does("half", func(p *process) error { _, err := p.in.Write(half); return err }), untilEnd}
		}, cfg: soon,
	}, {
		name: "half a frame, then the end of input", verdict: replay.Mismatch, reason: "illegal_frame", label: "initialize",
		change: func(c *client) { c.ops = c.ops[:1]; c.set("> initialize", c.line("> initialize")[:30]) },
	}, {
		name: "only blank lines", verdict: replay.Leftover, reason: "end_of_input", label: "initialize",
		change: func(c *client) { c.ops = []op{sends("\n \r\n\t")} },
	}, {
		name: "SIGTERM mid-way", verdict: replay.Aborted, reason: "terminated", label: "list-a",
		change: func(c *client) { c.cut("< thread/started", signals(syscall.SIGTERM), untilEnd) },
	}, {
		name: "SIGINT mid-way", verdict: replay.Aborted, reason: "terminated", label: "approve",
		change: func(c *client) { c.cut("< approval", signals(syscall.SIGINT), untilEnd) },
	}, {
		name: "SIGKILL mid-way", verdict: replay.Running, signal: syscall.SIGKILL, exit: -1,
		change: func(c *client) { c.cut("< thread/started", signals(syscall.SIGKILL), untilEnd) },
	}, {
		name: "SIGKILL before the last frames", verdict: replay.Running, signal: syscall.SIGKILL, exit: -1,
		change: func(c *client) { c.cut("< approval", signals(syscall.SIGKILL), untilEnd) },
	}, {
		name: "closes its reading end mid-way", verdict: replay.Aborted, reason: "output_closed", label: "list-a",
		change: func(c *client) { c.before("> thread/start", closeReading) },
	}, {
		name: "closes its reading end at once", verdict: replay.Aborted, reason: "output_closed", label: "initialized",
		change: func(c *client) { c.before("> initialize", closeReading) },
	}, {
		name: "closes its reading end before the last frames", verdict: replay.Aborted, reason: "output_closed",
		change: func(c *client) { c.before("> approve", closeReading) },
	}, {
		name: "closes both ends before the last frames", verdict: replay.Aborted, reason: "output_closed",
		change: func(c *client) {
			c.before("> approve", closeReading)
			c.after("> approve", does("close", func(p *process) error { return p.in.Close() }))
		},
	},
}

func frameRow(name, label string, change func(*client)) variant {
	return variant{name: name, label: label, change: change, verdict: replay.Mismatch, reason: "frame"}
}

func illegalRow(name, label string, change func(*client)) variant {
	return variant{name: name, label: label, change: change, verdict: replay.Mismatch, reason: "illegal_frame"}
}

func answerRow(name string, change func(*client)) variant {
	return variant{name: name, label: "approve", change: change, verdict: replay.Mismatch, reason: "answer"}
}

func (v variant) with(cfg func(*Config)) variant {
	v.cfg = cfg
	return v
}
