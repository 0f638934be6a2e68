package lint

import (
	"encoding/json"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// checkExtension looks at transcripts that say they are for other agents, too:
// by metadata.retarget, a list of them, or by a provider that stands for any.
func checkExtension(c *run, found report) checker {
	var fits []func(flavors.Frame) error
	told := map[string]bool{}
	return checker{
		header: func(h *envelope.Header) {
			var m struct {
				Retarget []string `json:"retarget"`
			}
			_ = json.Unmarshal(h.Metadata, &m) // another shape is no list of agents
			if h.Protocol == flavors.ACP.Protocol && h.Provider == flavors.ACP.Providers[0] {
				m.Retarget = append(m.Retarget, flavors.ACP.Providers[1:]...)
			}
			for _, as := range m.Retarget {
				fit, err := flavors.Retarget(h, as)
				if err != nil {
					found(h.Line, "metadata.retarget", "", "%v", err)
					continue
				}
				fits = append(fits, fit)
			}
		},
		entry: func(s *step) {
			if len(fits) == 0 || s.frame == nil || told[s.frame.Method] {
				return
			}
			for _, fit := range fits {
				if err := fit(*s.frame); err != nil {
					told[s.frame.Method] = true
					found(s.line, "frame.method", "", "%v", err)
					return
				}
			}
		},
	}
}

// family is how the frames of a protocol name child threads.
type family struct {
	what     string
	children []flavors.Place // inbound, values that must be introduced
	births   []flavors.Place // both ways, where they are
}

func in(path string) flavors.Place  { return flavors.Place{Dir: envelope.In, Method: "*", Path: path} }
func out(path string) flavors.Place { return flavors.Place{Dir: envelope.Out, Method: "*", Path: path} }

var families = map[string]family{
	"codex.app-server": {
		what: "thread",
		children: []flavors.Place{
			in("params.threadId"), in("params.thread.parentThreadId"), in("params.item.senderThreadId"),
		},
		births: []flavors.Place{
			in("result.thread.id"), in("params.thread.id"), in("**.receiverThreadIds.*"), in("**.agentThreadId"),
			in("result.reviewThreadId"), in("result.data.*.id"), out("params.threadId"),
		},
	},
	"claude-agent-sdk.query": {
		what:     "tool use",
		children: []flavors.Place{in("parent_tool_use_id")},
		births:   []flavors.Place{in("message.content.*.id"), in("event.content_block.id"), in("tool_use_id"), in("options.toolUseID")},
	},
	"opencode-sdk.sse": {
		what:     "session",
		children: []flavors.Place{in("event.properties.sessionID"), in("event.properties.part.sessionID"), in("event.properties.info.sessionID")},
		births: []flavors.Place{
			in("data.id"), in("data.*.id"), in("event.properties.info.id"), in("**.metadata.sessionId"), in("**.metadata.sessionID"), out("input.sessionID"),
			out("input.id"),
		},
	},
	"acp.ndjson-jsonrpc": {
		what:     "session",
		children: []flavors.Place{in("**.parentSessionId")},
		births:   []flavors.Place{in("result.sessionId"), in("params.sessionId"), out("params.sessionId")},
	},
}

// checkChild reports at the end of the file: a child may speak before the
// frame that introduces it.
func checkChild(c *run, found report) checker {
	type child struct {
		id   string
		line int
		path string
	}
	var named []child
	seen, born := map[string]bool{}, map[string]bool{}
	return checker{
		entry: func(s *step) {
			if s.frame == nil {
				return
			}
			s.eachText(births, func(id []byte, _ string) {
				if !born[string(id)] {
					born[string(id)] = true
				}
			})
			s.eachText(children, func(id []byte, path string) {
				if !seen[string(id)] {
					seen[string(id)] = true
					named = append(named, child{string(id), s.line, path})
				}
			})
		},
		end: func() {
			if len(born) == 0 && c.flavor != nil && c.flavor != flavors.Claude {
				return // an excerpt, which introduces nobody
			}
			for _, k := range named {
				if !born[k.id] && !c.broken && !c.talk.gap {
					found(k.line, "frame."+k.path, "", "%s %s is introduced by no frame", families[c.flavor.Protocol].what, k.id)
				}
			}
		},
	}
}

// checkEarlyName looks for requests that name what the provider only says
// after them: a replay refuses those, as a provider would.
func checkEarlyName(c *run, found report) checker {
	type use struct {
		id     string
		line   int
		path   string
		method string
		first  int // line in which the provider says it
	}
	early := map[uint64]*use{} // by the id's checksum
	var order []*use
	var said hashes
	// say notes that something was said, and whether it needs not be again.
	say := func(h uint64, s *step) bool {
		if len(early) == 0 {
			said.add(h)
			return true
		}
		if said.n < mostSeen && said.has(h) {
			return true // who named it before it was said has had that noted
		}
		u := early[h]
		if u != nil && s.dir == envelope.Out {
			return false // the client waits for it
		}
		if u != nil && u.first == 0 {
			u.first = s.line
		}
		said.add(h)
		return true
	}
	return checker{
		entry: func(s *step) {
			if s.frame == nil || len(c.flavor.References) == 0 {
				return
			}
			if said.n >= mostSeen-1 {
				clear(early) // memory is bounded; what was said long ago is no longer known
				order = nil
			}
			s.eachText(references, func(id []byte, path string) {
				h := maphash.Bytes(seed, id)
				if early[h] == nil && !said.has(h) && len(id) > 0 && len(marks(string(id))) == 0 {
					early[h] = &use{string(id), s.line, path, s.frame.Method, 0}
					order = append(order, early[h])
				}
			})
			t := s.onTape.Tape.Tokens[s.onTape.Index:]
			forgets := said.n+int(t[0].Next) >= mostSeen
			if forgets {
				s.names.unsaid()
			}
			all := s.quoted()
			for i := range all {
				q := &all[i]
				h := s.idHash(q)
				if h == 0 || said.met(h) || say(h, s) {
					s.names[q.name].said = true
				}
			}
			if forgets {
				s.names.unsaid()
			}
		},
		end: func() {
			said.release()
			for _, u := range order {
				// A thread or session may be one of an earlier run, resumed.
				if u.first > 0 && !resumes(u.method, u.path) {
					found(u.line, "frame."+u.path, "", "%s names %s, which the provider says only in line %d", u.method, u.id, u.first)
				}
			}
		},
	}
}

func resumes(method, path string) bool {
	last := path[strings.LastIndexByte(path, '.')+1:]
	return slices.Contains([]string{"threadId", "sessionID", "sessionId", "agentId", "resumeSessionAt"}, last) || strings.Contains(method, "resume")
}
