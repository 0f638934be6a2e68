package peer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/replaypeer/replaypeer/internal/replay"
)

// settlePoll is how often Settle looks whether a launch has ended.
const settlePoll = 20 * time.Millisecond

// ownVariables say for one peer what to play and where to write. Nothing from
// outside may say it for the peers of a wrapped command.
var ownVariables = []string{"TRANSCRIPT", "REPORT", "REPORT_DIR", "STATE"}

// Fake is a fake provider binary and the receipt of what it played.
type Fake struct {
	Name string // "codex"
	Path string // of the link
	cfg  Config
}

// NewFake links DIR/NAME as Link does and reports into reportDir/NAME.json.
// Reports of an earlier run are removed there.
func NewFake(dir, name, executable, reportDir string, cfg Config) (*Fake, error) {
	reportDir, err := filepath.Abs(reportDir)
	if err != nil {
		return nil, fmt.Errorf("link %s: %w", name, err)
	}
	cfg.Report = filepath.Join(reportDir, name+".json")
	f := &Fake{Name: name, cfg: cfg}
	if f.Path, err = Link(dir, name, executable, cfg); err != nil {
		return nil, err
	}
	f.cfg.State = stateFile(f.Path)
	for _, old := range append(f.refusals(), cfg.Report) {
		if err := os.Remove(old); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("link %s: %w", name, err)
		}
	}
	return f, nil
}

// Settle waits until no launch of the fake plays. A client need not wait for
// its provider, so the last launch may still write its report. The error is
// that of ctx.
func (f *Fake) Settle(ctx context.Context) error {
	l := flock.New(f.cfg.State + ".lock")
	if _, err := l.TryLockContext(ctx, settlePoll); err != nil {
		return fmt.Errorf("%s is still playing: %w", f.Name, err)
	}
	return l.Unlock()
}

// Reports returns the receipts of the fake's run: none when it was never
// launched, more than one when further launches were turned away.
func (f *Fake) Reports() []NamedReport {
	var all []NamedReport
	for _, path := range append([]string{f.cfg.Report}, f.refusals()...) {
		r, err := replay.ReadReport(path)
		if !errors.Is(err, os.ErrNotExist) {
			all = append(all, NamedReport{path, r, err})
		}
	}
	return all
}

// refusals are the reports of launches that were turned away, in name order.
func (f *Fake) refusals() []string {
	list, _ := os.ReadDir(filepath.Dir(f.cfg.Report)) // no folder, no reports
	var found []string
	for _, e := range list {
		if strings.HasPrefix(e.Name(), f.Name+".refused-") && strings.HasSuffix(e.Name(), ".json") {
			found = append(found, filepath.Join(filepath.Dir(f.cfg.Report), e.Name()))
		}
	}
	return found
}

// Passed says whether the reports tell of a run that passed and served
// something.
func Passed(list []NamedReport) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(r NamedReport) bool {
		return !r.Passed() || r.Report.Outbound.Matched+r.Report.Inbound.Emitted == 0
	})
}

// Environ is env for a command whose providers are in dir: dir comes first on
// PATH, and no variable turns a fake to another transcript, state or report.
func Environ(env []string, dir string) []string {
	path := dir
	var out []string
	for _, kv := range env {
		key, value, _ := strings.Cut(kv, "=")
		if strings.EqualFold(key, "PATH") {
			if value != "" {
				path = dir + string(os.PathListSeparator) + value
			}
			continue
		}
		if own, ok := strings.CutPrefix(key, "REPLAY_PEER_"); ok && slices.Contains(ownVariables, own) {
			continue
		}
		out = append(out, kv)
	}
	return append(out, "PATH="+path)
}
