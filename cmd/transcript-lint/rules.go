package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/replaypeer/replaypeer/internal/lint"
	"github.com/replaypeer/replaypeer/internal/tool"
)

// ruleIDs completes --disable.
func ruleIDs(*cli.Context) (list []tool.Candidate) {
	for _, r := range lint.Rules {
		list = append(list, tool.Candidate{Word: r.ID, About: r.Name})
	}
	return list
}

func rulesCommand() *cli.Command {
	return &cli.Command{
		Name:      "rules",
		Usage:     "list every rule: id, severity, name, what it finds and why",
		UsageText: "transcript-lint rules [--format text|markdown]\n\nExample: transcript-lint rules",
		Flags: []cli.Flag{
			tool.OneOf(&cli.StringFlag{Name: "format", Value: "text", Usage: "text, or markdown: docs/rules.md"}, tool.Words("text", "markdown")),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return tool.Usagef("rules takes no argument")
			}
			switch c.String("format") {
			case "text":
			case "markdown":
				_, err := io.WriteString(c.App.Writer, lint.Markdown())
				return err
			default:
				return tool.Usagef("format %q: want text or markdown", c.String("format"))
			}
			for _, r := range lint.Rules {
				_, err := fmt.Fprintf(c.App.Writer, "%s %-7s %s\n    %s\n    %s\n", r.ID, r.Severity, r.Name, r.What, r.Why)
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}
