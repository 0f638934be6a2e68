package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// TestPlaceholdersComeBack records strings full of paths and of what reads
// like placeholders, and plays the transcript in another workspace: what the
// client sends there must match, and what it gets must be what the real
// provider would have sent there.
func TestPlaceholdersComeBack(t *testing.T) {
	const recorded, played = "/some/space", "/elsewhere"
	pieces := []string{ // W is the workspace
		" W ", "=W/a", `"W"`, " W. ", "'W>", "(W/é", " /some/space2", " /my/some/space",
		"<", "<<", ">", " ", "é", "any", `\`, "\u2028",
		"<any>", "<workspace>", "<string>", "<path>", "<bind:x>", "<bind:>", "<vendor-prose>",
	}
	rng := rand.New(rand.NewPCG(7, 7))
	var sent, expected strings.Builder
	for range 2000 {
		text := ""
		for range 1 + rng.IntN(4) {
			text += pieces[rng.IntN(len(pieces))]
		}
		if rng.IntN(8) == 0 {
			text = strings.TrimSpace(text)
		}
		for dir, to := range map[string]*strings.Builder{recorded: &sent, played: &expected} {
			s, err := json.Marshal(strings.ReplaceAll(text, "W", dir))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(to, `{"method":"m","params":{"s":%s}}`+"\n", s)
		}
	}

	path := filepath.Join(t.TempDir(), "out.ndjson")
	cmd := exec.Command("replay-record", "stdio", "--provider", "codex", "--scenario", "s", "-o", path, "--workspace", recorded, "--", "mirror")
	cmd.Env = append(os.Environ(), "HOME=/", "TMPDIR=/tmp")
	cmd.Stdin = strings.NewReader(sent.String())
	if out, err := cmd.Output(); err != nil || string(out) != sent.String() {
		t.Fatalf("record: %v, %d bytes", err, len(out))
	}
	script, err := replay.Load(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := replay.New(script, replay.Options{Workspace: played}, replay.State{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	frames := strings.Split(strings.TrimSuffix(expected.String(), "\n"), "\n")
	for _, f := range frames {
		p.Receive(flavors.Frame{Kind: flavors.Notification, Method: "m", Raw: []byte(f)})
	}
	got := 0
	for got < len(frames) {
		act := p.Next(0)
		if act.Kind != replay.Emit {
			t.Fatalf("after %d frames: action %v\n%s", got, act.Kind, p.Report().Text())
		}
		if act.Channel == envelope.Protocol || act.Channel == "" {
			if value(act.Frame.Raw) != value([]byte(frames[got])) {
				t.Fatalf("frame %d:\nwant %s\ngot  %s", got, frames[got], act.Frame.Raw)
			}
			got++
		}
	}
}

func value(frame []byte) string {
	var v any
	if err := json.Unmarshal(frame, &v); err != nil {
		return err.Error()
	}
	return fmt.Sprint(v)
}
