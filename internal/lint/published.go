package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/schemas"
)

// Published are the schemas that providers publish of their own messages, and
// what was compared with them. Not safe for concurrent use.
type Published struct {
	sets map[string]*schemas.Published // by protocol

	Compared int // frames
	Unknown  int // frames of which the provider publishes nothing to compare with
	Without  int // files of a protocol that has no schemas in the folder
}

// publishedFolders says which folder has a protocol's schemas, whether they are
// of a provider's version, and how to find those of a frame.
var publishedFolders = map[string]struct {
	folder    string
	versioned bool
	find      func(*schemas.Published) published
}{
	"codex.app-server":   {"codex", true, func(s *schemas.Published) published { return &codexPublished{set: s, folder: "stable/"} }},
	"acp.ndjson-jsonrpc": {"acp", false, func(s *schemas.Published) published { return &acpPublished{set: s, file: "v1.json"} }},
	"opencode-sdk.sse":   {"opencode", true, func(s *schemas.Published) published { return &openCodePublished{set: s} }},
}

// published finds the schemas of one conversation's frames. It is called for
// each in order, since what a client asks for decides what it gets.
type published interface {
	find(s *step) ([]described, error)
}

// described is a part of a frame and the schema of it.
type described struct {
	file  string   // "" where the provider knows no such message, and says so nowhere
	keys  []string // below the file
	path  string   // of the part, such as "frame.params"
	value json.RawMessage
	what  string // the message, such as "request turn/start"
}

// OpenPublished returns the schemas that scripts/schemas.sh put into dir. The
// error wraps fs.ErrNotExist when there are none.
func OpenPublished(dir string) (*Published, error) {
	p := &Published{sets: map[string]*schemas.Published{}}
	for protocol, of := range publishedFolders {
		set, err := schemas.OpenPublished(filepath.Join(dir, of.folder))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		default:
			p.sets[protocol] = set
		}
	}
	if len(p.sets) == 0 {
		return nil, fmt.Errorf("%s has no schemas of a provider: %w", dir, fs.ErrNotExist)
	}
	return p, nil
}

// checkPublished compares frames with what their provider publishes, and tells
// each difference once.
func checkPublished(c *run, found report) checker {
	all := c.opts.Published
	if all == nil {
		return checker{}
	}
	var set *schemas.Published
	var finder published
	told := map[string]bool{}
	tell := func(line int, path, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if key := indexes.ReplaceAllString(path, ".#") + "\x00" + text; !told[key] {
			told[key] = true
			found(line, path, differentVersion(set.Version, c.hdr), "%s", text)
		}
	}
	return checker{
		header: func(h *envelope.Header) {
			if set = all.sets[h.Protocol]; set == nil {
				all.Without++
				return
			}
			finder = publishedFolders[h.Protocol].find(set)
		},
		entry: func(s *step) {
			if finder == nil || s.frame == nil {
				return
			}
			parts, err := finder.find(s)
			if err != nil {
				tell(s.line, "frame", "the schemas of %s cannot be read: %v", set.Version, err)
				return
			}
			if len(parts) == 0 {
				all.Unknown++
				return
			}
			all.Compared++
			for _, d := range parts {
				if d.file == "" {
					tell(s.line, d.path, "%s publishes no %s", set.Version, d.what)
					continue
				}
				for _, p := range against(set, s, d) {
					tell(s.line, strings.Join(append([]string{d.path}, pointerPath(p.Pointer)...), "."), "%s: %s", d.what, p.Message)
				}
			}
		},
	}
}

var indexes = regexp.MustCompile(`\.\d+\b`)

// differentVersion is the hint where the schemas and the recording are of
// different versions, "" elsewhere.
func differentVersion(published string, h *envelope.Header) string {
	if !publishedFolders[h.Protocol].versioned || strings.HasSuffix(published, " "+h.Version) {
		return ""
	}
	return "the schemas are of " + published + ", the recording of " + h.Version
}

// against lists what does not fit, apart from placeholders.
func against(set *schemas.Published, s *step, d described) []schemas.Problem {
	err := set.Validate(d.file, d.keys, d.value)
	var invalid *schemas.InvalidError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &invalid):
		return []schemas.Problem{{Message: "the schema cannot be used: " + err.Error()}}
	}
	var left []schemas.Problem
	for _, p := range invalid.Problems {
		if s.dir == envelope.In || p.Keyword == "required" || !placeholderBelow(s, d.path, p.Pointer) {
			left = append(left, p)
		}
	}
	return left
}

// placeholderBelow says whether an expectation has a placeholder at the place
// or below: it stands for a value of another type.
func placeholderBelow(s *step, root, pointer string) bool {
	path := strings.Join(append([]string{root}, pointerPath(pointer)...), ".")
	for _, t := range s.texts() {
		if at := t.path(); t.key || at != path && !strings.HasPrefix(at, path+".") {
			continue
		}
		for _, m := range marks(t.text) {
			if m.whole && m.known() {
				return true
			}
		}
	}
	return false
}

// pointerPath turns a JSON pointer into the keys of a path.
func pointerPath(pointer string) (keys []string) {
	if pointer == "" {
		return nil
	}
	for key := range strings.SplitSeq(pointer[1:], "/") {
		keys = append(keys, pathKey(strings.NewReplacer("~1", "/", "~0", "~").Replace(key)))
	}
	return keys
}

// member is a member of the frame, nil where it has none.
func member(raw json.RawMessage, key string) json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return bytes.TrimSpace(m[key])
}
