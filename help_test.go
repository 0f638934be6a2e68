package replaypeer

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

var (
	tools       = []string{"orch-run", "replay-peer", "replay-record", "transcript-lint"}
	commandList = regexp.MustCompile(`(?ms)^COMMANDS:\n(.*?)\n\n`)
	commandName = regexp.MustCompile(`(?m)^   ([a-z]+) `)
)

// TestHelp holds what everybody looks for in the help of a tool: what it does,
// how it is called, its exit codes and an example.
func TestHelp(t *testing.T) {
	bin := buildTools(t)
	for _, name := range tools {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(bin, name)
			text := help(t, program)
			for _, want := range []string{"USAGE:", "Exit codes:", "Examples:", "--version"} {
				if !strings.Contains(text, want) {
					t.Errorf("%s --help lacks %q:\n%s", name, want, text)
				}
			}
			list := commandList.FindString(text)
			var commands []string
			for _, m := range commandName.FindAllStringSubmatch(list, -1) {
				commands = append(commands, m[1])
				text := help(t, program, m[1])
				if !strings.Contains(text, "USAGE:") || !strings.Contains(text, "Example") {
					t.Errorf("%s %s --help lacks usage or example:\n%s", name, m[1], text)
				}
				for line := range strings.Lines(text) {
					if words := strings.Fields(line); len(words) == 2 && strings.HasPrefix(words[0], "--") && words[1] == "value" {
						t.Errorf("%s %s: flag %s says nothing", name, m[1], words[0])
					}
				}
			}
			if len(commands) < 4 {
				t.Fatalf("commands %q in:\n%s", commands, text)
			}
		})
	}
}

// toolDir is where buildTools builds.
var toolDir string

func TestMain(m *testing.M) {
	code := m.Run()
	os.RemoveAll(toolDir)
	os.Exit(code)
}

var buildOnce = sync.OnceValue(func() (err error) {
	if toolDir, err = os.MkdirTemp("", "replaypeer-tools-"); err != nil {
		return err
	}
	if out, err := exec.Command("go", "build", "-o", toolDir, "./cmd/...").CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	return nil
})

// buildTools builds the four tools into a folder, once. It looks at their
// sources, or else go test would take its last result for one of what they are
// now.
func buildTools(t *testing.T) string {
	t.Helper()
	for _, dir := range []string{"cmd", "internal", "pkg"} {
		if err := filepath.WalkDir(dir, func(_ string, _ fs.DirEntry, err error) error { return err }); err != nil {
			t.Fatal(err)
		}
	}
	if err := buildOnce(); err != nil {
		t.Fatal(err)
	}
	return toolDir
}

func help(t *testing.T, program string, command ...string) string {
	t.Helper()
	cmd := exec.Command(program, append(command, "--help")...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", cmd, err)
	}
	return string(out)
}
