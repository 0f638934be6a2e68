package scenario

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/replaypeer/replaypeer/internal/orch"
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
	var problems []error
	for _, name := range []string{keptEvents, keptProjection, keptReport, keptDB} {
		if err := os.Remove(filepath.Join(r.keptDir(), name)); !errors.Is(err, fs.ErrNotExist) {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
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
