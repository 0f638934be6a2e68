package flavors

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// flagKind is what an argument becomes in the options of query.open.
type flagKind uint8

const (
	flagText     flagKind = iota // its value
	flagNumber                   // its value, as a number where it is one
	flagList                     // its values, split at commas
	flagTools                    // a list, or the preset
	flagSettings                 // the settings' harmless part
	flagServers                  // the names of MCP servers
	flagGiven                    // true; the value is a secret, a path or prose
	flagTrue                     // true; it has no value
	flagFalse                    // false; it has no value
	flagWire                     // nothing: the wire's own, it has a value
	flagWireOnly                 // nothing: the wire's own, it has no value
)

// hasValue says whether a value follows in an argument of its own, when it
// does not follow an equals sign.
func (k flagKind) hasValue() bool {
	return k != flagTrue && k != flagFalse && k != flagWireOnly
}

type claudeFlag struct {
	name   string
	option string
	kind   flagKind
	core   bool
}

// claudeFlags are the arguments that are known, in the order in which their
// options stand in query.open.
var claudeFlags = []claudeFlag{
	{"model", "model", flagText, true},
	{"tools", "tools", flagTools, true},
	{"permission-mode", "permissionMode", flagText, true},
	{"allow-dangerously-skip-permissions", "allowDangerouslySkipPermissions", flagTrue, true},
	{"allowedTools", "allowedTools", flagList, true},
	{"allowed-tools", "allowedTools", flagList, true},
	{"disallowedTools", "disallowedTools", flagList, true},
	{"disallowed-tools", "disallowedTools", flagList, true},
	{"settings", "settings", flagSettings, true},
	{"session-id", "sessionId", flagText, true},
	{"resume", "resume", flagText, true},
	{"continue", "continue", flagTrue, true},
	{"resume-session-at", "resumeSessionAt", flagText, true},
	{"fork-session", "forkSession", flagTrue, true},

	{"dangerously-skip-permissions", "dangerouslySkipPermissions", flagTrue, false},
	{"fallback-model", "fallbackModel", flagText, false},
	{"agent", "agent", flagText, false},
	{"effort", "effort", flagText, false},
	{"thinking", "thinking", flagText, false},
	{"thinking-display", "thinkingDisplay", flagText, false},
	{"max-turns", "maxTurns", flagNumber, false},
	{"max-thinking-tokens", "maxThinkingTokens", flagNumber, false},
	{"max-budget-usd", "maxBudgetUsd", flagNumber, false},
	{"task-budget", "taskBudget", flagNumber, false},
	{"betas", "betas", flagList, false},
	{"setting-sources", "settingSources", flagList, false},
	{"permission-prompts", "permissionPrompts", flagText, false},
	{"include-partial-messages", "includePartialMessages", flagTrue, false},
	{"include-hook-events", "includeHookEvents", flagTrue, false},
	{"replay-user-messages", "replayUserMessages", flagTrue, false},
	{"session-mirror", "sessionMirror", flagTrue, false},
	{"strict-mcp-config", "strictMcpConfig", flagTrue, false},
	{"no-session-persistence", "persistSession", flagFalse, false},
	{"mcp-config", "mcpServers", flagServers, false},
	{"permission-prompt-tool", "canUseTool", flagGiven, false},
	{"json-schema", "outputFormat", flagGiven, false},
	{"add-dir", "additionalDirectories", flagGiven, false},
	{"plugin-dir", "plugins", flagGiven, false},
	{"plugin-dir-no-mcp", "plugins", flagGiven, false},
	{"managed-settings", "managedSettings", flagGiven, false},
	{"project-config-root", "projectConfigRoot", flagGiven, false},
	{"system-prompt", "systemPrompt", flagGiven, false},
	{"append-system-prompt", "appendSystemPrompt", flagGiven, false},
	{"agents", "agents", flagServers, false},

	{name: "input-format", kind: flagWire},
	{name: "output-format", kind: flagWire},
	{name: "initialize-fields", kind: flagWire},
	{name: "debug-file", kind: flagWire},
	{name: "debug", kind: flagWireOnly},
	{name: "verbose", kind: flagWireOnly},
	{name: "print", kind: flagWireOnly},
	{name: "p", kind: flagWireOnly},
	{name: "await-initialize", kind: flagWireOnly},
	{name: "managed-settings-in-initialize", kind: flagWireOnly},
}

