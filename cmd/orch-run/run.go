package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/replaypeer/replaypeer/internal/scenario"
	"github.com/replaypeer/replaypeer/internal/tool"
	"github.com/replaypeer/replaypeer/transcripts"
)

func runCommand(ctx context.Context) *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "play scenarios on the orchestrator, with a replay peer as the provider",
		UsageText: "orch-run run [flags]\n\nExample: orch-run run --scenario simple --json",
		Flags: []cli.Flag{
			tool.SomeOf(&cli.StringSliceFlag{Name: "scenario", Usage: "scenario to play, repeatable; default all"}, scenarioNames),
			tool.SomeOf(&cli.StringSliceFlag{Name: "provider", Usage: "provider to play it with, repeatable; default all"}, providerNames),
			&cli.StringFlag{Name: "dir", Usage: "folder of NAME/scenario.yaml; default those built in"},
			&cli.BoolFlag{Name: "json", Usage: "one JSON object a line"},
			&cli.StringFlag{Name: "junit", Usage: "write a JUnit report to `FILE`"},
			&cli.StringFlag{Name: "shard", Usage: "play part `i/n` only"},
			&cli.StringFlag{Name: "keep", Usage: "keep event log, projection, report, database and the last raw frames, secrets masked, below `DIR`"},
		},
		Action: func(c *cli.Context) error { return runAction(ctx, c) },
	}
}

// task is one scenario with one provider.
type task struct {
	scenario *scenario.Scenario
	provider string
}

func runAction(ctx context.Context, c *cli.Context) error {
	if c.NArg() > 0 {
		return tool.Usagef("run takes no arguments: got %q", c.Args().First())
	}
	index, count, err := parseShard(c.String("shard"))
	if err != nil {
		return err
	}
	dir, err := openDir(c.String("dir"))
	if err != nil {
		return err
	}
	defer dir.close()
	tasks, err := choose(dir.scenarios, c.StringSlice("scenario"), c.StringSlice("provider"))
	if err != nil {
		return err
	}
	tasks = shard(tasks, index, count)
	peer, err := findPeer()
	if err != nil {
		return err
	}
	cfg := scenario.Config{Peer: peer, Keep: c.String("keep"), Env: os.Environ()}
	out := newPrinter(c.App.Writer, c.Bool("json"))
	begin := time.Now()
	results := play(ctx, tasks, cfg, out.result)
	totals := scenario.Count(results)
	if err := out.totals(totals, time.Since(begin)); err != nil {
		return err
	}
	if file := c.String("junit"); file != "" {
		if err := writeJUnit(file, results); err != nil {
			return err
		}
	}
	if len(tasks) == 0 {
		return &tool.ExitError{Code: 3, Err: fmt.Errorf("shard %s holds no scenario: nothing passed", c.String("shard"))}
	}
	if !totals.Good() {
		return tool.Bad
	}
	return nil
}

// play runs tasks, as many at once as there are processors, and hands each
// result to done in the order of the tasks.
func play(ctx context.Context, tasks []task, cfg scenario.Config, done func(*scenario.Result)) []*scenario.Result {
	results := make([]*scenario.Result, len(tasks))
	ready := make([]chan struct{}, len(tasks))
	next := make(chan int, len(tasks))
	for i := range tasks {
		ready[i] = make(chan struct{})
		next <- i
	}
	close(next)
	var wg sync.WaitGroup
	for range min(runtime.NumCPU(), len(tasks)) {
		wg.Go(func() {
			for i := range next {
				results[i] = scenario.Run(ctx, cfg, tasks[i].scenario, tasks[i].provider)
				close(ready[i])
			}
		})
	}
	for i := range tasks {
		<-ready[i]
		done(results[i])
	}
	wg.Wait()
	return results
}

// scenarioDir is where scenarios come from.
type scenarioDir struct {
	scenarios []*scenario.Scenario
	temp      string // removed at the end; "" for a folder of the user's
}

func (d *scenarioDir) close() {
	if d.temp != "" {
		os.RemoveAll(d.temp)
	}
}

// openDir loads the scenarios below dir, or those built in where it is "".
func openDir(dir string) (*scenarioDir, error) {
	d := &scenarioDir{}
	shown := dir
	if dir == "" {
		temp, err := os.MkdirTemp("", "orch-run-")
		if err != nil {
			return nil, err
		}
		d.temp, dir, shown = temp, temp, "transcripts"
		if err := os.CopyFS(temp, transcripts.FS); err != nil {
			d.close()
			return nil, fmt.Errorf("unpack transcripts: %w", err)
		}
	}
	abs, err := filepath.Abs(dir)
	if err == nil {
		d.scenarios, err = scenario.LoadAll(abs, filepath.Clean(shown))
	}
	if err != nil {
		d.close()
		return nil, &tool.ExitError{Code: 2, Err: err}
	}
	return d, nil
}

// choose lists scenario and provider pairs in a fixed order. Names that fit
// nothing are usage errors.
func choose(all []*scenario.Scenario, names, providers []string) ([]task, error) {
	var tasks []task
	var known, offered []string
	for _, s := range all {
		known = append(known, s.Name)
		if len(names) > 0 && !slices.Contains(names, s.Name) {
			continue
		}
		for _, p := range s.ProviderNames() {
			offered = append(offered, p)
			if len(providers) == 0 || slices.Contains(providers, p) {
				tasks = append(tasks, task{s, p})
			}
		}
	}
	slices.Sort(offered)
	offered = slices.Compact(offered)
	for _, n := range names {
		if !slices.Contains(known, n) {
			return nil, tool.Usagef("unknown scenario %q: want %s", n, strings.Join(known, ", "))
		}
	}
	for _, p := range providers {
		if !slices.Contains(offered, p) {
			return nil, tool.Usagef("no chosen scenario has provider %q: want %s", p, strings.Join(offered, ", "))
		}
	}
	return tasks, nil
}

func parseShard(s string) (index, count int, err error) {
	if s == "" {
		return 1, 1, nil
	}
	var rest string
	n, _ := fmt.Sscanf(s+" ", "%d/%d%s", &index, &count, &rest)
	if n != 2 || fmt.Sprintf("%d/%d", index, count) != s || index < 1 || index > count {
		return 0, 0, tool.Usagef("shard %q: want i/n with 1 ≤ i ≤ n", s)
	}
	return index, count, nil
}

func shard(tasks []task, index, count int) []task {
	var out []task
	for i, t := range tasks {
		if i%count == index-1 {
			out = append(out, t)
		}
	}
	return out
}

// findTool finds a sibling binary beside this one or on PATH; "" when there is
// none.
func findTool(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if beside := filepath.Join(filepath.Dir(self), name); isProgram(beside) {
		return beside, nil
	}
	if found, err := exec.LookPath(name); err == nil {
		return filepath.Abs(found)
	}
	return "", nil
}

// findPeer finds the program that plays the peer: replay-peer, else this one.
func findPeer() (string, error) {
	found, err := findTool("replay-peer")
	if err == nil && found == "" {
		return os.Executable()
	}
	return found, err
}

func isProgram(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
