//go:build unix

package peer

import (
	"path/filepath"
	"testing"

	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// TestCodexCorpus plays every Codex file of the corpus over the real wire, its
// launches one after the other on one state file, with request ids of the
// client's own.
func TestCodexCorpus(t *testing.T) {
	for _, path := range corpus(t, "codex.ndjson") {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			t.Parallel()
			tr, err := envelope.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			parts := launches(tr.Entries)
			dir := t.TempDir()
			for i := range parts {
				out := driver{flags: []string{"--state", "state"}, dir: dir, launch: i}.drive(t, path)
				if i == len(parts)-1 {
					out.passed(t)
				} else if out.err != nil || out.code != 0 || out.report.Verdict != replay.Running {
					t.Fatalf("launch %d: %v, exit code %d, verdict %s\n%s", i+1, out.err, out.code, out.report.Verdict, out.stderr)
				}
			}
		})
	}
}

// TestCodexCorpusChanged changes one value of one frame of the first launch at
// a time.
func TestCodexCorpusChanged(t *testing.T) {
	for _, path := range corpus(t, "codex.ndjson") {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			t.Parallel()
			tr, err := envelope.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, e := range launches(tr.Entries)[0] {
				x, ok := e.(*envelope.ExpectOutbound)
				if !ok {
					continue
				}
				if paths := leaves(x.Frame); len(paths) > 0 {
					at, frame := paths[len(paths)-1], n
					driver{change: func(i int, raw []byte) []byte {
						if i == frame {
							return changed(raw, at)
						}
						return raw
					}}.drive(t, path).failed(t, "outbound mismatch at "+at)
				}
				n++
			}
			if n == 0 {
				t.Error("no frame was changed")
			}
		})
	}
}
