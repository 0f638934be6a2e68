//go:build unix

package peer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replaypeer/replaypeer/internal/replay"
)

// twoLaunches is a session that is resumed by a second process, which names
// the client's own key again.
var twoLaunches = []string{
	`> open {"id":1,"method":"open","params":{"key":"<bind:KEY>"}}`,
	`< open {"id":1,"result":{"key":"<bind:KEY>"}}`,
	`< opened {"method":"opened"}`,
	exitSuccess,
	`> resume {"id":1,"method":"resume","params":{"key":"<bind:KEY>","again":"key=<bind:KEY>"}}`,
	`< resume {"id":1,"result":{"key":"<bind:KEY>"}}`,
	exitSuccess,
}

// stateRun is a folder with a transcript and the launches that share it.
type stateRun struct {
	t   *testing.T
	dir string
	cfg Config
}

func newRun(t *testing.T, lines ...string) *stateRun {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "two.ndjson"), entries(lines...))
	return &stateRun{t, dir, Config{Transcript: "two.ndjson", Report: "report.json", State: "state/run", IdleTimeout: patience}}
}

// launch starts a peer, says line and wants the answer.
func (r *stateRun) launch(line, answer string) *process {
	r.t.Helper()
	p := startPeer(r.t, r.dir, r.cfg)
	if err := run(p, []op{{name: "> frame", line: []byte(line)}, {name: "< answer", line: []byte(answer)}}); err != nil {
		r.t.Fatalf("%v\n%s", err, p.errors(r.t))
	}
	return p
}

func (r *stateRun) first() *process {
	r.t.Helper()
	p := r.launch(`{"id":"x","method":"open","params":{"key":"k-17"}}`, `{"id":"x","result":{"key":"k-17"}}`)
	if got, err := p.recv(); err != nil || got != `{"method":"opened"}` {
		r.t.Fatalf("got %q, %v", got, err)
	}
	return p
}

func (r *stateRun) second() *process {
	r.t.Helper()
	return r.launch(`{"id":5,"method":"resume","params":{"key":"k-17","again":"key=k-17"}}`, `{"id":5,"result":{"key":"k-17"}}`)
}

func (r *stateRun) close(p *process, want int) {
	r.t.Helper()
	p.in.Close()
	if rest, err := p.rest(); rest != "" || err != nil {
		r.t.Errorf("stdout goes on with %q, %v", rest, err)
	}
	if code, _ := p.wait(r.t); code != want {
		r.t.Errorf("exit code %d: want %d\n%s", code, want, p.errors(r.t))
	}
}

// refused starts a launch that must not play, and returns its stderr.
func (r *stateRun) refused(cause string) {
	r.t.Helper()
	p := startPeer(r.t, r.dir, r.cfg)
	p.in.Close()
	if out, err := p.rest(); out != "" || err != nil {
		r.t.Errorf("a refused launch says %q, %v", out, err)
	}
	if code, _ := p.wait(r.t); code != replay.ExitFailed {
		r.t.Errorf("a refused launch exits with %d", code)
	}
	if text := p.errors(r.t); !strings.HasPrefix(text, "replay-peer: "+r.cfg.Transcript+": ") || !strings.Contains(text, cause) {
		r.t.Errorf("stderr of a refused launch: want %q\n%s", cause, text)
	}
}

func (r *stateRun) verdict(want replay.Verdict) {
	r.t.Helper()
	if got := readReport(r.t, r.dir, "report.json").Verdict; got != want {
		r.t.Errorf("report is %s: want %s", got, want)
	}
}

// verdicts returns those of all reports in the folder, by number.
func (r *stateRun) verdicts() map[replay.Verdict]int {
	r.t.Helper()
	list, err := Reports(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	got := map[replay.Verdict]int{}
	for _, n := range list {
		if n.Err != nil {
			r.t.Fatal(n.Err)
		}
		got[n.Report.Verdict]++
	}
	return got
}

func TestTwoLaunches(t *testing.T) {
	t.Parallel()
	r := newRun(t, twoLaunches...)
	p := r.first()
	r.verdict(replay.Running)
	r.close(p, 0)
	r.close(r.second(), 0)
	want := replay.Report{Version: 1, Verdict: replay.Passed, Launches: 2, Entries: replay.EntryCount{Total: 7, Played: 7},
		Outbound: replay.OutboundCount{Expected: 2, Matched: 2}, Inbound: replay.InboundCount{Emitted: 3}}
	got := readReport(t, r.dir, "report.json")
	got.Transcript = replay.TranscriptRef{}
	if d := cmp.Diff(&want, got); d != "" {
		t.Errorf("report (-want +got):\n%s", d)
	}
	// The recording has no third process, now or later.
	r.refused("the recording has no launch 3")
	r.verdict(replay.Unexpected)
	r.refused("the recording has no launch 3")
	r.verdict(replay.Unexpected)
}

func TestKilledBetweenLaunches(t *testing.T) {
	t.Parallel()
	r := newRun(t, twoLaunches...)
	p := r.first()
	p.cmd.Process.Kill()
	if _, sig := p.wait(t); sig != syscall.SIGKILL {
		t.Fatalf("ended by %v", sig)
	}
	r.close(r.second(), 0)
	r.verdict(replay.Passed)
}

func TestKilledMidSegment(t *testing.T) {
	t.Parallel()
	lines := append([]string(nil), twoLaunches...)
	lines[2] = `> more {"method":"more"}`
	r := newRun(t, lines...)
	p := r.launch(`{"id":1,"method":"open","params":{"key":1}}`, `{"id":1,"result":{"key":1}}`)
	p.cmd.Process.Kill()
	p.wait(t)
	r.refused("launch 1 was ended before it reached its runtime_exit")
	r.verdict(replay.Running)
	if d := cmp.Diff(map[replay.Verdict]int{replay.Running: 1, replay.Unexpected: 1}, r.verdicts()); d != "" {
		t.Errorf("reports:\n%s", d)
	}
	r.refused("launch 1 was ended before it reached its runtime_exit")
}

// Two processes at once are never what was recorded: the second is refused,
// and the first turns red although it did nothing wrong.
func TestConcurrentLaunch(t *testing.T) {
	for _, at := range []string{"mid-way", "at its end"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			lines := append([]string(nil), twoLaunches...)
			if at == "mid-way" {
				lines[2] = `> more {"method":"more"}`
			}
			r := newRun(t, lines...)
			p := r.launch(`{"id":1,"method":"open","params":{"key":1}}`, `{"id":1,"result":{"key":1}}`)
			r.refused("another launch is playing this segment right now")
			if at == "mid-way" {
				if err := p.send([]byte(`{"method":"more"}`)); err != nil {
					t.Fatal(err)
				}
			} else if _, err := p.recv(); err != nil {
				t.Fatal(err)
			}
			r.close(p, replay.ExitFailed)
			if d := cmp.Diff(map[replay.Verdict]int{replay.Unexpected: 2}, r.verdicts()); d != "" {
				t.Errorf("reports:\n%s", d)
			}
			r.refused("an earlier launch of this run was refused")
		})
	}
}

