package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// results are what the live suite wrote, one JSON object a line each.
type results struct {
	replays map[string]string // orch-run run --json: SCENARIO/PROVIDER to status
	live    map[string]string // rerecord.sh: SCENARIO/PROVIDER to passed or failed
	drift   map[string]int64  // transcript-lint diff --drift: to the number of changes
	clients []client          // go test -json of the vendors' own clients
}

type client struct {
	test, result string
}

func readResults(dir string) (*results, error) {
	r := &results{replays: map[string]string{}, live: map[string]string{}, drift: map[string]int64{}}
	key := func(v gjson.Result) string { return v.Get("scenario").Str + "/" + v.Get("provider").Str }
	for _, file := range []struct {
		name string
		take func(v gjson.Result)
	}{
		{"replays.ndjson", func(v gjson.Result) {
			if v.Get("scenario").Exists() {
				r.replays[key(v)] = v.Get("status").Str
			}
		}},
		{"live.ndjson", func(v gjson.Result) {
			if r.live[key(v)] = v.Get("live").Str; v.Get("tries").Int() > 1 {
				r.live[key(v)] += ", second try"
			}
		}},
		{"drift.ndjson", func(v gjson.Result) { r.drift[key(v)] = v.Get("drift.news.#").Int() }},
		{"clients.ndjson", func(v gjson.Result) {
			action := v.Get("Action").Str
			if test := v.Get("Test").Str; strings.Contains(test, "Live") && (action == "pass" || action == "fail" || action == "skip") {
				r.clients = append(r.clients, client{test, action})
			}
		}},
	} {
		if err := eachLine(filepath.Join(dir, file.name), file.take); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func eachLine(path string, take func(gjson.Result)) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		if gjson.ValidBytes(lines.Bytes()) {
			take(gjson.ParseBytes(lines.Bytes()))
		}
	}
	return lines.Err()
}

func printStatus(dir string) error {
	r, err := readResults(dir)
	if err != nil {
		return err
	}
	list, err := pairs()
	if err != nil {
		return err
	}
	fmt.Printf(`# Status

Written by %s from what it measured on %s; no cell is typed by hand.

* **recorded**: what stood behind the provider, and when.
* **replays**: the committed transcript, played to the orchestrator by %s.
* **live**: the scenario was run anew on the real provider of this version, with the scripted model, and recorded.
* **drift**: what differs in meaning between the committed recording and the new one.

A dash means that the provider cannot be run live: hand-written and imported transcripts.

| scenario | provider | version | recorded | replays | live | drift |
|---|---|---|---|---|---|---|
`, "`STATUS=docs/status.md scripts/live.sh`", time.Now().UTC().Format(time.DateOnly), "`orch-run run`")
	for _, p := range list {
		key := p.scenario + "/" + p.provider
		drift := "–"
		if n, ok := r.drift[key]; ok {
			drift = changes(n)
		}
		day, _, _ := strings.Cut(gjson.GetBytes(p.header.Metadata, "capturedAt").Str, "T")
		fmt.Printf("| %s | %s | %s | %s %s | %s | %s | %s |\n", p.scenario, p.provider, p.header.Version, p.source(), day,
			orDash(r.replays[key]), orDash(r.live[key]), drift)
	}
	if len(r.clients) > 0 {
		fmt.Print("\n## Real clients\n\nTests that put vendors' own, unmodified clients on recordings and on `replay-peer`.\n\n| test | result |\n|---|---|\n")
		slices.SortFunc(r.clients, func(a, b client) int { return strings.Compare(a.test, b.test) })
		for _, c := range r.clients {
			fmt.Printf("| %s | %s |\n", strings.ReplaceAll(c.test, "_", `\_`), c.result)
		}
	}
	return nil
}

// printClients prints the results of go test -json as go test does, with the
// output of what failed.
func printClients(dir string) error {
	output := map[string]string{}
	return eachLine(filepath.Join(dir, "clients.ndjson"), func(v gjson.Result) {
		pkg, test := v.Get("Package").Str, v.Get("Test").Str
		key := pkg + " " + test
		switch action := v.Get("Action").Str; {
		case action == "output" || action == "build-output":
			output[key] += v.Get("Output").Str
		case action == "fail" || action == "build-fail":
			fmt.Printf("FAIL %s\n%s", key, output[key])
		case action == "pass" && test == "" && strings.Contains(output[key], "ok"), action == "skip" && test != "":
			fmt.Printf("%s %s %.1fs\n", action, key, v.Get("Elapsed").Float())
		}
	})
}

func changes(n int64) string {
	switch n {
	case 0:
		return "none"
	case 1:
		return "1 change"
	}
	return fmt.Sprintf("%d changes", n)
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}
