package model

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Load reads a script file, which is YAML or JSON. Errors start with
// "file:line: ".
func Load(path string) (*Script, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read model script: %w", err)
	}
	return Parse(path, data)
}

// Parse reads a script; name stands in errors.
func Parse(name string, data []byte) (*Script, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if err == io.EOF {
			return nil, fmt.Errorf("%s:1: empty model script", name)
		}
		return nil, fmt.Errorf("%s:%s", name, syntaxError(err))
	}
	if err := dec.Decode(&more); err != io.EOF {
		return nil, fmt.Errorf("%s:%d: a script is one document", name, max(more.Line, 1))
	}
	s := &Script{File: name}
	err := mapping(doc.Content[0], fields{
		"replies": func(n *yaml.Node) error {
			return list(n, func(n *yaml.Node) error {
				r, err := parseReply(n, len(s.Replies)+1)
				s.Replies = append(s.Replies, r)
				return err
			})
		},
	})
	if err == nil {
		err = s.check(doc.Content[0])
	}
	if err != nil {
		return nil, fmt.Errorf("%s:%w", name, err)
	}
	return s, nil
}

// syntaxError turns "yaml: line 3: …" into "3: …".
func syntaxError(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		return rest
	}
	return "1: " + text
}

// check finds replies that can never be reached.
func (s *Script) check(doc *yaml.Node) error {
	if len(s.Replies) == 0 {
		return at(doc, "script has no replies")
	}
	seen, names := map[When]int{}, map[string]int{}
	for _, r := range s.Replies {
		if line := seen[r.When]; line > 0 {
			return fmt.Errorf("%d: the reply in line %d is for the same requests", r.Line, line)
		}
		if line := names[r.Name]; line > 0 {
			return fmt.Errorf("%d: the reply in line %d has the name %q too", r.Line, line, r.Name)
		}
		seen[r.When], names[r.Name] = r.Line, r.Line
	}
	return nil
}

func parseReply(n *yaml.Node, ordinal int) (Reply, error) {
	r := Reply{Name: "r" + strconv.Itoa(ordinal), Line: n.Line}
	err := mapping(n, fields{
		"name": str(&r.Name),
		"when": func(n *yaml.Node) error {
			return mapping(n, fields{
				"user":        str(&r.When.User),
				"toolResults": integer(&r.When.ToolResults, 0),
				"agent":       str(&r.When.Agent),
				"probe":       func(n *yaml.Node) error { return decode(n, &r.When.Probe) },
				"tools": func(n *yaml.Node) error {
					var offered bool
					err := decode(n, &offered)
					r.When.Tools = map[bool]string{true: "yes", false: "no"}[offered]
					return err
				},
				"attempt": integer(&r.When.Attempt, 1),
			})
		},
		"error": func(n *yaml.Node) (err error) {
			r.Error, err = parseError(n, true)
			return err
		},
		"items": func(n *yaml.Node) error {
			r.Items = []Item{} // an empty list is an answer without output
			return list(n, func(n *yaml.Node) error {
				it, err := parseItem(n)
				r.Items = append(r.Items, it)
				return err
			})
		},
	})
	switch {
	case err != nil:
		return r, err
	case r.Error != nil && r.Items != nil:
		return r, at(n, "a reply has items or an error, not both")
	case r.Error == nil && r.Items == nil:
		return r, at(n, "a reply wants items or an error")
	}
	return r, nil
}

func parseError(n *yaml.Node, http bool) (*HTTPError, error) {
	e := &HTTPError{Message: "scripted error"}
	f := fields{"code": str(&e.Code), "message": str(&e.Message)}
	if http {
		e.Status = 500
		f["status"] = integer(&e.Status, 400)
		f["headers"] = func(n *yaml.Node) error { return decode(n, &e.Headers) }
	}
	return e, mapping(n, f)
}

// itemKinds are the fields of which an item has one.
var itemKinds = []string{"text", "reasoning", "call", "custom", "raw", "delay", "hold", "cut", "failed"}

func parseItem(n *yaml.Node) (it Item, err error) {
	kinds, chunks := 0, 0
	kind := func(parse func(*yaml.Node) error) func(*yaml.Node) error {
		return func(n *yaml.Node) error {
			kinds++
			return parse(n)
		}
	}
	call := func(custom bool) func(*yaml.Node) error {
		return kind(func(n *yaml.Node) (err error) {
			it.Call, err = parseCall(n, custom)
			return err
		})
	}
	err = mapping(n, fields{
		"text":      kind(func(n *yaml.Node) (err error) { it.Text, err = parseText(n); return err }),
		"chunks":    integer(&chunks, 1),
		"phase":     str(&it.Phase),
		"reasoning": kind(str(&it.Reasoning)),
		"call":      call(false),
		"custom":    call(true),
		"raw":       kind(func(n *yaml.Node) (err error) { it.Raw, err = toJSON(n); return err }),
		"delay":     kind(duration(&it.Delay)),
		"hold":      kind(str(&it.Hold)),
		"cut":       kind(func(n *yaml.Node) error { return decode(n, &it.Cut) }),
		"failed":    kind(func(n *yaml.Node) (err error) { it.Failed, err = parseError(n, false); return err }),
	})
	switch {
	case err != nil:
		return it, err
	case kinds != 1:
		return it, at(n, "an item wants one of %s", strings.Join(itemKinds, ", "))
	case it.Text == nil && (chunks > 0 || it.Phase != ""):
		return it, at(n, "chunks and phase belong to text")
	case chunks > 0 && len(it.Text) > 1:
		return it, at(n, "a text in pieces can't be cut into chunks")
	case chunks > 0:
		it.Text = chunk(it.Text[0].Text, chunks)
	}
	return it, nil
}

// parseText reads a string, or a list of strings and what happens between.
func parseText(n *yaml.Node) (pieces []Piece, err error) {
	if n.Kind == yaml.ScalarNode {
		pieces = make([]Piece, 1)
		return pieces, str(&pieces[0].Text)(n)
	}
	err = list(n, func(n *yaml.Node) error {
		var p Piece
		defer func() { pieces = append(pieces, p) }()
		if n.Kind == yaml.ScalarNode {
			return str(&p.Text)(n)
		}
		kinds := 0
		kind := func(parse func(*yaml.Node) error) func(*yaml.Node) error {
			return func(n *yaml.Node) error {
				kinds++
				return parse(n)
			}
		}
		err := mapping(n, fields{
			"delay": kind(duration(&p.Delay)), "hold": kind(str(&p.Hold)),
			"cut": kind(func(n *yaml.Node) error { return decode(n, &p.Cut) }),
		})
		if err == nil && kinds != 1 {
			err = at(n, "want a string, a delay, a hold or a cut")
		}
		return err
	})
	if err == nil && text(pieces) == "" {
		err = at(n, "a text wants a string")
	}
	return pieces, err
}

func parseCall(n *yaml.Node, custom bool) (*Call, error) {
	c := &Call{Custom: custom, Input: "{}"}
	f := fields{"name": str(&c.Name), "id": str(&c.ID), "namespace": str(&c.Namespace)}
	if custom {
		f["input"] = str(&c.Input)
	} else {
		f["arguments"] = func(n *yaml.Node) error {
			raw, err := toJSON(n)
			c.Input = string(raw)
			return err
		}
	}
	if err := mapping(n, f); err != nil {
		return nil, err
	}
	if c.Name == "" {
		return nil, at(n, "a call wants a name")
	}
	return c, nil
}
