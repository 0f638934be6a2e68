package lint

import (
	"bytes"
	"regexp"
	"strings"
)

var (
	email = regexp.MustCompile(`[A-Za-z0-9][A-Za-z0-9._%+-]*@[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}`)
	// nobody are domains and ends of domains that are no one's mail.
	nobody = regexp.MustCompile(`(?i)@(?:.*\.)?(?:example\.(?:com|org|net)|example|test|invalid|localhost|local|noreply\.github\.com|png|jpe?g|gif|svg|webp|m?[jt]sx?|json|md|go|py|rs|css|html|ya?ml|toml|txt|sh|so|dll)$`)
	// machine are accounts that are no person's.
	machine = regexp.MustCompile(`(?i)^(?:git|noreply|no-reply|donotreply|bot|support|info)@`)

	privateHost = regexp.MustCompile(`(?i)\b(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?:local|lan|internal|corp|intranet|home\.arpa)\b(?:[^a-z0-9_./(-]|$)`)
	privateIP   = regexp.MustCompile(`(?:^|[^0-9.])((?:10\.\d{1,3}|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.\d{1,3}\.\d{1,3})(?:$|[^0-9.])`)
	personsMac  = regexp.MustCompile(`(?i)\b(?:[a-z]+s?-(?:macbook|mbp|imac|mac-?mini)|[a-z]+s-(?:laptop|desktop|thinkpad|pc))(?:-[a-z0-9-]+)?\b`)
	hostKey     = regexp.MustCompile(`(?i)^(?:serverName|host_?name|machine_?name|computer_?name|node_?name)$`)
	plainHost   = regexp.MustCompile(`(?i)^(?:localhost|127\.|::1|0\.0\.0\.0|recorder|host|hostname|redacted|example|test|api\.|www\.)|[<\s]|\.(?:com|org|net|dev|io|ai)$`)
)

func checkEmail(_ *run, found report) checker {
	told := map[string]bool{}
	return checker{text: func(t *text) {
		if !mayBeMail(t.body) {
			return
		}
		for _, at := range email.FindAllIndex(t.body, -1) {
			m := string(t.body[at[0]:at[1]])
			if told[m] || nobody.MatchString(m) || machine.MatchString(m) || at[0] > 0 && strings.IndexByte(":/@", t.body[at[0]-1]) >= 0 {
				continue
			}
			told[m] = true
			found(t.line, t.path(), "redact it", "e-mail address %s", m)
		}
	}}
}

// mayBeMail is a cheap look for what email wants: something before an "@", and
// a name with a full stop after it.
func mayBeMail(body []byte) bool {
	for {
		at := bytes.IndexByte(body, '@')
		if at < 0 {
			return false
		}
		rest := body[at+1:]
		if at > 0 && mailByte(body[at-1]) && len(rest) > 0 && hostByte(rest[0]) {
			n := 1
			for n < len(rest) && hostByte(rest[n]) {
				n++
			}
			if n < len(rest) && rest[n] == '.' {
				return true
			}
		}
		body = rest
	}
}

func hostByte(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '-'
}

func mailByte(c byte) bool {
	return hostByte(c) || c == '.' || c == '_' || c == '%' || c == '+'
}

func checkHost(_ *run, found report) checker {
	told := map[string]bool{}
	return checker{text: func(t *text) {
		tell := func(host string) {
			host = strings.TrimRight(host, ` ,;:"'`+"`)]}\n\t")
			if host != "" && !told[host] && !plainHost.MatchString(host) {
				told[host] = true
				found(t.line, t.path(), "redact it", "host of the recording's network: %s", host)
			}
		}
		if mayBeHost(t.key) && hostKey.Match(t.key) && bytes.IndexByte(t.body, '/') < 0 {
			tell(string(t.body))
		}
		host, ip, mac := hostWords(t.body)
		if host {
			for _, m := range privateHost.FindAll(t.body, -1) {
				tell(string(m))
			}
		}
		if ip {
			for _, m := range privateIP.FindAllSubmatch(t.body, -1) {
				tell(string(m[1]))
			}
		}
		if mac {
			for _, m := range personsMac.FindAll(t.body, -1) {
				tell(string(m))
			}
		}
	}}
}

// mayBeHost is a cheap look whether a key may be one of hostKey: they all end
// in the same word.
func mayBeHost(key []byte) bool {
	return len(key) > 4 && strings.EqualFold(string(key[len(key)-4:]), "name")
}
