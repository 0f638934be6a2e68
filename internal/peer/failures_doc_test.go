//go:build unix

package peer

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/internal/replay"
)

var update = flag.Bool("update", false, "rewrite docs/failures.md")

const failuresIntro = `# Failures

What ` + "`replay-peer`" + ` says when a replay does not pass. Every failure is told four times: on stderr, as shown here; in the report, with all differences and counts; by the exit code 97; and by refusing every later launch of the run. Where the failing frame is a request, it also gets the protocol's error answer with the first line of the text.

The first line starts with the transcript and the line of the expectation, so an editor can jump there. Fix the client when it is wrong. When the client is right and the recording is old, look at the differences and take them over with ` + "`replay-record accept`" + `, or record anew.

A report that still says ` + "`running`" + ` is a failure, too: the peer was killed before it could say more. It has no text and no reason.

The outputs below are real. A test makes them: ` + "`go test ./internal/peer -run FailuresDoc -update`" + `. They come from a transcript called ` + "`green.ndjson`" + `, in which a client starts a thread and a turn, lists models twice at once, and is asked for an approval.
`

// failureKind is one section: how to fail, and what that means.
type failureKind struct {
	title, text string
	lines       []string // nil is green
	change      func(*client)
	cfg         func(*Config)
	play        func(*testing.T) outcome // nil plays as usual
}

var failureKinds = []failureKind{{
	title:  "A frame differs",
	text:   "The frame that came is not the one that must come now. Each path that differs is listed: `changed`, `missing` (recorded, not sent) or `extra` (sent, not recorded). Numbers are compared as they are written.",
	change: func(c *client) { c.edit("> initialize", `1.0,"none":null`, `1,"some":[]`) },
}, {
	title:  "A frame came too early, or one before it is missing",
	text:   "The frame fits a later expectation better, which is named. Mostly the client left out what comes before.",
	change: func(c *client) { c.drop("> initialized") },
}, {
	title:  "A frame came twice",
	text:   "The frame has met an expectation already: a retry, or an event handled twice.",
	change: func(c *client) { c.after("> initialized", sends(c.line("> initialized"))) },
}, {
	title:  "Not a frame",
	text:   "What came is no legal message of the protocol, wherever it comes: not JSON, a batch, a null id, a line beyond `--max-line`.",
	change: func(c *client) { c.edit("> initialize", `"id":1,`, `"id":null,`) },
}, {
	title:  "A request id in flight",
	text:   "A request id may be used again once its answer has come, not before.",
	change: func(c *client) { c.edit("> list-b", `"id":4`, `"id":3`) },
}, {
	title:  "An answer to nothing",
	text:   "An answer must carry the very id the provider sent, type included, and may be given once.",
	change: func(c *client) { c.edit("> approve", `"id":0`, `"id":"0"`) },
}, {
	title: "A frame ahead of what it names",
	text:  "While a gate, a pause or the pace holds the recording back, frames may come early and wait. One that names what the provider has not said yet, or what has ended, can't be right.",
	change: func(c *client) {
		c.cut("> thread/start", does("wait", func(p *process) error {
			_, err := Command(p.ctx, filepath.Join(p.cmd.Dir, "control"), "wait thread/start#2")
			return err
		}), op{name: "> turn/start", line: []byte(c.line("> turn/start"))}, untilEnd)
	},
	cfg: func(cfg *Config) { cfg.Hold, cfg.Control = []string{"thread/start#2"}, "control" },
}, {
	title:  "The end of input",
	text:   "The client closed its output before everything was played. What is left is listed.",
	change: func(c *client) { c.cut("!> turn/start") },
}, {
	title: "Nothing was played",
	text:  "A replay that compared and played nothing proves nothing.",
	lines: []string{exitSuccess},
}, {
	title:  "A frame after the end",
	text:   "Everything was played, and the client said one thing more.",
	change: func(c *client) { c.after("< turn/completed", sends(`{"id":6,"method":"thread/list"}`), untilEnd) },
}, {
	title: "A launch too many",
	text:  "Launches that share a `--state` file are one run. The client started a process that was not recorded.",
	play: func(t *testing.T) outcome {
		return twice(t, func(r *stateRun) { r.close(r.first(), 0); r.close(r.second(), 0) })
	},
}, {
	title: "Two launches at once",
	text:  "The client started a second process while the first still played. Both fail.",
	play: func(t *testing.T) outcome {
		return twice(t, func(r *stateRun) { r.first() })
	},
}, {
	title: "A launch after a failure",
	text:  "Nothing is played after a failure: no retry can turn a red run green.",
	play: func(t *testing.T) outcome {
		return twice(t, func(r *stateRun) { r.close(startPeer(t, r.dir, r.cfg), replay.ExitFailed) })
	},
}, {
	title: "A launch after a killed one",
	text:  "The launch before was killed in the middle of what was recorded for it.",
	play: func(t *testing.T) outcome {
		return twice(t, func(r *stateRun) {
			writeFile(t, filepath.Join(r.dir, "green.ndjson"), entries(append([]string{`> hello {"method":"hello"}`, `< ready {"method":"ready"}`}, twoLaunches...)...))
			p := startPeer(t, r.dir, r.cfg)
			if err := run(p, []op{sends(`{"method":"hello"}`), {name: "< ready", line: []byte(`{"method":"ready"}`)}, signals(syscall.SIGKILL)}); err != nil {
				t.Fatal(err)
			}
			p.wait(t)
		})
	},
}, {
	title:  "Nothing comes from the client",
	text:   "The idle timeout passed (`--idle-timeout`, 30 s by default). What the provider waits for is named: here its own request was never answered.",
	change: func(c *client) { c.cut("< approval", untilEnd) },
	cfg:    soon,
}, {
	title: "A gate was not released",
	text:  "The idle timeout passed while a gate (`--hold`) held the recording. A pause and the virtual pace fail alike.",
	change: func(c *client) {
		c.cut("> approve", op{name: "< item/completed", line: []byte(c.line("< item/completed"))}, untilEnd)
	},
	cfg: func(cfg *Config) { soon(cfg); cfg.Hold = []string{"turn/completed"} },
}, {
	title: "The client does not read",
	text:  "The pipe is full and the idle timeout passed. A client must read stdout and stderr while it does other things.",
	play: func(t *testing.T) outcome {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "green.ndjson"), entries(`> big {"method":"big"}`, "< big "+big, exitSuccess))
		p := startPeer(t, dir, Config{Transcript: "green.ndjson", Report: "report.json", IdleTimeout: soonTimeout})
		if err := p.send([]byte(`{"method":"big"}`)); err != nil {
			t.Fatal(err)
		}
		return outcomeOf(t, p, dir)
	},
}, {
	title:  "The client closed its reading end",
	text:   "A frame could not be delivered, so it was not played.",
	change: func(c *client) { c.before("> approve", closeReading) },
}, {
	title:  "The peer was told to end",
	text:   "SIGTERM, SIGINT or SIGHUP came before everything was played. After that a signal is fine.",
	change: func(c *client) { c.cut("< approval", signals(syscall.SIGTERM), untilEnd) },
}, {
	title: "The client died",
	text:  "The process that started the peer is gone. The peer does not outlive it, even where somebody else holds its pipes.",
	play: func(t *testing.T) outcome {
		p, dir := startOrphan(t)
		c := &client{t: t, ops: faithful(green)}
		c.cut("< approval", signals(syscall.SIGKILL))
		if err := run(p, c.ops); err != nil {
			t.Fatal(err)
		}
		if _, err := p.rest(); err != nil { // the peer's end
			t.Fatal(err)
		}
		return outcomeOf(t, p, dir)
	},
}, {
	title: "A broken transcript",
	text:  "The file can't be played. `transcript-lint` says more.",
	lines: []string{`> a {"method":"a"}`, `{"type":"emit_inbound","frame":{"method":"b"}`},
}, {
	title: "A setting that does not fit",
	text:  "Such as a gate at a label the transcript does not have.",
	cfg:   func(cfg *Config) { cfg.Hold = []string{"turn/complete"} },
}, {
	title: "A state file that can't be read",
	text:  "It is not the peer's, or it was damaged. To start anew, remove it.",
	play: func(t *testing.T) outcome {
		return twice(t, func(r *stateRun) { writeFile(t, filepath.Join(r.dir, "state.json"), "{") })
	},
}}

