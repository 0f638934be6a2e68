package flavors

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// initializeOptions is the projection of an initialize request.
func initializeOptions(initialize object) object {
	var o object
	for _, m := range initialize.without("subtype") {
		key, value := m.key, m.value
		switch key {
		case "sdkMcpServerManifests", "sdkMcpServerManifestsOrigin":
			continue // there only when the servers answered in time
		case "systemPrompt":
			if s := string(value); s == `[""]` || s == `""` || s == "[]" {
				continue // what the SDK sends for none
			}
			value = truth
		case "jsonSchema":
			key, value = "outputFormat", truth
		case "hooks":
			value = hookCounts(value)
		case "agents", "toolAliases", "mcpServers", "sdkMcpServerConfigs":
			value = names(value)
		case "settings":
			value = keptSettings(value)
		case "sdkMcpServers", "skills", "supportedDialogKinds", "disallowedTools":
			if !allStrings(value) {
				value = truth
			}
		default:
			if strings.IndexByte(`"{[`, value[0]) >= 0 {
				value = truth
			}
		}
		o = o.without(key).with(key, value)
	}
	return o
}

// hookCounts tells how many callbacks each hook event has.
func hookCounts(raw json.RawMessage) json.RawMessage {
	o, err := readObject(raw)
	if err != nil {
		return truth
	}
	for i, m := range o {
		n := gjson.GetBytes(m.value, "#.hookCallbackIds|@flatten|#").Raw
		if n == "" || !gjson.ParseBytes(m.value).IsArray() {
			n = "0"
		}
		o[i].value = json.RawMessage(n)
	}
	return o.json()
}

func allStrings(raw json.RawMessage) bool {
	v := gjson.ParseBytes(raw)
	all := v.IsArray()
	v.ForEach(func(_, item gjson.Result) bool {
		all = all && item.Type == gjson.String
		return all
	})
	return all
}

// initializeOf makes an initialize request that has the projection: what a
// test client sends. The options that the arguments give are not in it.
func initializeOf(options object, args []string) object {
	given, _ := readFlags(args)
	var body object
	for _, m := range options {
		switch {
		case m.key == "otherFlags" || given.get(m.key) != nil:
			continue
		case m.key == "hooks":
			m.value = hooksOf(m.value)
		case m.key == "agents" || m.key == "toolAliases" || m.key == "mcpServers" || m.key == "sdkMcpServerConfigs":
			m.value = unnames(m.value, "{}")
		}
		body = append(body, m)
	}
	return body
}

// hooksOf makes as many callbacks as are counted.
func hooksOf(counts json.RawMessage) json.RawMessage {
	o, err := readObject(counts)
	if err != nil {
		return counts
	}
	for i, m := range o {
		var ids []string
		for range gjson.ParseBytes(m.value).Int() {
			ids = append(ids, "hook")
		}
		o[i].value = append(append([]byte("["), object{}.with("hookCallbackIds", list(ids)).json()...), ']')
	}
	return o.json()
}

// unnames is names the other way round: an object with the keys, all of one
// value.
func unnames(raw json.RawMessage, value string) json.RawMessage {
	if !allStrings(raw) {
		return raw
	}
	var o object
	for _, v := range gjson.ParseBytes(raw).Array() {
		o = o.with(envelope.Unquote([]byte(v.Raw)), json.RawMessage(value))
	}
	return o.json()
}
