package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/replaypeer/replaypeer/internal/review"
	"github.com/replaypeer/replaypeer/internal/scenario"
	"github.com/replaypeer/replaypeer/internal/tool"
	"github.com/replaypeer/replaypeer/pkg/envelope"
)

func liveCommand(ctx context.Context) *cli.Command {
	return &cli.Command{
		Name:  "live",
		Usage: "play a scenario on the orchestrator with the real provider",
		UsageText: "orch-run live --scenario S --provider P [flags] -- CMD ARGS…\n\n" +
			"Example: orch-run live --scenario simple --provider codex --record codex.ndjson -- codex app-server",
		Flags: []cli.Flag{
			tool.OneOf(&cli.StringFlag{Name: "scenario", Usage: "scenario to play"}, scenarioNames),
			tool.OneOf(&cli.StringFlag{Name: "provider", Usage: "provider that CMD is"}, providerNames),
			&cli.StringFlag{Name: "dir", Usage: "folder of NAME/scenario.yaml; default those built in"},
			&cli.StringFlag{Name: "record", Usage: "record the provider to `FILE`, which must not exist"},
			&cli.StringFlag{Name: "compare", Usage: "compare with this `TRANSCRIPT` of the scenario and tell what drifted in the provider's protocol; exit 3 when something did"},
			&cli.StringFlag{Name: "model-log", Usage: "`FILE` in which replay-record model logs its requests: the scenario's assertions on them are held"},
			tool.OneOf(&cli.StringFlag{Name: "source", Value: "live", Usage: "what stands behind the provider: live or scripted-model"}, tool.Words("live", "scripted-model")),
			&cli.StringSliceFlag{Name: "instance", Usage: "another provider instance of the scenario, repeatable: `NAME=CMD ARGS…`, split at spaces"},
			&cli.StringFlag{Name: "keep", Usage: "keep event log, projection, database and the last raw frames, secrets masked, below `DIR`"},
			&cli.BoolFlag{Name: "json", Usage: "one JSON object a line"},
		},
		Action: func(c *cli.Context) error { return liveAction(ctx, c) },
	}
}

func liveAction(ctx context.Context, c *cli.Context) error {
	name, provider := c.String("scenario"), c.String("provider")
	switch {
	case name == "" || provider == "":
		return tool.Usagef("live needs --scenario and --provider")
	case c.NArg() == 0:
		return tool.Usagef("live needs the provider's command after --")
	}
	live := &scenario.Live{Command: c.Args().Slice(), Source: c.String("source"), ModelLog: c.String("model-log"), Instances: map[string][]string{}}
	if live.Source != "live" && live.Source != "scripted-model" {
		return tool.Usagef("source %q: want live or scripted-model", live.Source)
	}
	for _, other := range c.StringSlice("instance") {
		name, command, ok := strings.Cut(other, "=")
		if fields := strings.Fields(command); ok && name != "" && len(fields) > 0 {
			live.Instances[name] = fields
			continue
		}
		return tool.Usagef("instance %q: want NAME=CMD", other)
	}
	record := c.String("record")
	scratch, err := os.MkdirTemp("", "orch-run-live-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if c.String("compare") != "" && record == "" {
		record = filepath.Join(scratch, provider+".ndjson")
	}
	live.Launches = filepath.Join(scratch, "launches")
	if err := os.Mkdir(live.Launches, 0o755); err != nil {
		return err
	}
	if err := setRecord(live, record); err != nil {
		return err
	}
	dir, err := openDir(c.String("dir"))
	if err != nil {
		return err
	}
	defer dir.close()
	tasks, err := choose(dir.scenarios, []string{name}, []string{provider})
	if err != nil {
		return err
	}
	cfg := scenario.Config{Live: live, Keep: c.String("keep"), Env: os.Environ()}
	out := newPrinter(c.App.Writer, c.Bool("json"))
	begin := time.Now()
	totals := scenario.Count(play(ctx, tasks, cfg, out.result))
	if err := out.totals(totals, time.Since(begin)); err != nil {
		return err
	}
	if live.Record != "" && totals.Passed > 0 {
		if err := checkRecorded(live, provider); err != nil {
			return err
		}
	}
	if !totals.Good() {
		return tool.Bad
	}
	if old := c.String("compare"); old != "" {
		return compare(c, old, live.Record)
	}
	return nil
}

// compare prints what drifted between an older recording and a new one.
func compare(c *cli.Context, old, fresh string) error {
	before, err := envelope.ReadFile(old)
	if err != nil {
		return err
	}
	after, err := envelope.ReadFile(fresh)
	if err != nil {
		return err
	}
	d := review.DriftOf(before, after)
	text := d.Text()
	if c.Bool("json") {
		text = string(d.JSON())
	}
	if _, err := io.WriteString(c.App.Writer, text); err != nil {
		return err
	}
	if !d.Same {
		return tool.Bad
	}
	return nil
}

// setRecord makes the provider be recorded to file. An older recording is
// never added to.
func setRecord(live *scenario.Live, file string) error {
	if file == "" {
		return nil
	}
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = fmt.Errorf("%s exists: remove it first", file)
		}
		return &tool.ExitError{Code: 2, Err: err}
	}
	abs, err := filepath.Abs(file) // the recorder is started in the workspace
	if err != nil {
		return err
	}
	recorder, err := findTool("replay-record")
	if err != nil {
		return err
	}
	if recorder == "" {
		return tool.Usagef("--record needs replay-record beside orch-run or on PATH")
	}
	live.Record, live.Recorder = abs, recorder
	return nil
}
