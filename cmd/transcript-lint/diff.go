package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/replaypeer/replaypeer/internal/review"
	"github.com/replaypeer/replaypeer/internal/tool"
	"github.com/replaypeer/replaypeer/pkg/envelope"
)

func diffCommand() *cli.Command {
	return &cli.Command{
		Name:  "diff",
		Usage: "say what changed in meaning between two transcripts; exit 3 when something did",
		UsageText: "transcript-lint diff [--drift] [--format text|json|markdown] OLD NEW\n\n" +
			"OLD and NEW are files, or REV:PATH for what git has. Ids, clocks and the order of\n" +
			"what races are set\n" +
			"aside, and one change in many frames is told once. Nothing is printed when\n" +
			"nothing changed.\n\n" +
			"Example: transcript-lint diff origin/main:transcripts/simple/codex.ndjson transcripts/simple/codex.ndjson",
		Flags: []cli.Flag{
			tool.OneOf(&cli.StringFlag{Name: "format", Value: "text", Usage: "`FORMAT`: text, json, or markdown for a comment on a pull request"}, tool.Words("text", "json", "markdown")),
			&cli.BoolFlag{Name: "drift", Usage: "tell what changed in the provider's protocol: methods and fields that are new or gone; its version is no change"},
		},
		Action: diff,
	}
}

func diff(c *cli.Context) error {
	if c.NArg() != 2 {
		return tool.Usagef("diff wants OLD and NEW")
	}
	format := c.String("format")
	if format != "text" && format != "json" && format != "markdown" {
		return tool.Usagef("format %q: want text, json or markdown", format)
	}
	before, err := open(c.Args().Get(0))
	if err != nil {
		return err
	}
	after, err := open(c.Args().Get(1))
	if err != nil {
		return err
	}
	var d difference
	same := false
	if c.Bool("drift") {
		drift := review.DriftOf(before, after)
		d, same = drift, drift.Same
	} else {
		diff := review.Compare(before, after)
		d, same = diff, diff.Same
	}
	text := d.Text()
	switch format {
	case "json":
		text = string(d.JSON())
	case "markdown":
		text = d.Markdown()
	}
	if _, err := io.WriteString(c.App.Writer, text); err != nil {
		return err
	}
	if !same {
		return tool.Bad
	}
	return nil
}

// difference is one that can be printed.
type difference interface {
	Text() string
	JSON() []byte
	Markdown() string
}

// open reads a transcript from a file or, as REV:PATH, from git.
func open(name string) (*envelope.Transcript, error) {
	t, err := envelope.ReadFile(name)
	rev, path, ok := strings.Cut(name, ":")
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return t, err
	}
	if !ok || rev == "" || strings.HasPrefix(rev, "-") {
		return nil, tool.Usagef("%w", err)
	}
	// Within the working directory first, as other arguments are.
	blob, err := git("show", rev+":./"+filepath.ToSlash(path))
	if err != nil {
		var fromRoot error
		if blob, fromRoot = git("show", rev+":"+filepath.ToSlash(path)); fromRoot != nil {
			return nil, tool.Usagef("%s: %w", name, err)
		}
	}
	t, err = envelope.Read(name, bytes.NewReader(blob))
	if err != nil {
		return nil, fmt.Errorf("%w", err)
	}
	return t, nil
}
