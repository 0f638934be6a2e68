package main

import (
	"encoding/json"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/internal/tool"
)

func checkCommand() *cli.Command {
	return &cli.Command{
		Name:  "check",
		Usage: "play transcripts against themselves",
		UsageText: "replay-record check [--json] FILE…\n\n" +
			"Example: replay-record check transcripts/simple/codex.ndjson\n\n" +
			"Exit code 3 when one does not hold.",
		Flags:  []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "one JSON object a line"}},
		Action: checkAction,
	}
}

// checked is one line of output.
type checked struct {
	Version int    `json:"version"`
	File    string `json:"file"`
	Holds   bool   `json:"holds"`
	Error   string `json:"error,omitempty"`
}

func checkAction(c *cli.Context) error {
	if c.NArg() == 0 {
		return tool.Usagef("check needs a transcript")
	}
	bad := false
	for _, file := range c.Args().Slice() {
		line := checked{Version: 1, File: file, Holds: true}
		if err := replay.SelfCheck(file); err != nil {
			line.Holds, line.Error, bad = false, err.Error(), true
		}
		if err := printChecked(c, line); err != nil {
			return err
		}
	}
	if bad {
		return tool.Bad
	}
	return nil
}

func printChecked(c *cli.Context, line checked) error {
	if c.Bool("json") {
		return json.NewEncoder(c.App.Writer).Encode(line)
	}
	text := line.File + ": holds"
	if !line.Holds {
		text = line.Error
	}
	_, err := fmt.Fprintln(c.App.Writer, text)
	return err
}
