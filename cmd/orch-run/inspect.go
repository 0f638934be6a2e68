package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/replaypeer/replaypeer/internal/orch"
	"github.com/replaypeer/replaypeer/internal/orch/sqlite"
	"github.com/replaypeer/replaypeer/internal/scenario"
	"github.com/replaypeer/replaypeer/internal/tool"
)

func inspectFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "db", Usage: "database `FILE` of an orchestrator"},
		&cli.StringFlag{Name: "thread", Usage: "only this thread; default all"},
		&cli.Int64Flag{Name: "after", Usage: "only events after sequence `SEQ`; a projection is always whole"},
		&cli.BoolFlag{Name: "json", Usage: "one JSON object a line"},
	}
}

func eventsCommand(ctx context.Context) *cli.Command {
	return &cli.Command{
		Name:      "events",
		Usage:     "print the event log of a database",
		UsageText: "orch-run events --db FILE [flags]\n\nExample: orch-run events --db out/simple/codex/run.db --after 10",
		Flags:     inspectFlags(),
		Action: func(c *cli.Context) error {
			events, err := readEvents(ctx, c)
			if err != nil {
				return err
			}
			out := newPrinter(c.App.Writer, c.Bool("json"))
			for _, e := range events {
				switch {
				case e.Sequence <= c.Int64("after"):
				case out.json:
					out.object(e)
				default:
					out.line(scenario.Describe(e))
				}
			}
			return out.err
		},
	}
}

func projectionCommand(ctx context.Context) *cli.Command {
	return &cli.Command{
		Name:      "projection",
		Usage:     "print the threads of a database, folded from its events",
		UsageText: "orch-run projection --db FILE [flags]\n\nExample: orch-run projection --db out/simple/codex/run.db --json",
		Flags:     inspectFlags(),
		Action: func(c *cli.Context) error {
			events, err := readEvents(ctx, c)
			if err != nil {
				return err
			}
			out := newPrinter(c.App.Writer, c.Bool("json"))
			for _, id := range threadIDs(events) {
				p := orch.Fold(events, id)
				if out.json {
					out.object(p)
					continue
				}
				out.line(describeThread(p))
			}
			return out.err
		},
	}
}

// readEvents reads the whole log, or one thread's part of it. It changes
// nothing in the database.
func readEvents(ctx context.Context, c *cli.Context) (events []orch.StoredEvent, err error) {
	file := c.String("db")
	switch {
	case file == "":
		return nil, tool.Usagef("%s needs --db", c.Command.Name)
	case c.NArg() > 0:
		return nil, tool.Usagef("%s takes no arguments: got %q", c.Command.Name, c.Args().First())
	}
	if _, err := os.Stat(file); err != nil { // opening would create it
		return nil, &tool.ExitError{Code: 2, Err: err}
	}
	store, err := sqlite.Open(ctx, file)
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := store.Close(); err == nil {
			err = e
		}
	}()
	all, err := scenario.Stored(ctx, store, 0)
	if err != nil {
		return nil, err
	}
	thread := c.String("thread")
	for _, e := range all {
		if thread == "" || e.Event.ThreadID == thread {
			events = append(events, e)
		}
	}
	if thread != "" && len(events) == 0 {
		return nil, tool.Usagef("no thread %q in %s: have %s", thread, file, strings.Join(threadIDs(all), ", "))
	}
	return events, nil
}

func threadIDs(events []orch.StoredEvent) []string {
	var ids []string
	for _, e := range events {
		if e.Event.Type == "thread.created" {
			ids = append(ids, e.Event.ThreadID)
		}
	}
	return ids
}

// describeThread is a thread as a reader would see it: its runs, each with
// its messages.
func describeThread(p *orch.Projection) string {
	var b strings.Builder
	fmt.Fprintf(&b, "thread %s %q %s/%s", p.Thread.ID, p.Thread.Title, p.Thread.ProviderInstanceID, p.Thread.ModelSelection.Model)
	for _, r := range p.Runs {
		fmt.Fprintf(&b, "\n  run %d %s", r.Ordinal, r.Status)
		for _, m := range p.Messages {
			if string(m.RunID) == r.ID {
				text, _ := json.Marshal(m.Text) // a string always marshals
				fmt.Fprintf(&b, "\n    %s: %s", m.Role, text)
			}
		}
	}
	return b.String()
}