func TestStateOfAnotherTranscript(t *testing.T) {
	t.Parallel()
	r := newRun(t, twoLaunches...)
	r.close(r.first(), 0)
	r.cfg.Transcript = "green.ndjson"
	writeFile(t, filepath.Join(r.dir, "green.ndjson"), entries(green...))
	r.refused("the state belongs to another transcript")
	r.verdict(replay.Running)
	r.cfg.Transcript = "two.ndjson"
	writeFile(t, filepath.Join(r.dir, "state/run"), "{")
	r.refused("state file is not readable")
}

func TestFailedLaunchIsSticky(t *testing.T) {
	t.Parallel()
	r := newRun(t, twoLaunches...)
	p := startPeer(t, r.dir, r.cfg)
	if err := p.send([]byte(`{"id":1,"method":"close"}`)); err != nil {
		t.Fatal(err)
	}
	if answer, err := p.recv(); err != nil || !strings.HasPrefix(answer, `{"id":1,"error":{"code":-32603,"message":"replay-peer: two.ndjson:2: outbound mismatch at method`) {
		t.Errorf("the request is answered with %s, %v", answer, err)
	}
	r.close(p, replay.ExitFailed)
	before := readFile(t, filepath.Join(r.dir, "report.json"))
	for range 2 {
		r.refused("launch 1 of this run failed (mismatch): nothing is played after a failure")
	}
	if d := cmp.Diff(before, readFile(t, filepath.Join(r.dir, "report.json"))); d != "" {
		t.Errorf("the report of the failure changed:\n%s", d)
	}
}

// Without a state file a failed run stays failed as long as its report is
// there, and a passed one may be repeated.
func TestFailedReportIsKept(t *testing.T) {
	t.Parallel()
	r := newRun(t, twoLaunches[:4]...)
	r.cfg.State = ""
	r.close(r.first(), 0)
	r.close(r.first(), 0)
	r.verdict(replay.Passed)
	p := startPeer(t, r.dir, r.cfg)
	r.close(p, replay.ExitFailed)
	r.verdict(replay.Leftover)
	r.refused("tells of an earlier launch that did not pass (leftover)")
	r.verdict(replay.Leftover)
	writeFile(t, filepath.Join(r.dir, "report.json"), "not a report")
	r.refused("remove it, or name another report")
	if got := readFile(t, filepath.Join(r.dir, "report.json")); got != "not a report" {
		t.Errorf("a file that is no report was replaced by %s", got)
	}
}

// What a launch leaves is private to the run and whole at every moment.
func TestStateFile(t *testing.T) {
	t.Parallel()
	r := newRun(t, twoLaunches...)
	r.cfg.Report = filepath.Join("new", "report.json") // folders are made
	r.close(r.first(), 0)
	st, err := replay.ReadState([]byte(readFile(t, filepath.Join(r.dir, "state/run"))))
	if err != nil {
		t.Fatal(err)
	}
	st.Transcript = ""
	want := replay.State{Version: 1, Cursor: 4, Launches: 1, Ended: true, Verdict: replay.Running, Played: 4, Matched: 1, Emitted: 2,
		Names: map[string]json.RawMessage{"KEY": json.RawMessage(`"k-17"`)}}
	if d := cmp.Diff(want, st); d != "" {
		t.Errorf("state (-want +got):\n%s", d)
	}
	for dir, want := range map[string]int{"state": 2, "new": 1} { // nothing but the files and the lock
		list, err := os.ReadDir(filepath.Join(r.dir, dir))
		if err != nil || len(list) != want {
			t.Errorf("%s holds %v, %v", dir, list, err)
		}
	}
}
