package checkpoint

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// repo is a repository with a private home.
type repo struct {
	t   *testing.T
	dir string
	env []string
	c   *Checkpoints
}

func newRepo(t *testing.T) *repo {
	t.Helper()
	home := t.TempDir()
	r := &repo{t: t, dir: t.TempDir(), env: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_DIR=/nowhere", "GIT_INDEX_FILE=/nowhere/index", // as inside of a hook
	}}
	r.c = New(Config{Env: r.env, TempDir: t.TempDir()})
	// A home that would break or change everything if it were heeded.
	r.writeIn(home, map[string]string{
		".gitconfig": "[core]\n\texcludesFile = ~/ignore\n\tautocrlf = true\n\thooksPath = " + home + "/hooks\n[commit]\n\tgpgSign = true\n[diff]\n\texternal = false\n",
		"ignore":     "*.private\n",
	})
	r.git("init", "-q", "-b", "main")
	return r
}

func (r *repo) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	cmd.Env = append([]string{
		"GIT_AUTHOR_NAME=u", "GIT_AUTHOR_EMAIL=u@localhost", "GIT_COMMITTER_NAME=u", "GIT_COMMITTER_EMAIL=u@localhost",
		"GIT_CONFIG_GLOBAL=" + os.DevNull,
	}, r.env[:3]...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v: %s", args[0], err, out)
	}
	return string(out)
}

// write makes files; content "" removes one, "-> x" makes a symlink, "+x …"
// an executable.
func (r *repo) write(files map[string]string) { r.t.Helper(); r.writeIn(r.dir, files) }

func (r *repo) writeIn(dir string, files map[string]string) {
	r.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file, content := filepath.Join(dir, name), files[name]
		err := os.RemoveAll(file)
		if err == nil && content != "" {
			err = os.MkdirAll(filepath.Dir(file), 0o755)
		}
		target, link := strings.CutPrefix(content, "-> ")
		switch {
		case err != nil || content == "":
		case link:
			err = os.Symlink(target, file)
		case strings.HasPrefix(content, "+x "):
			err = os.WriteFile(file, []byte(content), 0o755)
		default:
			err = os.WriteFile(file, []byte(content), 0o644)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

// files reads the working tree in the notation of write.
func (r *repo) files() map[string]string {
	r.t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(r.dir, path)
		switch {
		case d.IsDir():
			if d.Name() == ".git" && path == filepath.Join(r.dir, ".git") {
				return filepath.SkipDir
			}
			return nil
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			files[name] = "-> " + target
			return err
		}
		content, err := os.ReadFile(path)
		info, statErr := d.Info()
		if statErr == nil && (info.Mode()&0o100 != 0) != strings.HasPrefix(string(content), "+x ") {
			files[name] = "wrong mode: "
		}
		files[name] += string(content)
		return errors.Join(err, statErr)
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return files
}

// private is everything of the user's in the repository that a checkpoint
// must leave alone.
func (r *repo) private() map[string]string {
	r.t.Helper()
	state := map[string]string{"refs": r.git("for-each-ref", "refs/heads", "refs/tags", "refs/stash")}
	for _, name := range []string{"index", "HEAD", "config", "logs/HEAD", "logs/refs/heads/main", "info/exclude"} {
		content, err := os.ReadFile(filepath.Join(r.dir, ".git", name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.t.Fatal(err)
		}
		state[name] = string(content)
	}
	return state
}

func (r *repo) capture(ref, parent string) orch.Capture {
	r.t.Helper()
	return r.captureIn(r.dir, ref, parent)
}

func (r *repo) captureIn(dir, ref, parent string) orch.Capture {
	r.t.Helper()
	if parent != "" {
		parent = refPrefix + parent
	}
	got, err := r.c.Capture(r.t.Context(), orch.CaptureRequest{Cwd: dir, Ref: refPrefix + ref, ParentRef: parent})
	if err != nil {
		r.t.Fatal(err)
	}
	return got
}

func (r *repo) restore(ref string) {
	r.t.Helper()
	if err := r.c.Restore(r.t.Context(), r.dir, refPrefix+ref); err != nil {
		r.t.Fatal(err)
	}
}
