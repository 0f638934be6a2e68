//go:build live && linux

package peer

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/replaypeer/replaypeer/internal/replay"
)

// TestLiveCodexSDK has two turns through the SDK, each a process of the fake:
// the second fails as recorded. Another prompt turns the run red, and the
// SDK's next turn with it.
func TestLiveCodexSDK(t *testing.T) {
	l, ok := inLive(t, "codex-sdk-0.163.0")
	if !ok {
		return
	}
	for _, c := range []struct {
		hello   string
		verdict replay.Verdict
		said    []string
	}{
		{"hello\n\nagain", replay.Passed, []string{"item.completed Hello.", "swallowed: Codex Exec exited with code 1: the model is gone"}},
		{"hello\nagain", replay.Mismatch, []string{"swallowed: Codex Exec exited with code 97: replay-peer: ", "nothing is played after a failure"}},
	} {
		work := l.start(t)
		transcript, err := filepath.Abs("testdata/codex-exec/sdk.ndjson")
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		fake, err := Link(dir, "codex", l.peer, Config{Transcript: transcript})
		if err != nil {
			t.Fatal(err)
		}
		out := l.client(t, work, "node", driverScript(t, "codex-sdk/turns.mjs"), l.pkg("codex-sdk-0.163.0", "@openai/codex-sdk"), work, c.hello, fake)
		if r := readReport(t, dir, "codex.report.json"); r.Verdict != c.verdict {
			t.Errorf("%q: verdict %s\n%s", c.hello, r.Verdict, r.Text())
		}
		for _, want := range c.said {
			if !strings.Contains(out, want) {
				t.Errorf("%q: the client says %q: want %q", c.hello, out, want)
			}
		}
	}
}
