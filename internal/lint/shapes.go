package lint

import (
	"math/bits"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// shape is a secret that gitleaks has no rule for.
type shape struct {
	name string
	mark string // what a text must hold, in lower case
	form *regexp.Regexp
}

// shapes find what a value says of itself: passwords in addresses, headers of
// authorization, assignments to names of secrets.
var shapes = []shape{
	{"url-password", "://", regexp.MustCompile(`[a-z][a-z0-9+.-]*://[^\s/:@"'<>]*:([^\s/@"'<>$*]{6,})@`)},
	{"url-token", "://", regexp.MustCompile(`https?://([A-Za-z0-9_-]{20,})(?::x-oauth-basic)?@`)},
	{"authorization", "basic ", regexp.MustCompile(`(?i)\bbasic\s+([A-Za-z0-9+/]{12,}={0,2})`)},
	{"authorization", "bearer ", regexp.MustCompile(`(?i)\bbearer\s+([A-Za-z0-9._~+/-]{16,}=*)`)},
	{"assignment", "=", regexp.MustCompile(`(?i)(?:^|[\s"'&?;,{(])(?:[a-z0-9_.-]*[_.-])?(?:password|passwd|pwd|secret|api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|auth[_-]?token|access[_-]?token|refresh[_-]?token|client[_-]?secret|session[_-]?key|token|credential|pat|sig|signature)=["']?([^\s"'&;,<>(){}$]{8,})`)},
	{"header", ": ", regexp.MustCompile(`(?i)\b(?:x-api-key|api-key|x-auth-token|x-[a-z-]*token|cookie|set-cookie|private-token|password|passphrase|secret)["']?: ["']?(?:[a-z_.-]+=)?([^\s"';,<>{}]{8,})`)},
	{"private-key", "private key-----", regexp.MustCompile(`-----BEGIN[ A-Z0-9]*PRIVATE KEY-----([\sA-Za-z0-9+/=\\n]{40,})`)},
	{"openai", "sk-", regexp.MustCompile(`\b(sk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,})`)},
	{"anthropic", "sk-ant-", regexp.MustCompile(`\b(sk-ant-[A-Za-z0-9_-]{16,})`)},
	{"cursor", "key_", regexp.MustCompile(`\b(key_[a-f0-9]{40,})\b`)},
	{"xai", "xai-", regexp.MustCompile(`\b(xai-[A-Za-z0-9]{40,})`)},
	{"google", "ya29.", regexp.MustCompile(`\b(ya29\.[A-Za-z0-9_-]{20,})`)},
	{"google", "aiza", regexp.MustCompile(`\b(AIza[A-Za-z0-9_-]{30,})`)},
	{"slack", "xox", regexp.MustCompile(`\b(xox[abeoprs]-[A-Za-z0-9-]{10,})`)},
	{"github", "gh", regexp.MustCompile(`\b(gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})`)},
	{"aws", "akia", regexp.MustCompile(`\b((?:AKIA|ASIA)[A-Z0-9]{16})\b`)},
	{"jwt", "eyj", regexp.MustCompile(`\b(eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,})`)},
	{"azure", "accountkey=", regexp.MustCompile(`(?i)AccountKey=([A-Za-z0-9+/]{40,}={0,2})`)},
	{"stripe", "_live_", regexp.MustCompile(`\b([rsp]k_live_[A-Za-z0-9]{10,})`)},
	{"webhook", "hooks.slack.com/", regexp.MustCompile(`hooks\.slack\.com/(?:services|workflows)/([A-Za-z0-9/_-]{20,})`)},
	// gitleaks knows most of these where they stand alone, not within a path, a
	// key or other text.
	{"age", "age-secret-key-1", regexp.MustCompile(`\b(AGE-SECRET-KEY-1[0-9A-Z]{30,})`)},
	{"bitbucket", "atbb", regexp.MustCompile(`\b(ATBB[A-Za-z0-9]{24,})`)},
	{"cursor", "crsr_", regexp.MustCompile(`\b(crsr_[A-Za-z0-9]{24,})`)},
	{"digitalocean", "_v1_", regexp.MustCompile(`\b(do[opr]_v1_[a-f0-9]{40,})`)},
	{"docker", "dckr_", regexp.MustCompile(`\b(dckr_[a-z]{3}_[A-Za-z0-9_-]{20,})`)},
	{"fireworks", "fw_", regexp.MustCompile(`\b(fw_[A-Za-z0-9]{20,})`)},
	{"groq", "gsk_", regexp.MustCompile(`\b(gsk_[A-Za-z0-9]{30,})`)},
	{"huggingface", "hf_", regexp.MustCompile(`\b(hf_[A-Za-z0-9]{30,})`)},
	{"mailchimp", "-us", regexp.MustCompile(`\b([0-9a-f]{32}-us[0-9]{1,2})\b`)},
	{"mailgun", "key-", regexp.MustCompile(`\b(key-[0-9a-f]{32})\b`)},
	{"netlify", "nfp_", regexp.MustCompile(`\b(nfp_[A-Za-z0-9]{30,})`)},
	{"new relic", "nrak-", regexp.MustCompile(`\b(NRAK-[A-Z0-9]{20,})`)},
	{"notion", "ntn_", regexp.MustCompile(`\b(ntn_[A-Za-z0-9]{40,})`)},
	{"notion", "secret_", regexp.MustCompile(`\b(secret_[A-Za-z0-9]{40,})`)},
	{"openai", "sess-", regexp.MustCompile(`\b(sess-[A-Za-z0-9_-]{30,})`)},
	{"replicate", "r8_", regexp.MustCompile(`\b(r8_[A-Za-z0-9]{30,})`)},
	{"sentry", "sntry", regexp.MustCompile(`\b(sntry[su]_[A-Za-z0-9_=+/-]{40,})`)},
	{"stripe", "_test_", regexp.MustCompile(`\b([rsp]k_test_[A-Za-z0-9]{16,})`)},
	{"stripe", "whsec_", regexp.MustCompile(`\b(whsec_[A-Za-z0-9+/=]{24,})`)},
	{"authorization", "authorization", regexp.MustCompile(`(?i)authorization["']?\s*[:=]\s*["']?[a-z]+\s+([A-Za-z0-9._~+/=-]{16,})`)},
}

// worded are shapes whose values may as well be words: one with a digit is
// taken for a secret.
var worded = []shape{
	{"password", "pass", regexp.MustCompile(`(?i)(?:password|passwd|passphrase)=["']?([^\s"'&;,<>(){}$]{6,})`)},
	{"flag", "--", regexp.MustCompile(`(?i)(?:^|[\s"'])--(?:[a-z]+-)*(?:password|passwd|token|secret|api-?key|access-key|passphrase)[ =]+["']?([^\s"'<$-][^\s"'<]{5,})`)},
	{"user", "-u", regexp.MustCompile(`(?:^|\s)(?:-u|--user)[ =]["']?[^\s:"']{1,64}:([^\s"'$<]{4,})`)},
	{"netrc", "login", regexp.MustCompile(`\blogin\s+\S+\s+password\s+([^\s"'<$]{6,})`)},
	{"parameter", "code=", regexp.MustCompile(`[?&]code=([A-Za-z0-9._~-]{16,})`)},
}

// shapeMarks are those of shapes, then those of worded.
var shapeMarks = sync.OnceValue(func() *keywords {
	var marks []string
	for _, s := range slices.Concat(shapes, worded) {
		marks = append(marks, s.mark)
	}
	return newKeywords(marks)
})

func findShapes(body string, fn func(rule, secret string)) {
	var hit uint64 // at most 64 shapes
	shapeMarks().each(body, func(w int32, _ int) { hit |= 1 << w })
	for ; hit != 0; hit &= hit - 1 {
		i := bits.TrailingZeros64(hit)
		if i < len(shapes) {
			for _, m := range shapes[i].form.FindAllStringSubmatch(body, -1) {
				fn(shapes[i].name, m[1])
			}
			continue
		}
		s := worded[i-len(shapes)]
		for _, m := range s.form.FindAllStringSubmatch(body, -1) {
			if strings.ContainsAny(m[1], "0123456789") {
				fn(s.name, m[1])
			}
		}
	}
}
