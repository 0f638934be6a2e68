package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/replaypeer/replaypeer/internal/peer"
	"github.com/replaypeer/replaypeer/internal/proc"
	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/internal/tool"
)

// execGrace is how long each gentle step of ending something may take.
const execGrace = 2 * time.Second

func execCommand() *cli.Command {
	return &cli.Command{
		Name:      "exec",
		Usage:     "run any command with fake providers first on its PATH, and check what they played",
		UsageText: "orch-run exec --peer NAME=TRANSCRIPT… [flags] -- CMD ARGS…",
		Description: "Whatever CMD starts under NAME, at any depth, plays TRANSCRIPT: codex, claude, opencode or an ACP\n" +
			"agent. A transcript of several launches, as replay-record --append makes it, is played over as many\n" +
			"processes, one after the other. CMD's input and output are its own; how the peers fared comes last,\n" +
			"on stderr.\n\n" +
			"CMD does not read from a terminal. Signals are passed on to it and what it started; when it has\n" +
			"ended, nothing of it goes on running. REPLAY_PEER_WORKSPACE, _PACE, _HOLD, _AS, _LISTEN and\n" +
			"_IDLE_TIMEOUT reach the peers.\n\n" +
			"Exit codes:\n" +
			"  3      a peer did not pass, was never started or served nothing, whatever CMD returned;\n" +
			"         or CMD was ended by --timeout\n" +
			"  CMD's  every peer passed (128 and the number of the signal that ended it)\n" +
			"  1, 2   CMD could not be started; usage\n\n" +
			"Examples:\n" +
			"  orch-run exec --peer codex=transcripts/simple/codex.ndjson -- go test ./...\n" +
			"  orch-run exec --peer codex=a.ndjson --peer claude=b.ndjson --report-dir reports -- npm test",
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "peer", Usage: "fake provider `NAME=TRANSCRIPT`, repeatable"},
			&cli.PathFlag{Name: "report-dir", Usage: "keep the reports as `DIR`/NAME.json"},
			&cli.DurationFlag{Name: "timeout", DefaultText: "none", Usage: "end CMD after `DUR`; then nothing has passed"},
		},
		Action: execAction,
	}
}

func execAction(c *cli.Context) error {
	switch {
	case len(c.StringSlice("peer")) == 0:
		return tool.Usagef("exec needs --peer NAME=TRANSCRIPT")
	case c.NArg() == 0:
		return tool.Usagef("exec needs the command after --")
	case c.IsSet("timeout") && c.Duration("timeout") <= 0:
		return tool.Usagef("--timeout %s: want more than 0", c.Duration("timeout"))
	}
	dir, err := os.MkdirTemp("", "orch-run-exec-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fakes, err := makeFakes(dir, c.Path("report-dir"), c.StringSlice("peer"))
	if err != nil {
		return err
	}
	if err := proc.AdoptOrphans(); err != nil {
		return err
	}
	w := wrapped{stderr: c.App.ErrWriter, stdin: c.App.Reader, stdout: c.App.Writer, timeout: c.Duration("timeout")}
	exit, err := w.run(c.Args().Slice(), peer.Environ(os.Environ(), filepath.Join(dir, "bin")))
	if err != nil {
		return err
	}
	return w.verdict(exit, fakes)
}

// makeFakes links the providers into dir/bin. Their reports go to reports, or
// below dir where it is "".
func makeFakes(dir, reports string, peers []string) ([]*peer.Fake, error) {
	exe, err := findPeer()
	if err != nil {
		return nil, err
	}
	if reports == "" {
		reports = filepath.Join(dir, "reports")
	}
	if err := os.MkdirAll(reports, 0o777); err != nil {
		return nil, fmt.Errorf("make folder of reports: %w", err)
	}
	var fakes []*peer.Fake
	seen := map[string]bool{}
	for _, arg := range peers {
		name, transcript, ok := strings.Cut(arg, "=")
		switch {
		case !ok || name == "" || transcript == "":
			return nil, tool.Usagef("peer %q: want NAME=TRANSCRIPT", arg)
		case seen[name]:
			return nil, tool.Usagef("peer %s is given twice: one transcript holds all launches of a provider", name)
		}
		seen[name] = true
		f, err := peer.NewFake(filepath.Join(dir, "bin"), name, exe, reports, peer.Config{Transcript: transcript})
		if err != nil {
			return nil, &tool.ExitError{Code: 2, Err: err}
		}
		fakes = append(fakes, f)
	}
	return fakes, nil
}

// wrapped is the command of a user, and what happened to it.
type wrapped struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	timeout        time.Duration // 0 waits for ever

	timedOut bool
	left     []string // processes that outlived the command and had to be ended
}

