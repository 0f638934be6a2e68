//go:build live && linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/internal/lint"
)

// ownDeviations are what real agents said in our recordings, although no schema
// has it; docs/provider-schemas.md lists them.
var ownDeviations = []string{
	"`frame.method` | @agentclientprotocol/sdk 2.4.0 publishes no request craft/drainMidTurnQueue",
	"`frame.method` | @agentclientprotocol/sdk 2.4.0 publishes no notification qwen/notify/session/mode-update",
	"`frame.params.update.sessionUpdate` | notification session/update: value must be \"session_info_update\"",
}

// TestLiveSchemas compares our transcripts, and the public corpus where it is
// beside the repository, with what the real providers publish. What deviates is
// listed in docs/provider-schemas.md, which -update writes.
func TestLiveSchemas(t *testing.T) {
	published := t.TempDir()
	for _, provider := range []string{"codex", "acp", "opencode"} {
		if out, err := exec.Command("../../scripts/schemas.sh", provider, published).CombinedOutput(); err != nil {
			t.Fatalf("schemas of %s: %v\n%s", provider, err, out)
		}
	}
	own := deviations(t, published, "../../transcripts")
	for key := range own {
		if !slices.Contains(ownDeviations, key) {
			t.Errorf("a recording of ours deviates: %s", key)
		}
	}
	for _, key := range ownDeviations {
		if own[key] == nil {
			t.Errorf("no recording of ours deviates so any more: %s", key)
		}
	}
	for _, edit := range [][3]string{ // a wrong frame of each must not pass
		{"simple/codex.ndjson", `"status":"inProgress"`, `"status":7`},
		{"recorded/gemini/simple.ndjson", `"stopReason":"end_turn"`, `"stopReason":"tired"`},
		{"recorded/opencode/simple.ndjson", `"field":"text"`, `"field":7`},
	} {
		b, err := os.ReadFile("../../transcripts/" + edit[0])
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "wrong.ndjson")
		wrong := bytes.Replace(b, []byte(edit[1]), []byte(edit[2]), 1)
		if err := os.WriteFile(file, wrong, 0o644); err != nil {
			t.Fatal(err)
		}
		if found := deviations(t, published, file); len(found) == 0 {
			t.Errorf("%s with %s passes", edit[0], edit[2])
		} else {
			t.Logf("%s with %s: %v", edit[0], edit[2], slices.Sorted(maps.Keys(found)))
		}
	}
	if _, err := os.Stat("../../../shared/corpus"); err != nil {
		t.Log("without the public corpus")
		return
	}
	checkDeviations(t, deviations(t, published, "../../../shared/corpus"))
}

// deviations checks paths and returns the rows of the table: what deviates,
// and in which recordings.
func deviations(t *testing.T, published, path string) map[string][]string {
	t.Helper()
	var out, trouble bytes.Buffer
	lintMain([]string{"transcript-lint", "check", "--format", "json", "--max-age", "off", "--provider-schemas", published, path}, nil, &out, &trouble)
	if trouble.Len() > 0 {
		t.Fatal(trouble.String())
	}
	rows := map[string][]string{}
	for d := json.NewDecoder(&out); d.More(); {
		var f lint.Finding
		if err := d.Decode(&f); err != nil {
			t.Fatal(err)
		}
		if f.Rule != "TL051" {
			continue
		}
		// Hints tell both versions, as "… of codex 0.171.0, the recording of 0.120.0".
		name := filepath.Base(filepath.Dir(f.File)) + "/" + strings.TrimSuffix(filepath.Base(f.File), ".ndjson")
		if _, version, ok := strings.Cut(f.Hint, ", the recording of "); ok {
			name += " (" + version + ")"
		}
		key := fmt.Sprintf("`%s` | %s", anyIndex.ReplaceAllString(f.Path, ".#"), f.Message)
		rows[key] = append(rows[key], name)
	}
	return rows
}

var anyIndex = regexp.MustCompile(`\.\d+\b`)

// checkDeviations wants the table of the page to be what was found.
func checkDeviations(t *testing.T, rows map[string][]string) {
	t.Helper()
	const page, begin = "../../docs/provider-schemas.md", "|---|---|---|\n"
	var table strings.Builder
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprintf(&table, "| %s | %s |\n", key, strings.Join(rows[key], ", "))
	}
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(b), begin)
	if !ok {
		t.Fatalf("%s has no table", page)
	}
	got, tail, _ := strings.Cut(rest+"\n\n", "\n\n")
	if *update {
		if err := os.WriteFile(page, []byte(strings.TrimRight(head+begin+table.String()+"\n"+tail, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(strings.TrimRight(table.String(), "\n"), strings.TrimRight(got, "\n")); d != "" {
		t.Errorf("%s does not list what deviates (-found +listed):\n%s", page, d)
	}
}
