// Command replay-record taps a live provider and writes a transcript, redacts
// transcripts and checks them against themselves, and serves scripted models
// to record with.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"

	"github.com/urfave/cli/v2"

	"github.com/replaypeer/replaypeer/internal/proc"
	"github.com/replaypeer/replaypeer/internal/tool"
)

func main() {
	signal.Notify(make(chan os.Signal, 1), brokenPipe...) // a closed stdout is an error to handle, not our end
	var ended proc.Exit
	code := replayRecord(os.Args, os.Stdin, os.Stdout, os.Stderr, &ended)
	if ended.Signal != "" && code == ended.Status() {
		proc.Reraise(ended.Signal)
	}
	os.Exit(code)
}

// replayRecord runs the command line. A provider that was recorded leaves in
// ended how it ended.
func replayRecord(args []string, stdin io.Reader, stdout, stderr *os.File, ended *proc.Exit) int {
	app := &cli.App{
		Name:  "replay-record",
		Usage: "record a live provider",
		UsageText: "replay-record stdio --provider P --scenario S -o FILE [flags] -- CMD ARGS…\n" +
			"replay-record http --provider P --scenario S -o FILE [flags] -- CMD ARGS…\n" +
			"replay-record redact [-w] FILE…\n" +
			"replay-record check FILE…\n" +
			"replay-record accept FILE… --report REPORT [--yes]\n" +
			"replay-record model --script FILE [--listen ADDR]",
		Description: "stdio and http stand where the client expects the provider. What passes is not changed; what is\n" +
			"written has secrets and personal data replaced, and is played against itself before it is kept.\n" +
			"Record in a sandbox, with a home of its own, and against the scripted model where you can.\n\n" +
			"Exit codes:\n" +
			"  stdio, http  the provider's own, or its signal; 3 when the recording does not hold\n" +
			"  others       0 good, 1 replay-record failed, 2 usage, 3 a transcript does not hold, a secret\n" +
			"               can't be taken out, or frames were not accepted\n\n" +
			"Examples:\n" +
			"  replay-record stdio --provider codex --scenario simple -o simple.ndjson -- codex app-server\n" +
			"  replay-record redact -w transcripts/old.ndjson\n" +
			"  replay-record accept transcripts --report reports --yes",
		Commands: []*cli.Command{
			stdioCommand(context.Background(), stdout, ended), httpCommand(context.Background(), stdout, ended), redactCommand(),
			checkCommand(), acceptCommand(), modelCommand(context.Background()),
		},
	}
	return tool.Main(app, args, stdin, stdout, stderr)
}
