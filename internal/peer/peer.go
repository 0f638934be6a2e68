// Package peer puts a replay on a wire: it is the provider's process. It reads
// what the client sends, asks a replay.Player what to do, writes what the
// recorded provider wrote, and tells the outcome on channels no client can
// hide: the exit code, the report file, stderr, and a refusal of every later
// launch of a failed run.
package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// DefaultIdleTimeout ends a replay when nothing happens for so long.
const DefaultIdleTimeout = 30 * time.Second

// Config is what one launch of a peer needs. The zero value of every field but
// Transcript works. It is also the content of the file beside a fake binary.
type Config struct {
	Transcript string `json:"transcript"`
	// Report is the receipt's path; "" writes none. ReportDir names it by
	// scenario and provider instead.
	Report    string `json:"report,omitempty"`
	ReportDir string `json:"reportDir,omitempty"`
	// State carries the cursor from launch to launch; "" makes every launch a
	// run of its own.
	State     string `json:"state,omitempty"`
	Workspace string `json:"workspace,omitempty"` // value of <workspace>; "" is the working directory
	// Pace is instant (also ""), recorded, virtual or a factor.
	Pace    string   `json:"pace,omitempty"`
	Hold    []string `json:"hold,omitempty"` // gates: LABEL or LABEL#N
	Control string   `json:"control,omitempty"`
	// IdleTimeout ends a replay in which nothing happens; 0 means
	// DefaultIdleTimeout.
	IdleTimeout time.Duration `json:"idleTimeout,omitempty"`
	// Listen is the address of a provider that serves HTTP, HOST:PORT; ""
	// follows the provider's arguments, and without any 127.0.0.1:0.
	Listen string `json:"listen,omitempty"`
	// Split writes at most so many bytes at a time; 0 writes whole batches.
	Split int `json:"split,omitempty"`
	// As plays a transcript as another agent of its protocol; "" as its own.
	As string `json:"as,omitempty"`
	// MaxLine is the longest line accepted, in bytes; 0 means 64 MiB.
	MaxLine int `json:"maxLine,omitempty"`

	// Process is true when the peer is a whole process: it then takes
	// signals, leaves its parent's process group, watches its parent and may
	// end itself by a recorded signal.
	Process bool `json:"-"`
}

// Serve plays one launch on stdin and stdout, or on HTTP, and returns the exit
// code: the recorded one when the replay passed so far, 97 when it did not.
// args are the provider's arguments. It returns when the launch is over; a
// goroutine may then still wait for stdin.
func Serve(ctx context.Context, cfg Config, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if cfg.Process {
		startProcess()
	}
	if cfg.IdleTimeout <= 0 {
		cfg.IdleTimeout = DefaultIdleTimeout
	}
	if len(args) == 1 && (args[0] == "--version" || args[0] == "-V") {
		return printVersion(cfg, stdout, stderr)
	}
	script, err := replay.Load(cfg.Transcript, cfg.MaxLine)
	if err != nil {
		return refuse(cfg, nil, replay.Invalid, "transcript", err, stderr)
	}
	unfit := fit(cfg, script, args)
	if cfg.Workspace == "" {
		if cfg.Workspace, err = os.Getwd(); err != nil {
			return refuse(cfg, script, replay.Invalid, "setting", err, stderr)
		}
	}
	opt := replay.Options{Workspace: cfg.Workspace, Hold: cfg.Hold}
	if opt.Pace, err = replay.ParsePace(cfg.Pace); err != nil {
		return refuse(cfg, script, replay.Invalid, "setting", err, stderr)
	}
	files, err := claim(cfg, script)
	if err != nil {
		verdict := replay.Unexpected
		var bad *stateError
		if errors.As(err, &bad) {
			verdict = replay.Invalid
		}
		return refuse(cfg, script, verdict, "launch", err, stderr)
	}
	defer files.release()
	if unfit != nil {
		return files.turnAway(cfg, script, unfit, stderr)
	}
	player, err := replay.New(script, opt, files.state)
	if err != nil {
		return refuse(cfg, script, replay.Invalid, "setting", err, stderr)
	}
	defer player.Stop()
	s := newSession(cfg, script, player, files, args, stdin, stdout, stderr)
	return s.run(ctx)
}

// printVersion answers a version probe. It is no launch and counts nowhere.
func printVersion(cfg Config, stdout, stderr io.Writer) int {
	t, err := headerOf(cfg.Transcript)
	if err != nil {
		fmt.Fprintf(stderr, "replay-peer: %v\n", err)
		return replay.ExitFailed
	}
	fmt.Fprintln(stdout, t)
	return 0
}

// refuse ends a launch that can't play, and says so in the report.
func refuse(cfg Config, script *replay.Script, v replay.Verdict, reason string, cause error, stderr io.Writer) int {
	r := refusal(cfg, script, v, reason, cause)
	fmt.Fprintf(stderr, "replay-peer: %s", r.Text())
	if err := refusedReport(cfg, script, r); err != nil {
		fmt.Fprintf(stderr, "replay-peer: %v\n", err)
	}
	return replay.ExitFailed
}

// turnAway ends a launch that does not fit its transcript, and with it the
// run.
func (f *files) turnAway(cfg Config, script *replay.Script, cause error, stderr io.Writer) int {
	r := refusal(cfg, script, replay.Invalid, "setting", cause)
	fmt.Fprintf(stderr, "replay-peer: %s", r.Text())
	st := f.state
	st.Version, st.Transcript, st.Verdict = 1, script.SHA256, replay.Invalid
	st.Launches++
	if err := f.write(st, r); err != nil {
		fmt.Fprintf(stderr, "replay-peer: %v\n", err)
	}
	return replay.ExitFailed
}

// refusal is the report of a launch that can't play.
func refusal(cfg Config, script *replay.Script, v replay.Verdict, reason string, cause error) *replay.Report {
	r := &replay.Report{Version: 1, Verdict: v, ExitCode: replay.ExitFailed}
	r.Transcript.Path = cfg.Transcript
	if script != nil {
		r.Transcript = replay.TranscriptRef{
			Path: script.Path, SHA256: script.SHA256, Provider: script.Header.Provider,
			Protocol: script.Header.Protocol, Scenario: script.Header.Scenario,
		}
		r.Entries.Total, r.Outbound.Expected = script.Total, script.Outbound
	}
	r.Failure = &replay.Failure{Reason: reason, Message: cause.Error(), File: cfg.Transcript}
	var syn *envelope.SyntaxError
	if errors.As(cause, &syn) {
		r.Failure.Line, r.Failure.Message = syn.Line, syn.Msg
	}
	return r
}
