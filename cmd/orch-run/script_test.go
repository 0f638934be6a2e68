package main

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/replaypeer/replaypeer/internal/peer"
	"github.com/replaypeer/replaypeer/transcripts"
)

var update = flag.Bool("update", false, "rewrite the expected output inside the scripts")

// TestMain makes the test binary orch-run, and, through the links that
// orch-run makes, the provider.
func TestMain(m *testing.M) {
	if _, linked, err := peer.Linked(os.Args[0]); linked || err != nil {
		os.Exit(start())
	}
	testscript.Main(m, map[string]func(){
		"orch-run": func() { os.Exit(start()) },
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		Setup:               setup,
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"edit": edit, "dropline": dropLine, "link": link,
		},
	})
}

// otherProvider is a provider of a scenario that has no hand-made transcript.
var otherProvider = regexp.MustCompile(`(?m)^  ([abd-z][a-z0-9-]*|claude[a-z0-9-]*|codex-[a-z0-9-]+|cursor): \{model: .*\n`)

// setup gives each script a folder "s" with the scenarios of the repository
// and hand-made transcripts of codex, which the scripts may spoil.
func setup(env *testscript.Env) error {
	dir := filepath.Join(env.WorkDir, "s")
	if err := os.CopyFS(dir, os.DirFS("testdata/fixtures")); err != nil {
		return err
	}
	// "bare" is a PATH with orch-run and nothing else.
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(env.WorkDir, "bare"), 0o755); err != nil {
		return err
	}
	if err := os.Symlink(self, filepath.Join(env.WorkDir, "bare", "orch-run")); err != nil {
		return err
	}
	return fs.WalkDir(transcripts.FS, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "scenario.yaml" {
			return err
		}
		if _, err := os.Stat(filepath.Join(dir, filepath.Dir(name))); err != nil {
			return nil // a scenario without a transcript here
		}
		data, err := fs.ReadFile(transcripts.FS, name)
		if err != nil {
			return err
		}
		data = otherProvider.ReplaceAll(data, nil)
		return os.WriteFile(filepath.Join(dir, name), data, 0o644)
	})
}

// edit FILE OLD NEW replaces the one place where OLD stands.
func edit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: edit FILE OLD NEW")
	}
	text := ts.ReadFile(args[0])
	if n := strings.Count(text, args[1]); n != 1 {
		ts.Fatalf("%s holds %q %d times: want once", args[0], args[1], n)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Replace(text, args[1], args[2], 1)), 0o644))
}

// dropline FILE TEXT removes the last line that holds TEXT.
func dropLine(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: dropline FILE TEXT")
	}
	lines := strings.SplitAfter(ts.ReadFile(args[0]), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.Contains(lines[i], args[1]) {
			ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Join(append(lines[:i], lines[i+1:]...), "")), 0o644))
			return
		}
	}
	ts.Fatalf("%s has no line with %q", args[0], args[1])
}

// link DIR NAME TRANSCRIPT makes a provider of this very binary.
func link(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: link DIR NAME TRANSCRIPT")
	}
	self, err := os.Executable()
	ts.Check(err)
	_, err = peer.Link(ts.MkAbs(args[0]), args[1], self, peer.Config{Transcript: ts.MkAbs(args[2])})
	ts.Check(err)
}
