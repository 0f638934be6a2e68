// Command replay-peer is the provider: it plays a transcript as a child
// process and validates every frame the client sends.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"github.com/replaypeer/replaypeer/internal/peer"
	"github.com/replaypeer/replaypeer/internal/tool"
)

func main() { os.Exit(run()) }

func run() int {
	debug.SetGCPercent(400) // short-lived and small: fewer collections while it starts and plays
	cfg, linked, err := peer.Linked(os.Args[0])
	if err == nil && (linked || !isOwnName(os.Args[0])) {
		err = peer.FromEnv(&cfg, os.Getenv)
		if err == nil && cfg.Transcript == "" {
			err = fmt.Errorf("started as %q without a transcript: use replay-peer link, or set REPLAY_PEER_TRANSCRIPT", os.Args[0])
		}
		if err == nil {
			return serve(context.Background(), cfg, os.Args[1:])
		}
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "replay-peer: %v\n", err)
		return 2
	}
	app := &cli.App{
		Name:  "replay-peer",
		Usage: "be the provider: play a transcript, validate every outbound frame",
		Description: "Started under another name, through a link that link made or with REPLAY_PEER_TRANSCRIPT set, every\n" +
			"argument is the provider's, and --version answers with its recorded version.\n\n" +
			"A replay passes when every recorded frame was played and every frame sent was the recorded one. Else\n" +
			"the peer stops, says on stderr and in its report what differed, and every later launch of the run\n" +
			"fails. Ask for the reports: a client may swallow an exit code.\n\n" +
			"Exit codes:\n" +
			"  serve, links  the recorded code (0 by default) when the replay passed; 97 when it did not; 2 usage\n" +
			"  others        0 good, 1 replay-peer failed, 2 usage, 3 a report did not pass or there is none\n\n" +
			"Environment: REPLAY_PEER_ and the name of a flag of serve in capitals, for fakes; TRANSCRIPT, too.\n\n" +
			"Examples:\n" +
			"  replay-peer link ./fake codex=transcripts/simple/codex.ndjson\n" +
			"  PATH=$PWD/fake:$PATH my-orchestrator-tests; replay-peer reports ./fake",
		Commands: []*cli.Command{serveCommand(), linkCommand(), ctlCommand(), reportsCommand()},
	}
	return tool.Main(app, os.Args, os.Stdin, os.Stdout, os.Stderr)
}
