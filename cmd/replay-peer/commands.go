package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/replaypeer/replaypeer/internal/peer"
	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/internal/tool"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// isOwnName says whether the program was started under its own name, not as a
// fake provider.
func isOwnName(argv0 string) bool {
	name := strings.TrimSuffix(filepath.Base(argv0), ".exe")
	return strings.HasPrefix(name, "replay-peer")
}

func serve(ctx context.Context, cfg peer.Config, args []string) int {
	cfg.Process = true
	return peer.Serve(ctx, cfg, args, os.Stdin, os.Stdout, os.Stderr)
}

// playFlags are the settings that serve and link share.
func playFlags() []cli.Flag {
	return []cli.Flag{
		&cli.PathFlag{Name: "report", Usage: "the receipt, there from the start, replaced atomically (REPLAY_PEER_REPORT)"},
		&cli.PathFlag{Name: "report-dir", Usage: "put the receipt here, named by scenario and provider (REPLAY_PEER_REPORT_DIR)"},
		&cli.PathFlag{Name: "state", Usage: "cursor, bindings and launches across processes (REPLAY_PEER_STATE)"},
		&cli.PathFlag{Name: "workspace", Usage: "value of <workspace> (default: the working directory) (REPLAY_PEER_WORKSPACE)"},
		tool.OneOf(&cli.StringFlag{Name: "pace", Usage: "instant, recorded, a factor, or virtual (default: instant) (REPLAY_PEER_PACE)"}, tool.Words("instant", "recorded", "virtual")),
		&cli.StringSliceFlag{Name: "hold", Usage: "gate before the entry with this label, or LABEL#N; repeatable (REPLAY_PEER_HOLD)"},
		&cli.PathFlag{Name: "control", Usage: "control channel on a unix socket (REPLAY_PEER_CONTROL)"},
		&cli.DurationFlag{Name: "idle-timeout", DefaultText: peer.DefaultIdleTimeout.String(), Usage: "end the replay when nothing happens for so long (REPLAY_PEER_IDLE_TIMEOUT)"},
		tool.OneOf(&cli.StringFlag{Name: "as", Usage: "play a standard ACP transcript as another agent, such as registry (REPLAY_PEER_AS)"}, tool.Words(flavors.ACP.Providers...)),
		&cli.StringFlag{Name: "listen", Usage: "`ADDR` of a provider that serves HTTP (default: what its arguments say, else 127.0.0.1:0) (REPLAY_PEER_LISTEN)"},
		&cli.IntFlag{Name: "split", DefaultText: "as many as there are", Usage: "write at most `N` bytes at a time"},
		&cli.IntFlag{Name: "max-line", DefaultText: "64 MiB", Usage: "longest line accepted, in bytes"},
	}
}

func playConfig(c *cli.Context) (peer.Config, error) {
	var cfg peer.Config
	if err := peer.FromEnv(&cfg, os.Getenv); err != nil {
		return cfg, tool.Usagef("%w", err)
	}
	for name, to := range map[string]*string{
		"report": &cfg.Report, "report-dir": &cfg.ReportDir, "state": &cfg.State,
		"workspace": &cfg.Workspace, "pace": &cfg.Pace, "control": &cfg.Control, "as": &cfg.As, "listen": &cfg.Listen,
	} {
		if c.IsSet(name) {
			*to = c.String(name)
		}
	}
	if c.IsSet("hold") {
		cfg.Hold = c.StringSlice("hold")
	}
	if c.IsSet("idle-timeout") {
		if cfg.IdleTimeout = c.Duration("idle-timeout"); cfg.IdleTimeout <= 0 {
			return cfg, tool.Usagef("--idle-timeout %s: want more than 0", cfg.IdleTimeout)
		}
	}
	cfg.Split, cfg.MaxLine = c.Int("split"), c.Int("max-line")
	if cfg.Split < 0 || cfg.MaxLine < 0 {
		return cfg, tool.Usagef("--split and --max-line take 0 or more")
	}
	if _, err := replay.ParsePace(cfg.Pace); err != nil {
		return cfg, tool.Usagef("%w", err)
	}
	if cfg.As != "" && !slices.Contains(flavors.ACP.Providers, cfg.As) {
		return cfg, tool.Usagef("--as %s: want %s", cfg.As, strings.Join(flavors.ACP.Providers, ", "))
	}
	if cfg.Workspace != "" {
		dir, err := filepath.Abs(cfg.Workspace)
		if err != nil {
			return cfg, err
		}
		cfg.Workspace = dir
	}
	return cfg, nil
}

