package lint

import (
	"math/bits"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/zricethezav/gitleaks/v8/config"
	"github.com/zricethezav/gitleaks/v8/detect"
)

// secretRules is gitleaks' rule set, one detector per rule, behind one search
// for all their keywords: most strings hold none and cost one look per byte.
// Its detectors are safe for one goroutine at a time.
type secretRules struct {
	words  *keywords
	byWord [][]int // rules that a keyword calls for
	rules  []*detect.Detector
	names  []string
	mutex  sync.Mutex
}

var gitleaksRules = sync.OnceValues(func() (*secretRules, error) {
	whole, err := detect.NewDetectorDefaultConfig()
	if err != nil {
		return nil, err
	}
	r := &secretRules{}
	var words []string
	for id, rule := range whole.Config.Rules {
		if rule.Regex == nil || len(rule.Keywords) == 0 {
			continue // about file names
		}
		r.names = append(r.names, id)
	}
	slices.Sort(r.names)
	for i, id := range r.names {
		rule := whole.Config.Rules[id]
		own := whole.Config
		own.Rules = map[string]config.Rule{id: rule}
		own.Keywords = map[string]struct{}{}
		for _, k := range rule.Keywords {
			k = strings.ToLower(k)
			own.Keywords[k] = struct{}{}
			w := slices.Index(words, k)
			if w < 0 {
				w = len(words)
				words = append(words, k)
				r.byWord = append(r.byWord, nil)
			}
			r.byWord[w] = append(r.byWord[w], i)
		}
		r.rules = append(r.rules, detect.NewDetector(own))
	}
	r.words = newKeywords(words)
	return r, nil
})

// Around a keyword a rule sees this much of a long text.
const (
	windowBefore = 300
	windowAfter  = 8 << 10
	longText     = 16 << 10
)

// find calls fn with each secret in the text and the rule that knows it.
func (r *secretRules) find(body string, fn func(rule, secret string)) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if len(body) <= longText {
		r.window(body, fn)
		return
	}
	// Long texts are seen in overlapping parts, so that a rule's cost grows
	// with what is near its keywords.
	for at := 0; at < len(body); at += longText - windowAfter/2 {
		r.window(body[max(0, at-windowBefore):min(len(body), at+longText)], fn)
	}
}

func (r *secretRules) window(body string, fn func(rule, secret string)) {
	var hit [4]uint64 // 256 rules
	r.words.each(body, func(w int32, end int) {
		for _, rule := range r.byWord[w] {
			if hit[rule/64%4]&(1<<(rule%64)) == 0 && plausible(r.names[rule], body, end) {
				hit[rule/64%4] |= 1 << (rule % 64)
			}
		}
	})
	for i, set := range hit {
		for ; set != 0; set &= set - 1 {
			rule := i*64 + bits.TrailingZeros64(set)
			for _, f := range r.rules[rule].DetectString(body) {
				fn(r.names[rule], f.Secret)
			}
		}
	}
}

// plausible looks at what follows a keyword that ordinary words hold, as the
// rule's expression wants it: an operator soon after "key" or "token", letters
// and digits without a break after "ey". It saves most runs of the two rules.
func plausible(rule, body string, end int) bool {
	switch rule {
	case "generic-api-key":
		for i := end; i < len(body) && i < end+26; i++ {
			switch c := body[i]; {
			case c == '=' || c == ':' || c == '>' || c == ',' || c == '|' || c == '?':
				return true
			case c == '\'' || c == '"' || c == '.' || c == '-' || c == '_' || c <= ' ' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z':
			default:
				return false
			}
		}
		return false
	case "jwt":
		const least = 17
		if len(body) < end+least {
			return false
		}
		for i := end; i < end+least; i++ {
			if c := body[i]; (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
				return false
			}
		}
	}
	return true
}

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
}

var shapeMarks = sync.OnceValue(func() *keywords {
	marks := make([]string, len(shapes))
	for i, s := range shapes {
		marks[i] = s.mark
	}
	return newKeywords(marks)
})

func findShapes(body string, fn func(rule, secret string)) {
	var hit uint64
	shapeMarks().each(body, func(w int32, _ int) { hit |= 1 << w })
	for ; hit != 0; hit &= hit - 1 {
		s := shapes[bits.TrailingZeros64(hit)]
		for _, m := range s.form.FindAllStringSubmatch(body, -1) {
			fn(s.name, m[1])
		}
	}
}
