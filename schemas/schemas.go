// Package schemas holds the JSON Schemas (draft 2020-12) of everything the
// toolkit writes for others to read: transcript header, entries and metadata,
// replay report, scenario. They are compiled at first use.
//
//	err := schemas.Validate("metadata", doc)
//	// metadata: at /capturedAt: '2026-02-30' is not valid 'date-time'
package schemas

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

//go:embed *.json
var files embed.FS

const (
	base   = "https://github.com/replaypeer/replaypeer/schemas/"
	suffix = ".schema.json"
)

// ErrUnknown is returned by Validate for a name that has no schema.
var ErrUnknown = errors.New("unknown schema")

// Problem is one thing wrong with a document.
type Problem struct {
	Pointer string // JSON pointer to the value concerned; "" is the document itself
	Keyword string // the schema keyword that failed, such as "required"
	Message string // one line, without the pointer
}

// String returns "at POINTER: message", or the message alone for the
// document itself.
func (p Problem) String() string {
	if p.Pointer == "" {
		return p.Message
	}
	return "at " + p.Pointer + ": " + p.Message
}

// InvalidError says why a document does not fit its schema.
type InvalidError struct {
	Schema   string
	Problems []Problem // never empty, ordered by pointer; a missing key is one problem each
}

// Error returns all problems in one line.
func (e *InvalidError) Error() string {
	parts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		parts[i] = p.String()
	}
	return e.Schema + ": " + strings.Join(parts, "; ")
}

// Validate checks doc against the schema called name: the file's name without
// ".schema.json", such as "header" or "metadata.codex". The error is an
// *InvalidError when doc does not fit, wraps ErrUnknown when there is no such
// schema, and is neither when doc is not JSON.
func Validate(name string, doc []byte) error {
	schema, err := compile(name)
	if err != nil {
		return err
	}
	return validate(name, schema, doc)
}

func validate(name string, schema *jsonschema.Schema, doc []byte) error {
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return fmt.Errorf("%s: not JSON: %v", name, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("%s: not JSON: text after the value", name)
	}
	err := schema.Validate(v)
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	problems := flatten(invalid)
	sort.SliceStable(problems, func(i, j int) bool {
		a, b := problems[i], problems[j]
		if a.Pointer != b.Pointer {
			return a.Pointer < b.Pointer
		}
		return a.Message < b.Message
	})
	return &InvalidError{Schema: name, Problems: problems}
}

// Names lists the schemas there are.
func Names() []string {
	entries, _ := files.ReadDir(".") // cannot fail: the folder is embedded
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), suffix); ok {
			names = append(names, name)
		}
	}
	return names
}

// cache holds each schema that was asked for; its mutex guards the map.
var cache = struct {
	sync.Mutex
	schemas map[string]*jsonschema.Schema
}{schemas: map[string]*jsonschema.Schema{}}

func compile(name string) (*jsonschema.Schema, error) {
	cache.Lock()
	defer cache.Unlock()
	if s, ok := cache.schemas[name]; ok {
		return s, nil
	}
	if f, err := files.Open(name + suffix); err != nil {
		return nil, fmt.Errorf("%w %q: want %s", ErrUnknown, name, strings.Join(Names(), ", "))
	} else {
		f.Close()
	}
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft2020
	c.AssertFormat = true
	c.LoadURL = load
	s, err := c.Compile(base + name + suffix)
	if err != nil {
		return nil, fmt.Errorf("compile schema %s: %w", name, err)
	}
	cache.schemas[name] = s
	return s, nil
}

// load resolves references between the embedded files, and none elsewhere.
func load(url string) (io.ReadCloser, error) {
	name, ok := strings.CutPrefix(url, base)
	if !ok {
		return nil, fmt.Errorf("schema %s is not part of the package", url)
	}
	return files.Open(name)
}

// flatten returns the leaves of the error tree. Where alternatives failed, it
// goes on with the one that came furthest, since all of them together are
// unreadable.
func flatten(e *jsonschema.ValidationError) []Problem {
	if len(e.Causes) == 0 {
		return leaf(e)
	}
	var branches [][]Problem
	for _, cause := range e.Causes {
		branches = append(branches, flatten(cause))
	}
	if e.Message == "anyOf failed" || e.Message == "oneOf failed" {
		return nearest(branches)
	}
	var all []Problem
	for _, b := range branches {
		all = append(all, b...)
	}
	return all
}

// nearest picks the alternative that is meant: one whose type and constants fit,
// then the one whose first failure lies deepest, then the one with the fewest
// problems. Alternatives that all fail at one value, for their type or constant,
// are told together.
func nearest(branches [][]Problem) []Problem {
	top := branches[0][0].Pointer // the shortest is the value's own, or its discriminator's
	for _, b := range branches {
		for _, p := range b {
			if len(p.Pointer) < len(top) {
				top = p.Pointer
			}
		}
	}
	meant := slices.DeleteFunc(slices.Clone(branches), func(ps []Problem) bool {
		return slices.ContainsFunc(ps, func(p Problem) bool {
			return strings.HasPrefix(p.Message, "value must be ") && !strings.HasPrefix(p.Message, "value must be one of ") ||
				p.Keyword == "type" && p.Pointer == top
		})
	})
	if len(meant) > 0 {
		branches = meant
	}
	depth := func(ps []Problem) int {
		least := 1 << 30
		for _, p := range ps {
			least = min(least, strings.Count(p.Pointer, "/"))
		}
		return least
	}
	best := branches[0]
	var types []string
	for _, b := range branches {
		if len(b) == 1 && (b[0].Keyword == "type" || b[0].Keyword == "const") && b[0].Pointer == branches[0][0].Pointer {
			types = append(types, b[0].Message)
		}
		if d, most := depth(b), depth(best); d > most || d == most && len(b) < len(best) {
			best = b
		}
	}
	if len(types) == len(branches) {
		p := best[0]
		p.Message = strings.Join(types, ", or ")
		return []Problem{p}
	}
	return best
}

func leaf(e *jsonschema.ValidationError) []Problem {
	pointer, err := url.PathUnescape(e.InstanceLocation)
	if err != nil {
		pointer = e.InstanceLocation // unreachable unless the library stops escaping
	}
	keyword := e.KeywordLocation[strings.LastIndexByte(e.KeywordLocation, '/')+1:]
	p := Problem{Pointer: pointer, Keyword: keyword, Message: reword(keyword, oneLine(e.Message))}
	missing, ok := strings.CutPrefix(e.Message, "missing properties: ")
	if !ok {
		return []Problem{p}
	}
	var ps []Problem
	for key := range strings.SplitSeq(missing, ", ") {
		p.Message = "missing " + strings.Trim(key, "'")
		ps = append(ps, p)
	}
	return ps
}

// reword mends two messages of the library: it quotes numbers, and says "not
// failed" where a value is what it must not be.
func reword(keyword, message string) string {
	switch keyword {
	case "const":
		if number, ok := strings.CutPrefix(message, `value must be "`); ok && json.Valid([]byte(strings.TrimSuffix(number, `"`))) {
			return "value must be " + strings.TrimSuffix(number, `"`)
		}
	case "not":
		return "value is what it must not be"
	}
	return message
}

func oneLine(s string) string {
	return strings.NewReplacer("\n", " ", "\r", " ").Replace(s)
}
