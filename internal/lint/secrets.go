package lint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"regexp"
	"strings"
	"unicode"
)

// secretKey names a value that is a secret whatever it looks like.
var secretKey = regexp.MustCompile(`(?i)^token$|(?:^|[_.-]|[a-z])(?:password|passwd|passphrase|secret|api[-_]?key|access[-_]?key|secret[-_]?key|private[-_]?key|authorization|credentials?|(?:access|auth|refresh|id|api|bearer|session|client|bot)[-_]?(?:token|secret)|_token|webhook[-_]?secret)$`)

// secretKeyBytes is a cheap look whether a quoted key may be one of secretKey.
func secretKeyBytes(key []byte) bool {
	if len(key) < 6 {
		return false
	}
	switch key[len(key)-2] | 0x20 {
	case 'd', 'e', 't', 'y', 'n', 's':
		return true
	}
	return false
}

// checkSecret finds credentials by gitleaks' rules and by our own shapes.
func checkSecret(c *run, found report) checker {
	rules, err := gitleaksRules()
	if err != nil {
		panic("lint: gitleaks' own configuration: " + err.Error()) // it is built into the module
	}
	return checker{text: func(t *text) {
		body, key := string(t.body), string(t.key)
		tell := func(rule, secret string) {
			if c.known(secret) || harmless(secret) {
				return
			}
			path := strings.ReplaceAll(t.path(), secret, "…") // it may be a key
			found(t.line, path, "redact it, and revoke it where it was real", "secret (%s%s): %s", rule, viaText(t.via), veil(secret))
		}
		var generic []string
		rules.find(body, func(rule, secret string) {
			if rule != "generic-api-key" {
				tell(rule, secret)
			} else if !ordinary(secret) {
				generic = append(generic, secret)
			}
		})
		if key != "" && secretKey.MatchString(key) && len(body) >= 8 && !strings.ContainsAny(body, " <") && entropy(body) > 2.5 {
			tell("value of "+key, body)
		}
		findShapes(body, tell)
		for _, secret := range generic {
			tell("generic-api-key", secret)
		}
	}}
}

func viaText(via string) string {
	if via == "" {
		return ""
	}
	return ", in " + via
}

// known says whether a secret, or one that holds it, was reported already, and
// remembers it.
func (c *run) known(secret string) bool {
	for _, s := range c.secrets {
		if strings.Contains(s, secret) || len(s) >= 12 && strings.Contains(secret, s) {
			return true
		}
	}
	const most = 1000 // a file of nothing but secrets need not be listed whole
	if len(c.secrets) >= most {
		return true
	}
	c.secrets = append(c.secrets, secret)
	return false
}

// veil tells secrets apart without telling them.
func veil(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	n := min(4, len(secret)/4)
	return fmt.Sprintf("%s… (%d characters, sha256 %s)", strings.ToValidUTF8(secret[:n], ""), len(secret), hex.EncodeToString(sum[:4]))
}

// harmless finds what stands where a secret was or would be.
func harmless(s string) bool {
	low := strings.ToLower(s)
	for _, word := range []string{"<", "redacted", "masked", "example", "placeholder", "dummy", "your-", "your_", "xxxx", "****", "....", "${", "scripted", "test-key", "testkey", "not-a-"} {
		if strings.Contains(low, word) {
			return true
		}
	}
	return entropy(s) < 2
}

// ordinary says whether a token is a name, a number, a path or an id rather
// than a key: gitleaks' generic rule takes whatever follows the word "key".
func ordinary(s string) bool {
	classes, digits := 0, 0
	var lower, upper bool
	for _, c := range s {
		switch {
		case unicode.IsDigit(c):
			digits++
		case unicode.IsLower(c):
			lower = true
		case unicode.IsUpper(c):
			upper = true
		}
	}
	for _, is := range []bool{lower, upper, digits > 0} {
		if is {
			classes++
		}
	}
	return classes < 2 || digits < 2 || uuidForm.MatchString(s) || idForm.MatchString(s)
}

var (
	uuidForm = regexp.MustCompile(`(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	// idForm is an id as providers make them: a short prefix, then chance.
	idForm = regexp.MustCompile(`^(?:[a-z]{2,8}_|[a-z]{3,10}-)[A-Za-z0-9_-]+$`)
	// idKey names values that are made by chance and are no secrets.
	idKey = regexp.MustCompile(`(?i)(?:id|ids|uuid|uuids|signature|thoughtSignature|encrypted_content|cursor|hash|sha|sha1|sha256|checksum|digest|revision|etag|slug|recordId|integrity|blob|nonce)$`)
)

// checkEntropy is the backstop: long tokens that only chance makes.
func checkEntropy(c *run, found report) checker {
	return checker{text: func(t *text) {
		if t.via == "base64" || bytes.HasPrefix(t.body, []byte("data:")) || idKey.Match(t.key) {
			return
		}
		eachRun(t.body, 24, func(b []byte, at int) {
			run := string(b)
			if !random(run) || t.via == "" && image(run) || inPath(t.body, at, len(run)) || c.known(run) {
				return
			}
			found(t.line, strings.ReplaceAll(t.path(), run, "…"), "redact it, or suppress the finding", "a token of high entropy%s: %s", strings.Replace(viaText(t.via), ", in", " in", 1), veil(run))
		})
	}}
}

// random says whether a run of letters and digits was drawn rather than
// written: all classes of characters, mixed, no words.
func random(run string) bool {
	if len(run) > 400 || uuidForm.MatchString(run) || idForm.MatchString(run) || harmless(run) {
		return false
	}
	var lower, upper, digit, other, changes int
	last := 0
	for i := range len(run) {
		class := 0
		switch c := run[i]; {
		case c >= 'a' && c <= 'z':
			lower++
			class = 1
		case c >= 'A' && c <= 'Z':
			upper++
			class = 2
		case c >= '0' && c <= '9':
			digit++
			class = 3
		default:
			other++
		}
		if class != last {
			changes++
			last = class
		}
	}
	n := len(run)
	return lower*8 > n && upper*8 > n && digit*20 > n && other*6 < n && changes*3 > n && entropy(run) > 3.9
}

// image says whether base64 holds a picture, an archive or a font.
func image(run string) bool {
	for _, head := range []string{"iVBOR", "/9j/", "R0lGOD", "UklGR", "PHN2Zy", "JVBERi", "UEsDB", "H4sI", "d09G", "AAAB"} {
		if strings.HasPrefix(run, head) {
			return true
		}
	}
	return false
}

// inPath says whether a run is part of a path, a package's address or an id
// that goes on, rather than a token of its own.
func inPath(body []byte, at, n int) bool {
	run := body[at : at+n]
	if bytes.Count(run, []byte{'/'}) > 1 && n < 60 {
		return true
	}
	before, after := byte(' '), byte(' ')
	if at > 0 {
		before = body[at-1]
	}
	if at+n < len(body) {
		after = body[at+n]
	}
	return before == '.' && after == '.' || before == '@' || before == '\\'
}

// entropy is Shannon's, in bits per byte.
func entropy(s string) float64 {
	var count [256]int
	for i := range len(s) {
		count[s[i]]++
	}
	e := 0.0
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(s))
			e -= p * math.Log2(p)
		}
	}
	return e
}
