package lint

import "bytes"

// Words that a text must hold for one of the expressions about hosts to match.
var (
	hostEnds = []string{".local", ".lan", ".internal", ".corp", ".intranet", ".home.arpa"} // privateHost
	ipHeads  = []string{"10.", "192.168.", "172."}                                         // privateIP
	macKinds = []string{"-macbook", "-mbp", "-imac", "-mac", "-laptop", "-desktop", "-thinkpad", "-pc"}
)

// macSecond are the second letters of macKinds.
var macSecond = [256]bool{'m': true, 'i': true, 'l': true, 'd': true, 't': true, 'p': true}

// hostWords is a cheap look which of the expressions about hosts may match:
// their words, letters of either case, with what must stand beside them.
func hostWords(body []byte) (host, ip, mac bool) {
	for i := bytes.IndexByte(body, '.'); i >= 0; {
		if i > 0 && i+2 < len(body) {
			before, after := body[i-1], body[i+1]
			ip = ip || after >= '0' && after <= '9' && before >= '0' && before <= '9' && endsInIP(body[:i+1])
			host = host || (hostByte(before) || before >= 0x80) && endsHost(body[i:])
		}
		next := bytes.IndexByte(body[i+1:], '.')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	for i := bytes.IndexByte(body, '-'); i >= 0 && !mac; {
		if i+1 < len(body) && macSecond[body[i+1]|0x20] {
			for _, w := range macKinds {
				mac = mac || hasWord(body[i:], w)
			}
		}
		next := bytes.IndexByte(body[i+1:], '-')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	return host, ip, mac
}

// endsHost says whether the text begins with the end of a host's name.
func endsHost(b []byte) bool {
	for _, w := range hostEnds {
		if !hasWord(b, w) {
			continue
		}
		if len(b) == len(w) {
			return true
		}
		switch c := b[len(w)]; {
		case hostByte(c), c == '_', c == '.', c == '/', c == '(':
		default:
			return true
		}
	}
	return false
}

// endsInIP says whether the text ends in the beginning of a private address.
func endsInIP(b []byte) bool {
	for _, w := range ipHeads {
		if before, ok := bytes.CutSuffix(b, []byte(w)); ok {
			if len(before) == 0 {
				return true
			}
			c := before[len(before)-1]
			return c != '.' && (c < '0' || c > '9')
		}
	}
	return false
}

// hasWord says whether the text begins with a word in lower case, whose first
// byte the caller has seen.
func hasWord(b []byte, w string) bool {
	if len(b) < len(w) || b[1]|0x20 != w[1] {
		return false
	}
	for i := 1; i < len(w); i++ {
		c := b[i]
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != w[i] {
			return false
		}
	}
	return true
}
