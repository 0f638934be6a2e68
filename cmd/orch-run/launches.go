package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/replaypeer/replaypeer/internal/record"
	"github.com/replaypeer/replaypeer/internal/scenario"
	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// checkRecorded wants every launch of every instance to be in its recording,
// and one of the provider's own.
func checkRecorded(live *scenario.Live, provider string) error {
	files := map[string]string{provider: live.Record}
	for name := range live.Instances {
		files[name] = live.RecordOf(name)
	}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(files)) {
		launches, err := record.ReadLaunches(live.LaunchesOf(name))
		if err == nil && len(launches) == 0 && name == provider {
			err = fmt.Errorf("the scenario ran, but %s was not recorded: replay-record told of no launch", name)
		}
		if err == nil {
			err = compareLaunches(launches, name, files[name])
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// compareLaunches compares what the recorder told of its launches with what it
// kept of them.
func compareLaunches(launches []record.Launch, name, file string) error {
	kept := 0
	switch t, err := envelope.ReadFile(file); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		for _, e := range t.Entries {
			if _, ended := e.(*envelope.RuntimeExit); ended {
				kept++
			}
		}
	}
	if kept >= len(launches) {
		return nil
	}
	var lost []string
	for i, l := range launches {
		if l.Kept == "" {
			lost = append(lost, fmt.Sprintf("\n  launch %d: %s", i+1, cmp.Or(l.Lost, "replay-record was killed before it was done")))
		}
	}
	return fmt.Errorf("the scenario ran, but %s holds %d of %d launches of %s: mend what is said here, remove what was kept, and record again%s",
		shortened(file), kept, len(launches), name, strings.Join(lost, ""))
}

// shortened names a file as seen from the working directory where it is below.
func shortened(file string) string {
	if wd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(wd, file); err == nil && filepath.IsLocal(rel) {
			return rel
		}
	}
	return file
}
