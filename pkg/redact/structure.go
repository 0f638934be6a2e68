package redact

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// SameStructure says where redaction changed more than it may: entries, their
// types, labels and order, keys, ids and methods, the types of values, and all
// text beside placeholders must be what they were. nil means they are.
func SameStructure(before, after *envelope.Transcript) error {
	if a, b := len(before.Entries), len(after.Entries); a != b {
		return fmt.Errorf("%d entries became %d", a, b)
	}
	for i, x := range before.Entries {
		line, label := x.Position()
		_, other := after.Entries[i].Position()
		a, err := envelope.AppendEntry(nil, x)
		if err != nil {
			return err
		}
		b, err := envelope.AppendEntry(nil, after.Entries[i])
		if err != nil {
			return err
		}
		if label != other {
			return fmt.Errorf("line %d: label %q became %q", line, label, other)
		}
		if err := sameFrame(a, b); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
	return nil
}

// sameFrame compares the structure of a JSON value before and after.
func sameFrame(before, after []byte) error {
	if !envelope.Valid(after) {
		return errors.New("not JSON any more")
	}
	var a, b []string
	collect := func(raw []byte, to *[]string) {
		walk(raw, func(w *walker, t token) {
			*to = append(*to, fmt.Sprintf("%d %d %s", t.kind, t.depth, raw[t.start:t.end]))
		})
	}
	collect(before, &a)
	collect(after, &b)
	if len(a) != len(b) {
		return fmt.Errorf("%d strings, keys and numbers became %d", len(a), len(b))
	}
	i := 0
	var err error
	walk(before, func(w *walker, t token) {
		if x, y := a[i], b[i]; x != y && err == nil {
			head := fmt.Sprintf("%d %d ", t.kind, t.depth)
			switch {
			case !strings.HasPrefix(y, head):
				err = fmt.Errorf("%s: another kind of value", w.at())
			case t.fixed():
				err = fmt.Errorf("%s was changed", w.at())
			case t.kind == tokenNumber && y != head+"0" && y != head+"0.0":
				err = fmt.Errorf("%s: a number was changed", w.at())
			case t.kind != tokenNumber && !derived(before[t.start:t.end], []byte(y[len(head):])):
				err = fmt.Errorf("%s: text beside placeholders was changed", w.at())
			}
		}
		i++
	})
	return err
}

// written is all that redaction writes into strings.
var written = regexp.MustCompile(opaque.String() + `|^unknown$`)

// derived says whether a string may have become the other one: what stands in
// the latter beside placeholders stands in the former, in order. Pieces of
// text that were cut out need not leave a placeholder.
func derived(before, after []byte) bool {
	from, to := envelope.Unquote(before), envelope.Unquote(after)
	for _, part := range written.Split(to, -1) {
		for part != "" { // the longest beginning that occurs; an escape adds a bracket
			n := longest(from, part)
			if n == 0 {
				if part[0] != '<' {
					return false
				}
				part = part[1:]
				continue
			}
			from = from[strings.Index(from, part[:n])+n:]
			part = part[n:]
		}
	}
	return true
}

// longest returns how long a beginning of part occurs in text.
func longest(text, part string) int {
	if strings.Contains(text, part) {
		return len(part)
	}
	low, high := 0, len(part) // part[:low] occurs, part[:high] does not
	for high-low > 1 {
		if mid := (low + high) / 2; strings.Contains(text, part[:mid]) {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}
