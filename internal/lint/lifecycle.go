package lint

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// span is something that a protocol begins and ends.
type span struct {
	dir    envelope.Direction
	open   string // method that begins one
	id     string // path of its name in that frame; "" where only one runs
	when   string // path of a string that must be is; "" for always
	is     string
	closes []string // inbound methods that end it; a last * is any rest
	closed string   // path of the name in those; "" is id
	ends   []string // values of when that end it, in a frame of method open
}

var spansOf = map[string][]span{
	"codex.app-server": {
		{dir: envelope.In, open: "turn/started", id: "params.turn.id", closes: []string{"turn/completed"}},
	},
	"codex.exec-jsonl": {
		{dir: envelope.In, open: "turn.started", closes: []string{"turn.completed", "turn.failed", "error"}},
	},
	"claude-agent-sdk.query": {
		{dir: envelope.Out, open: "prompt.offer", closes: []string{"result*"}},
		{dir: envelope.In, open: "system/task_started", id: "task_id", closes: []string{"system/task_notification", "system/task_updated"}},
	},
	"cursor-agent-sdk.local": {
		{dir: envelope.In, open: "run.started", closes: []string{"run.completed", "call.failed", "bridge.fatal"}},
	},
	"opencode-sdk.sse": {
		{dir: envelope.In, open: "session.status", id: "event.properties.sessionID", when: "event.properties.status.type", is: "busy",
			closes: []string{"session.idle", "session.error", "session.deleted"}, ends: []string{"idle"}},
	},
}

// checkLifecycle reports what is still running when a process ends by itself,
// unless the client has interrupted something since.
func checkLifecycle(c *run, found report) checker {
	type running struct {
		span *span
		name string
		line int
	}
	var open []running
	var list []span
	exited := false
	closed := func(k *span, name string) {
		kept := open[:0]
		for _, r := range open {
			if r.span != k || name != "" && r.name != "" && r.name != name {
				kept = append(kept, r)
			}
		}
		open = kept
	}
	end := func() {
		for _, r := range open {
			if c.broken || c.talk.gap {
				break
			}
			found(r.line, "frame", "", "%s %sis never followed by %s", r.span.open, strings.TrimLeft(r.name+" ", " "), strings.TrimRight(r.span.closes[0], "*"))
		}
		open = nil
	}
	return checker{
		header: func(h *envelope.Header) { list = spansOf[h.Protocol] },
		entry: func(s *step) {
			if e, ok := s.entry.(*envelope.RuntimeExit); ok {
				if e.Status != envelope.Success {
					open = nil
				}
				exited = true
				return
			}
			if exited {
				open, exited = nil, false // the client has started the provider again, which explains it
			}
			if s.frame == nil {
				return
			}
			if s.dir == envelope.Out && interrupts(s.frame.Method) {
				open = nil
				return
			}
			for i := range list {
				k := &list[i]
				switch state, opens := k.reads(s); {
				case opens:
					name := k.name(s, k.id)
					closed(k, name)
					open = append(open, running{k, name, s.line})
				case state:
					closed(k, k.name(s, k.closedAt()))
				}
			}
		},
		end: end,
	}
}

// reads says whether the frame ends the span, or opens one.
func (k *span) reads(s *step) (ends, opens bool) {
	if s.dir == k.dir && s.frame.Method == k.open {
		if k.when == "" {
			return false, true
		}
		value := gjson.GetBytes(s.raw, k.when).Str
		for _, v := range k.ends {
			ends = ends || v == value
		}
		return ends, value == k.is
	}
	if s.dir != envelope.In {
		return false, false
	}
	for _, m := range k.closes {
		prefix, any := strings.CutSuffix(m, "*")
		if s.frame.Method == m || any && strings.HasPrefix(s.frame.Method, prefix) {
			return true, false
		}
	}
	return false, false
}

func (k *span) closedAt() string {
	if k.closed != "" {
		return k.closed
	}
	return k.id
}

func (k *span) name(s *step, path string) string {
	if path == "" {
		return ""
	}
	return gjson.GetBytes(s.raw, path).String()
}
