package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/replaypeer/replaypeer/internal/review"
	"github.com/replaypeer/replaypeer/internal/tool"
)

func showCommand() *cli.Command {
	return &cli.Command{
		Name:  "show",
		Usage: "print the conversation; or write it as one page",
		UsageText: "transcript-lint show [--width N] [--html PAGE] [--report FILE]… FILE\n\n" +
			"FILE may be REV:PATH of git. A report is what check --format json printed, or\n" +
			"the report of a replay; what it says of FILE is marked at its line.\n\n" +
			"Example: transcript-lint show --html simple.html transcripts/simple/codex.ndjson",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "html", Usage: "write one self-contained `PAGE` instead"},
			&cli.StringSliceFlag{Name: "report", Usage: "mark what `FILE` says; repeatable"},
			&cli.IntFlag{Name: "width", Value: 160, Usage: "cut lines to `N` characters; 0 for whole ones"},
		},
		Action: show,
	}
}

func show(c *cli.Context) error {
	if c.NArg() != 1 {
		return tool.Usagef("show wants one FILE")
	}
	t, err := open(c.Args().First())
	if err != nil {
		return err
	}
	var marks []review.Mark
	for _, file := range c.StringSlice("report") {
		more, err := readMarks(file, t.File)
		if err != nil {
			return err
		}
		marks = append(marks, more...)
	}
	html := c.String("html")
	if html == "" {
		return review.Show(c.App.Writer, t, marks, c.Int("width"))
	}
	var page bytes.Buffer
	if err := review.Page(&page, t, marks); err != nil {
		return err
	}
	if html == "-" {
		_, err := page.WriteTo(c.App.Writer)
		return err
	}
	if err := tool.ReplaceFile(html, page.Bytes()); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// reported is what findings and replay reports have in common, and apart.
type reported struct {
	File, Path, Rule, Severity, Message string
	Line                                int
	Verdict                             string
	Transcript                          struct{ Path string }
	Failure                             *struct {
		Line        int
		Message     string
		Differences []struct {
			Path, Kind       string
			Expected, Actual json.RawMessage
		}
	}
}

// readMarks reads a report, a JSON object a line.
func readMarks(report, transcript string) (marks []review.Mark, err error) {
	b, err := os.ReadFile(report)
	if err != nil {
		return nil, tool.Usagef("%w", err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	for d.More() {
		var r reported
		if err := d.Decode(&r); err != nil {
			return nil, fmt.Errorf("read report %s: %v", report, err)
		}
		switch {
		case r.Rule != "" && sameFile(r.File, transcript):
			text := r.Rule + " " + r.Message
			if r.Path != "" {
				text = r.Rule + " at " + r.Path + ": " + r.Message
			}
			marks = append(marks, review.Mark{Line: r.Line, Kind: r.Severity, Text: text})
		case r.Failure != nil && sameFile(r.Transcript.Path, transcript):
			text := []string{r.Verdict + ": " + r.Failure.Message}
			for _, x := range r.Failure.Differences {
				text = append(text, fmt.Sprintf("%s %s: want %s, got %s", x.Path, x.Kind, orNothing(x.Expected), orNothing(x.Actual)))
			}
			marks = append(marks, review.Mark{Line: max(r.Failure.Line, 1), Kind: "error", Text: strings.Join(text, "; ")})
		}
	}
	return marks, nil
}

func orNothing(raw json.RawMessage) string {
	if raw == nil {
		return "nothing"
	}
	return string(raw)
}

// sameFile compares a path of a report, made elsewhere perhaps, with ours.
func sameFile(reported, ours string) bool {
	reported, ours = filepath.ToSlash(filepath.Clean(reported)), filepath.ToSlash(filepath.Clean(ours))
	if reported == ours || real(reported) == real(ours) {
		return true
	}
	a, b := strings.Split(reported, "/"), strings.Split(ours, "/")
	n := min(len(a), len(b), 3)
	return n > 1 && strings.Join(a[len(a)-n:], "/") == strings.Join(b[len(b)-n:], "/")
}
