//go:build unix

package peer

import (
	"bytes"
	"io"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// writes keeps what was written, write by write.
type writes [][]byte

func (w *writes) Write(b []byte) (int, error) {
	*w = append(*w, bytes.Clone(b))
	return len(b), nil
}

// Split pieces are as small as asked, cut runes, and make the same bytes.
func TestSplit(t *testing.T) {
	path := writeFile(t, filepath.Join(t.TempDir(), "green.ndjson"), entries(green...))
	c := &client{t: t, ops: faithful(green)}
	var in, want bytes.Buffer
	for _, o := range c.ops {
		to := &in
		if o.name[0] == '<' {
			to = &want
		}
		to.Write(append(o.line, '\n'))
	}
	for _, n := range []int{0, 1, 3, 7} {
		var out writes
		cfg := Config{Transcript: path, Workspace: workspace, Split: n}
		if code := Serve(t.Context(), cfg, nil, bytes.NewReader(in.Bytes()), &out, io.Discard); code != 0 {
			t.Fatalf("split %d: exit code %d", n, code)
		}
		cut := false
		for _, b := range out {
			cut = cut || !utf8.Valid(b)
			if n > 0 && len(b) > n {
				t.Fatalf("split %d: a write of %d bytes", n, len(b))
			}
		}
		if cut != (n > 0) {
			t.Errorf("split %d: runes cut: %v", n, cut)
		}
		if d := cmp.Diff(want.String(), string(bytes.Join(out, nil))); d != "" {
			t.Errorf("split %d (-want +got):\n%s", n, d)
		}
	}
}
