// Command orch-run drives the real orchestrator through recorded scenarios,
// or through a live provider, and says what it kept.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/replaypeer/replaypeer/internal/peer"
	"github.com/replaypeer/replaypeer/internal/tool"
)

func main() { os.Exit(start()) }

// start is main without the exit. Started through a link that a run made, the
// program is not orch-run but the provider.
func start() int {
	cfg, linked, err := peer.Linked(os.Args[0])
	if err == nil && linked {
		err = peer.FromEnv(&cfg, os.Getenv)
	}
	switch {
	case err != nil:
		fmt.Fprintf(os.Stderr, "orch-run: %v\n", err)
		return 2
	case linked:
		return peer.Serve(context.Background(), cfg, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return orchRun(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr)
}

func orchRun(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	app := &cli.App{
		Name:  "orch-run",
		Usage: "drive the real orchestrator through recorded scenarios",
		UsageText: "orch-run run [--scenario S]… [--provider P]… [--dir DIR]\n" +
			"orch-run live --scenario S --provider P [--record FILE] -- CMD ARGS…\n" +
			"orch-run exec --peer NAME=TRANSCRIPT… -- CMD ARGS…\n" +
			"orch-run events|projection --db FILE [--thread T]",
		Description: "exec is for tests of your own: it replaces the providers that a command starts. run and live drive\n" +
			"the orchestrator of this program, on recordings and on a real provider, and check what it kept.\n" +
			"replay-peer is looked for beside orch-run, then on PATH; without it orch-run plays the peers itself.\n\n" +
			"Exit codes:\n" +
			"  0  everything passed, and something did\n" +
			"  1  orch-run itself failed\n" +
			"  2  usage\n" +
			"  3  something failed, was not reached, or nothing passed\n" +
			"exec has further ones: see orch-run exec --help.\n\n" +
			"Examples:\n" +
			"  orch-run run --scenario simple --provider codex --keep out\n" +
			"  orch-run exec --peer codex=transcripts/simple/codex.ndjson -- go test ./...\n" +
			"  orch-run events --db out/simple/codex/run.db",
		Commands: []*cli.Command{
			runCommand(ctx), liveCommand(ctx), execCommand(), eventsCommand(ctx), projectionCommand(ctx),
		},
	}
	return tool.Main(app, args, stdin, stdout, stderr)
}
