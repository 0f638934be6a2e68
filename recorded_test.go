package replaypeer

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// lossy is a provider whose second launch puts something into the recorder's
// way: a folder where the finished recording is to be written.
const lossy = `#!/bin/sh
if [ -e "$OUT/new.ndjson" ] && [ "$LOSE" = 1 ]; then mkdir "$OUT/.new.ndjson.whole"; fi
exec "$FAKE/codex" "$@"
`

// TestLostLaunch records a scenario that launches its provider twice, with the
// real recorder, and loses the second launch.
func TestLostLaunch(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED, a lost launch was not tried: the provider is a shell script")
	}
	bin := buildTools(t)
	for _, lose := range []bool{false, true} {
		dir := t.TempDir()
		out, fake, provider := filepath.Join(dir, "out"), filepath.Join(dir, "fake"), filepath.Join(dir, "provider")
		if err := os.MkdirAll(out, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(provider, []byte(lossy), 0o755); err != nil {
			t.Fatal(err)
		}
		if text, err := exec.Command(filepath.Join(bin, "replay-peer"), "link", fake, "codex=transcripts/multi_turn_restart/codex.ndjson").CombinedOutput(); err != nil {
			t.Fatalf("link: %v\n%s", err, text)
		}
		cmd := exec.Command(filepath.Join(bin, "orch-run"), "live", "--scenario", "multi_turn_restart", "--provider", "codex",
			"--source", "scripted-model", "--record", filepath.Join(out, "new.ndjson"), "--", provider, "app-server")
		cmd.Env = append(os.Environ(), "OUT="+out, "FAKE="+fake, "LOSE="+map[bool]string{true: "1"}[lose])
		var said bytes.Buffer
		cmd.Stderr = &said
		stdout, _ := cmd.Output() // the code is looked at below
		if !strings.HasPrefix(string(stdout), "passed ") {
			t.Fatalf("the scenario itself did not pass:\n%s\n%s", stdout, said.Bytes())
		}
		kept, err := os.ReadFile(filepath.Join(out, "new.ndjson"))
		if err != nil {
			t.Fatal(err)
		}
		launches, code := bytes.Count(kept, []byte(`"type":"runtime_exit"`)), cmd.ProcessState.ExitCode()
		switch {
		case !lose && (launches != 2 || code != 0 || said.Len() > 0):
			t.Errorf("%d launches recorded, exit code %d:\n%s", launches, code, said.Bytes())
		case lose && (launches != 1 || code != 1):
			t.Errorf("%d launches recorded, exit code %d: want 1 and 1\n%s", launches, code, said.Bytes())
		case lose:
			for _, want := range []string{"new.ndjson holds 1 of 2 launches of codex", "record again\n  launch 2: finish recording, kept as " + filepath.Join(out, ".new.ndjson.partial")} {
				if !strings.Contains(said.String(), want) {
					t.Errorf("want %q in\n%s", want, said.Bytes())
				}
			}
		}
	}
}
