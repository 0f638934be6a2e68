//go:build unix

package peer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/internal/replay"
)

// serveHere plays one launch in this process with a client that writes its
// pieces one after the other, reading only when told.
func serveHere(t testing.TB, cfg Config, ops []op) (code int, stdout string, stderr string) {
	t.Helper()
	inRead, inWrite := pipe(t)
	outRead, outWrite := pipe(t)
	defer inRead.Close()
	defer outRead.Close()
	var errs bytes.Buffer
	done := make(chan int)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() {
		c := Serve(ctx, cfg, nil, inRead, outWrite, &errs)
		outWrite.Close()
		done <- c
	}()
	var seen bytes.Buffer
	p := &process{in: inWrite, out: outRead, lines: bufio.NewReader(io.TeeReader(outRead, &seen))}
	if err := run(p, ops); err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintf(&seen, "client: %v", err)
	}
	inWrite.Close()
	if _, err := p.rest(); err != nil {
		t.Error(err)
	}
	return <-done, seen.String(), errs.String()
}

// The same transcript and the same client give the same bytes, whatever the
// scheduler does and however the client's bytes come.
func TestDeterminism(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "green.ndjson"), entries(green...))
	clients := map[string]func(*client){
		"step by step": func(*client) {},
		"burst":        burst,
	}
	var want [2]string
	for _, procs := range []int{1, 2} {
		for name, change := range clients {
			t.Run(fmt.Sprintf("%s, %d", name, procs), func(t *testing.T) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				c := &client{t: t, ops: faithful(green)}
				change(c)
				for i := range 50 {
					report := filepath.Join(dir, "report.json")
					cfg := Config{Transcript: filepath.Join(dir, "green.ndjson"), Report: report, Workspace: workspace}
					code, stdout, stderr := serveHere(t, cfg, c.ops)
					got := [2]string{stdout, readFile(t, report)}
					if want[0] == "" {
						want = got
					}
					if code != 0 || stderr != "" || got != want {
						t.Fatalf("replay %d: exit code %d, stderr %s\n%s", i, code, stderr, cmp.Diff(want, got))
					}
				}
			})
		}
	}
	for range 3 { // as processes
		p := startPeer(t, dir, Config{Transcript: filepath.Join(dir, "green.ndjson"), Report: "report.json", Workspace: workspace})
		c := &client{t: t, ops: faithful(green)}
		burst(c)
		if err := run(p, c.ops[:1]); err != nil {
			t.Fatal(err)
		}
		p.in.Close()
		stdout, err := p.rest()
		if code, _ := p.wait(t); code != 0 || err != nil {
			t.Fatalf("exit code %d, %v: %s", code, err, p.errors(t))
		}
		if d := cmp.Diff(want, [2]string{stdout, readFile(t, filepath.Join(dir, "report.json"))}); d != "" {
			t.Errorf("as a process (-in this one +as a process):\n%s", d)
		}
	}
}

// A failure is the same, too: what came before it in one read is played first.
func TestFailureDoesNotDependOnReads(t *testing.T) {
	for name, change := range map[string]func(*client){
		"illegal":      edited("> turn/start", `{"id"`, `{"id"x`),
		"mismatch":     edited("> turn/start", `th-1`, `th-2`),
		"answer":       edited("> approve", `"id":0`, `"id":9`),
		"id in flight": edited("> list-b", `"id":4`, `"id":3`),
		"too long":     func(c *client) { c.edit("> turn/start", "noon or so", string(make([]byte, 5000))) },
		"after end":    func(c *client) { c.edit("> approve", `}}`, "}}\n"+`{"method":"x"}`) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			play := func(report string, more func(*client)) [3]string {
				c := &client{t: t, ops: faithful(green)}
				change(c)
				more(c)
				cfg := Config{Transcript: writeFile(t, filepath.Join(dir, "green.ndjson"), entries(green...)), Workspace: workspace}
				cfg.Report, cfg.MaxLine = filepath.Join(dir, report), 4096
				code, stdout, stderr := serveHere(t, cfg, c.ops)
				if code != replay.ExitFailed {
					t.Errorf("exit code %d", code)
				}
				return [3]string{stdout, stderr, readFile(t, cfg.Report)}
			}
			step := play("step.json", func(c *client) {})
			atOnce := play("burst.json", burst)
			if d := cmp.Diff(step, atOnce); d != "" {
				t.Errorf("step by step and at once differ (-step +at once):\n%s", d)
			}
		})
	}
}
