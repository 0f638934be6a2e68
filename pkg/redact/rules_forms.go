package redact

import (
	"regexp"
	"strings"
)

// forms are secrets that their form or what stands around them gives away.
var forms = []Rule{
	{
		ID:       "private-key",
		Keywords: []string{"PRIVATE KEY"},
		Pattern: `-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----\s*` +
			`(?:[A-Za-z-]+: [^\n]*\s+)*(?:[A-Za-z0-9+/=]{16,}\s*)+(?:[A-Za-z0-9+/=]*\s*)?` +
			`(?:-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----)?`,
		Hits: []string{
			"«-----BEGIN OPENSSH PRIVATE KEY-----\n{c70}\n{c70}\n{c31}=\n-----END OPENSSH PRIVATE KEY-----»",
			"«-----BEGIN RSA PRIVATE KEY-----\n{c64}\n{c64}»",
		},
		Misses: []string{"looks for -----BEGIN PRIVATE KEY----- in a file", "PRIVATE KEY"},
	}, {
		ID:       "jwt",
		Keywords: []string{"eyJ"},
		Pattern:  `\beyJ[A-Za-z0-9_-]{10,}\.(?:eyJ[A-Za-z0-9_-]{10,}|[A-Za-z0-9_-]{20,})\.[A-Za-z0-9_.-]+`,
		Hits:     []string{"Bearer «eyJ{b33}.eyJ{b80}.{b43}»"},
		Misses:   []string{"eyJ.eyJ.x"},
	}, {
		ID:       "authorization",
		Keywords: []string{"bearer", "basic", "token ", "apikey "}, Fold: true,
		Pattern: `(?i)\b(?:bearer|basic|token|apikey)[ \t]+([A-Za-z0-9._~+/-]{16,}={0,2})`,
		Entropy: 3, Digits: 1, Context: true,
		Hits:   []string{"Authorization: Bearer «{b40}»", "Basic «{c38}==»", "-H 'authorization: token «{h40}»'"},
		Misses: []string{"Basic authentication-required", "bearer of good news", "a token 0000000000000000000"},
	}, {
		ID:       "url-password",
		Keywords: []string{"://"},
		Pattern:  `[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/?#@:"'<>\x60]{0,256}:([^\s/@"'<>\x60]{1,256})@`,
		Context:  true,
		Fits:     func(g []string) bool { return !blank(g[1]) },
		Hits:     []string{"postgres://app:«{a14}»@db:5432/x", "redis://:«{a20}»@cache", "https://u:«p4ss»@h/"},
		Misses:   []string{"http://h:80/a@b", "https://user@host/", "https://u:$PASS@h"},
	}, {
		ID:       "url-user-token",
		Keywords: []string{"://"},
		Pattern:  `[a-z][a-z0-9+.-]{1,20}://([A-Za-z0-9_-]{20,})(?::x-oauth-basic)?@`,
		Digits:   2, Entropy: 3, Context: true,
		Hits:   []string{"https://«{a40}»@git.corp/x"},
		Misses: []string{"https://a-rather-long-user-name@host"},
	}, {
		ID:       "url-parameter",
		Keywords: []string{"token=", "secret=", "password=", "passwd=", "key=", "signature=", "sig=", "credential=", "code=", "auth=", "session=", "jwt=", "sid="}, Fold: true,
		Pattern: `(?i)[?&#;](?:[a-z0-9_.-]{0,30}(?:token|secret|password|passwd|key|signature|credential|session)|sig|code|auth|jwt|sid)=([^\s&#"'<>;)\]]{8,})`,
		Digits:  1, Entropy: 2.7, Context: true,
		Fits:   func(g []string) bool { return !blank(g[1]) },
		Hits:   []string{"https://x/cb?code=«{b20}»&state=1", "?a=1&access_token=«{a30}»", "X&X-Amz-Signature=«{h64}»"},
		Misses: []string{"?key=value", "?code=authorization", "?page_token=$TOKEN1234"},
	}, {
		ID:       "assignment",
		Keywords: []string{"passw", "passphrase", "pwd", "secret", "token", "credential", "key", "_pass", "pat", "auth"}, Fold: true,
		Pattern: `(?i)([A-Z0-9_.-]{0,60}(?:password|passwd|passphrase|pwd|secret|token|credentials?|key|_pass|_pat|auth)[A-Z0-9_-]{0,24})(\\*["']?[ \t]{0,3}(?:=>|:=|=|:)[ \t]{0,3})` +
			`(?:\\*"([^"\\\r\n]{4,})\\*"|'([^'\r\n]{4,})'|([^\s"'\x60<,;&(){}\[\]\\]{6,}))`,
		Context: true,
		Fits:    fitsAssignment,
		Hits: []string{
			"password=«hunter2hunter2»", `"api_key": "«{a24}»"`, "export DEPLOY_TOKEN=«{a20}»", "client_secret: '«{b24}»'",
			"DB_PASSWORD=«s3cr3t!»", `{\"refreshToken\":\"«{b40}»\"}`, "secretKey := \"«{c32}»\"",
		},
		Misses: []string{
			"token: string", "password: required", "const token = getToken()", "api_key = os.environ[\"KEY\"]", "tokens=12345678",
			"nextPageToken=abcdefgh1234", "key: value12", "password=$PASSWORD", "secret=****", "apiKey: process.env.API_KEY1",
			"total_tokens: 1234567", "monkey=banana1", "PATH=/usr/bin1", "token=<redacted:jwt:1>",
		},
	}, {
		ID:       "flag",
		Keywords: []string{"-password", "-token", "-secret", "-api-key", "-apikey", "-access-key", "-passphrase"}, Fold: true,
		Pattern: `(?i)(?:^|[\s"'])--?(?:[a-z]+-){0,3}(?:password|token|secret|api-?key|access-key|passphrase)[ \t]+(?:"([^"\s]{6,})"|'([^'\s]{6,})'|([^\s"'<$-][^\s"'<]{5,}))`,
		Digits:  1, Context: true,
		Fits:   func(g []string) bool { return !blank(g[1] + g[2] + g[3]) },
		Hits:   []string{"login --password «hunter22»", "x --api-key '«{a16}»'"},
		Misses: []string{"--password stdin", "--token $TOKEN1", "--max-token 1"},
	}, {
		ID:       "user-password",
		Keywords: []string{"-u", "--user"},
		Pattern:  `(?:^|\s)(?:-u|--user)[ =]\\?["']?[^\s:"'\\]{1,64}:([^\s"'\\]{4,})`,
		Digits:   1, Context: true,
		Fits:   func(g []string) bool { return !blank(g[1]) },
		Hits:   []string{"curl -u admin:«{a12}» https://x", "curl --user 'a:«pa55word»' h"},
		Misses: []string{"docker run -u user:group", "sort -u file:name"},
	}, {
		ID:       "netrc",
		Keywords: []string{"login"},
		Pattern:  `\blogin[ \t]+\S+[ \t]+password[ \t]+(\S+)`,
		Context:  true,
		Fits:     func(g []string) bool { return !blank(g[1]) && digits(g[1]) > 0 },
		Hits:     []string{"machine h login me password «{a10}»"},
		Misses:   []string{"login page password reset"},
	}, {
		ID:       "cookie",
		Keywords: []string{"cookie"}, Fold: true,
		Pattern: `(?i)\b(?:set-)?cookie["']?[ \t]*:[ \t]*["']?([A-Za-z0-9_.-]+=[^"'\r\n]{8,})`,
		Digits:  1, Entropy: 3, Context: true,
		Hits:   []string{"Cookie: «sid={a32}; theme=dark»", "set-cookie: «__session={b60}; Path=/»"},
		Misses: []string{"cookie: consent=given", "a cookie: yum"},
	},
}

