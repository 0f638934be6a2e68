package lint

import (
	"bytes"
	"encoding/base64"
	"unicode/utf8"
)

// letters64 gives base64's letters of both alphabets, padding apart, their
// values plus one.
var letters64 = func() (t [256]uint8) {
	for i, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		t[c] = uint8(i + 1)
	}
	t['-'], t['_'] = t['+'], t['/']
	return t
}()

// eachRun calls fn with the runs of base64's letters of a least length, padding
// included. It looks where a run that begins here would have its last letter
// first, so that of words it sees little.
func eachRun(s []byte, least int, fn func(run []byte, at int)) {
next:
	for i := 0; i+least <= len(s); {
		for j := i + least - 1; j >= i; j-- {
			if letters64[s[j]] == 0 {
				i = j + 1
				continue next
			}
		}
		start := i
		for i += least; i < len(s) && letters64[s[i]] != 0; {
			i++
		}
		for end := i; i < len(s) && s[i] == '=' && i < end+2; {
			i++
		}
		fn(s[start:i], start)
	}
}

// decode64 decodes base64 of either alphabet that holds text, nil else.
func decode64(run []byte) []byte {
	body := bytes.TrimRight(run, "=")
	if len(body) > mostStream || len(body)%4 == 1 || !text64(body) {
		return nil
	}
	enc := base64.RawStdEncoding
	if bytes.ContainsAny(body, "-_") {
		enc = base64.RawURLEncoding
	}
	b := make([]byte, enc.DecodedLen(len(body)))
	n, err := enc.Decode(b, body)
	if err != nil || !utf8.Valid(b[:n]) {
		return nil
	}
	for _, c := range b[:n] {
		if notText(c) {
			return nil
		}
	}
	return b[:n]
}

func notText(c byte) bool { return c < 0x20 && c != '\n' && c != '\r' && c != '\t' || c == 0x7f }

// text64 says whether the beginning of what a run decodes to may be text: most
// runs are ids, which do not decode to any.
func text64(body []byte) bool {
	var head [12]byte
	n := 0
	for ; n < len(head) && len(body) >= 4; n += 3 {
		q := uint32(letters64[body[0]]-1)<<18 | uint32(letters64[body[1]]-1)<<12 | uint32(letters64[body[2]]-1)<<6 | uint32(letters64[body[3]]-1)
		head[n], head[n+1], head[n+2] = byte(q>>16), byte(q>>8), byte(q)
		if notText(head[n]) || notText(head[n+1]) || notText(head[n+2]) {
			return false
		}
		body = body[4:]
	}
	for b := head[:n]; len(b) > 0; {
		if !utf8.FullRune(b) {
			return true
		}
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 {
			return false
		}
		b = b[size:]
	}
	return true
}
