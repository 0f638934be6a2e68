package flavors

import (
	"encoding/json"
	"slices"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// option says how one member of the SDK's options stands in the logged form.
// What no option names is left out: keys, tokens, servers, the bodies of
// subagents and tools. The logged form of the logged form is itself.
//
//	live    {"model":{"id":"m"},"name":"n","apiKey":"…","local":{"cwd":"/ws","sandboxOptions":{"enabled":true}}}
//	logged  {"model":{"id":"m"},"hasName":true,"local":{"hasCwd":true,"sandboxEnabled":true}}
type option struct {
	key  string
	flag string // the presence flag that stands for it; "" for none
	// names is true where an object is replaced by the list of its keys.
	names bool
	// lift names the member that takes the place of an object, under flag.
	lift string
	// members are those of an object; nil keeps the value as it is.
	members []option
}

var agentOptions = []option{
	{key: "model"},
	{key: "mode"},
	{key: "agentId"},
	{key: "idempotencyKey"},
	{key: "tools"},
	{key: "disallowedTools"},
	{key: "name", flag: "hasName"},
	{key: "systemPrompt", flag: "hasSystemPrompt"},
	{key: "cloud", flag: "hasCloud"},
	{key: "agents", names: true},
	{key: "local", members: []option{
		{key: "autoReview"},
		{key: "settingSources"},
		{key: "enableAgentRetries"},
		{key: "sandboxEnabled"},
		{key: "sandboxOptions", flag: "sandboxEnabled", lift: "enabled"},
		{key: "cwd", flag: "hasCwd"},
		{key: "dirs", flag: "hasDirs"},
		{key: "customTools", flag: "hasCustomTools"},
	}},
}

var runOptions = []option{
	{key: "model"},
	{key: "mode"},
	{key: "idempotencyKey"},
	{key: "cloud", flag: "hasCloud"},
	{key: "local", members: []option{
		{key: "force"},
		{key: "customTools", flag: "hasCustomTools"},
	}},
}

// logOptions returns the frame with its options in the logged form: the raw
// frame itself when they are, else changed is the path of the first that is
// not.
func logOptions(f Frame) (raw json.RawMessage, changed string) {
	switch f.Method {
	case "agent.open":
		return project(f.Raw, []option{{key: "options", members: agentOptions}}, true)
	case "run.start":
		return project(f.Raw, []option{{key: "options", members: runOptions}}, true)
	}
	return f.Raw, ""
}

// project returns an object, which must be valid JSON, with its members as the
// options say, in their order. open keeps those that no option names.
func project(object json.RawMessage, options []option, open bool) (out json.RawMessage, changed string) {
	i := envelope.SkipSpace(object, 0)
	if object[i] != '{' {
		return object, ""
	}
	out = append(make([]byte, 0, len(object)), '{')
	_ = envelope.EachMember(object[i:], func(key, value []byte) error { // fn returns no error
		key = unescaped(key)
		name := envelope.Unquote(key)
		k, v, path := project1(name, key, value, options, open)
		if path != "" && changed == "" {
			changed = path
		}
		if k == nil {
			return nil
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, k...), ':'), v...)
		return nil
	})
	if changed == "" {
		return object, ""
	}
	return append(out, '}'), changed
}

// project1 returns a member as it is logged, no key for one that is left out,
// and the path of what differs.
func project1(name string, key, value []byte, options []option, open bool) (k, v []byte, changed string) {
	at := slices.IndexFunc(options, func(o option) bool { return o.key == name })
	if at < 0 {
		if open || isFlag(name, value) {
			return key, value, ""
		}
		return nil, nil, name
	}
	o := options[at]
	null := value[0] == 'n'
	switch {
	case o.lift != "":
		var lifted json.RawMessage
		if value[0] == '{' {
			_ = envelope.EachMember(value, func(k, v []byte) error {
				if envelope.Unquote(k) == o.lift {
					lifted = v
				}
				return nil
			})
		}
		if lifted == nil {
			return nil, nil, name
		}
		return envelope.AppendString(nil, o.flag), lifted, name
	case o.flag != "" && null:
		return nil, nil, name
	case o.flag != "":
		return envelope.AppendString(nil, o.flag), []byte("true"), name
	case o.names && value[0] == '{':
		return key, keysOf(value), name
	case o.members != nil:
		inner, path := project(value, o.members, false)
		if path != "" {
			path = name + "." + path
		}
		return key, inner, path
	}
	return key, value, ""
}

// isFlag says whether a member is a presence flag already, of these or of
// others that a later client may have: it tells nothing but yes or no.
func isFlag(name string, value []byte) bool {
	return len(name) > 3 && name[:3] == "has" && name[3] >= 'A' && name[3] <= 'Z' && (value[0] == 't' || value[0] == 'f')
}

// keysOf returns the sorted keys of an object as a JSON array.
func keysOf(object []byte) []byte {
	var names []string
	_ = envelope.EachMember(object, func(key, _ []byte) error {
		names = append(names, envelope.Unquote(key))
		return nil
	})
	slices.Sort(names)
	list := []byte{'['}
	for i, n := range names {
		if i > 0 {
			list = append(list, ',')
		}
		list = envelope.AppendString(list, n)
	}
	return append(list, ']')
}
