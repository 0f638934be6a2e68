// Command transcript-lint checks transcripts, compares two, shows one, and
// writes them in canonical form.
package main

import (
	"io"
	"os"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"github.com/replaypeer/replaypeer/internal/tool"
)

func main() { os.Exit(lintMain(os.Args, os.Stdin, os.Stdout, os.Stderr)) }

// A linter makes little that lives and much that does not: fewer collections,
// within a memory that is still small.
const (
	gcPercent   = 400
	memoryLimit = 512 << 20
)

func lintMain(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(memoryLimit)
	app := &cli.App{
		Name:  "transcript-lint",
		Usage: "check, compare and show transcripts",
		UsageText: "transcript-lint check [--format text|json|sarif|github] [PATH…]\n" +
			"transcript-lint fmt [-w] PATH…\n" +
			"transcript-lint diff [--format text|json|markdown] OLD NEW\n" +
			"transcript-lint show [--html PAGE] [--report FILE]… FILE\n" +
			"transcript-lint rules",
		Description: "Without PATH, check looks at the folder transcripts. Findings are printed as file:line: severity RULE;\n" +
			"docs/rules.md and transcript-lint rules explain each. None of the commands starts anything.\n\n" +
			"Exit codes:\n" +
			"  0  no error was found (warnings alone are 0), no difference\n" +
			"  1  transcript-lint itself failed\n" +
			"  2  usage\n" +
			"  3  a finding has severity error, two transcripts differ, or fmt met a line that is none\n\n" +
			"Examples:\n" +
			"  transcript-lint check transcripts/simple\n" +
			"  transcript-lint diff HEAD:transcripts/simple/codex.ndjson transcripts/simple/codex.ndjson\n" +
			"  transcript-lint show --html page.html transcripts/simple/codex.ndjson",
		Commands: []*cli.Command{checkCommand(), fmtCommand(), diffCommand(), showCommand(), rulesCommand()},
	}
	return tool.Main(app, args, stdin, stdout, stderr)
}
