//go:build live && linux

package main

import (
	"bytes"
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/replaypeer/replaypeer/schemas"
)

// TestLiveSARIF holds what --format sarif writes about every bad sample against
// the schema of SARIF 2.1.0, which an npm package carries.
func TestLiveSARIF(t *testing.T) {
	cache := cmp.Or(os.Getenv("REPLAYPEER_CACHE"), filepath.Join(os.Getenv("HOME"), ".cache", "replaypeer"))
	install := exec.Command("bash", "-ec", `cache=$1; source ../../scripts/npm.sh; npm_cached jest-sarif-1.0.0-beta.0 @microsoft/jest-sarif@1.0.0-beta.0`, "bash", cache)
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("install: %v\n%s", err, out)
	}
	schema, err := os.ReadFile(filepath.Join(cache, "npm/jest-sarif-1.0.0-beta.0/node_modules/@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json"))
	if err != nil {
		t.Fatal(err)
	}
	dir, bad := t.TempDir(), t.TempDir()
	for name, b := range map[string][]byte{"VERSION": []byte("SARIF 2.1.0"), "sarif.json": schema} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	published, err := schemas.OpenPublished(dir)
	if err != nil {
		t.Fatal(err)
	}
	samples, err := filepath.Glob("../../internal/lint/testdata/bad/*.txtar")
	if err != nil || len(samples) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	for _, sample := range samples {
		a, err := txtar.ParseFile(sample)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(sample), ".txtar") + " ü%.ndjson" // a name that a URI must escape
		if err := os.WriteFile(filepath.Join(bad, name), a.Files[0].Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if code := lintMain([]string{"transcript-lint", "check", "--format", "sarif", bad}, nil, &out, os.Stderr); code != 3 {
		t.Fatalf("check: exit code %d", code)
	}
	if err := published.Validate("sarif.json", nil, out.Bytes()); err != nil {
		t.Error(err)
	}
	if n := bytes.Count(out.Bytes(), []byte(`"ruleIndex"`)); n < len(samples) {
		t.Errorf("%d results of %d samples", n, len(samples))
	}
	for _, change := range [][2]string{{`"level":"error"`, `"level":"fatal"`}, {`"startLine":1`, `"startLine":"1"`}, {`"version":"2.1.0"`, `"version":"2"`}} {
		wrong := bytes.Replace(out.Bytes(), []byte(change[0]), []byte(change[1]), 1)
		if bytes.Equal(wrong, out.Bytes()) {
			t.Errorf("the log has no %s", change[0])
		} else if published.Validate("sarif.json", nil, wrong) == nil {
			t.Errorf("a log with %s passes", change[1])
		}
	}
}
