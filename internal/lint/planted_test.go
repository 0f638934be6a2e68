package lint

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
)

// kinds make a secret each, as it would stand in text. None is real: they are
// drawn by a generator with a fixed seed.
var kinds = []struct {
	name string
	make func(r *rand.Rand) string
}{
	{"aws key", func(r *rand.Rand) string { return "AKIA" + draw(r, 16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") }},
	{"aws secret", func(r *rand.Rand) string { return "aws_secret_access_key=" + draw(r, 40, mixed+"/+") }},
	{"github classic", func(r *rand.Rand) string { return "ghp_" + draw(r, 36, mixed) }},
	{"github oauth", func(r *rand.Rand) string { return "gho_" + draw(r, 36, mixed) }},
	{"github fine-grained", func(r *rand.Rand) string { return "github_pat_" + draw(r, 22, mixed) + "_" + draw(r, 59, mixed) }},
	{"gitlab", func(r *rand.Rand) string { return "glpat-" + draw(r, 20, mixed) }},
	{"slack bot", func(r *rand.Rand) string {
		return "xoxb-" + draw(r, 12, digits) + "-" + draw(r, 12, digits) + "-" + draw(r, 24, mixed)
	}},
	{"slack webhook", func(r *rand.Rand) string {
		return "https://hooks.slack.com/services/T" + draw(r, 8, upper) + "/B" + draw(r, 8, upper) + "/" + draw(r, 24, mixed)
	}},
	{"stripe", func(r *rand.Rand) string { return "sk_live_" + draw(r, 24, mixed) }},
	{"openai project", func(r *rand.Rand) string { return "sk-proj-" + draw(r, 64, mixed+"_-") }},
	{"openai classic", func(r *rand.Rand) string { return "sk-" + draw(r, 20, mixed) + "T3BlbkFJ" + draw(r, 20, mixed) }},
	{"anthropic", func(r *rand.Rand) string { return "sk-ant-api03-" + draw(r, 93, mixed+"_-") + "AA" }},
	{"google api", func(r *rand.Rand) string { return "AIza" + draw(r, 35, mixed) }},
	{"google oauth", func(r *rand.Rand) string { return "ya29." + draw(r, 60, mixed+"_-") }},
	{"jwt", func(r *rand.Rand) string {
		return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." +
			base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"`+draw(r, 12, digits)+`","name":"n"}`)) + "." + draw(r, 43, mixed)
	}},
	{"private key", func(r *rand.Rand) string {
		return "-----BEGIN RSA PRIVATE KEY-----\n" + draw(r, 64, mixed+"+/") + "\n" + draw(r, 64, mixed+"+/") + "\n-----END RSA PRIVATE KEY-----"
	}},
	{"npm", func(r *rand.Rand) string { return "npm_" + draw(r, 36, lower+digits) }},
	{"pypi", func(r *rand.Rand) string { return "pypi-AgEIcHlwaS5vcmc" + draw(r, 70, mixed) }},
	{"sendgrid", func(r *rand.Rand) string { return "SG." + draw(r, 22, lower+digits) + "." + draw(r, 43, lower+digits) }},
	{"digitalocean", func(r *rand.Rand) string { return "dop_v1_" + draw(r, 64, hexes) }},
	{"huggingface", func(r *rand.Rand) string { return "hf_" + draw(r, 34, lower+upper) }},
	{"databricks", func(r *rand.Rand) string { return "dapi" + draw(r, 32, hexes) }},
	{"linear", func(r *rand.Rand) string { return "lin_api_" + draw(r, 40, mixed) }},
	{"xai", func(r *rand.Rand) string { return "xai-" + draw(r, 80, mixed) }},
	{"cursor", func(r *rand.Rand) string { return "key_" + draw(r, 64, hexes) }},
	{"vault", func(r *rand.Rand) string { return "hvs." + draw(r, 92, mixed+"_-") }},
	{"shopify", func(r *rand.Rand) string { return "shpat_" + draw(r, 32, hexes) }},
	{"telegram", func(r *rand.Rand) string {
		return "telegram_token = " + draw(r, 9, "123456789") + ":A" + draw(r, 34, mixed)
	}},
	{"azure storage", func(r *rand.Rand) string {
		return "AccountName=a;AccountKey=" + draw(r, 86, mixed+"+/") + "==;EndpointSuffix=core"
	}},
	{"basic header", func(r *rand.Rand) string {
		return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("ann:"+draw(r, 18, mixed)))
	}},
	{"bearer header", func(r *rand.Rand) string { return "Authorization: Bearer " + draw(r, 40, mixed) }},
	{"database url", func(r *rand.Rand) string { return "postgres://app:" + draw(r, 16, mixed) + "@db.acme.io:5432/app" }},
	{"password", func(r *rand.Rand) string { return "DB_PASSWORD=" + draw(r, 14, mixed+"!#%") }},
	{"api key", func(r *rand.Rand) string { return `api_key = "` + draw(r, 32, mixed) + `"` }},
	{"session cookie", func(r *rand.Rand) string { return "Cookie: session=" + draw(r, 40, mixed) }},
	{"unnamed token", func(r *rand.Rand) string { return "use " + draw(r, 40, mixed) + " now" }},
}

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
	hexes  = "0123456789abcdef"
	mixed  = lower + upper + digits
)

func draw(r *rand.Rand, n int, letters string) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[r.IntN(len(letters))]
	}
	return string(b)
}

// places put a secret somewhere into a transcript: a frame, or several.
var places = []struct {
	name string
	put  func(r *rand.Rand, secret, id string) []string
}{
	{"value", func(_ *rand.Rand, s, id string) []string { return []string{note("text", "see "+s+" there", id)} }},
	{"key", func(_ *rand.Rand, s, id string) []string { return []string{note(s, id, id)} }},
	{"url", func(_ *rand.Rand, s, id string) []string {
		return []string{note("url", "https://acme.io/x?page=2&q="+url.QueryEscape(strings.ReplaceAll(s, " ", "_"))+"#"+id, id)}
	}},
	{"base64", func(_ *rand.Rand, s, id string) []string {
		return []string{note("blob64", base64.StdEncoding.EncodeToString([]byte("x "+s+" "+id)), id)}
	}},
	{"nested", func(_ *rand.Rand, s, id string) []string {
		return []string{note("arguments", js(map[string]any{"cmd": []string{"sh", "-c", js(map[string]string{"v": s})}, "id": id}), id)}
	}},
	{"deltas", func(r *rand.Rand, s, id string) []string {
		whole := "here is " + s + " for you"
		var lines []string
		pieces := 2 + r.IntN(4)
		for i := range pieces {
			from, to := i*len(whole)/pieces, (i+1)*len(whole)/pieces
			lines = append(lines, inboundLine(map[string]any{"method": "item/agentMessage/delta", "params": map[string]any{
				"threadId": "t", "itemId": id, "delta": whole[from:to]}}, ""))
		}
		return lines
	}},
	{"stderr", func(_ *rand.Rand, s, id string) []string {
		return []string{inboundLine("ERROR "+id+": refused: "+s+"\n", "stderr")}
	}},
	{"path", func(_ *rand.Rand, s, id string) []string {
		return []string{note("path", "/srv/"+id+"/"+strings.ReplaceAll(s, "\n", " ")+"/x.txt", id)}
	}},
}

func js(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func inboundLine(frame any, channel string) string {
	if channel != "" {
		channel = `,"channel":"` + channel + `"`
	}
	return `{"type":"emit_inbound","label":"l"` + channel + `,"frame":` + js(frame) + `}`
}

func note(key, value, id string) string {
	return inboundLine(map[string]any{"method": "note", "params": map[string]any{key: value, "noteId": id}}, "")
}

// TestPlantedSecrets hides secrets of many kinds in many places, one each, and
// wants nearly all of them found at their place.
func TestPlantedSecrets(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	lines := []string{strings.TrimSuffix(header, "\n"), `{"type":"expect_outbound","label":"i","frame":{"method":"initialized"}}`}
	type plant struct {
		what     string
		from, to int
	}
	var plants []plant
	for k, kind := range kinds {
		for p := range 5 {
			place := places[(k+p*3)%len(places)]
			at := len(lines) + 1
			lines = append(lines, place.put(r, kind.make(r), fmt.Sprintf("n%d", len(plants)))...)
			plants = append(plants, plant{kind.name + " in " + place.name, at, len(lines)})
		}
	}
	lines = append(lines, `{"type":"runtime_exit","status":"success"}`, "")
	found, err := Check("planted", strings.NewReader(strings.Join(lines, "\n")), Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	var missed []string
	for _, p := range plants {
		hit := false
		for _, f := range found {
			hit = hit || (f.Rule == "TL046" || f.Rule == "TL047") && f.Line >= p.from && f.Line <= p.to
		}
		if !hit {
			missed = append(missed, p.what)
		}
	}
	share := 100 * float64(len(plants)-len(missed)) / float64(len(plants))
	t.Logf("planted %d secrets of %d kinds in %d kinds of places: %.1f %% found; missed: %v", len(plants), len(kinds), len(places), share, missed)
	if len(plants) < 120 || len(kinds) < 25 || share < 95 {
		t.Error("want at least 120 secrets of 25 kinds, and 95 % of them found")
	}
	for _, f := range found {
		for _, p := range lines {
			if secret := f.Message; len(secret) > 200 && strings.Contains(p, secret) {
				t.Errorf("the finding tells the secret: %s", f)
			}
		}
	}
}
