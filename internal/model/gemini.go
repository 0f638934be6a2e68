package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/tidwall/gjson"
)

// Gemini's generateContent. A stream is whole responses, each with the parts
// that are new; the last one has a finish reason.

// readGeminiStream reads a request for a stream. Without alt=sse that would be
// a JSON array in pieces, which no agent asks for.
func readGeminiStream(r *http.Request, req gjson.Result) (prompt, error) {
	p, err := readGemini(r, req)
	p.stream = true
	if r.URL.Query().Get("alt") != "sse" {
		err = errors.New("a stream is served as alt=sse only")
	}
	return p, err
}

// readGemini takes every text part of a user's content for a message of its
// own, as readMessages does.
func readGemini(r *http.Request, req gjson.Result) (prompt, error) {
	name, _, _ := strings.Cut(path.Base(r.URL.Path), ":")
	p := prompt{model: name}
	p.probe = req.Get("generationConfig.maxOutputTokens").Int() == 1
	for _, t := range req.Get("tools").Array() {
		p.tools = p.tools || len(t.Get("functionDeclarations").Array()) > 0
	}
	for _, c := range req.Get("contents").Array() {
		if c.Get("role").Str == "model" {
			continue
		}
		for _, part := range c.Get("parts").Array() {
			switch {
			case part.Get("functionResponse").Exists():
				p.toolResults++
			case part.Get("text").Exists():
				p.hear(part.Get("text").Str)
			}
		}
	}
	return p, nil
}

// failGemini is the form of Google's errors.
func failGemini(status int, code, message, _ string) any {
	name := map[int]string{
		400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
		429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE",
	}[status]
	return map[string]any{"error": map[string]any{"code": status, "message": message, "status": cmp.Or(code, name, "INTERNAL")}}
}

// gemini writes one response.
type gemini struct {
	s     *stream
	p     prompt
	parts []any // all that were sent
}

func replyGemini(s *stream, p prompt, r *Reply) {
	g := &gemini{s: s, p: p}
	for i, it := range r.Items {
		switch {
		case s.between(it):
		case it.Failed != nil:
			if s.whole {
				s.failWhole(it.Failed)
			} else {
				s.send("", failGemini(http.StatusInternalServerError, it.Failed.Code, it.Failed.Message, ""))
			}
			return
		default:
			g.item(it, fmt.Sprintf("%s_%d", s.id, i+1))
		}
		if s.gone {
			return
		}
	}
	s.send("", g.response([]any{map[string]any{"text": ""}}, true))
	s.finish(g.response(g.parts, true))
}

func (g *gemini) item(it Item, id string) {
	switch {
	case it.Text != nil:
		whole, ok := g.s.pieces(it.Text, func(delta string) {
			g.s.send("", g.response([]any{map[string]any{"text": delta}}, false))
		})
		if ok {
			g.parts = append(g.parts, map[string]any{"text": whole})
		}
	case it.Reasoning != "":
		g.part(map[string]any{"text": it.Reasoning, "thought": true})
	case it.Call != nil:
		g.part(map[string]any{"functionCall": map[string]any{
			"id": callID(it.Call, "call_", id), "name": it.Call.Name, "args": json.RawMessage(it.Call.Input),
		}})
	default: // a part of the API's own
		g.part(it.Raw)
	}
}

func (g *gemini) part(v any) {
	g.parts = append(g.parts, v)
	g.s.send("", g.response([]any{v}, false))
}

func (g *gemini) response(parts []any, last bool) map[string]any {
	candidate := map[string]any{"index": 0, "content": map[string]any{"role": "model", "parts": parts}}
	v := map[string]any{"candidates": []any{candidate}, "modelVersion": g.p.model, "responseId": "resp_" + g.s.id}
	if last {
		candidate["finishReason"] = "STOP"
		v["usageMetadata"] = map[string]any{"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}
	}
	return v
}
