package lint

import (
	"path"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
	"github.com/replaypeer/replaypeer/schemas"
)

// codexPublished finds what `codex app-server generate-json-schema` writes. A
// file per side and kind lists the messages as alternatives, each with one
// method; an answer's file is named for its request's parameters.
type codexPublished struct {
	set    *schemas.Published
	folder string // "stable/", or "experimental/" once the client has asked for that
}

var codexUnions = map[envelope.Direction]map[flavors.Kind]string{
	envelope.Out: {flavors.Request: "ClientRequest.json", flavors.Notification: "ClientNotification.json"},
	envelope.In:  {flavors.Request: "ServerRequest.json", flavors.Notification: "ServerNotification.json"},
}

func (c *codexPublished) find(s *step) ([]described, error) {
	f := s.frame
	if f.Method == "initialize" && gjson.GetBytes(f.Raw, "params.capabilities.experimentalApi").Bool() {
		c.folder = "experimental/"
	}
	if f.Kind == flavors.Response {
		return c.answer(s)
	}
	union := c.folder + codexUnions[s.dir][f.Kind]
	what := f.Kind.String() + " " + f.Method
	i, _, err := c.branch(union, f.Method)
	if err != nil {
		return nil, err
	}
	if i == "" {
		return []described{{path: "frame.method", what: what}}, nil
	}
	return []described{{union, []string{"oneOf", i}, "frame", f.Raw, what}}, nil
}

// branch returns the index of a method's alternative in a union, "" where it
// has none.
func (c *codexPublished) branch(union, method string) (index string, branch gjson.Result, err error) {
	raw, err := c.set.Raw(union)
	if err != nil {
		return "", branch, err
	}
	gjson.GetBytes(raw, "oneOf").ForEach(func(i, b gjson.Result) bool {
		if b.Get("properties.method.enum.0").Str != method {
			return true
		}
		index, branch = i.String(), b
		return false
	})
	return index, branch, nil
}

func (c *codexPublished) answer(s *step) ([]described, error) {
	if member(s.frame.Raw, "error") != nil {
		return []described{{c.folder + "JSONRPCError.json", nil, "frame", s.frame.Raw, "error"}}, nil
	}
	if s.answers == nil {
		return nil, nil
	}
	method := s.answers.frame.Method
	_, branch, err := c.branch(c.folder+codexUnions[s.dir.Opposite()][flavors.Request], method)
	if err != nil {
		return nil, err
	}
	ref := branch.Get("properties.params.$ref").Str
	if ref == "" { // it may be left out
		ref = branch.Get("properties.params.anyOf.0.$ref").Str
	}
	name, ok := strings.CutSuffix(path.Base(ref), "Params")
	if !ok {
		return nil, nil // without parameters there is nothing to go by
	}
	for _, folder := range []string{"v2/", "v1/", ""} {
		file := c.folder + folder + name + "Response.json"
		raw, err := c.set.Raw(file)
		if err != nil {
			return nil, err
		}
		if raw != nil {
			return []described{{file, nil, "frame.result", member(s.frame.Raw, "result"), "answer to " + method}}, nil
		}
	}
	return nil, nil
}
