package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/replaypeer/replaypeer/internal/lint"
	"github.com/replaypeer/replaypeer/internal/tool"
)

// git runs git in the working directory.
func git(args ...string) ([]byte, error) {
	cmd := exec.Command("git", args...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("git %s: %s", args[0], bytes.TrimSpace(exit.Stderr))
	}
	if err != nil {
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	return out, nil
}

// changedSince returns which files differ from a revision in the working tree,
// those that git does not know yet among them.
func changedSince(rev string) (func(file string) bool, error) {
	if strings.HasPrefix(rev, "-") {
		return nil, tool.Usagef("changed-since %q: want a revision", rev)
	}
	root, err := git("rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	changed := map[string]bool{}
	for _, args := range [][]string{
		{"diff", "--name-only", "--no-renames", "-z", rev, "--", ":/"},
		{"ls-files", "--others", "--exclude-standard", "--full-name", "-z", ":/"},
	} {
		out, err := git(args...)
		if err != nil {
			return nil, err
		}
		for name := range strings.SplitSeq(string(out), "\x00") {
			if name != "" {
				changed[real(filepath.Join(strings.TrimRight(string(root), "\r\n"), name))] = true
			}
		}
	}
	return func(file string) bool { return file == "-" || changed[real(file)] }, nil
}

// real is the path without symbolic links, absolute; as good as it gets for one
// that is not there.
func real(path string) string {
	if p, err := filepath.EvalSymlinks(path); err == nil {
		path = p
	}
	if p, err := filepath.Abs(path); err == nil {
		path = p
	}
	return path
}

var pin = regexp.MustCompile(`(?m)^([a-z][a-z0-9_]*)_version=["']?([0-9][0-9A-Za-z.+-]*)`)

// pinnedVersions reads which version of each provider is recorded with here.
func pinnedVersions() map[string]string {
	versions := map[string]string{}
	recipes, _ := filepath.Glob(filepath.Join("scripts", "providers", "*.sh"))
	for _, recipe := range recipes {
		b, err := os.ReadFile(recipe)
		if err != nil {
			continue // what cannot be read pins nothing
		}
		name := strings.TrimSuffix(filepath.Base(recipe), ".sh")
		for _, m := range pin.FindAllSubmatch(b, -1) {
			if own := string(m[1]); own == name || own == "sdk" && versions[name] == "" {
				versions[name] = string(m[2])
			}
		}
	}
	return versions
}

func readBaseline(c *cli.Context) (*lint.Baseline, error) {
	file := c.String("baseline")
	switch {
	case file == "" && c.Bool("write-baseline"):
		return nil, tool.Usagef("--write-baseline needs --baseline FILE")
	case file == "" || c.Bool("write-baseline"):
		return &lint.Baseline{}, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, tool.Usagef("%w", err)
	}
	defer f.Close()
	return lint.ReadBaseline(f)
}

func writeBaseline(c *cli.Context, b *lint.Baseline) error {
	var text bytes.Buffer
	if err := b.Write(&text); err != nil {
		return err
	}
	file := c.String("baseline")
	if err := tool.ReplaceFile(file, text.Bytes()); err != nil {
		return fmt.Errorf("write baseline: %w", err)
	}
	fmt.Fprintf(c.App.ErrWriter, "transcript-lint: %s: %s\n", file, count(len(b.Findings), "finding"))
	return nil
}
