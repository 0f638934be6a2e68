package scenario

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPairs plays every scenario with every provider twice: as it is, without
// probes, and then with the peer's output in single bytes, every command
// dispatched twice, and snapshots after every step and at three random points.
// Both keep the same bytes. SCENARIO_SEED repeats the points of a failure.
func TestPairs(t *testing.T) {
	if testing.Short() {
		t.Skip("plays all scenarios")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	if s := os.Getenv("SCENARIO_SEED"); s != "" {
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SCENARIO_SEED=%d", seed)
	all, err := LoadAll("../../transcripts", "transcripts")
	if err != nil {
		t.Fatal(err)
	}
	for _, sc := range all {
		for _, probe := range []string{ProbeDuplicates, ProbeStream} {
			if !slices.Contains(sc.Probes, probe) {
				t.Errorf("%s:1: scenario does not name the probe %s", sc.File, probe)
			}
		}
		for i, provider := range sc.ProviderNames() {
			points := rand.New(rand.NewPCG(seed, uint64(i)))
			t.Run(sc.Name+"/"+provider, func(t *testing.T) {
				if raced && i > 0 {
					t.Skip("SKIPPED under the race detector, which gets one provider of each scenario")
				}
				t.Parallel()
				plain, probed := *sc, *sc
				plain.Probes = nil
				cfg := Config{Peer: self, Env: os.Environ(), Keep: t.TempDir()} // Temp is short: a socket lies there
				first := playPair(t, cfg, &plain, provider)
				if first == nil {
					return
				}
				cfg.Keep, cfg.Split = t.TempDir(), 1
				for range 3 {
					cfg.Points = append(cfg.Points, 1+points.Int64N(int64(bytes.Count(first[keptEvents], []byte("\n")))))
				}
				slices.Sort(cfg.Points)
				second := playPair(t, cfg, &probed, provider)
				for name, want := range first {
					if got := second[name]; second != nil && !bytes.Equal(want, got) {
						t.Errorf("%s differs, points %v (-plain +probed):\n%s", name, cfg.Points, cmp.Diff(string(want), string(got)))
					}
				}
			})
		}
	}
}

// playPair plays a scenario and returns what it keeps by name; nil when it did
// not pass.
func playPair(t *testing.T, cfg Config, sc *Scenario, provider string) map[string][]byte {
	t.Helper()
	if r := Run(t.Context(), cfg, sc, provider); r.Status != Passed {
		t.Errorf("points %v: %s: %s", cfg.Points, r.Status, r.Reason)
		return nil
	}
	kept := map[string][]byte{}
	for _, name := range []string{keptEvents, keptProjection, keptReport} {
		data, err := os.ReadFile(filepath.Join(cfg.Keep, sc.Name, provider, name))
		if err != nil {
			t.Error(err)
		}
		kept[name] = data
	}
	return kept
}
