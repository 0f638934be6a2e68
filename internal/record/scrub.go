package record

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// ruleSet names what scrubber does, for metadata.redaction.
const ruleSet = "paths/1"

// scrubber replaces the machine's paths in the strings and keys of frames, and
// escapes literal text that reads like a placeholder. It splices: all other
// bytes of a frame stay as they are. Not safe for concurrent use.
//
//	            inbound         outbound
//	workspace   <workspace>     <workspace>
//	home        <home>          <path> where it is all of the string, else <any>
//	tmp         <tmp>           the same
//
// <home> and <tmp> are plain data: the client gets to see them. In what the
// client sends they would have to match, so there a placeholder that matches
// any machine stands instead. <workspace> is what the replay makes of it.
type scrubber struct {
	forms  []form // longest first
	prose  map[string]bool
	counts map[string]int
}

// form is one way to write a directory.
type form struct {
	text string
	name string // workspace, home or tmp
}

// edit replaces part of a decoded string.
type edit struct {
	start, end int
	text       string // needs no escaping in JSON
	name       string // what is counted
}

func newScrubber(o *Options) *scrubber {
	s := &scrubber{counts: map[string]int{}, prose: proseKeys[o.Flavor.Protocol]}
	for _, d := range []form{{o.Workspace, "workspace"}, {o.Home, "home"}, {o.Tmp, "tmp"}} {
		if d.text == "" {
			continue
		}
		s.add(d.text, d.name)
		if abs, err := filepath.Abs(d.text); err == nil {
			s.add(abs, d.name)
			if real, err := filepath.EvalSymlinks(abs); err == nil {
				s.add(real, d.name)
			}
		}
	}
	s.sort()
	return s
}

// sort puts the longest form first.
func (s *scrubber) sort() {
	slices.SortStableFunc(s.forms, func(a, b form) int { return cmp.Compare(len(b.text), len(a.text)) })
}

// add adds the forms of a directory: as it is, and as JSON inside a string
// writes it. Directories that say nothing about the machine are left alone.
func (s *scrubber) add(dir, name string) {
	dir = filepath.Clean(dir)
	if !filepath.IsAbs(dir) || dir == filepath.VolumeName(dir)+string(filepath.Separator) || dir == "/tmp" || dir == "/var/tmp" {
		return
	}
	quoted := string(envelope.AppendString(nil, dir))
	for _, text := range []string{dir, quoted[1 : len(quoted)-1], strings.ReplaceAll(dir, "/", `\/`)} {
		if !slices.ContainsFunc(s.forms, func(f form) bool { return f.text == text }) {
			s.forms = append(s.forms, form{text, name})
		}
	}
}

// frame returns raw with its strings and keys edited, raw itself when there is
// nothing to edit. raw must be valid JSON.
func (s *scrubber) frame(dir envelope.Direction, raw json.RawMessage) json.RawMessage {
	var out []byte
	kept := 0 // raw up to here is in out
	key := ""
	for i := 0; i < len(raw); {
		if raw[i] != '"' {
			if raw[i] != ':' && raw[i] != ' ' && raw[i] != '\t' {
				key = "" // only a string right after its key belongs to it
			}
			i++
			continue
		}
		end := envelope.SkipString(raw, i)
		isKey := followedByColon(raw, end)
		text := envelope.Unquote(raw[i:end])
		edits := s.edits(dir, text, isKey, key)
		for _, e := range locate(raw[i:end], edits) {
			out = append(append(out, raw[kept:i+e.start]...), e.text...)
			kept = i + e.end
			s.counts[e.name]++
		}
		key = ""
		if isKey {
			key = text
		}
		i = end
	}
	if kept == 0 {
		return raw
	}
	return append(out, raw[kept:]...)
}

func followedByColon(raw []byte, i int) bool {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\t') {
		i++
	}
	return i < len(raw) && raw[i] == ':'
}

// edits returns what to change in one decoded string, in order and apart.
func (s *scrubber) edits(dir envelope.Direction, text string, isKey bool, key string) []edit {
	if dir == envelope.In && !isKey && s.prose[key] && len(text) >= proseMin {
		return []edit{{0, len(text), "<vendor-prose>", "vendorProse"}}
	}
	paths := s.paths(text)
	edits := make([]edit, 0, len(paths))
	for _, p := range paths {
		after := p.start > 0 && text[p.start-1] == '<' // "<" before a placeholder would escape it
		switch {
		case p.name == "workspace" && !after:
			p.text = "<workspace>"
		case dir == envelope.In || isKey:
			p.text = "<" + p.name + ">"
			if p.name == "workspace" {
				p.text = "[workspace]"
			}
		case after:
			return []edit{{0, len(text), "<string>", p.name}}
		case p.start == 0 && len(paths) == 1 && !strings.ContainsAny(text[p.end:], " \t\r\n<"):
			return []edit{{0, len(text), "<path>", p.name}}
		default:
			p.text = "<any>"
		}
		edits = append(edits, p)
	}
	for _, at := range literals(text) {
		if !slices.ContainsFunc(paths, func(p edit) bool { return at >= p.start && at < p.end }) {
			edits = append(edits, edit{at, at, "<", "literal"})
		}
	}
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Compare(a.start, b.start) })
	return edits
}

// paths finds the directories in a decoded string, the longest at each place.
func (s *scrubber) paths(text string) (found []edit) {
	next := make([]int, 0, 16) // per form, where it stands next; past the end for nowhere
	for _, f := range s.forms {
		next = append(next, find(text, f.text, 0))
	}
	for at := 0; ; {
		best := -1
		for k, f := range s.forms {
			if next[k] < at {
				next[k] = find(text, f.text, at)
			}
			if next[k] < len(text) && (best < 0 || next[k] < next[best]) {
				best = k
			}
		}
		if best < 0 {
			return found
		}
		start := next[best]
		end := start + len(s.forms[best].text)
		if !leftBoundary(text, start) || !rightBoundary(text, end) {
			next[best] = find(text, s.forms[best].text, start+1)
			continue
		}
		found = append(found, edit{start: start, end: end, name: s.forms[best].name})
		at = end
	}
}

// find is strings.Index from an offset, past the end when there is none.
func find(text, sub string, from int) int {
	if from <= len(text) {
		if i := strings.Index(text[from:], sub); i >= 0 {
			return from + i
		}
	}
	return len(text) + 1
}

// glued is what may stand right before a path although it ends in a name's
// character or a slash: a URL's scheme, a one-letter flag, a colour sequence.
var glued = regexp.MustCompile(`(?:[A-Za-z]://|(?:^|[\s"'=])-[A-Za-z]|\x1b\[[0-9;]*[A-Za-z])$`)

// leftBoundary says whether a path that starts at text[i] starts there as a
// whole: "/ws" does in "cwd=/ws" and not in "/my/ws".
func leftBoundary(text string, i int) bool {
	if i == 0 || !nameByte(text[i-1]) && text[i-1] != '/' {
		return true
	}
	return glued.MatchString(text[max(0, i-24):i])
}

// rightBoundary says the same of its end. A full stop that ends a sentence
// does not go on with a name.
func rightBoundary(text string, i int) bool {
	rest := strings.TrimLeft(text[i:], ".")
	return rest == "" || !nameByte(rest[0]) && (len(rest) == len(text)-i || rest[0] != '/')
}

func nameByte(c byte) bool {
	return c == '_' || c == '-' || c == '.' || c >= 0x80 ||
		c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}
