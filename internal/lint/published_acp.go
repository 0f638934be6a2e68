package lint

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
	"github.com/replaypeer/replaypeer/schemas"
)

// acpPublished finds the definitions of ACP's schema: each names its method and
// the side that gets it. Versions 1 and 2 have a file each.
type acpPublished struct {
	set  *schemas.Published
	file string // of the version that was agreed on
}

func (a *acpPublished) find(s *step) ([]described, error) {
	f, method := s.frame, s.frame.Method
	if s.answers != nil {
		method = s.answers.frame.Method
	}
	if method == "initialize" {
		a.agree(f)
	}
	if strings.HasPrefix(method, "_") {
		return nil, nil // an extension, which the protocol leaves to its owner
	}
	receiver := map[envelope.Direction]string{envelope.Out: "agent", envelope.In: "client"}[s.dir]
	if f.Kind == flavors.Response {
		if raw := member(f.Raw, "error"); raw != nil {
			return []described{{a.file, []string{"$defs", "Error"}, "frame.error", raw, "error"}}, nil
		}
		receiver = map[envelope.Direction]string{envelope.Out: "client", envelope.In: "agent"}[s.dir]
	}
	name, err := a.definition(method, receiver, f.Kind)
	switch {
	case err != nil:
		return nil, err
	case name == "" && f.Kind == flavors.Response:
		return nil, nil // its request was told of
	case name == "":
		return []described{{path: "frame.method", what: f.Kind.String() + " " + method}}, nil
	}
	part, what := "params", f.Kind.String()+" "+method
	if f.Kind == flavors.Response {
		part, what = "result", "answer to "+method
	}
	value := member(f.Raw, part)
	if value == nil {
		value = json.RawMessage("{}") // parameters may be left out
	}
	return []described{{a.file, []string{"$defs", name}, "frame." + part, value, what}}, nil
}

// agree takes the version that a message of initialize is written in.
func (a *acpPublished) agree(f *flavors.Frame) {
	a.file = "v1.json"
	for _, path := range []string{"params.protocolVersion", "result.protocolVersion"} {
		if gjson.GetBytes(f.Raw, path).Int() == 2 {
			a.file = "v2.json"
		}
	}
}

// definition returns the name of a message's definition, "" where it has none.
func (a *acpPublished) definition(method, receiver string, kind flavors.Kind) (name string, err error) {
	raw, err := a.set.Raw(a.file)
	if err != nil {
		return "", err
	}
	suffix := map[flavors.Kind]string{flavors.Request: "Request", flavors.Response: "Response", flavors.Notification: "Notification"}[kind]
	gjson.GetBytes(raw, "$defs").ForEach(func(key, def gjson.Result) bool {
		side := def.Get("x-side").Str
		if def.Get("x-method").Str != method || side != receiver && side != "protocol" || !strings.HasSuffix(key.Str, suffix) {
			return true
		}
		name = key.Str
		return false
	})
	return name, nil
}
