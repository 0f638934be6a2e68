package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/replaypeer/replaypeer/internal/proc"
)

// errNoWorkTree means that a directory is in no git working tree.
var errNoWorkTree = errors.New("not in a git working tree")

// overrides beat the repository's own configuration where that would run
// something, write somewhere else, or make a commit differ.
var overrides = []string{
	"core.hooksPath=" + os.DevNull,
	"core.fsmonitor=false",
	"core.untrackedCache=false",
	"core.safecrlf=false",
	"core.logAllRefUpdates=false",
	"core.filesRefLockTimeout=10000",
	"core.packedRefsTimeout=10000",
	"core.splitIndex=false",
	"commit.gpgSign=false",
	"i18n.commitEncoding=UTF-8",
	"diff.renames=true",
	"diff.renameLimit=1000",
	"advice.addEmbeddedRepo=false",
	"submodule.recurse=false",
}

// fixed makes git deaf to the machine it runs on, and a commit the same
// whenever and by whomever it is made.
var fixed = []string{
	"LC_ALL=C",
	"GIT_TERMINAL_PROMPT=0",
	"GIT_OPTIONAL_LOCKS=0",
	"GIT_AUTHOR_NAME=checkpoint",
	"GIT_AUTHOR_EMAIL=checkpoint@localhost",
	"GIT_AUTHOR_DATE=946684800 +0000",
	"GIT_COMMITTER_NAME=checkpoint",
	"GIT_COMMITTER_EMAIL=checkpoint@localhost",
	"GIT_COMMITTER_DATE=946684800 +0000",
}

// isolated leaves only the repository's own configuration.
var isolated = []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull}

// git runs the git binary.
type git struct {
	path string
	env  []string // the user's, without what points git somewhere else
}

func newGit(path string, env []string) git {
	if path == "" {
		path = "git"
	}
	if env == nil {
		env = os.Environ()
	}
	keep := []string{"GIT_EXEC_PATH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"}
	g := git{path: path}
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		// A hook that runs us sets GIT_DIR and GIT_INDEX_FILE, for example.
		if !strings.HasPrefix(name, "GIT_") || slices.Contains(keep, name) {
			g.env = append(g.env, kv)
		}
	}
	g.env = append(g.env, fixed...)
	return g
}

// gitError is git ending with an exit code other than 0.
type gitError struct {
	command string
	exit    proc.Exit
	stderr  string
}

func (e *gitError) Error() string {
	if e.stderr == "" {
		return fmt.Sprintf("git %s: %s", e.command, e.exit)
	}
	return fmt.Sprintf("git %s: %s: %s", e.command, e.exit, e.stderr)
}

// run runs git in dir and returns what it printed. args[0] is the command's
// name in errors, settings stand before it on the command line. At the end of
// ctx git is killed.
func (g git) run(ctx context.Context, dir string, env, settings []string, input []byte, args ...string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	var line []string
	for _, s := range settings {
		line = append(line, "-c", s)
	}
	var out bytes.Buffer
	var stderr proc.Tail
	p, err := proc.Start(proc.Config{
		Path: g.path, Args: append(line, args...), Dir: dir, Env: append(slices.Clone(g.env), env...), Stdout: &out, Stderr: &stderr,
	})
	if err != nil {
		return nil, err
	}
	// Git reads all of its input before it prints more than a pipe holds, and
	// it can't block us for good: the end of ctx kills it.
	stop := context.AfterFunc(ctx, func() { p.Kill() })
	defer stop()
	p.Stdin.Write(input) // an error shows in how git ends
	p.Stdin.Close()
	exit := p.Wait()
	if !exit.Success() {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("git %s: %w", args[0], err)
		}
		return nil, &gitError{args[0], exit, strings.TrimSpace(stderr.String())}
	}
	return out.Bytes(), nil
}

// locate returns the path from the top of the working tree to dir, "" at the
// top, else with a slash at its end.
func (g git) locate(ctx context.Context, dir string) (prefix string, err error) {
	out, err := g.run(ctx, dir, nil, nil, nil, "rev-parse", "--is-inside-work-tree", "--show-prefix")
	var failed *gitError
	if errors.As(err, &failed) && strings.Contains(failed.stderr, "not a git repository") {
		return "", errNoWorkTree
	}
	if err != nil {
		return "", err
	}
	prefix, inside := strings.CutPrefix(line(out), "true\n")
	if !inside && line(out) != "true" {
		return "", errNoWorkTree // bare, or inside of .git
	}
	if !inside {
		return "", nil
	}
	return prefix, nil
}

// settings returns the overrides and what counts of the user's configuration.
func (g git) settings(ctx context.Context, dir string) ([]string, error) {
	out, err := g.run(ctx, dir, nil, nil, nil, "config", "-z", "--get-regexp", `^(core\.excludesfile|safe\.directory)$`)
	var failed *gitError
	if err != nil && !(errors.As(err, &failed) && failed.exit.Code == 1) { // 1: none is set
		return nil, err
	}
	settings := slices.Clone(overrides)
	for kv := range strings.SplitSeq(string(out), "\x00") {
		if name, value, ok := strings.Cut(kv, "\n"); ok {
			settings = append(settings, name+"="+value)
		}
	}
	return settings, nil
}

// line strips the line end of one-line output.
func line(out []byte) string { return strings.TrimSuffix(string(out), "\n") }
