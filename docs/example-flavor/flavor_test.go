// Package example holds the flavor of docs/adding-a-flavor.md, and plays it.
package example

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// Parrot speaks lines of text. The client asks, the parrot answers, and
// mutters in between:
//
//	HELLO 2.1             the first line, on the wire only
//	ASK 7 what time is it
//	NOTE looking
//	TELL 7 noon           or FAIL 7 no clock
var Parrot = &flavors.Flavor{
	Providers: []string{"parrot"},
	Protocol:  "parrot.lines",
	Transport: flavors.Stdio,
	Classify:  classify,
	IDKey:     "id",
	CheckID:   checkID,
	NewCodec:  func(l flavors.Launch) flavors.Codec { return &codec{version: l.Header.Version} },
	Refusal: func(request flavors.Frame, message string) []byte {
		return fmt.Appendf(nil, "FAIL %s %s", request.ID, strings.ReplaceAll(message, "\n", " "))
	},
	Probe: func(_ envelope.Direction, f flavors.Frame) map[string]string {
		if version, ok := strings.CutPrefix(string(f.Raw), "HELLO "); ok {
			return map[string]string{"providerVersion": version}
		}
		return nil
	},
	Volatile: []flavors.Place{{Dir: envelope.In, Method: "note", Path: "text"}},
}

// classify reads a logical frame: {"say":"ask","id":7,"text":"what time is it"}.
func classify(dir envelope.Direction, raw json.RawMessage) (flavors.Frame, error) {
	f := flavors.Frame{Raw: raw}
	if !gjson.ValidBytes(raw) {
		return f, errors.New("not JSON")
	}
	frame := gjson.ParseBytes(raw)
	if id := frame.Get("id"); id.Exists() {
		f.ID = json.RawMessage(id.Raw)
	}
	say := frame.Get("say").Str
	switch {
	case dir == envelope.Out && say == "ask":
		f.Kind, f.Method = flavors.Request, say
	case dir == envelope.In && (say == "tell" || say == "fail"):
		f.Kind = flavors.Response // to whatever asked with its id
	case dir == envelope.In && say == "note":
		f.Method = say
	default:
		return f, fmt.Errorf("%s frame says %q", dir, say)
	}
	return f, nil
}

func checkID(id json.RawMessage) error {
	if len(id) == 0 || strings.Trim(string(id), "0123456789") != "" {
		return fmt.Errorf("id %s: want digits", id)
	}
	return nil
}

// codec turns lines into frames and back.
type codec struct{ version string }

func (c *codec) Greeting(dst []byte) []byte { return fmt.Appendf(dst, "HELLO %s\n", c.version) }

func (c *codec) Decode(dir envelope.Direction, wire []byte) ([]flavors.Frame, error) {
	word, rest, _ := strings.Cut(string(wire), " ")
	if dir == envelope.In && word == "HELLO" {
		return nil, nil // means nothing for a transcript
	}
	raw := fmt.Appendf(nil, `{"say":%q`, strings.ToLower(word))
	if word != "NOTE" {
		id, text, _ := strings.Cut(rest, " ")
		if err := checkID(json.RawMessage(id)); err != nil {
			return nil, err
		}
		raw, rest = fmt.Appendf(raw, `,"id":%s`, id), text
	}
	raw = envelope.AppendString(append(raw, `,"text":`...), rest)
	f, err := classify(dir, append(raw, '}'))
	if err != nil {
		return nil, err
	}
	return []flavors.Frame{f}, nil
}

func (c *codec) End(envelope.Direction) ([]flavors.Frame, error) { return nil, nil }

func (c *codec) Encode(dst []byte, _ envelope.Direction, f flavors.Frame, id json.RawMessage) ([]byte, error) {
	frame := gjson.ParseBytes(f.Raw)
	text := frame.Get("text").Str
	if strings.Contains(text, "\n") {
		return nil, errors.New("text of more than a line")
	}
	dst = append(dst, strings.ToUpper(frame.Get("say").Str)...)
	if id == nil {
		id = f.ID
	}
	if id != nil {
		dst = fmt.Appendf(dst, " %s", id)
	}
	return fmt.Appendf(dst, " %s\n", text), nil
}
