//go:build unix

package peer

import (
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/replaypeer/replaypeer/internal/replay"
)

// variant is a client that differs from the faithful one, and what the peer
// must make of it.
type variant struct {
	name   string
	change func(*client)
	cfg    func(*Config) // nil keeps the usual settings

	verdict replay.Verdict
	reason  string         // of the failure
	label   string         // of the failure's line
	exit    int            // 0 with a failure means 97
	signal  syscall.Signal // the peer dies by it; 0 for none
}

// outcome is what a variant came to.
type outcome struct {
	report *replay.Report
	stderr string
	failed error // the client's first trouble
	code   int
	signal syscall.Signal
}

func (v variant) play(t *testing.T, lines []string) outcome {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "green.ndjson"), entries(lines...))
	cfg := Config{Transcript: "green.ndjson", Report: "report.json", Workspace: workspace, IdleTimeout: patience}
	if v.cfg != nil {
		v.cfg(&cfg)
	}
	c := &client{t: t, ops: faithful(lines)}
	if v.change != nil {
		v.change(c)
	}
	p := startPeer(t, dir, cfg)
	var o outcome
	o.failed = run(p, c.ops)
	p.in.Close()
	if _, err := p.rest(); err != nil && o.failed == nil {
		o.failed = err
	}
	o.code, o.signal = p.wait(t)
	o.report, o.stderr = readReport(t, dir, "report.json"), p.errors(t)
	return o
}

var position = regexp.MustCompile(`^replay-peer: green\.ndjson:\d+: `)

// mutations is every way of being wrong; none may pass, none may hang.
func mutations() []variant {
	var all []variant
	for _, list := range [][]variant{valueMutations, frameMutations, answerMutations, endMutations} {
		all = append(all, list...)
	}
	for i, o := range faithful(green) {
		if o.name[0] == '<' {
			continue
		}
		label := o.name[2:]
		all = append(all, variant{
			name: "end of input before " + label, verdict: replay.Leftover, reason: "end_of_input", label: label,
			change: func(c *client) { c.ops = c.ops[:i] },
		})
	}
	return all
}

func TestMutation(t *testing.T) {
	var mu sync.Mutex
	rows := map[string]string{}
	list := mutations()
	t.Run("rows", func(t *testing.T) {
		for _, v := range list {
			t.Run(v.name, func(t *testing.T) {
				t.Parallel()
				o := v.play(t, green)
				v.check(t, o)
				mu.Lock()
				defer mu.Unlock()
				rows[v.name] = fmt.Sprintf("%s\t%s\t%s\t%s", v.name, o.report.Verdict, reasonOf(o.report), strings.TrimPrefix(firstLine(o.stderr), "replay-peer: "))
			})
		}
	})
	if len(rows) < 45 {
		t.Errorf("only %d mutations", len(rows))
	}
	printTable(t, list, rows)
}

func printTable(t *testing.T, list []variant, rows map[string]string) {
	if !testing.Verbose() {
		return
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "MUTATION\tVERDICT\tREASON\tSTDERR")
	for _, v := range list {
		if rows[v.name] != "" {
			fmt.Fprintln(w, rows[v.name])
		}
	}
	w.Flush()
	t.Logf("%d mutations\n%s", len(rows), b.String())
}

func (v variant) check(t *testing.T, o outcome) {
	t.Helper()
	want := replay.ExitFailed
	if v.exit != 0 || v.signal != 0 {
		want = v.exit
	}
	if o.code != want || o.signal != v.signal {
		t.Errorf("exit code %d, signal %v: want %d, %v", o.code, o.signal, want, v.signal)
	}
	if o.report.Verdict == replay.Passed {
		t.Error("the report says passed")
	}
	label := ""
	if f := o.report.Failure; f != nil {
		label = f.Label
	}
	if o.report.Verdict != v.verdict || reasonOf(o.report) != v.reason || label != v.label {
		t.Errorf("report is %s, %s at %q: want %s, %s at %q", o.report.Verdict, reasonOf(o.report), label, v.verdict, v.reason, v.label)
	}
	if v.signal == 0 && !position.MatchString(o.stderr) {
		t.Errorf("stderr does not start with file:line:\n%s", o.stderr)
	}
	if o.report.ExitCode != replay.ExitFailed && v.signal == 0 {
		t.Errorf("report has exit code %d", o.report.ExitCode)
	}
	if t.Failed() {
		t.Logf("client: %v\nstderr:\n%s", o.failed, o.stderr)
	}
}

func reasonOf(r *replay.Report) string {
	if r.Failure == nil {
		return ""
	}
	return r.Failure.Reason
}

// untilEnd keeps stdin open and waits for the peer to end.
var untilEnd = does("until end", func(p *process) error {
	_, err := io.Copy(io.Discard, p.lines)
	return err
})

var closeReading = does("close reading end", (*process).stopReading)

var closeBoth = does("close both ends", func(p *process) error {
	p.in.Close()
	return p.stopReading()
})

func signals(sig syscall.Signal) op {
	return does(sig.String(), func(p *process) error { return p.cmd.Process.Signal(sig) })
}

// soonTimeout is for peers that are to find that nothing happens.
const soonTimeout = 800 * time.Millisecond

func soon(cfg *Config) { cfg.IdleTimeout = soonTimeout }
