package peer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// files are the state and the report of one launch, and the lock on them.
type files struct {
	state      replay.State
	statePath  string
	reportPath string
	lock       *flock.Flock // nil without a state file
}

// stateError is a state file that can't be used.
type stateError struct{ err error }

func (e *stateError) Error() string { return e.err.Error() }
func (e *stateError) Unwrap() error { return e.err }

// errClaimed means that another launch plays right now.
var errClaimed = errors.New("another launch is playing this segment right now: the recording has one process at a time")

// claim takes the next segment of the run for this launch.
func claim(cfg Config, script *replay.Script) (*files, error) {
	f := &files{statePath: cfg.State, reportPath: reportPath(cfg, script)}
	for _, path := range []string{f.statePath, f.reportPath} {
		if path == "" {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return nil, &stateError{fmt.Errorf("make folder: %w", err)}
		}
	}
	if f.statePath == "" {
		return f, f.checkOldReport()
	}
	f.lock = flock.New(f.statePath + ".lock")
	ok, err := f.lock.TryLock()
	if err != nil {
		return nil, &stateError{fmt.Errorf("lock state file: %w", err)}
	}
	if !ok {
		// The launch that holds the lock sees this mark when it ends.
		if err := os.WriteFile(f.refusedMark(), []byte(errClaimed.Error()+"\n"), 0o666); err != nil {
			return nil, errors.Join(errClaimed, err)
		}
		return nil, errClaimed
	}
	if err := f.take(script); err != nil {
		f.release()
		return nil, err
	}
	return f, nil
}

func (f *files) take(script *replay.Script) error {
	if f.refused() {
		return fmt.Errorf("an earlier launch of this run was refused: nothing is played after a failure (to start anew, remove %s and the state file)", f.refusedMark())
	}
	b, err := os.ReadFile(f.statePath)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return &stateError{fmt.Errorf("read state file: %w", err)}
	}
	if f.state, err = replay.ReadState(b); err != nil {
		return &stateError{fmt.Errorf("%s: %w", f.statePath, err)}
	}
	return f.state.Claim(script)
}

// checkOldReport keeps a failed run without a state file failed: its report is
// not overwritten by another try.
func (f *files) checkOldReport() error {
	if f.reportPath == "" {
		return nil
	}
	r, err := replay.ReadReport(f.reportPath)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return &stateError{fmt.Errorf("%w: remove it, or name another report", err)}
	case r.Verdict != replay.Passed:
		return fmt.Errorf("report %s tells of an earlier launch that did not pass (%s): remove it to start a new run", f.reportPath, r.Verdict)
	}
	return nil
}

func (f *files) refusedMark() string { return f.statePath + ".refused" }

// refused says whether a launch was turned away while this one played.
func (f *files) refused() bool {
	if f.statePath == "" {
		return false
	}
	_, err := os.Stat(f.refusedMark())
	return err == nil
}

func (f *files) release() {
	if f.lock != nil {
		f.lock.Unlock()
	}
}

// staged are files written beside their targets, one rename away.
type staged struct{ from, to []string }

// stage writes state and report beside their targets. commit puts them in
// place with nothing but a rename each, so that a client which ends the peer
// right after its last frame finds a report that knows it.
func (f *files) stage(st replay.State, r *replay.Report) (*staged, error) {
	s := &staged{}
	if f.statePath != "" { // bound values in it may be a client's secrets
		if err := s.add(f.statePath, st.Encode(), 0o600); err != nil {
			return nil, fmt.Errorf("write state: %w", err)
		}
	}
	if f.reportPath != "" {
		if err := s.add(f.reportPath, r.Masked().Encode(), 0o644); err != nil {
			s.drop()
			return nil, fmt.Errorf("write report: %w", err)
		}
	}
	return s, nil
}

func (s *staged) add(path string, content []byte, mode os.FileMode) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(content)
	if err == nil {
		err = tmp.Chmod(mode)
	}
	if e := tmp.Close(); err == nil {
		err = e
	}
	if err != nil {
		os.Remove(tmp.Name())
		return err
	}
	s.from, s.to = append(s.from, tmp.Name()), append(s.to, path)
	return nil
}

func (s *staged) commit() error {
	for i := range s.from {
		if err := os.Rename(s.from[i], s.to[i]); err != nil {
			s.drop()
			return err
		}
	}
	s.from, s.to = nil, nil
	return nil
}

func (s *staged) drop() {
	for _, p := range s.from {
		os.Remove(p)
	}
}

// write stages and commits at once.
func (f *files) write(st replay.State, r *replay.Report) error {
	s, err := f.stage(st, r)
	if err != nil {
		return err
	}
	return s.commit()
}

// reportPath is where the receipt goes, "" for nowhere.
func reportPath(cfg Config, script *replay.Script) string {
	if cfg.Report != "" || cfg.ReportDir == "" {
		return cfg.Report
	}
	name := strings.TrimSuffix(filepath.Base(cfg.Transcript), ".ndjson")
	if script != nil {
		name = script.Header.Scenario + "-" + script.Header.Provider
	}
	name = strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r == 0 || r == ':' {
			return '_'
		}
		return r
	}, name)
	if cfg.State == "" {
		name += fmt.Sprintf("-%d", os.Getpid())
	}
	return filepath.Join(cfg.ReportDir, strings.TrimLeft(name, ".")+".json")
}

// refusedReport tells of a launch that was turned away. While another launch
// holds the run, or an earlier failure is on record, it goes beside the
// report, so that neither is lost.
func refusedReport(cfg Config, script *replay.Script, r *replay.Report) error {
	path := reportPath(cfg, script)
	if path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	old, err := replay.ReadReport(path)
	playing := errors.Is(lockState(cfg), errClaimed)
	if err == nil && (playing || old.Verdict != replay.Passed) || err != nil && !errors.Is(err, os.ErrNotExist) {
		path = strings.TrimSuffix(path, ".json") + fmt.Sprintf(".refused-%d.json", os.Getpid())
	}
	f := files{reportPath: path}
	return f.write(replay.State{}, r)
}

// lockState says whether another launch holds the run.
func lockState(cfg Config) error {
	if cfg.State == "" {
		return nil
	}
	l := flock.New(cfg.State + ".lock")
	ok, err := l.TryLock()
	if err == nil && !ok {
		return errClaimed
	}
	if ok {
		l.Unlock()
	}
	return nil
}

// headerOf returns what the recorded provider's version probe prints.
func headerOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read transcript: %w", err)
	}
	defer f.Close()
	h, err := envelope.NewReader(path, f).Header()
	if err != nil {
		return "", err
	}
	return versionText(h), nil
}
