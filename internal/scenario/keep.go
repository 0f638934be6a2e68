package scenario

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/replaypeer/replaypeer/internal/orch"
	"github.com/replaypeer/replaypeer/internal/orch/framelog"
	"github.com/replaypeer/replaypeer/pkg/redact"
)

// Names of the files that a run keeps.
const (
	keptEvents     = "events.ndjson"
	keptProjection = "projection.json"
	keptReport     = "report.json"
	keptDB         = "run.db"
)

// render writes paths of this very run the same in every run.
func (r *runner) render(s string) string {
	if r.dir == "" {
		return s
	}
	pairs := []string{r.workspace, "<workspace>", r.dir, "<run>"}
	for _, in := range r.instances {
		if in.transcript != "" {
			pairs = append(pairs, in.transcript, in.shown)
		}
	}
	return strings.NewReplacer(pairs...).Replace(s)
}

func (r *runner) keptDir() string { return filepath.Join(r.cfg.Keep, r.sc.Name, r.provider) }

// forget removes what an earlier run kept, so that it is not taken for this
// one's.
func (r *runner) forget() error {
	if r.cfg.Keep == "" {
		return nil
	}
	frames, err := filepath.Glob(filepath.Join(r.keptDir(), "frames*.ndjson"))
	problems := []error{err}
	for _, file := range frames {
		problems = append(problems, os.Remove(file))
	}
	for _, name := range []string{keptEvents, keptProjection, keptReport, keptDB} {
		if err := os.Remove(filepath.Join(r.keptDir(), name)); !errors.Is(err, fs.ErrNotExist) {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// keepFrames keeps the last raw frames, where anything is kept. What goes
// wrong with them later is told in the log and fails nothing.
func (r *runner) keepFrames() (stop func(), err error) {
	if r.cfg.Keep == "" {
		return func() {}, nil
	}
	mask := redact.Config{Workspace: r.workspace, Tmp: r.dir, Env: r.cfg.Env}
	for _, kv := range r.cfg.Env {
		if home, ok := strings.CutPrefix(kv, "HOME="); ok {
			mask.Home = home
		}
	}
	log, err := framelog.Open(framelog.Config{Dir: r.keptDir(), Mask: mask})
	if err != nil {
		return nil, err
	}
	r.frames = log.Add
	return func() {
		if err := log.Close(); err != nil {
			r.logger().Warn("keep frames", "error", err)
		}
	}, nil
}

// keep writes what is kept of a run, if anything is.
func (r *runner) keep(events []orch.StoredEvent, projection []byte, report json.RawMessage) error {
	if r.cfg.Keep == "" {
		return nil
	}
	var log strings.Builder
	for _, e := range events {
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		log.Write(line)
		log.WriteByte('\n')
	}
	db, err := os.ReadFile(r.db)
	files := map[string]string{keptEvents: r.render(log.String()), keptDB: string(db)}
	if projection != nil {
		files[keptProjection] = r.render(string(projection)) + "\n"
	}
	if report != nil {
		files[keptReport] = string(report) + "\n"
	}
	err = errors.Join(err, os.MkdirAll(r.keptDir(), 0o755))
	for name, text := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(r.keptDir(), name), []byte(text), 0o644))
	}
	return err
}
