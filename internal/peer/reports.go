package peer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/replaypeer/replaypeer/internal/replay"
)

// NamedReport is one report file; Err is set when it is not a report.
type NamedReport struct {
	Path   string
	Report *replay.Report
	Err    error
}

// Passed says whether the file is a report of a replay that passed.
func (n NamedReport) Passed() bool { return n.Err == nil && n.Report.Verdict == replay.Passed }

// Reports reads every report in a folder, in name order: the files that end in
// .json and do not start with a dot.
func Reports(dir string) ([]NamedReport, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read reports: %w", err)
	}
	var all []NamedReport
	for _, e := range list {
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") || !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		path := filepath.Join(dir, e.Name())
		r, err := replay.ReadReport(path)
		all = append(all, NamedReport{path, r, err})
	}
	return all, nil
}