// twice plays the launches of before, then one that is refused.
func twice(t *testing.T, before func(*stateRun)) outcome {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "green.ndjson"), entries(twoLaunches...))
	r := &stateRun{t, dir, Config{Transcript: "green.ndjson", Report: "report.json", State: "state.json", IdleTimeout: patience}}
	before(r)
	r.cfg.Report = "refused.json"
	p := startPeer(t, dir, r.cfg)
	p.in.Close()
	code, sig := p.wait(t)
	return outcome{report: readReport(t, dir, "refused.json"), stderr: p.errors(t), code: code, signal: sig}
}

func outcomeOf(t *testing.T, p *process, dir string) outcome {
	t.Helper()
	code, sig := p.wait(t)
	return outcome{report: readReport(t, dir, "report.json"), stderr: p.errors(t), code: code, signal: sig}
}

// TestFailuresDoc keeps docs/failures.md true: every kind of failure, with
// what the peer really says.
func TestFailuresDoc(t *testing.T) {
	sections := make([]string, len(failureKinds))
	reasons := make([]string, len(failureKinds))
	t.Run("kinds", func(t *testing.T) {
		for i, k := range failureKinds {
			t.Run(k.title, func(t *testing.T) {
				t.Parallel()
				lines := k.lines
				if lines == nil {
					lines = green
				}
				play := k.play
				if play == nil {
					play = func(t *testing.T) outcome {
						return variant{change: k.change, cfg: k.cfg}.play(t, lines)
					}
				}
				o := play(t)
				if o.report.Verdict == replay.Passed || o.report.Failure == nil || o.report.ExitCode != replay.ExitFailed {
					t.Fatalf("not a failure: %+v\n%s", o.report, o.stderr)
				}
				reasons[i] = o.report.Failure.Reason
				sections[i] = fmt.Sprintf("\n## %s\n\n%s Verdict `%s`, reason `%s`.\n\n```\n%s```\n", k.title, k.text, o.report.Verdict, reasons[i], o.stderr)
			})
		}
	})
	for _, v := range mutations() {
		if v.reason != "" && !slices.Contains(reasons, v.reason) {
			t.Errorf("no section about reason %q", v.reason)
		}
	}
	text := failuresIntro + strings.Join(sections, "")
	path := filepath.Join("..", "..", "docs", "failures.md")
	if *update && !t.Failed() {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(readFile(t, path), text); d != "" {
		t.Errorf("docs/failures.md is not what the peer says; -update rewrites it (-file +peer):\n%s", d)
	}
}
