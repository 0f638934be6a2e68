package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/replaypeer/replaypeer/internal/orch"
)

// workTree is one directory of a working tree and an index of our own.
type workTree struct {
	git      git
	cwd      string
	prefix   string // from the top to cwd, "" or with a slash at its end
	settings []string
	temp     string // folder of the index
	index    string
}

func (w *workTree) close() { os.RemoveAll(w.temp) }

// run runs git in the directory, on our index.
func (w *workTree) run(ctx context.Context, input []byte, args ...string) ([]byte, error) {
	env := append([]string{"GIT_INDEX_FILE=" + w.index}, isolated...)
	return w.git.run(ctx, w.cwd, env, w.settings, input, args...)
}

// tree resolves a tree; "" when there is none of that name.
func (w *workTree) tree(ctx context.Context, name string) (string, error) {
	out, err := w.run(ctx, nil, "rev-parse", "--verify", "--quiet", name)
	var failed *gitError
	if errors.As(err, &failed) && failed.exit.Code == 1 {
		return "", nil
	}
	return line(out), err
}

// emptyTree is the tree without entries, where objects are named by SHA-1.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// load puts a tree of the directory into the empty index.
func (w *workTree) load(ctx context.Context, tree string) error {
	if tree == emptyTree {
		return nil
	}
	args := []string{"read-tree"}
	if w.prefix != "" {
		args = append(args, "--prefix="+w.prefix)
	}
	_, err := w.run(ctx, nil, append(args, tree)...)
	return err
}

// addAll makes the index hold the directory's files as they are. A nested
// repository without a commit is left out: git can't name its state.
func (w *workTree) addAll(ctx context.Context) error {
	_, err := w.run(ctx, nil, "add", "-A", "--ignore-errors", "--", ".")
	var failed *gitError
	if !errors.As(err, &failed) || failed.exit.Code != 1 {
		return err
	}
	for msg := range strings.SplitSeq(failed.stderr, "\n") {
		if strings.HasPrefix(msg, "error: ") && !strings.HasSuffix(msg, "does not have a commit checked out") &&
			!strings.HasPrefix(msg, "error: unable to index file") {
			return err
		}
	}
	return nil
}

// writeTree returns the tree of the directory.
func (w *workTree) writeTree(ctx context.Context) (string, error) {
	out, err := w.run(ctx, nil, "write-tree")
	if err != nil || w.prefix == "" {
		return line(out), err
	}
	tree, err := w.tree(ctx, line(out)+":"+strings.TrimSuffix(w.prefix, "/"))
	if err != nil || tree != "" {
		return tree, err
	}
	out, err = w.run(ctx, nil, "mktree") // of nothing: the directory holds no files
	return line(out), err
}

// diff lists the files in which two trees differ, in the order of their paths.
func (w *workTree) diff(ctx context.Context, from, to string) ([]orch.CheckpointFile, error) {
	if from == to {
		return []orch.CheckpointFile{}, nil
	}
	out, err := w.run(ctx, nil, "diff-tree", "-r", "-z", "-M", "--raw", "--numstat", "--no-ext-diff", "--no-textconv", from, to)
	if err != nil {
		return nil, err
	}
	return parseDiff(string(out))
}

// parseDiff reads `git diff-tree -z --raw --numstat`: all raw entries, then
// all counts. A rename has two paths in both.
//
//	:100644 100644 <sha> <sha> M NUL path NUL
//	:100644 100644 <sha> <sha> R100 NUL old NUL new NUL
//	3 TAB 1 TAB path NUL            "-" counts for a binary file
//	3 TAB 1 TAB NUL old NUL new NUL
func parseDiff(out string) ([]orch.CheckpointFile, error) {
	files := []orch.CheckpointFile{}
	byPath := map[string]int{}
	fields := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	next := func() string {
		if len(fields) == 0 {
			return ""
		}
		f := fields[0]
		fields = fields[1:]
		return f
	}
	for len(fields) > 0 && fields[0] != "" {
		head := next()
		if status, ok := strings.CutPrefix(head, ":"); ok {
			status = status[strings.LastIndexByte(status, ' ')+1:]
			kind := map[byte]string{'A': "added", 'D': "deleted", 'R': "renamed"}[(status + "M")[0]]
			if kind == "" {
				kind = "modified" // M, or T: the type of the file
			}
			path := next()
			if kind == "renamed" {
				path = next()
			}
			byPath[path] = len(files)
			files = append(files, orch.CheckpointFile{Path: path, Kind: kind})
			continue
		}
		counts := strings.SplitN(head, "\t", 3)
		if len(counts) != 3 {
			return nil, fmt.Errorf("read git diff-tree: %q", head)
		}
		path := counts[2]
		if path == "" {
			next()
			path = next()
		}
		i, ok := byPath[path]
		if !ok {
			return nil, fmt.Errorf("read git diff-tree: counts of %q, which did not change", path)
		}
		files[i].Additions, _ = strconv.Atoi(counts[0]) // 0 for "-"
		files[i].Deletions, _ = strconv.Atoi(counts[1])
	}
	return files, nil
}
