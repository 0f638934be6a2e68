package replay

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Made up, and put together here so that no scanner takes them for real.
var (
	openaiKey = "sk-" + "proj-0123456789abcdefXYZ"
	githubKey = "ghp" + "_0123456789abcdefghijABCD"
	jwt       = "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0" + ".c2lnbmF0dXJl"
)

func TestMask(t *testing.T) {
	for _, c := range []struct{ raw, want string }{
		// shapes
		{`"` + openaiKey + `"`, `"<masked>"`},
		{`["a ` + githubKey + ` b",1]`, `["a <masked> b",1]`},
		{`{"h":"Bearer ` + jwt + `"}`, `{"h":"<masked>"}`},
		{`{"h":"Authorization: basic dXNlcjpwYXNzd29yZA=="}`, `{"h":"Authorization: <masked>"}`},
		{`{"` + openaiKey + `":1}`, `{"<masked>":1}`},
		{`"\u0073` + openaiKey[1:] + `"`, `"<masked>"`},
		{`"key:\r` + "sk-" + `0123456789abcdefgh"`, `"key:\r<masked>"`},
		{`"\bearer 0123456789abcdefgh"`, `"\bearer 0123456789abcdefgh"`},
		{openaiKey + " is no JSON", "<masked> is no JSON"},
		// keys
		{`{"password":"hunter2","n":1}`, `{"password":"<masked>","n":1}`},
		{`{"apiKey" : "x"}`, `{"apiKey" : "<masked>"}`},
		{`{"api_key":"x","X-Api-Key":"y","OPENAI_API_KEY":"z"}`, `{"api_key":"<masked>","X-Api-Key":"<masked>","OPENAI_API_KEY":"<masked>"}`},
		{`{"secret":["a","b"],"access_token":{"value":"c"},"password":1234}`, `{"secret":"<masked>","access_token":"<masked>","password":"<masked>"}`},
		{`{"p\u0061ssword":"x"}`, `{"p\u0061ssword":"<masked>"}`},
		{`{"password":null,"secret":true,"l":["x"]}`, `{"password":null,"secret":true,"l":["x"]}`},
		{"{\"password\"\r\n:\t\"x\"}", "{\"password\"\r\n:\t\"<masked>\"}"},
		// innocent
		{`{"tokens":12,"maxTokens":"x","keyboard":"x","tokenUsage":{"total":1}}`, `{"tokens":12,"maxTokens":"x","keyboard":"x","tokenUsage":{"total":1}}`},
		{`"task-0123456789abcdef0123"`, `"task-0123456789abcdef0123"`},
		{`"sk-short"`, `"sk-short"`},
		{`{"a":1.0,"a":"\/\ud800` + "\u2028\xff" + `"}`, `{"a":1.0,"a":"\/\ud800` + "\u2028\xff" + `"}`},
	} {
		got := string(mask([]byte(c.raw)))
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.raw, d)
		}
		if json.Valid([]byte(c.raw)) && !json.Valid([]byte(got)) {
			t.Errorf("%s becomes %s, which is not JSON", c.raw, got)
		}
		if again := string(mask([]byte(got))); again != got {
			t.Errorf("%s, masked twice, is %s", got, again)
		}
	}
}

// TestNoSecretIsTold sends secrets in every place that a failure repeats.
func TestNoSecretIsTold(t *testing.T) {
	s := load(t, ask(1, "go"), in("n", `{"method":"n"}`),
		out("b", `{"method":"b","params":{"password":"recorded-1","auth":{"apiKey":{"v":"recorded-2"}},"x":"`+githubKey+`"}}`),
		out("c", `{"method":"b","params":{"password":"recorded-3","l":["`+openaiKey+`"]}}`))
	sent := `{"method":"b","params":{"password":"hunter2","auth":{"apiKey":{"v":"hunter3"}},"l":["` + jwt + `"],"x":"y"}}`
	secrets := []string{"hunter", "recorded-", openaiKey, githubKey, jwt}
	for name, p := range map[string]*Player{
		"mismatch": perform(t, s, Options{}, State{}, []turn{{start, said("n", "wait")}, {"send " + sent, "fail mismatch frame"}}),
		"queued":   perform(t, s, Options{Hold: []string{"n"}}, State{}, []turn{{start, "held n"}, {"send " + sent, "held n"}, {"close idle", "fail timeout idle"}}),
		"illegal":  perform(t, s, Options{}, State{}, []turn{{`illegal {"password":"hunter2","x":["` + openaiKey + `"]}`, "fail mismatch illegal_frame"}}),
		"message":  perform(t, s, Options{}, State{}, []turn{{`send {"id":"` + openaiKey + `","result":1}`, "fail mismatch answer"}}),
	} {
		r := p.Report()
		for what, text := range map[string]string{"text": r.Text(), "headline": r.Headline(), "report": string(r.Masked().Encode())} {
			for _, secret := range secrets {
				if strings.Contains(text, secret) {
					t.Errorf("%s: %s tells %s:\n%s", name, what, secret, text)
				}
			}
			if what != "headline" && !strings.Contains(text, masked) {
				t.Errorf("%s: %s masks nothing:\n%s", name, what, text)
			}
		}
		if !strings.Contains(string(r.Encode()), "hunter") && !strings.Contains(string(r.Encode()), openaiKey) {
			t.Errorf("%s: masking changed the report itself", name)
		}
	}
}
