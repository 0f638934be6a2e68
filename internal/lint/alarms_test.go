package lint

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zricethezav/gitleaks/v8/detect"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// realFiles returns our transcripts and, where it is beside the repository, the
// public corpus.
func realFiles(t *testing.T) []string {
	t.Helper()
	files, err := Find([]string{filepath.Join("..", "..", "transcripts")})
	if err != nil {
		t.Fatal(err)
	}
	corpus, err := Find([]string{filepath.Join("..", "..", "..", "shared", "corpus")})
	if err != nil {
		t.Log("without the public corpus")
	}
	return append(files, corpus...)
}

// trueDefects are findings of the content rules in the public corpus that are
// right: none.
var trueDefects = map[string]bool{}

// TestFalseAlarms wants what is found in real transcripts to be there.
func TestFalseAlarms(t *testing.T) {
	alarms, files := 0, realFiles(t)
	strings := map[string]bool{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found, err := Check(file, bytes.NewReader(b), Options{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if f.Rule >= "TL046" && f.Rule <= "TL049" && !trueDefects[f.Fingerprint] {
				alarms++
				t.Logf("false alarm: %s", f)
			}
		}
		for i := 0; i < len(b); i++ {
			if b[i] == '"' {
				end := envelope.SkipString(b, i)
				strings[string(b[i:end])] = true
				i = end - 1
			}
		}
	}
	t.Logf("%d false alarms over %d distinct strings of %d files", alarms, len(strings), len(files))
	if alarms*50 > len(files) {
		t.Error("want false alarms in at most 2 % of the files")
	}
}

// secretsOnly runs the rules about secrets over a transcript.
func secretsOnly(t testing.TB, name string, b []byte) int {
	t.Helper()
	var opts Options
	for _, r := range Rules {
		if r.ID != "TL046" && r.ID != "TL047" {
			opts.Disable = append(opts.Disable, r.ID)
		}
	}
	found, err := Check(name, bytes.NewReader(b), opts)
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

// TestThroughput compares the rules about secrets, reading included, with
// gitleaks alone over the same bytes.
func TestThroughput(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	if testing.CoverMode() != "" {
		t.Skip("the counters of coverage slow one of the two")
	}
	var all [][]byte
	total := 0
	for _, file := range realFiles(t) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
		total += len(b)
	}
	plain, err := detect.NewDetectorDefaultConfig()
	if err != nil {
		t.Fatal(err)
	}
	secretsOnly(t, "warm", []byte(header))
	best := func(run func(b []byte)) time.Duration {
		least := time.Hour
		for range 3 {
			start := time.Now()
			for _, b := range all {
				run(b)
			}
			least = min(least, time.Since(start))
		}
		return least
	}
	theirs := best(func(b []byte) { plain.DetectBytes(b) })
	ours := best(func(b []byte) { secretsOnly(t, "t", b) })
	rate := func(d time.Duration) float64 { return float64(total) / d.Seconds() / 1e6 }
	t.Logf("%d bytes: gitleaks %v (%.1f MB/s), transcript-lint %v (%.1f MB/s), %.1f times as fast",
		total, theirs, rate(theirs), ours, rate(ours), theirs.Seconds()/ours.Seconds())
	if ours*3 > theirs {
		t.Error("want at least three times gitleaks' throughput")
	}
}

// Everything the finding says must keep the secret to itself, key or value.
func TestSecretsAreVeiled(t *testing.T) {
	secret := "ghp_" + strings.Repeat("aB3dE5gH7", 4)
	lines := header + `{"type":"expect_outbound","label":"i","frame":{"method":"initialized","params":{"` + secret + `":1}}}` + "\n" +
		inboundLine(map[string]any{"method": "x", "params": map[string]any{"v": "token=" + strings.ToUpper(secret[4:])}}, "") + "\n"
	found, err := Check("t", strings.NewReader(lines), Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range found {
		if f.Rule == "TL046" {
			n++
		}
		if strings.Contains(strings.ToLower(f.String()), strings.ToLower(secret[4:])) {
			t.Errorf("told: %s", f)
		}
	}
	if n != 2 {
		t.Errorf("%d secrets found: %v", n, found)
	}
}
