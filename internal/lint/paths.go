package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// home finds home directories on Linux, macOS and Windows. What comes before
// must not be part of the same path or of an address. Some agents write a path
// as a name, as in projects/-home-ann-work.
var home = regexp.MustCompile(`(?:^|file://|[^A-Za-z0-9_./~-])((?:[A-Za-z]:)?[/\\]+Users[/\\]+[^\s/\\<>:*?|"'` + "`" + `,;()\[\]{}]+|/home/[^\s/\\<>:*?|"'` + "`" + `,;()\[\]{}]+)|(?:^|[/"'\s])(-(?:home|Users)-[A-Za-z0-9_]+)`)

// mayBeHome is a cheap look for what home wants.
func mayBeHome(s string) bool {
	return strings.Contains(s, "/home/") || strings.Contains(s, "-home-") || strings.Contains(s, "Users")
}

// checkHomePath reports each directory once, where it first stands.
func checkHomePath(_ *run, found report) checker {
	type leak struct {
		line  int
		path  string
		dir   string
		lines int
		last  int
	}
	var leaks []*leak
	var tape envelope.Tape
	look := func(line int, ts []stringAt) {
		for _, t := range ts {
			if !mayBeHome(t.text) {
				continue
			}
			for _, m := range home.FindAllStringSubmatch(t.text, -1) {
				dir := strings.TrimRight(m[1]+m[2], ".")
				i := slices.IndexFunc(leaks, func(l *leak) bool { return l.dir == dir })
				if i < 0 {
					leaks = append(leaks, &leak{line: line, path: t.path(), dir: dir})
					i = len(leaks) - 1
				}
				if l := leaks[i]; l.last != line {
					l.last = line
					l.lines++
				}
			}
		}
	}
	return checker{
		header: func(h *envelope.Header) {
			if v, ok := scanned(&tape, h.Metadata); ok {
				look(h.Line, walk(nil, "metadata", v))
			}
		},
		entry: func(s *step) {
			look(s.line, s.texts())
			if e, ok := s.entry.(*envelope.RuntimeExit); ok {
				if v, ok := scanned(&tape, e.Error); ok {
					look(s.line, walk(nil, "error", v))
				}
			}
		},
		end: func() {
			for _, l := range leaks {
				more := ""
				if l.lines > 1 {
					more = fmt.Sprintf(", in %d lines", l.lines)
				}
				found(l.line, l.path, "redact it, or record in a neutral directory", "home directory %s%s", l.dir, more)
			}
		},
	}
}
