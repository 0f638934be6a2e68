package agent

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// acpQuestion is a question to the user, as a form's field or an agent's own
// request has it.
type acpQuestion struct {
	ID       string      `json:"id"`
	Header   string      `json:"header,omitempty"`
	Question string      `json:"question"`
	Multiple bool        `json:"multiple,omitempty"`
	Options  []acpChoice `json:"options,omitempty"`
}

type acpChoice struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

// acpFormDetail lists the fields of a form as questions:
//
//	{"message":"…","requestedSchema":{"type":"object","properties":{"colour":
//	  {"type":"string","title":"Colour","oneOf":[{"const":"blue","title":"Blue"}]}}}}
func acpFormDetail(p gjson.Result) json.RawMessage {
	d := struct {
		Message         string          `json:"message"`
		Questions       []acpQuestion   `json:"questions"`
		RequestedSchema json.RawMessage `json:"requestedSchema,omitempty"`
	}{Message: p.Get("message").String(), Questions: []acpQuestion{}, RequestedSchema: raw(p.Get("requestedSchema"))}
	p.Get("requestedSchema.properties").ForEach(func(name, field gjson.Result) bool {
		q := acpQuestion{
			ID: name.String(), Header: field.Get("title").String(), Multiple: field.Get("type").Str == "array",
			Question: firstText(field.Get("description").String(), d.Message),
		}
		for _, choice := range acpChoices(field) {
			q.Options = append(q.Options, acpChoice{Label: choice.label, Description: choice.description})
		}
		d.Questions = append(d.Questions, q)
		return true
	})
	return detail(d)
}

type acpFieldChoice struct{ value, label, description string }

// acpChoices lists what a field may be, in the forms a schema has for it.
func acpChoices(field gjson.Result) (choices []acpFieldChoice) {
	for _, at := range []gjson.Result{field, field.Get("items")} {
		for _, v := range at.Get("enum").Array() {
			choices = append(choices, acpFieldChoice{value: v.String(), label: v.String()})
		}
		for _, name := range []string{"oneOf", "anyOf"} {
			for _, o := range at.Get(name).Array() {
				value := o.Get("const").String()
				choices = append(choices, acpFieldChoice{value, firstText(o.Get("title").String(), value), o.Get("description").String()})
			}
		}
	}
	return choices
}

// acpFormAnswer answers a form.
type acpFormAnswer struct {
	Action  string         `json:"action"` // accept, decline or cancel
	Content map[string]any `json:"content,omitempty"`
}

// answerACPForm fills a form in. Answers are by field, choices by what they
// are called.
func answerACPForm(_ *acpFacts, d orch.Decision, p gjson.Result) (any, error) {
	switch d.Kind {
	case "decline", "cancel":
		return acpFormAnswer{Action: d.Kind}, nil
	case "", "accept", "acceptForSession":
	default:
		return nil, wrongDecision(d, "answers, accept, decline or cancel")
	}
	a := acpFormAnswer{Action: "accept", Content: map[string]any{}}
	properties := p.Get("requestedSchema.properties").Map()
	for name, texts := range d.Answers {
		field, ok := properties[name]
		if !ok {
			return nil, fmt.Errorf("the form has no field %q", name)
		}
		value, err := acpFieldValue(field, texts)
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", name, err)
		}
		a.Content[name] = value
	}
	return a, nil
}

// acpFieldValue makes the value of a field's type.
func acpFieldValue(field gjson.Result, texts []string) (any, error) {
	values := []string{}
	for _, text := range texts {
		for _, choice := range acpChoices(field) {
			if choice.label == text {
				text = choice.value
				break
			}
		}
		values = append(values, text)
	}
	kind := field.Get("type").Str
	if kind == "array" {
		return values, nil
	}
	if len(values) != 1 {
		return nil, fmt.Errorf("%d answers: want one", len(values))
	}
	switch kind {
	case "boolean":
		return strconv.ParseBool(values[0])
	case "integer", "number":
		if _, err := strconv.ParseFloat(values[0], 64); err != nil {
			return nil, err
		}
		return json.Number(values[0]), nil
	}
	return values[0], nil
}

// acpGrokQuestions is a request of Grok's own:
//
//	{"sessionId":"…","questions":[{"question":"Which colour?","options":[{"label":"Blue","description":"…"}]}]}
//
// Its questions are named by their words.
var acpGrokQuestions = acpAsk{
	kind: "user_input", title: []string{"questions.0.question"},
	detail: func(p gjson.Result) json.RawMessage {
		questions := []acpQuestion{}
		for _, asked := range p.Get("questions").Array() {
			q := acpQuestion{
				ID: asked.Get("question").String(), Question: asked.Get("question").String(),
				Header: asked.Get("header").String(), Multiple: asked.Get("multiSelect").Bool(),
			}
			for _, o := range asked.Get("options").Array() {
				q.Options = append(q.Options, acpChoice{o.Get("label").String(), o.Get("description").String()})
			}
			questions = append(questions, q)
		}
		return detail(struct {
			Questions []acpQuestion `json:"questions"`
		}{questions})
	},
	answer: func(_ *acpFacts, d orch.Decision, _ gjson.Result) (any, error) {
		switch d.Kind {
		case "", "accept", "acceptForSession":
			return acpGrokAnswers{"accepted", d.Answers}, nil
		case "decline", "cancel":
			return acpGrokAnswers{Outcome: "cancelled"}, nil
		}
		return nil, wrongDecision(d, "answers, decline or cancel")
	},
	cancelled: acpGrokAnswers{Outcome: "cancelled"},
}

type acpGrokAnswers struct {
	Outcome string              `json:"outcome"` // accepted or cancelled
	Answers map[string][]string `json:"answers,omitempty"`
}
