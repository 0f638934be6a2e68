package lint

import (
	"strconv"
	"strings"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

func checkGate(c *run, found report) checker {
	count := map[string]int{}
	return checker{
		entry: func(s *step) {
			if len(c.opts.Gates) > 0 {
				count[s.label]++
			}
		},
		end: func() {
			for _, g := range c.opts.Gates {
				label, nth, _ := strings.Cut(g.Label, "#")
				n := 1
				if v, err := strconv.Atoi(nth); err == nil {
					n = v
				}
				if count[g.Label] == 0 && count[label] < n {
					found(max(c.last, 1), "", "", "%s holds the replay at %q, and the transcript has %d of that label", g.From, g.Label, count[label])
				}
			}
		},
	}
}

func checkUnusedBind(_ *run, found report) checker {
	type bind struct {
		line int
		path string
		used bool
	}
	binds := map[string]*bind{}
	var order []string
	return checker{
		entry: func(s *step) {
			eachMark(s, func(at *stringAt, m *mark) {
				if m.word != "bind" || !m.known() {
					return
				}
				switch b := binds[m.name]; {
				case b != nil:
					b.used = true
				case s.dir == envelope.Out && m.whole && !at.key: // others are another rule's
					binds[m.name] = &bind{line: s.line, path: at.path()}
					order = append(order, m.name)
				}
			})
		},
		end: func() {
			for _, name := range order {
				if b := binds[name]; !b.used {
					found(b.line, b.path, "write <any>", "<bind%s> captures a value that nothing uses", name)
				}
			}
		},
	}
}
