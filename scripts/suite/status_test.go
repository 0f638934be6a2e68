package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The cells of the page are read from what the other scripts write.
func TestReadResults(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"replays.ndjson": `{"scenario":"a","provider":"p-acp","status":"passed"}` + "\n" + `{"totals":{"passed":1}}` + "\n",
		"live.ndjson":    `{"scenario":"a","provider":"p-acp","live":"passed","tries":2}` + "\n" + `{"scenario":"b","provider":"q","live":"failed"}` + "\n",
		// The drift's own provider is that of the protocol, not the one of the file.
		"drift.ndjson":   `{"scenario":"a","provider":"p-acp","drift":{"provider":"p","scenario":"a","news":[{},{}]}}` + "\n",
		"clients.ndjson": `{"Action":"pass","Package":"x","Test":"TestLiveOne"}` + "\nnoise\n" + `{"Action":"pass","Package":"x","Test":"TestOther"}` + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readResults(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := &results{
		replays: map[string]string{"a/p-acp": "passed"},
		live:    map[string]string{"a/p-acp": "passed, second try", "b/q": "failed"},
		drift:   map[string]int64{"a/p-acp": 2},
		clients: []client{{"TestLiveOne", "pass"}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(results{}, client{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestChanges(t *testing.T) {
	for n, want := range map[int64]string{0: "none", 1: "1 change", 2: "2 changes"} {
		if got := changes(n); got != want {
			t.Errorf("%d is written %q: want %q", n, got, want)
		}
	}
}
