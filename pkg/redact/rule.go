package redact

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Rule finds one kind of secret in text. A rule is data: everything but the
// judgement of a fit is in its fields, samples included.
type Rule struct {
	ID string // kebab-case; also the kind in the placeholder

	// Keywords are a cheap sieve: a text in which none of them occurs is not
	// looked at. With Fold they are in lower case and the text's case does
	// not matter.
	Keywords []string
	Fold     bool

	// Pattern is a regular expression. The last group that took part is the
	// secret, without groups all of the match is.
	Pattern string

	// Entropy is what the secret must reach, in bits per character; 0 asks
	// nothing. Digits is how many it must hold at least.
	Entropy float64
	Digits  int

	// Fits judges a match, given as its groups; nil takes all.
	Fits func(groups []string) bool

	// Context is true where only the surroundings tell that this is a secret.
	// Its value is then looked for everywhere else.
	Context bool

	// Personal is data of a person or a machine rather than a credential.
	// Ids are not searched for it.
	Personal bool

	// Samples are templates, see Sample. In each of Hits the rule finds what
	// stands between « and »; in Misses it finds nothing.
	Hits, Misses []string
}

// Rules are the rules for text. Directories, names, values of environment
// variables and members with telling keys are looked for besides.
var Rules = slices.Concat(modelKeys, codeHostKeys, cloudKeys, serviceKeys, forms, personal)

// RuleSet names these rules, for metadata.redaction.
const RuleSet = "replaypeer/1"

// compiled is a rule that is ready to be used.
type compiled struct {
	*Rule
	re   *regexp.Regexp
	sets []byteSet // of the keywords
}

// byteSet says which bytes occur in a text. Most keywords hold one that most
// texts lack.
type byteSet [4]uint64

func newByteSet(s string) (b byteSet) {
	for i := range len(s) {
		b[s[i]>>6] |= 1 << (s[i] & 63)
	}
	return b
}

func (b *byteSet) holds(o *byteSet) bool {
	return o[0]&^b[0]|o[1]&^b[1]|o[2]&^b[2]|o[3]&^b[3] == 0
}

// reading is a text with what is worth knowing of it only once.
type reading struct {
	text, folded     string // folded is in lower case
	bytes, foldBytes byteSet
}

func newReading(text string) *reading {
	r := &reading{text: text, folded: strings.ToLower(text)}
	r.bytes, r.foldBytes = newByteSet(text), newByteSet(r.folded)
	return r
}

// compile makes the regular expressions once per process.
var compile = sync.OnceValue(func() []compiled {
	list := make([]compiled, 0, len(Rules))
	for i := range Rules {
		c := compiled{Rule: &Rules[i], re: regexp.MustCompile(Rules[i].Pattern)}
		for _, k := range c.Keywords {
			c.sets = append(c.sets, newByteSet(k))
		}
		list = append(list, c)
	}
	return list
})

// scan calls add with the place of every secret in a text.
func (c *compiled) scan(r *reading, add func(start, end int)) {
	if !c.sieve(r) {
		return
	}
	text := r.text
	for _, m := range c.re.FindAllStringSubmatchIndex(text, -1) {
		start, end := m[0], m[1]
		groups := make([]string, 0, len(m)/2)
		for i := 0; i < len(m); i += 2 {
			group := ""
			if m[i] >= 0 {
				group = text[m[i]:m[i+1]]
			}
			groups = append(groups, group)
		}
		for i := 2; i < len(m); i += 2 {
			if m[i] >= 0 && m[i+1] > m[i] {
				start, end = m[i], m[i+1]
			}
		}
		secret := text[start:end]
		if secret == "" || digits(secret) < c.Digits || c.Entropy > 0 && entropy(secret) < c.Entropy || c.Fits != nil && !c.Fits(groups) {
			continue
		}
		add(start, end)
	}
}

// sieve says whether one of the keywords occurs.
func (c *compiled) sieve(r *reading) bool {
	hay, set := r.text, &r.bytes
	if c.Fold {
		hay, set = r.folded, &r.foldBytes
	}
	for i := range c.sets {
		if set.holds(&c.sets[i]) && strings.Contains(hay, c.Keywords[i]) {
			return true
		}
	}
	return false
}

// entropy is Shannon's, in bits per byte.
func entropy(s string) float64 {
	var count [256]int
	for i := range len(s) {
		count[s[i]]++
	}
	bits := 0.0
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

func digits(s string) (n int) {
	for i := range len(s) {
		if s[i] >= '0' && s[i] <= '9' {
			n++
		}
	}
	return n
}
