// Package checkpoint snapshots workspaces with the git binary, in hidden refs
// of the user's own repository.
//
// A checkpoint is a commit without parents whose tree is the working tree of
// one directory: what git tracks there and what it does not ignore. Author,
// date and message are fixed, so the same files give the same commit. Where
// the directory lies deeper in a repository, the tree is that of the directory
// alone, with paths relative to it: what happens elsewhere is none of the
// checkpoint's business.
//
// The user's index, HEAD, branches, stash, reflogs and hooks are neither used
// nor changed; each operation has an index of its own. Content of nested
// repositories is not captured, and ignored files are not touched.
package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// refPrefix is where checkpoints live; other refs are the user's.
const refPrefix = "refs/replaypeer/"

// Config says how to run git.
type Config struct {
	Git string // "": git on PATH
	// Env is git's environment as KEY=value; nil: the caller's. Of the user's
	// git configuration only the repository's own counts, and from the rest
	// what to ignore and which directories to trust.
	Env     []string
	TempDir string // for index files; "": the system's
}

// Checkpoints implements orch.Checkpoints.
type Checkpoints struct {
	git     git
	tempDir string

	// files keeps captures out of a working tree that is being restored.
	files sync.RWMutex
}

// New returns checkpoints. It runs nothing.
func New(cfg Config) *Checkpoints {
	return &Checkpoints{git: newGit(cfg.Git, cfg.Env), tempDir: cfg.TempDir}
}

// Capture implements orch.Checkpoints.
func (c *Checkpoints) Capture(ctx context.Context, req orch.CaptureRequest) (orch.Capture, error) {
	c.files.RLock()
	defer c.files.RUnlock()
	got, err := c.capture(ctx, req)
	if err != nil {
		return orch.Capture{}, fmt.Errorf("capture checkpoint: %w", err)
	}
	return got, nil
}

func (c *Checkpoints) capture(ctx context.Context, req orch.CaptureRequest) (orch.Capture, error) {
	refs := []string{req.Ref}
	if req.ParentRef != "" {
		refs = append(refs, req.ParentRef)
	}
	if err := checkRefs(refs...); err != nil {
		return orch.Capture{}, err
	}
	w, err := c.open(ctx, req.Cwd)
	if errors.Is(err, errNoWorkTree) {
		return orch.Capture{Status: "missing"}, nil
	}
	if err != nil {
		return orch.Capture{}, err
	}
	defer w.close()

	// What was captured before, or is in HEAD, stays part of the snapshot even
	// if it is ignored by now.
	parent := ""
	if req.ParentRef != "" {
		if parent, err = w.tree(ctx, req.ParentRef+"^{tree}"); err != nil {
			return orch.Capture{}, err
		}
	}
	seed := parent
	if seed == "" {
		if seed, err = w.tree(ctx, "HEAD:"+strings.TrimSuffix(w.prefix, "/")); err != nil {
			return orch.Capture{}, err
		}
	}
	if seed != "" {
		if err := w.load(ctx, seed); err != nil {
			return orch.Capture{}, err
		}
	}
	if err := w.addAll(ctx); err != nil {
		return orch.Capture{}, err
	}
	tree, err := w.writeTree(ctx)
	if err != nil {
		return orch.Capture{}, err
	}
	commit, err := w.run(ctx, nil, "commit-tree", tree, "-m", "checkpoint")
	if err != nil {
		return orch.Capture{}, err
	}
	got := orch.Capture{Status: "ready", Commit: line(commit), Files: []orch.CheckpointFile{}}
	if parent != "" {
		if got.Files, err = w.diff(ctx, parent, tree); err != nil {
			return orch.Capture{}, err
		}
	}
	if _, err := w.run(ctx, nil, "update-ref", "--no-deref", req.Ref, got.Commit); err != nil {
		return orch.Capture{}, err
	}
	return got, nil
}

// Restore implements orch.Checkpoints. Files that are not in the checkpoint
// are removed unless they are ignored. HEAD and the user's index stay where
// they are. It fails, and changes nothing, where an ignored file stands in the
// way of one to restore.
func (c *Checkpoints) Restore(ctx context.Context, cwd, ref string) error {
	c.files.Lock()
	defer c.files.Unlock()
	if err := c.restore(ctx, cwd, ref); err != nil {
		return fmt.Errorf("restore checkpoint: %w", err)
	}
	return nil
}

func (c *Checkpoints) restore(ctx context.Context, cwd, ref string) error {
	if err := checkRefs(ref); err != nil {
		return err
	}
	w, err := c.open(ctx, cwd)
	if err != nil {
		return err
	}
	defer w.close()
	tree, err := w.tree(ctx, ref+"^{tree}")
	if err != nil {
		return err
	}
	if tree == "" {
		return fmt.Errorf("no checkpoint at %s", ref)
	}
	if err := w.load(ctx, tree); err != nil {
		return err
	}
	target, err := w.run(ctx, nil, "write-tree")
	if err != nil {
		return err
	}
	if err := w.addAll(ctx); err != nil {
		return err
	}
	current, err := w.run(ctx, nil, "write-tree")
	if err != nil {
		return err
	}
	if line(current) == line(target) {
		return nil
	}
	// The index matches the files, so git itself can go from one tree to the
	// other, and refuses to if a file changed meanwhile.
	_, err = w.run(ctx, nil, "read-tree", "-m", "-u", line(current), line(target))
	return err
}

// Delete implements orch.Checkpoints: all refs or, on error, none.
func (c *Checkpoints) Delete(ctx context.Context, cwd string, refs []string) error {
	if err := c.delete(ctx, cwd, refs); err != nil {
		return fmt.Errorf("delete checkpoints: %w", err)
	}
	return nil
}

func (c *Checkpoints) delete(ctx context.Context, cwd string, refs []string) error {
	if err := checkRefs(refs...); err != nil || len(refs) == 0 {
		return err
	}
	w, err := c.open(ctx, cwd)
	if errors.Is(err, errNoWorkTree) {
		return nil
	}
	if err != nil {
		return err
	}
	defer w.close()
	var commands strings.Builder
	commands.WriteString("start\x00")
	for _, ref := range refs {
		fmt.Fprintf(&commands, "option no-deref\x00delete %s\x00\x00", ref)
	}
	commands.WriteString("prepare\x00commit\x00")
	_, err = w.run(ctx, []byte(commands.String()), "update-ref", "--stdin", "-z")
	return err
}

// checkRefs refuses every ref that is not ours.
func checkRefs(refs ...string) error {
	for _, ref := range refs {
		if !strings.HasPrefix(ref, refPrefix) || strings.ContainsAny(ref, "\x00\n") {
			return fmt.Errorf("ref %q: want one below %s", ref, refPrefix)
		}
	}
	return nil
}

// open finds the working tree of a directory; errNoWorkTree when there is none.
func (c *Checkpoints) open(ctx context.Context, cwd string) (*workTree, error) {
	prefix, err := c.git.locate(ctx, cwd)
	if err != nil {
		return nil, err
	}
	settings, err := c.git.settings(ctx, cwd)
	if err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp(c.tempDir, "checkpoint-")
	if err != nil {
		return nil, err
	}
	return &workTree{git: c.git, cwd: cwd, prefix: prefix, settings: settings, temp: temp, index: filepath.Join(temp, "index")}, nil
}
