package replay

import (
	"bytes"
	"encoding/json"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// render returns the inbound frame with what stands for something else
// replaced in its strings and keys: <workspace>, <bind:NAME>, escapes, and
// recorded client-chosen values. Every other byte stays. The result is raw
// itself when there is nothing to replace.
func (b *bindings) render(raw json.RawMessage) json.RawMessage {
	if len(b.literals) == 0 && bytes.IndexByte(raw, '<') < 0 && !bytes.Contains(raw, []byte(`\u003`)) {
		return raw
	}
	return splice(raw, func(quoted []byte, _ bool) []byte { return b.renderString(quoted) })
}

// splice replaces strings of valid JSON: fn returns what stands for a quoted
// string, nil for itself. The result is raw itself when nothing changed.
func splice(raw []byte, fn func(quoted []byte, key bool) []byte) []byte {
	var out []byte
	kept := 0 // raw up to here is in out
	for i := 0; i < len(raw); {
		if raw[i] != '"' {
			i++
			continue
		}
		end := envelope.SkipString(raw, i)
		after := end
		for after < len(raw) && (raw[after] == ' ' || raw[after] == '\t') {
			after++
		}
		if v := fn(raw[i:end], after < len(raw) && raw[after] == ':'); v != nil {
			out = append(append(out, raw[kept:i]...), v...)
			kept = end
		}
		i = end
	}
	if kept == 0 {
		return raw
	}
	return append(out, raw[kept:]...)
}

// renderString returns what stands for one quoted string, nil for itself.
func (b *bindings) renderString(quoted []byte) []byte {
	s := envelope.Unquote(quoted)
	if actual, ok := b.literals[s]; ok {
		return envelope.AppendString(nil, actual)
	}
	parts, plain := parseText(s)
	if plain {
		return nil
	}
	if len(parts) == 1 && parts[0].kind == partBind {
		return b.names[parts[0].text]
	}
	text := ""
	for _, p := range parts {
		switch p.kind {
		case partText:
			text += p.text
		case partWorkspace:
			text += b.workspace
		case partBind:
			text += bindText(b.names[p.text])
		case partAny:
			text += "<any>" // means nothing in an inbound frame
		case partTyped:
			text += "<" + p.text + ">"
		}
	}
	return envelope.AppendString(nil, text)
}

// sample turns a frame that stands in a transcript into one that satisfies
// it: placeholders become sample values. It is how a transcript is played
// against itself.
func (b *bindings) sample(raw json.RawMessage) json.RawMessage {
	return splice(raw, func(quoted []byte, key bool) []byte {
		parts, plain := parseText(envelope.Unquote(quoted))
		switch {
		case plain:
			return nil
		case key:
			return envelope.AppendString(nil, keyName(envelope.Unquote(quoted), b.workspace))
		}
		return b.sampleValue(parts)
	})
}

var samples = map[string]string{
	"string": `"sample"`, "int": "1", "number": "1.5", "bool": "true",
	"uuid": `"00000000-0000-4000-8000-000000000000"`, "timestamp": `"2000-01-01T00:00:00Z"`, "path": `"/sample"`,
}

func (b *bindings) sampleValue(parts []part) []byte {
	if len(parts) == 1 {
		switch p := parts[0]; p.kind {
		case partTyped:
			return []byte(samples[p.text])
		case partBind:
			if v, ok := b.names[p.text]; ok {
				return v
			}
			return envelope.AppendString(nil, "bound "+p.text)
		}
	}
	text := ""
	for _, p := range parts {
		switch p.kind {
		case partText:
			text += p.text
		case partWorkspace:
			text += b.workspace
		case partBind:
			text += bindText(b.names[p.text])
		}
	}
	return envelope.AppendString(nil, text)
}
