package replay

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// render returns the inbound frame with what stands for something else
// replaced in its strings and keys: <workspace>, <bind:NAME>, escapes, and
// recorded client-chosen values. Every other byte stays. The result is raw
// itself when there is nothing to replace. The error names a bind that nothing
// has captured, which an optional frame that never came leaves behind.
func (b *bindings) render(raw json.RawMessage) (json.RawMessage, error) {
	if len(b.literals) == 0 && bytes.IndexByte(raw, '<') < 0 && !bytes.Contains(raw, []byte(`\u003`)) {
		return raw, nil
	}
	var failed error
	out := splice(raw, func(quoted []byte, key bool) []byte {
		v, err := b.renderString(quoted, key)
		if err != nil && failed == nil {
			failed = err
		}
		return v
	})
	return out, failed
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
		if v := fn(raw[i:end], memberValue(raw, end) > 0); v != nil {
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

// memberValue returns where the value starts when the string that ends before
// i is a key, 0 when it is a value itself.
func memberValue(raw []byte, i int) int {
	for i < len(raw) && bytes.IndexByte([]byte(" \t\r\n"), raw[i]) >= 0 {
		i++
	}
	if i < len(raw) && raw[i] == ':' {
		return envelope.SkipSpace(raw, i+1)
	}
	return 0
}

// renderString returns what stands for one quoted string, nil for itself.
func (b *bindings) renderString(quoted []byte, key bool) ([]byte, error) {
	s := envelope.Unquote(quoted)
	if actual, ok := b.literals[s]; ok {
		return envelope.AppendString(nil, actual), nil
	}
	parts, plain := envelope.ParseText(s)
	if plain {
		return nil, nil
	}
	for _, p := range parts {
		if p.Kind == envelope.PartBind && b.names[p.Text] == nil {
			return nil, fmt.Errorf("<bind:%s> was not captured: the frame that captures it has not come", p.Text)
		}
	}
	if len(parts) == 1 && parts[0].Kind == envelope.PartBind && !key {
		return b.names[parts[0].Text], nil
	}
	text := ""
	for _, p := range parts {
		switch p.Kind {
		case envelope.PartText:
			text += p.Text
		case envelope.PartWorkspace:
			text += b.workspace
		case envelope.PartBind:
			text += bindText(b.names[p.Text])
		case envelope.PartAny:
			text += "<any>" // means nothing in an inbound frame
		case envelope.PartTyped:
			text += "<" + p.Text + ">"
		}
	}
	return envelope.AppendString(nil, text), nil
}

// sample turns a frame that stands in a transcript into one that satisfies
// it: placeholders become sample values. It is how a transcript is played
// against itself.
func (b *bindings) sample(raw json.RawMessage) json.RawMessage {
	return splice(raw, func(quoted []byte, key bool) []byte {
		parts, plain := envelope.ParseText(envelope.Unquote(quoted))
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

func (b *bindings) sampleValue(parts []envelope.Part) []byte {
	if len(parts) == 1 && parts[0].Kind == envelope.PartTyped {
		return []byte(samples[parts[0].Text])
	}
	text := ""
	for _, p := range parts {
		switch p.Kind {
		case envelope.PartText:
			text += p.Text
		case envelope.PartWorkspace:
			text += b.workspace
		case envelope.PartBind:
			text += "bound " + p.Text
		}
	}
	return envelope.AppendString(nil, text)
}
