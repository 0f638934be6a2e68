package lint

import "bytes"

// hostWords are what a text must hold for one of the expressions about hosts to
// match, by the character they begin with or, for addresses, end in.
var (
	hostEnds = []string{".local", ".lan", ".internal", ".corp", ".intranet", ".home.arpa"} // privateHost
	ipHeads  = []string{"10.", "192.168.", "172."}                                         // privateIP
	macKinds = []string{"-macbook", "-mbp", "-imac", "-mac", "-laptop", "-desktop", "-thinkpad", "-pc"}
)

// hostWords says which kinds of words, letters of either case, are in the text.
func hostWords(body []byte) (host, ip, mac bool) {
	for i := bytes.IndexByte(body, '.'); i >= 0; {
		host = host || beginsWith(body[i:], hostEnds)
		ip = ip || endsWith(body[:i+1], ipHeads)
		next := bytes.IndexByte(body[i+1:], '.')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	for i := bytes.IndexByte(body, '-'); i >= 0 && !mac; {
		mac = beginsWith(body[i:], macKinds)
		next := bytes.IndexByte(body[i+1:], '-')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	return host, ip, mac
}

// beginsWith looks for words in lower case, whose first character the text has.
func beginsWith(b []byte, words []string) bool {
	if len(b) < 2 {
		return false
	}
	second := b[1] | 0x20
next:
	for _, w := range words {
		if w[1] != second || len(b) < len(w) {
			continue
		}
		for i := 1; i < len(w); i++ {
			c := b[i]
			if c >= 'A' && c <= 'Z' {
				c |= 0x20
			}
			if c != w[i] {
				continue next
			}
		}
		return true
	}
	return false
}

func endsWith(b []byte, words []string) bool {
	for _, w := range words {
		if len(b) >= len(w) && string(b[len(b)-len(w):]) == w {
			return true
		}
	}
	return false
}
