package main

import (
	"context"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/replaypeer/replaypeer/internal/proc"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

func httpCommand(ctx context.Context, stdout *os.File, ended *proc.Exit) *cli.Command {
	return &cli.Command{
		Name:  "http",
		Usage: "be the stand-in of a provider that serves HTTP and events, run the real one, record both ways",
		UsageText: "replay-record http --provider P --scenario S -o FILE [flags] -- CMD ARGS…\n\n" +
			"Example: replay-record http --provider opencode --scenario simple -o simple.ndjson -- opencode serve --port=4096\n\n" +
			"Serves where ARGS say, and gives CMD another port. Prints the line in which CMD tells its address with its own.\n" +
			"Returns the provider's exit code, or ends by its signal; 3 when the recording does not hold.",
		Flags:  tapFlags(),
		Action: func(c *cli.Context) error { return tapAction(ctx, c, flavors.HTTP, stdout, ended) },
	}
}