// fitsAssignment judges name = value as it stands in code, in shell scripts,
// in configuration, or in JSON inside a string.
func fitsAssignment(g []string) bool {
	name, op, quoted, bare := g[1], g[2], g[3]+g[4], g[5]
	kind := secretName(name)
	if kind == "" {
		return false
	}
	value := quoted + bare
	if blank(value) || pathlike.MatchString(value) {
		return false
	}
	n := digits(value)
	letters := strings.ContainsFunc(value, func(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' })
	tight := strings.TrimLeft(op, `\"'`) == "="
	switch {
	case strings.ContainsAny(value, " \t"):
		return quoted != "" && kind == "password" && n > 0 && letters
	case kind == "password" && (quoted != "" || tight):
		return n > 0 || strings.ContainsAny(value, "!@#%^&*+?") || len(value) >= 8 && quoted != "" && entropy(value) > 3.2
	case bare != "" && code.MatchString(bare), strings.Contains(quoted, "(") && strings.Contains(quoted, ")"):
		return false
	case n > 0 && letters:
		return len(value) >= 8 && (quoted != "" || tight || entropy(value) >= 3)
	}
	return letters && len(value) >= 16 && entropy(value) >= 3.7 && strings.ToLower(value) != value
}

var (
	// code is an expression rather than a literal.
	code = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)+[;,)]?$`)
	// pathlike is the name of a file that may hold a secret.
	pathlike = regexp.MustCompile(`^(?:~|\.{0,2}/(?:home|Users|tmp|var|etc|usr|opt|run|root|mnt|srv|workspace|private|dev|app)\b|\./|\.\./|file:|[A-Za-z]:\\)`)
	// noSecret is what stands where a secret would, and is none.
	noSecret = regexp.MustCompile(`(?i)^(?:[*•.x_-]+|null|nil|none|undefined|true|false|yes|no|on|off|empty|unset|string|str|text|number|bool(?:ean)?|bytes|any|object|unknown|required|optional|default|redacted|masked|hidden|secret|password|token|key|value|example|placeholder|changeme|test|dummy|todo|` +
		`\[[a-z_ -]+\]|\$.*|%[a-z_(]\w*\)?[a-z%]?|\{\{.*|\$?\{.*|<[^>]*>|your[-_ ].*|my[-_](?:secret|token|password|key).*|(?:process|os|env|import|config|settings)\..*)$`)
)

// blank says whether the value is a stand-in for a secret.
func blank(value string) bool { return value == "" || noSecret.MatchString(value) }