func serveCommand() *cli.Command {
	return &cli.Command{
		Name:      "serve",
		Usage:     "play one transcript as the provider, on stdin and stdout or as an HTTP server",
		ArgsUsage: "TRANSCRIPT [-- ARGS…]",
		Description: "Exit code: the recorded one (0 by default) when the replay passed, 97 when it did not, 2 usage.\n" +
			"Example:\n  replay-peer serve --report report.json transcripts/simple/codex.ndjson -- app-server",
		Flags: playFlags(),
		Action: func(c *cli.Context) error {
			cfg, err := playConfig(c)
			if err != nil {
				return err
			}
			args := c.Args().Slice()
			if len(args) > 0 {
				cfg.Transcript, args = args[0], args[1:]
			}
			if cfg.Transcript == "" {
				return tool.Usagef("serve: no transcript: see replay-peer serve --help")
			}
			if len(args) > 0 {
				if args[0] != "--" {
					return tool.Usagef("serve: %q after the transcript: flags come before it, the provider's arguments after --", args[0])
				}
				args = args[1:]
			}
			if code := serve(c.Context, cfg, args); code != 0 {
				return &tool.ExitError{Code: code}
			}
			return nil
		},
	}
}

func linkCommand() *cli.Command {
	return &cli.Command{
		Name:      "link",
		Usage:     "make fake provider binaries that play transcripts",
		ArgsUsage: "DIR NAME=TRANSCRIPT…",
		Description: "Each fake keeps its state and its report beside itself unless flags say otherwise, takes any\n" +
			"arguments, and answers --version from its transcript.\n" +
			"Example:\n  replay-peer link ./fake codex=transcripts/simple/codex.ndjson",
		Flags: playFlags(),
		Action: func(c *cli.Context) error {
			if c.NArg() < 2 {
				return tool.Usagef("link: want DIR NAME=TRANSCRIPT…: see replay-peer link --help")
			}
			cfg, err := playConfig(c)
			if err != nil {
				return err
			}
			if c.NArg() > 2 && (cfg.State != "" || cfg.Report != "" || cfg.Control != "") {
				return tool.Usagef("link: --state, --report and --control name one file: link one fake at a time, or use --report-dir")
			}
			exe, err := os.Executable()
			if err != nil {
				return fmt.Errorf("link: %w", err)
			}
			for _, arg := range c.Args().Slice()[1:] {
				name, transcript, ok := strings.Cut(arg, "=")
				if !ok || transcript == "" {
					return tool.Usagef("link: %q: want NAME=TRANSCRIPT", arg)
				}
				one := cfg
				one.Transcript = transcript
				path, err := peer.Link(c.Args().First(), name, exe, one)
				if err != nil {
					return err
				}
				fmt.Fprintln(c.App.Writer, path)
			}
			return nil
		},
	}
}

func ctlCommand() *cli.Command {
	return &cli.Command{
		Name:      "ctl",
		Usage:     "steer a running peer through its control socket",
		ArgsUsage: "SOCKET pause|resume|step|release LABEL|advance DUR|wait LABEL|status",
		Description: "Prints the peer's status as one JSON line. wait returns when the gate at LABEL holds playing.\n" +
			"Example:\n  replay-peer ctl /tmp/peer.sock release turn/completed",
		BashComplete: tool.Argument(1, tool.Words("pause", "resume", "step", "release", "advance", "wait", "status")),
		Action: func(c *cli.Context) error {
			if c.NArg() < 2 {
				return tool.Usagef("ctl: want SOCKET COMMAND: see replay-peer ctl --help")
			}
			st, err := peer.Command(c.Context, c.Args().First(), strings.Join(c.Args().Tail(), " "))
			if st != nil {
				if e := json.NewEncoder(c.App.Writer).Encode(st); e != nil {
					return e
				}
			}
			return err
		},
	}
}

func reportsCommand() *cli.Command {
	return &cli.Command{
		Name:        "reports",
		Usage:       "exit 3 unless every report in a folder passed, and there is one",
		ArgsUsage:   "DIR",
		Description: "Example:\n  replay-peer reports ./fake",
		Flags:       []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "one object a line"}},
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return tool.Usagef("reports: want one folder")
			}
			list, err := peer.Reports(c.Args().First())
			if err != nil {
				return tool.Usagef("%w", err)
			}
			if err := printReports(c, list); err != nil {
				return err
			}
			for _, r := range list {
				if !r.Passed() {
					return tool.Bad
				}
			}
			if len(list) == 0 {
				return &tool.ExitError{Code: 3, Err: fmt.Errorf("no report in %s: no peer was started", c.Args().First())}
			}
			return nil
		},
	}
}

func printReports(c *cli.Context, list []peer.NamedReport) error {
	w := c.App.Writer
	if !c.Bool("json") {
		for _, r := range list {
			switch {
			case r.Err != nil:
				fmt.Fprintf(w, "unreadable %v\n", r.Err)
			default:
				p := r.Report
				fmt.Fprintf(w, "%-10s %s  outbound %d/%d  inbound %d  launches %d\n", p.Verdict, r.Path,
					p.Outbound.Matched, p.Outbound.Expected, p.Inbound.Emitted, p.Launches)
				fmt.Fprint(w, p.Text())
			}
		}
		return nil
	}
	enc := json.NewEncoder(w)
	if err := enc.Encode(map[string]any{"version": 1, "reports": len(list)}); err != nil {
		return err
	}
	for _, r := range list {
		row := map[string]any{"path": r.Path, "passed": r.Passed()}
		if r.Err != nil {
			row["error"] = r.Err.Error()
		} else {
			row["report"] = r.Report
		}
		if err := enc.Encode(row); err != nil {
			return err
		}
	}
	return nil
}
