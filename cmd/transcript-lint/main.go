// Command transcript-lint checks transcripts and writes them in canonical
// form.
package main

import (
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/replaypeer/replaypeer/internal/tool"
)

func main() { os.Exit(lintMain(os.Args, os.Stdin, os.Stdout, os.Stderr)) }

func lintMain(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	app := &cli.App{
		Name:  "transcript-lint",
		Usage: "check transcripts, and write them in canonical form",
		UsageText: "transcript-lint check [--format text|json] [--disable RULE]… [PATH…]\n" +
			"transcript-lint fmt [-w] PATH…\n" +
			"transcript-lint rules\n\n" +
			"Example: transcript-lint check transcripts/simple",
		Description: "Exit codes: 0 no error was found (warnings alone are 0), 1 the tool failed,\n" +
			"2 usage, 3 a finding has severity error.",
		Commands: []*cli.Command{checkCommand(), fmtCommand(), diffCommand(), rulesCommand()},
	}
	return tool.Main(app, args, stdin, stdout, stderr)
}
