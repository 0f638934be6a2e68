package redact

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestRuleSamples holds every rule to the samples beside it.
func TestRuleSamples(t *testing.T) {
	kinds, hits, misses := 0, 0, 0
	seen := map[string]bool{}
	for _, r := range compile() {
		if seen[r.ID] || strings.ToLower(r.ID) != r.ID {
			t.Errorf("rule id %s", r.ID)
		}
		seen[r.ID] = true
		kinds++
		if len(r.Hits) == 0 || len(r.Misses) == 0 {
			t.Errorf("%s: a rule needs positive and negative samples", r.ID)
		}
		scan := func(text string) (found []string) {
			r.scan(newReading(text), func(start, end int) { found = append(found, text[start:end]) })
			return found
		}
		for seed := range uint64(20) {
			for _, h := range r.Hits {
				text, secret := Sample(h, seed)
				if got := scan(text); !slices.Equal(got, []string{secret}) {
					t.Errorf("%s: in %q found %q, want %q", r.ID, text, got, secret)
				}
				hits++
			}
			for _, m := range r.Misses {
				text, _ := Sample(m, seed)
				if got := scan(text); len(got) > 0 {
					t.Errorf("%s: in %q found %q, want nothing", r.ID, text, got)
				}
				misses++
			}
		}
	}
	t.Logf("%d rules, %d positive and %d negative samples", kinds, hits/20, misses/20)
}

// TestRulesLeaveNothing: what is found is found whole, and once.
func TestRulesLeaveNothing(t *testing.T) {
	for _, r := range Rules {
		for i, h := range r.Hits {
			text, secret := Sample(h, uint64(i)+99)
			got := New(Config{}).Text(text)
			if strings.Contains(got, secret) {
				t.Errorf("%s: %q is left in %q", r.ID, secret, got)
			}
			if again := New(Config{}).Text(got); again != got {
				t.Errorf("%s: redacted twice: %q, then %q", r.ID, got, again)
			}
		}
		for i, m := range r.Misses {
			if text, _ := Sample(m, uint64(i)); New(Config{}).Text(text) != text {
				t.Logf("%s: another rule finds something in %q: %q", r.ID, text, New(Config{}).Text(text))
			}
		}
	}
}

func TestSecretName(t *testing.T) {
	for name, want := range map[string]string{
		"password": "password", "DB_PASSWORD": "password", "userPassword": "password", "api_key": "secret", "apiKey": "secret", "OPENAI_API_KEY": "secret",
		"X-Api-Key": "secret", "accessToken": "secret", "token": "secret", "client_secret": "secret", "Authorization": "secret", "AWS_SECRET_ACCESS_KEY": "secret",
		"aws_access_key_id": "secret", "privateKey": "secret", "device_code": "secret",
		"tokens": "", "nextPageToken": "", "progressToken": "", "tokenUsage": "", "max_tokens": "", "key": "", "keyword": "", "publicKey": "", "monkey": "",
		"secretary": "", "pass": "", "idempotencyKey": "", "cacheKey": "", "turnId": "",
	} {
		if got := secretName(name); got != want {
			t.Errorf("secretName(%q) is %q, want %q: %q", name, got, want, words(name))
		}
	}
}

func TestSecretVariable(t *testing.T) {
	for kv, want := range map[string]bool{
		"OPENAI_API_KEY=abcdefgh12": true, "GITHUB_TOKEN=0123456789": true, "NPM_TOKEN_CI=abcdefgh12": true, "PGPASSWORD=correct horse": true,
		"DB_PASSWORD=correct horse": true, "SSH_AUTH_SOCK=/tmp/agent.1": false, "MAX_TOKENS=1234567890": false, "TOKEN=short": false, "API_KEY=dummy": false,
		"HOME=/home/somebody": false, "GOOGLE_APPLICATION_CREDENTIALS=/etc/key.json": false, "SECRET=workspace": false,
	} {
		key, value, _ := strings.Cut(kv, "=")
		if got := secretVariable(key, value); got != want {
			t.Errorf("secretVariable(%s) is %v", kv, got)
		}
	}
}

func ExampleSample() {
	text, secret := Sample("login --password «hunter22»", 1)
	fmt.Println(text)
	fmt.Println(secret)
	// Output:
	// login --password hunter22
	// hunter22
}
