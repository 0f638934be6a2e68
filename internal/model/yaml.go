package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// fields says how to read each field of a mapping.
type fields map[string]func(*yaml.Node) error

// mapping reads a mapping with no other fields than the given ones.
func mapping(n *yaml.Node, f fields) error {
	if n.Kind != yaml.MappingNode {
		return at(n, "want a mapping")
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		parse, ok := f[key.Value]
		switch {
		case !ok:
			return at(key, "unknown field %q", key.Value)
		case seen[key.Value]:
			return at(key, "field %q twice", key.Value)
		}
		seen[key.Value] = true
		if err := parse(resolve(value)); err != nil {
			return err
		}
	}
	return nil
}

func list(n *yaml.Node, each func(*yaml.Node) error) error {
	if n.Kind != yaml.SequenceNode {
		return at(n, "want a list")
	}
	for _, item := range n.Content {
		if err := each(resolve(item)); err != nil {
			return err
		}
	}
	return nil
}

// resolve follows an alias.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func str(to *string) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
			return at(n, "want a string: put it in quotes")
		}
		if n.Value == "" {
			return at(n, "want a string that is not empty")
		}
		*to = n.Value
		return nil
	}
}

func integer(to *int, least int) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if err := decode(n, to); err != nil || *to < least {
			return at(n, "want a whole number, %d or more", least)
		}
		return nil
	}
}

func duration(to *time.Duration) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		d, err := time.ParseDuration(n.Value)
		if err != nil || d <= 0 {
			return at(n, "want a duration such as 200ms")
		}
		*to = d
		return nil
	}
}

func toJSON(n *yaml.Node) (json.RawMessage, error) {
	var v any
	if err := decode(n, &v); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // a model writes "<", not "\u003c"
	if err := enc.Encode(v); err != nil {
		return nil, at(n, "no JSON value: %v", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

func decode(n *yaml.Node, to any) error {
	err := n.Decode(to)
	var wrong *yaml.TypeError
	if errors.As(err, &wrong) {
		return errors.New(strings.TrimPrefix(wrong.Errors[0], "line ")) // it has the line already
	}
	return err
}

func at(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%d: %s", n.Line, fmt.Sprintf(format, args...))
}
