package lint

import (
	"math/bits"
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
