package lint

// signs are bytes that a text holds, each of which something of interest needs.
type signs uint8

const (
	signAt signs = 1 << iota
	signDot
	signDash
	signEscape // of a terminal
	signBackslash
	signPercent
	allSigns signs = 1<<iota - 1
)

var signOf = [256]signs{'@': signAt, '.': signDot, '-': signDash, '\x1b': signEscape, '\\': signBackslash, '%': signPercent}

// signsOf says what may be in a text, in one look at a short one, as most are;
// in a long one each byte is found faster by itself.
func signsOf(body []byte) (in signs) {
	const short = 64
	if len(body) > short {
		return allSigns
	}
	for _, c := range body {
		in |= signOf[c]
	}
	return in
}
