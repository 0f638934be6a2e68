package redact

import (
	"slices"
	"strings"
	"unicode"
)

// words splits a name in camel case or with separators into lower-case words:
// "OPENAI_API_KEY", "openaiApiKey" and "openai.api-key" give the same three.
func words(name string) []string {
	var list []string
	start := 0
	cut := func(i int) {
		if i > start {
			list = append(list, strings.ToLower(name[start:i]))
		}
	}
	for i := 0; i < len(name); i++ {
		c := rune(name[i])
		switch {
		case !unicode.IsLetter(c) && !unicode.IsDigit(c):
			cut(i)
			start = i + 1
		case i > start && unicode.IsUpper(c) && (!unicode.IsUpper(rune(name[i-1])) || i+1 < len(name) && unicode.IsLower(rune(name[i+1]))):
			cut(i)
			start = i
		}
	}
	cut(len(name))
	return list
}

var (
	passwords   = []string{"password", "passwd", "passphrase", "pwd", "passcode", "pass"}
	secretWords = []string{"secret", "secrets", "credential", "credentials", "authorization", "cookie", "cookies", "apikey", "authtoken", "accesstoken", "pat", "jwt", "otp", "dsn"}
	keyWords    = []string{"api", "access", "private", "secret", "signing", "encryption", "account", "ssh", "deploy", "license", "auth", "service", "master", "webhook", "shared", "admin", "client", "subscription"}
	// notToken are words before "token" that make it a place in a list, a
	// number or a handle.
	notToken = []string{"page", "next", "continuation", "progress", "prev", "previous", "start", "end", "max", "min", "sync", "resume", "cancel", "cancellation", "per", "total", "input", "output", "stop", "eos", "bos", "pad", "each", "first", "last", "special", "unit", "work"}
	// notSecretWords are words that may only name a header or a policy.
	notSecretWords = []string{"cookie", "cookies", "pass", "pat"}
)

// secretName says what a value with this name is: "password", "secret", or ""
// for nothing to hide.
func secretName(name string) string {
	w := words(name)
	if len(w) == 0 || len(w) > 12 {
		return ""
	}
	last, before := w[len(w)-1], ""
	if len(w) > 1 {
		before = w[len(w)-2]
	}
	switch {
	case slices.Contains(notSecretWords, last) && before == "" && last != "cookie":
		return ""
	case slices.Contains(passwords, last), strings.HasSuffix(last, "password"):
		return "password"
	case slices.Contains(secretWords, last):
		return "secret"
	case last == "token" && !slices.Contains(notToken, before):
		return "secret"
	case (last == "key" || last == "keys") && slices.Contains(keyWords, before):
		return "secret"
	case last == "id" && before == "key" && len(w) > 2 && w[len(w)-3] == "access":
		return "secret"
	case last == "code" && (before == "device" || before == "user" || before == "verification" || before == "authorization"):
		return "secret"
	}
	return ""
}

// secretVariable says whether an environment variable's value is to be looked
// for everywhere.
func secretVariable(name, value string) bool {
	if strings.HasPrefix(value, "/") || len(value) < 8 || blank(value) || plainWord(value) {
		return false
	}
	if secretName(name) != "" {
		return true
	}
	w := words(name)
	return slices.ContainsFunc(w, func(s string) bool {
		return slices.Contains([]string{"token", "secret", "password", "passwd", "credentials", "apikey"}, s)
	}) && !slices.ContainsFunc(w, func(s string) bool {
		return slices.Contains([]string{"file", "path", "dir", "url", "max", "limit", "count", "name", "sock", "id", "helper", "ttl"}, s)
	})
}

// plainWord says whether a value is a word that text may well hold anyway.
func plainWord(s string) bool {
	letters := true
	for i := range len(s) {
		c := s[i] | 0x20
		letters = letters && c >= 'a' && c <= 'z'
	}
	return letters && len(s) <= 12 && strings.ToLower(s[1:]) == s[1:] || len(s) <= 8 && digits(s) == len(s)
}

// Members whose values tell about an account, without separators and case.
var (
	accountKeys = []string{
		"accountid", "accountuuid", "accountname", "accountemail", "chatgptaccountid", "chatgptuserid", "organizationid", "organizationuuid", "organizationname", "organization",
		"orgid", "orguuid", "orgname", "subscriptionid", "customerid", "billingemail", "emailaddress", "useremail", "email", "fullname", "phonenumber", "phone",
		"account", "useraccount",
	}
	planKeys   = []string{"plantype", "subscriptiontype", "chatgptplantype", "billingtype", "ratelimittier"}
	limitKeys  = []string{"ratelimits", "ratelimit", "ratelimitinfo", "ratelimitsbylimitid", "ratelimitresetcredits", "credits", "spendcontrol"}
	remoteKeys = []string{"originurl", "remoteurl", "repositoryurl", "repourl", "gitremote", "remoteorigin"}
)

// plain is a key without separators and case.
func plain(key string) string {
	var b strings.Builder
	for i := range len(key) {
		switch c := key[i]; {
		case c >= 'A' && c <= 'Z':
			b.WriteByte(c | 0x20)
		case c != '_' && c != '-' && c != '.':
			b.WriteByte(c)
		}
	}
	return b.String()
}

// memberKind says as what the value under a key is to be replaced: the rule,
// or "" for nothing. Keys of protocols that say "token" and mean a place in a
// list are left alone.
func memberKind(key, value string) string {
	if len(value) < 2 || len(key) > 80 {
		return ""
	}
	switch kind := secretName(key); {
	case kind == "" || blank(value):
	case kind == "password", len(value) >= 8 && !strings.ContainsAny(value, " \n") && (digits(value) > 0 || len(value) >= 20 && entropy(value) > 3.5),
		digits(value) > 0 && len(value) >= 6, strings.Contains(value, " ") && digits(value) > 1:
		return "secret-member"
	}
	switch k := plain(key); {
	case slices.Contains(accountKeys, k) && !blank(value):
		return "account"
	case slices.Contains(remoteKeys, k) && strings.ContainsAny(value, "/:") && !publicGit.MatchString(strings.TrimPrefix(strings.TrimPrefix(value, "https://"), "http://")):
		return "git-remote"
	}
	return ""
}

// limitKey says whether a member tells of limits or credits.
func limitKey(key string) bool { return len(key) < 40 && slices.Contains(limitKeys, plain(key)) }

// planKey says whether a member names a plan.
func planKey(key string) bool { return len(key) < 40 && slices.Contains(planKeys, plain(key)) }
