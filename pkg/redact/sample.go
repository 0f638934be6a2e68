package redact

import (
	"math/rand/v2"
	"strings"
)

// alphabets are what {x12} in a sample stands for.
var alphabets = map[byte]string{
	'a': "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
	'b': "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
	'c': "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
	'd': "0123456789",
	'h': "0123456789abcdef",
	'l': "abcdefghijklmnopqrstuvwxyz",
	'm': "abcdefghijklmnopqrstuvwxyz0123456789",
	'u': "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
	'x': "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
}

// Sample expands a template: {a36} becomes 36 letters and digits chosen by
// the seed, so that no file has to hold anything of a secret's shape. «
// and » around the secret are taken off. The letter is the alphabet:
//
//	a letters and digits    b base64url    c base64     d digits
//	h hex                   l lower case   m l and d    u upper case and d    x base32
func Sample(template string, seed uint64) (text, secret string) {
	rng := rand.New(rand.NewPCG(seed, 0x5ee1d))
	var b strings.Builder
	start, end := 0, 0
	for i := 0; i < len(template); i++ {
		switch rest := template[i:]; {
		case strings.HasPrefix(rest, "«"):
			start = b.Len()
			i += len("«") - 1
		case strings.HasPrefix(rest, "»"):
			end = b.Len()
			i += len("»") - 1
		case rest[0] == '{' && len(rest) > 3 && alphabets[rest[1]] != "" && count(rest[2:]) > 0:
			letters := alphabets[rest[1]]
			for k := range count(rest[2:]) {
				c := letters[rng.IntN(len(letters))]
				if k%5 == 4 && strings.IndexByte(letters, '7') >= 0 { // never without digits
					c = "234567"[rng.IntN(6)]
				}
				b.WriteByte(c)
			}
			i += strings.IndexByte(rest, '}')
		default:
			b.WriteByte(template[i])
		}
	}
	text = b.String()
	if end == 0 {
		return text, text
	}
	return text, text[start:end]
}

// count reads "36}", 0 when it is something else.
func count(s string) int {
	n := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9' && n < 10_000:
			n = n*10 + int(c-'0')
		case c == '}':
			return n
		default:
			return 0
		}
	}
	return 0
}
