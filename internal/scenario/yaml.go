package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// document is a YAML file as JSON, with the line of every value.
type document struct {
	File  string
	JSON  []byte
	lines map[string]int // by JSON pointer, unescaped
}

// line returns the line of the value at a JSON pointer, or of the nearest
// value around it.
func (d *document) line(pointer string) int {
	for {
		if n, ok := d.lines[pointer]; ok {
			return n
		}
		i := strings.LastIndexByte(pointer, '/')
		if i < 0 {
			return 1
		}
		pointer = pointer[:i]
	}
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// parseYAML reads exactly one document. Keys must be strings, different from
// each other. Errors start with "file:line: ".
func parseYAML(file string, data []byte) (*document, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var root, more yaml.Node
	if err := dec.Decode(&root); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s:1: the file is empty", file)
		}
		return nil, yamlError(file, err)
	}
	switch err := dec.Decode(&more); {
	case err == nil:
		return nil, fmt.Errorf("%s:%d: a second document: want one", file, max(more.Line, 1))
	case !errors.Is(err, io.EOF):
		return nil, yamlError(file, err)
	}
	d := &document{File: file, lines: map[string]int{}}
	v, err := d.value("", root.Content[0])
	if err != nil {
		return nil, err
	}
	d.JSON, err = json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("%s:1: %v", file, err) // such as .nan
	}
	return d, nil
}

func yamlError(file string, err error) error {
	msg := err.Error()
	m := yamlLine.FindStringSubmatch(msg)
	line := "1"
	if m != nil && m[1] != "" {
		line = m[1]
	}
	return fmt.Errorf("%s:%s: %s", file, line, yamlLine.ReplaceAllString(msg, ""))
}

func (d *document) value(at string, n *yaml.Node) (any, error) {
	d.lines[at] = n.Line
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" {
				return nil, fmt.Errorf("%s:%d: key %q is not a string", d.File, key.Line, key.Value)
			}
			if _, ok := m[key.Value]; ok {
				return nil, fmt.Errorf("%s:%d: key %q stands twice", d.File, key.Line, key.Value)
			}
			v, err := d.value(at+"/"+key.Value, n.Content[i+1])
			if err != nil {
				return nil, err
			}
			m[key.Value] = v
		}
		return m, nil
	case yaml.SequenceNode:
		s := make([]any, len(n.Content))
		for i, item := range n.Content {
			v, err := d.value(at+"/"+strconv.Itoa(i), item)
			if err != nil {
				return nil, err
			}
			s[i] = v
		}
		return s, nil
	case yaml.ScalarNode:
		if n.ShortTag() == "!!timestamp" {
			return n.Value, nil // JSON has no times
		}
		var v any
		if err := n.Decode(&v); err != nil {
			return nil, fmt.Errorf("%s:%d: %v", d.File, n.Line, err)
		}
		return v, nil
	default: // an alias, which would let a small file grow without end
		return nil, fmt.Errorf("%s:%d: aliases are not supported", d.File, n.Line)
	}
}
