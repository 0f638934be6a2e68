package peer

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// pieces reads its text in pieces of the given sizes, again and again.
type pieces struct {
	text  []byte
	sizes []byte
	next  int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.text) == 0 {
		return 0, io.EOF
	}
	n := len(b)
	if len(p.sizes) > 0 {
		n = int(p.sizes[p.next%len(p.sizes)])
		p.next++
	}
	n = copy(b[:min(n, len(b))], p.text)
	p.text = p.text[n:]
	return n, nil
}

// cut collects what readLines delivers.
func cut(r io.Reader, limit int) ([]string, error) {
	var got []string
	var kept [][]byte
	err := readLines(r, limit, func(lines [][]byte) {
		for _, l := range lines {
			got = append(got, string(l))
			kept = append(kept, l)
		}
	})
	for i, l := range kept { // nothing may have been written over
		if string(l) != got[i] {
			return got, errors.New("a line changed after it was delivered")
		}
	}
	return got, err
}

// wantLines says the same in the simple way.
func wantLines(text []byte, limit int) (want []string, long bool) {
	all := bytes.Split(text, []byte("\n"))
	if last := len(all) - 1; len(all[last]) == 0 {
		all = all[:last]
	}
	for _, l := range all {
		if len(l) > limit {
			return want, true
		}
		want = append(want, string(l))
	}
	return want, false
}

// FuzzReadLines: the same lines as bytes.Split, whatever the reads; and those
// before one that is too long.
func FuzzReadLines(f *testing.F) {
	f.Add([]byte("a\nb\n"), []byte{1}, uint16(10), uint16(0))
	f.Add([]byte("\n\n\r\nx"), []byte{3, 0, 1}, uint16(1), uint16(0))
	f.Add([]byte("ok\nlong line\nmore\n"), []byte{255}, uint16(4), uint16(0))
	f.Add([]byte("é\u2028\n"), []byte{2}, uint16(100), uint16(20000))
	f.Add([]byte("x"), []byte{}, uint16(65535), uint16(40000))
	f.Fuzz(func(t *testing.T, text, sizes []byte, limit, repeat uint16) {
		if len(text) > 0 { // long lines come from repeating
			text = slices.Concat(text, bytes.Repeat(text[:1], int(repeat)), text)
		}
		if !slices.ContainsFunc(sizes, func(n byte) bool { return n > 0 }) {
			sizes = nil
		}
		want, long := wantLines(text, int(limit))
		got, err := cut(&pieces{text: text, sizes: sizes}, int(limit))
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("lines (-want +got):\n%s", d)
		}
		var tooLong *lineError
		if errors.As(err, &tooLong) != long || !long && err != nil {
			t.Fatalf("error %v: want one for a long line: %v", err, long)
		}
	})
}

func TestReadLinesLong(t *testing.T) {
	long := strings.Repeat("0123456789", 30000)
	text := "a\n" + long + "\nb\n" + long
	for _, r := range []io.Reader{strings.NewReader(text), iotest.HalfReader(strings.NewReader(text)), iotest.DataErrReader(strings.NewReader(text))} {
		got, err := cut(r, len(long))
		if d := cmp.Diff([]string{"a", long, "b", long}, got); d != "" || err != nil {
			t.Errorf("%v, %d lines", err, len(got))
		}
	}
	got, err := cut(strings.NewReader(text), len(long)-1)
	if d := cmp.Diff([]string{"a"}, got); d != "" || err == nil || err.Error() != "a line is longer than 299999 bytes: raise the line limit" {
		t.Errorf("%v, %q", err, got)
	}
	// A broken pipe ends the input like its end does.
	if got, err := cut(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("ab"))), 10); err != nil || len(got) != 1 || got[0] != "a" {
		t.Errorf("after a read error: %q, %v", got, err)
	}
}
