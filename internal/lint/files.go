package lint

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// Extension is what a transcript's file name ends with.
const Extension = ".ndjson"

// Find returns the transcripts that paths name, in order: a file is taken
// whatever its name, a folder is searched for *.ndjson, leaving out hidden
// folders. A path that does not exist, or a folder without a transcript, is
// an error.
func Find(paths []string) ([]string, error) {
	var files []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		n := len(files)
		err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && p != path && strings.HasPrefix(d.Name(), "."):
				return fs.SkipDir
			case d.IsDir() || !strings.HasSuffix(d.Name(), Extension):
				return nil
			}
			files = append(files, p)
			return nil
		})
		if err != nil {
			return nil, err
		}
		if len(files) == n {
			return nil, fmt.Errorf("no transcript (*%s) in %s", Extension, path)
		}
	}
	return files, nil
}

// Format copies a transcript from r to w in canonical form, a line at a time.
// The error for a line that is not of the format is an *envelope.SyntaxError;
// what was written by then is to be thrown away.
func Format(w io.Writer, name string, r io.Reader) error {
	rd := envelope.NewReader(name, r)
	h, err := rd.Header()
	if err != nil {
		return err
	}
	to := envelope.NewWriter(w)
	if err := to.WriteHeader(h); err != nil {
		return err
	}
	for {
		e, err := rd.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := to.WriteEntry(e); err != nil {
			return err
		}
	}
}