// run runs the command to its end, and that of everything it started.
func (w *wrapped) run(command, env []string) (proc.Exit, error) {
	path, err := lookPath(command[0], env)
	if err != nil {
		return proc.Exit{}, fmt.Errorf("start %s: %w", command[0], err)
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, proc.Signals...)
	defer signal.Stop(signals)
	stdin, err := commandInput(w.stdin)
	if err != nil {
		return proc.Exit{}, err
	}
	p, err := proc.Start(proc.Config{
		Path: path, Args: command[1:], Env: env, Stdin: stdin, Stdout: w.stdout, Stderr: w.stderr, Grace: execGrace,
	})
	if err != nil {
		return proc.Exit{}, err
	}
	var late <-chan time.Time
	if w.timeout > 0 {
		late = time.After(w.timeout)
	}
	for {
		select {
		case <-p.Done():
			w.left = proc.EndOrphans(context.Background(), execGrace)
			return p.Wait(), nil
		case sig := <-signals:
			p.SignalGroup(sig) // an error means that it is gone
		case <-late:
			w.timedOut = true
			p.SignalGroup(syscall.SIGTERM)
			p.Stop(context.Background()) // how it ended, Wait tells
		}
	}
}

// lookPath finds a program as the command's own environment would: it may be
// one of the fakes.
func lookPath(name string, env []string) (string, error) {
	for _, kv := range env {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			if err := os.Setenv("PATH", path); err != nil {
				return "", err
			}
		}
	}
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrDot) { // the user's PATH holds the working directory
		err = nil
	}
	return path, err
}

// commandInput is the input of the command: what orch-run got, and nothing
// where that is a terminal, which a command in a group of its own can't read.
func commandInput(given io.Reader) (*os.File, error) {
	f, ok := given.(*os.File)
	if ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice == 0 {
			return f, nil
		}
	}
	return os.Open(os.DevNull)
}

// verdict prints how each peer fared and what the command returned, and sets
// the exit code.
func (w *wrapped) verdict(exit proc.Exit, fakes []*peer.Fake) error {
	bad := 0
	for _, f := range fakes {
		if !w.tell(f) {
			bad++
		}
	}
	for _, command := range w.left {
		fmt.Fprintf(w.stderr, "orch-run: the command left a process behind, which was ended: %s\n", command)
	}
	ended := "the command ended with " + exit.String()
	if w.timedOut {
		ended = fmt.Sprintf("the command did not end within %s and was ended (%s)", w.timeout, exit)
	}
	if bad > 0 {
		fmt.Fprintf(w.stderr, "orch-run: FAILED: %d of %d peers did not pass; %s\n", bad, len(fakes), ended)
		return tool.Bad
	}
	fmt.Fprintf(w.stderr, "orch-run: %d of %d peers passed; %s\n", len(fakes), len(fakes), ended)
	switch {
	case w.timedOut:
		return tool.Bad
	case !exit.Success():
		return &tool.ExitError{Code: exit.Status()}
	}
	return nil
}

// tell prints how one peer fared.
func (w *wrapped) tell(f *peer.Fake) (passed bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*execGrace)
	defer cancel()
	if err := f.Settle(ctx); err != nil {
		fmt.Fprintf(w.stderr, "orch-run: %v\n", err) // its report says "running", which is no pass
	}
	list := f.Reports()
	if len(list) == 0 {
		fmt.Fprintf(w.stderr, "orch-run: %s: never started: the command looked for it elsewhere, or not at all\n", f.Name)
	}
	for _, r := range list {
		if r.Err != nil {
			fmt.Fprintf(w.stderr, "orch-run: %s: unreadable: %v\n", f.Name, r.Err)
			continue
		}
		p := r.Report
		fmt.Fprintf(w.stderr, "orch-run: %s: %s  outbound %d/%d  inbound %d  launches %d  %s\n", f.Name, p.Verdict,
			p.Outbound.Matched, p.Outbound.Expected, p.Inbound.Emitted, p.Launches, p.Transcript.Path)
		io.WriteString(w.stderr, p.Text())
		if p.Verdict == replay.Running {
			fmt.Fprintf(w.stderr, "  %d of %d entries were played: a further launch is missing, or the peer was killed\n", p.Entries.Played, p.Entries.Total)
		}
	}
	return peer.Passed(list)
}
