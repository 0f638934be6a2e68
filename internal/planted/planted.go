// Package planted makes Codex traffic full of made-up secrets, for tests of
// what becomes of them.
package planted

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/replaypeer/replaypeer/pkg/redact"
)

// Secret is one planted value.
type Secret struct {
	Kind  string // the rule that is to find it
	Form  string // where and how it stands
	Value string // what must not be found in any encoding
}

// Traffic is one conversation. Lines have no line ends.
type Traffic struct {
	Secrets  []Secret
	Client   []string // what the client sends, in order; nothing of it asks for an answer
	Provider []Line   // what the provider writes, in order

	// The machine it seems to come from.
	Home  string
	Users []string
	Hosts []string
	Env   []string
}

// Line is what the provider writes in one go.
type Line struct {
	Stderr bool
	Text   string
}

// forms are the ways in which a secret that needs no context is planted.
var forms = []string{
	"value", "key", "url", "base64", "json", "json twice", "split 2", "split 3", "split 4", "split 5", "stderr", "path", "sent value", "sent text", "colours", "base64 in json", "url in json", "slashes",
}

// inContext are those for a secret that only its surroundings tell.
var inContext = []string{"value", "json", "split 2", "split 3", "split 5", "stderr", "sent text", "json twice"}

// New plants several secrets of every kind, each in another form.
func New(seed uint64) *Traffic {
	t := &Traffic{
		Home: "/home/jolanta.k", Users: []string{"jolanta.k"}, Hosts: []string{"zephyrus-7.corp.lan"},
		Env: []string{"DEPLOY_TOKEN=tr0ub4dor-and-3-more", "VENDOR_API_KEY=plainlookingvaluewithoutdigits", "PATH=/bin"},
	}
	n := 0
	for _, r := range redact.Rules {
		for i, hit := range r.Hits {
			text, secret := redact.Sample(hit, seed+uint64(n))
			if len(secret) < 6 {
				continue // too short to tell from other text
			}
			list := inContext
			if text == secret && !r.Personal && !r.Context && !strings.Contains(secret, "\n") {
				list = forms
			}
			for k := range 4 {
				form := list[(n+i+k*5)%len(list)]
				text, secret := redact.Sample(hit, seed+uint64(n*31+k))
				t.plant(r.ID, form, text, secret)
			}
			n++
		}
	}
	for i, form := range forms {
		t.plant("variable", form, strings.TrimPrefix(t.Env[0], "DEPLOY_TOKEN="), strings.TrimPrefix(t.Env[0], "DEPLOY_TOKEN="))
		if form != "key" {
			t.plant("variable", form, strings.TrimPrefix(t.Env[1], "VENDOR_API_KEY="), strings.TrimPrefix(t.Env[1], "VENDOR_API_KEY="))
		}
		t.plant("home", form, t.Home+"/work/notes.txt", t.Home)
		if form != "colours" {
			t.plant("user", form, "as "+t.Users[0]+" at work", t.Users[0])
			t.plant("host", form, "on "+t.Hosts[0]+" since", t.Hosts[0])
		}
		t.member(i, seed)
	}
	return t
}

// member plants a value that only its key tells.
func (t *Traffic) member(i int, seed uint64) {
	keys := []string{"password", "apiKey", "access_token", "client_secret", "Authorization", "refreshToken", "privateKey", "token"}
	_, value := redact.Sample("{m6}-{a14}", seed*1000+uint64(i))
	t.Secrets = append(t.Secrets, Secret{"secret-member", "member " + keys[i%len(keys)], value})
	t.in(map[string]any{keys[i%len(keys)]: value, "again": "it was " + value + ", wasn't it"})
}

func (t *Traffic) in(params any) {
	t.Provider = append(t.Provider, Line{Text: `{"method":"note","params":` + toJSON(params) + `}`})
}

func (t *Traffic) out(params any) {
	t.Client = append(t.Client, `{"method":"note","params":`+toJSON(params)+`}`)
}

// plant writes the text, which holds the secret, in a form.
func (t *Traffic) plant(kind, form, text, secret string) {
	t.Secrets = append(t.Secrets, Secret{kind, form, secret})
	nested := toJSON(map[string]any{"n": 1, "text": text})
	switch form {
	case "value":
		t.in(map[string]any{"text": "see " + text})
	case "key":
		t.in(map[string]any{text: 1})
	case "url":
		t.in(map[string]any{"at": "https://h.io/?q=" + url.QueryEscape(text)})
	case "base64":
		t.in(map[string]any{"data": base64.StdEncoding.EncodeToString([]byte("{ " + text + " }"))})
	case "base64 in json":
		t.in(map[string]any{"data": toJSON([]string{base64.URLEncoding.EncodeToString([]byte(text))})})
	case "url in json":
		t.in(map[string]any{"data": toJSON([]string{"x=" + url.PathEscape(text) + "&y"})})
	case "slashes":
		t.in(map[string]any{"data": strings.ReplaceAll(nested, "/", `\/`)})
	case "json":
		t.in(map[string]any{"body": nested})
	case "json twice":
		t.in(map[string]any{"body": toJSON(map[string]any{"inner": nested})})
	case "split 2", "split 3", "split 4", "split 5":
		t.split(int(form[len(form)-1]-'0'), text, secret)
	case "stderr":
		for _, line := range strings.Split("error: "+text+" rejected", "\n") {
			t.Provider = append(t.Provider, Line{Stderr: true, Text: line})
		}
	case "path":
		t.in(map[string]any{"path": "/var/cache/" + text + "/file"})
	case "colours":
		half := len(text) / 2
		t.in(map[string]any{"text": "got \x1b[32m" + text[:half] + "\x1b[1m" + text[half:] + "\x1b[0m"})
	case "sent value":
		t.out(map[string]any{"text": text})
		t.in(map[string]any{"echo": "you sent " + text})
	case "sent text":
		t.out(map[string]any{"text": "use " + text + " for it", "n": len(t.Client)})
	}
}

// split sends the text in pieces that cut the secret, with other traffic
// between them, and mostly ends the item.
func (t *Traffic) split(n int, text, secret string) {
	item := fmt.Sprintf("item-%d", len(t.Secrets))
	text = "here it is: " + text + " (and more)"
	at := strings.Index(text, secret)
	from := 0
	for i := 1; i <= n; i++ {
		to := at + len(secret)*i/n
		if i == n {
			to = len(text)
		}
		t.Provider = append(t.Provider, Line{Text: `{"method":"item/agentMessage/delta","params":{"threadId":"t","turnId":"u","itemId":"` + item + `","delta":` + toJSON(text[from:to]) + `}}`})
		from = to
		if i == 2 {
			t.in(map[string]any{"between": i})
		}
	}
	if len(t.Secrets)%3 > 0 {
		t.Provider = append(t.Provider, Line{Text: `{"method":"item/completed","params":{"threadId":"t","turnId":"u","item":{"type":"agentMessage","id":"` + item + `","text":` + toJSON(text) + `}}}`})
	}
}

func toJSON(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // maps, slices, strings and numbers
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Encodings are the forms of a value to look for.
func Encodings(value string) []string {
	quoted := toJSON(value)
	quoted = quoted[1 : len(quoted)-1]
	list := []string{value, quoted, strings.ReplaceAll(quoted, "/", `\/`), url.QueryEscape(value), url.PathEscape(value)}
	for skip := range 3 {
		for _, code := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			s := code.EncodeToString([]byte(strings.Repeat("\x00", skip) + value))
			if from, to := (skip*8+5)/6, (skip+len(value))*8/6; to-from >= 8 {
				list = append(list, s[from:to])
			}
		}
	}
	return list
}