// claudeShort are the one-letter flags that have an option.
var claudeShort = map[string]string{"c": "continue", "r": "resume"}

func findFlag(name string) *claudeFlag {
	if long, ok := claudeShort[name]; ok {
		name = long
	}
	i := slices.IndexFunc(claudeFlags, func(f claudeFlag) bool { return f.name == name })
	if i < 0 {
		return nil
	}
	return &claudeFlags[i]
}

// options is the projection of a process's arguments and its initialize
// request, nil for none.
func (c *claudeCodec) options(initialize object) json.RawMessage {
	given, other := readFlags(c.args)
	var o object
	for _, f := range claudeFlags {
		if v := given.get(f.option); v != nil && (f.core || c.full) && o.get(f.option) == nil {
			o = o.with(f.option, v)
		}
	}
	for _, m := range initializeOptions(initialize) {
		core := m.key == "settings" || m.key == "disallowedTools"
		if (core || c.full) && o.get(m.key) == nil {
			o = append(o, m)
		}
	}
	if c.full && len(other) > 0 {
		slices.Sort(other)
		o = o.with("otherFlags", list(slices.Compact(other)))
	}
	return o.json()
}

// readFlags reads arguments: options by name, and the names of flags that are
// not known. Of a flag given twice the last one counts, as for the provider.
func readFlags(args []string) (given object, other []string) {
	for i := 0; i < len(args); i++ {
		name, dashed := strings.CutPrefix(args[i], "-")
		name = strings.TrimPrefix(name, "-")
		if !dashed || name == "" {
			continue // the value of a flag that is not known, or an argument that says nothing here
		}
		name, text, hasText := strings.Cut(name, "=")
		f := findFlag(name)
		if f == nil {
			other = append(other, name)
			continue
		}
		values := []string{text}
		if f.kind.hasValue() && !hasText {
			values = nil
			for i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") && (len(values) == 0 || f.kind == flagList) {
				values = append(values, args[i+1])
				i++
			}
		}
		if v := flagValue(f.kind, values); v != nil {
			given = given.without(f.option).with(f.option, v)
		}
	}
	return given, other
}

func flagValue(kind flagKind, values []string) json.RawMessage {
	text := strings.Join(values, ",")
	switch kind {
	case flagNumber:
		if text != "" && text[0] >= '0' && text[0] <= '9' && envelope.Valid([]byte(text)) {
			return json.RawMessage(text)
		}
		return quoted(text)
	case flagList:
		return list(splitTools(text))
	case flagTools:
		if text == "default" {
			return json.RawMessage(`{"type":"preset","preset":"claude_code"}`)
		}
		return list(splitTools(text))
	case flagSettings:
		return keptSettings(json.RawMessage(text))
	case flagServers:
		o, err := readObject([]byte(text))
		if err != nil {
			return truth // a file
		}
		if in := o.get("mcpServers"); in != nil {
			return names(in)
		}
		return names(o.json())
	case flagGiven, flagTrue:
		return truth
	case flagFalse:
		return json.RawMessage("false")
	case flagWire, flagWireOnly:
		return nil
	}
	return quoted(text)
}

// splitTools splits a list at its commas, but not inside parentheses, where a
// tool's rule may have some.
func splitTools(text string) []string {
	var tools []string
	depth, start := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth <= 0 {
				tools = append(tools, text[start:i])
				start = i + 1
			}
		}
	}
	if start == len(text) && tools == nil {
		return nil
	}
	return append(tools, text[start:])
}

// names returns the keys of an object as a list; of anything else that it is
// there.
func names(raw json.RawMessage) json.RawMessage {
	o, err := readObject(raw)
	if err != nil {
		return truth
	}
	keys := make([]string, len(o))
	for i, m := range o {
		keys[i] = m.key
	}
	return list(keys)
}

// keptSettings is the part of settings that holds no secret and no path:
// booleans, numbers and a few strings. Of the rest it tells that it is there.
func keptSettings(raw json.RawMessage) json.RawMessage {
	o, err := readObject(raw)
	if err != nil {
		return truth
	}
	for i, m := range o {
		switch m.key {
		case "model", "effortLevel", "outputStyle", "language":
			if m.value[0] == '"' {
				continue
			}
		}
		if strings.IndexByte(`"{[`, m.value[0]) >= 0 {
			o[i].value = truth
		}
	}
	return o.json()
}
