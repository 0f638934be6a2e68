package scenario

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// gitEnv makes the first commit the same in every run, whatever the user's
// git is told to do.
var gitEnv = []string{
	"GIT_CONFIG_GLOBAL=" + os.DevNull,
	"GIT_CONFIG_NOSYSTEM=1",
	"GIT_TERMINAL_PROMPT=0",
	"GIT_AUTHOR_NAME=scenario",
	"GIT_AUTHOR_EMAIL=scenario@example.invalid",
	"GIT_AUTHOR_DATE=2026-01-01T00:00:00Z",
	"GIT_COMMITTER_NAME=scenario",
	"GIT_COMMITTER_EMAIL=scenario@example.invalid",
	"GIT_COMMITTER_DATE=2026-01-01T00:00:00Z",
}

// makeWorkspace makes dir a git repository with one commit that holds files.
func makeWorkspace(ctx context.Context, dir string, env []string, files map[string]string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, content := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			return err
		}
	}
	steps := [][]string{
		{"init", "-q", "-b", "main", "--template="},
		{"add", "-A", "-f"},
		{"-c", "maintenance.auto=false", "commit", "-q", "--allow-empty", "--no-verify", "--no-gpg-sign", "-m", "workspace"},
	}
	for _, args := range steps {
		if err := git(ctx, dir, env, args...); err != nil {
			return err
		}
	}
	return nil
}

func git(ctx context.Context, dir string, env []string, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(cleanGit(env), gitEnv...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("git %s: %v: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// cleanGit leaves out variables that would point git at another repository,
// as they are set while a hook runs.
func cleanGit(env []string) []string {
	var out []string
	for _, kv := range env {
		if !strings.HasPrefix(kv, "GIT_") {
			out = append(out, kv)
		}
	}
	return out
}
