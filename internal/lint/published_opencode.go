package lint

import (
	"encoding/json"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
	"github.com/replaypeer/replaypeer/schemas"
)

// openCodePublished finds what OpenCode's server says of itself at /doc, an
// OpenAPI document: operations by their ids, events by their types.
type openCodePublished struct{ set *schemas.Published }

const openCodeDoc = "doc.json"

func (o *openCodePublished) find(s *step) ([]described, error) {
	raw, err := o.set.Raw(openCodeDoc)
	if err != nil {
		return nil, err
	}
	doc := gjson.ParseBytes(raw)
	if s.frame.Kind == flavors.Notification && s.dir == envelope.In {
		return o.event(doc, s), nil
	}
	op := o.operation(doc, s.frame.Method)
	if op == nil {
		if s.dir == envelope.In {
			return nil, nil // its request was told of
		}
		return []described{{path: "frame.type", what: "operation " + s.frame.Method}}, nil
	}
	if s.dir == envelope.Out {
		return op.input(s), nil
	}
	return op.answer(s), nil
}

func (o *openCodePublished) event(doc gjson.Result, s *step) []described {
	event := member(s.frame.Raw, "event")
	kind := gjson.GetBytes(event, "type").Str
	for _, ref := range doc.Get("components.schemas.Event.anyOf.#.$ref").Array() {
		name := path.Base(ref.Str)
		if doc.Get("components.schemas."+gjson.Escape(name)+".properties.type.enum.0").Str == kind {
			return []described{{openCodeDoc, []string{"components", "schemas", name}, "frame.event", event, "event " + kind}}
		}
	}
	return []described{{path: "frame.event.type", what: "event " + kind}}
}

// openCodeOperation is one operation and where it stands.
type openCodeOperation struct {
	name string
	keys []string
	spec gjson.Result
}

func (o *openCodePublished) operation(doc gjson.Result, name string) (op *openCodeOperation) {
	plain := strings.NewReplacer("_", "").Replace // the SDK says promptAsync
	doc.Get("paths").ForEach(func(route, methods gjson.Result) bool {
		methods.ForEach(func(method, spec gjson.Result) bool {
			if strings.EqualFold(plain(spec.Get("operationId").Str), plain(name)) {
				op = &openCodeOperation{name, []string{"paths", route.Str, method.Str}, spec}
			}
			return op == nil
		})
		return op == nil
	})
	return op
}

// input takes a call's input apart again: what the SDK's user gives as one
// object travels in path, query and body.
func (op *openCodeOperation) input(s *step) (parts []described) {
	body := map[string]json.RawMessage{}
	_ = json.Unmarshal(member(s.frame.Raw, "input"), &body) // no input is none
	for i, p := range op.spec.Get("parameters").Array() {
		name := p.Get("name").Str
		value, given := body[name]
		delete(body, name)
		if given && p.Get("schema").Exists() {
			parts = append(parts, described{openCodeDoc, append(slices.Clone(op.keys), "parameters", strconv.Itoa(i), "schema"), "frame.input." + pathKey(name), value, "operation " + op.name})
		}
	}
	schema := op.spec.Get("requestBody.content.application/json.schema")
	if !schema.Exists() {
		return parts
	}
	raw, at := json.RawMessage(nil), "frame.input"
	if len(body) == 1 {
		for name, only := range body { // it may be the body itself
			if !schema.Get("properties."+gjson.Escape(name)).Exists() && len(only) > 0 && only[0] == '{' {
				raw, at = only, at+"."+pathKey(name)
			}
		}
	}
	if raw == nil {
		raw, _ = json.Marshal(body) // cannot fail: members of valid JSON
	}
	return append(parts, described{openCodeDoc, append(slices.Clone(op.keys), "requestBody", "content", "application/json", "schema"), at, raw, "operation " + op.name})
}

// answer finds the schema of the result, or that of an error by its status.
func (op *openCodeOperation) answer(s *step) []described {
	data, failure := member(s.frame.Raw, "data"), member(s.frame.Raw, "error")
	status, part, value := "200", "frame.data", data
	if failure != nil {
		part, value = "frame.error", failure
		if status = gjson.GetBytes(s.frame.Raw, "status").Raw; status == "" {
			return nil // the usual one of this error, which is not told
		}
	}
	if value == nil || !op.spec.Get("responses."+status+".content.application/json.schema").Exists() {
		return nil
	}
	return []described{{openCodeDoc, append(slices.Clone(op.keys), "responses", status, "content", "application/json", "schema"), part, value, "answer to " + op.name}}
}
