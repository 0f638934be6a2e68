package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/replaypeer/replaypeer/internal/orch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ orch.Checkpoints = (*Checkpoints)(nil)

// start holds one of everything.
var start = map[string]string{
	".gitignore":       "*.log\nbuild/\n",
	"a file":           "one\ntwo\n",
	"line\nbreak":      "x\n",
	"tab\tquote\"ö/ü":  "y\n",
	"script":           "+x echo\n",
	"link":             "-> a file",
	"binary":           "\x00\x01\x02",
	"crlf.txt":         "a\r\nb\n",
	"gone":             "g\n",
	"moved":            "this is long enough\nto be seen\nas the same file\n",
	"tracked.log":      "forced\n",
	"untouched/deep/f": "f\n",
}

// One round: snapshot, change everything, snapshot, back, and forth again.
// Nothing of the user's repository changes on the way.
func TestCaptureAndRestore(t *testing.T) {
	r := newRepo(t)
	r.write(start)
	r.git("add", "-A", "-f")
	r.git("commit", "-q", "-m", "start")
	r.write(map[string]string{"staged": "s\n"})
	r.git("add", "staged")
	r.git("config", "core.logAllRefUpdates", "always")
	ignored := map[string]string{"debug.log": "keep\n", "build/out": "keep\n", "my.private": "keep\n"}
	r.write(ignored)
	r.writeIn(filepath.Join(r.dir, ".git", "hooks"), map[string]string{
		"reference-transaction": "+x #!/bin/sh\nexit 1\n", "post-index-change": "+x #!/bin/sh\nexit 1\n",
	})
	before, filesBefore := r.private(), r.files()

	base := r.capture("s/0", "")
	if base.Status != "ready" || base.Commit == "" || base.Files == nil || len(base.Files) > 0 {
		t.Errorf("baseline: got %+v, want it ready without files", base)
	}
	r.write(map[string]string{
		"a file": "one\n2\nthree\n", "line\nbreak": "", "line\nbreak 2": "new\n", "script": "now plain\n",
		"link": "-> nowhere", "binary": "\x00\x03", "gone": "", "moved": "", "to/moved": start["moved"],
		"tracked.log": "changed\n", "new dir/sub/file": "n\n", "debug.log": "still\n",
	})
	filesAfter := r.files()
	got := r.capture("s/1", "s/0")
	want := []orch.CheckpointFile{
		{Path: "a file", Kind: "modified", Additions: 2, Deletions: 1},
		{Path: "binary", Kind: "modified"},
		{Path: "gone", Kind: "deleted", Deletions: 1},
		{Path: "line\nbreak", Kind: "deleted", Deletions: 1},
		{Path: "line\nbreak 2", Kind: "added", Additions: 1},
		{Path: "link", Kind: "modified", Additions: 1, Deletions: 1},
		{Path: "new dir/sub/file", Kind: "added", Additions: 1},
		{Path: "script", Kind: "modified", Additions: 1, Deletions: 1},
		{Path: "to/moved", Kind: "renamed"},
		{Path: "tracked.log", Kind: "modified", Additions: 1, Deletions: 1},
	}
	if diff := cmp.Diff(want, got.Files); diff != "" {
		t.Error(diff)
	}

	r.restore("s/0")
	filesBefore["debug.log"] = "still\n" // ignored, so left alone
	if diff := cmp.Diff(filesBefore, r.files()); diff != "" {
		t.Errorf("after going back: %s", diff)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "new dir")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder is left: %v", err)
	}
	r.restore("s/1")
	if diff := cmp.Diff(filesAfter, r.files()); diff != "" {
		t.Errorf("after going forth: %s", diff)
	}
	if diff := cmp.Diff(before, r.private()); diff != "" {
		t.Errorf("the user's repository changed: %s", diff)
	}
	r.git("fsck", "--strict", "--no-dangling")
	if _, err := os.Stat(filepath.Join(r.dir, ".git", "logs", "refs", "replaypeer")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a reflog of checkpoints: %v", err)
	}
	if left, err := os.ReadDir(r.c.tempDir); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

// The same files give the same commit, wherever, and again into the same ref.
func TestCaptureIsDeterministic(t *testing.T) {
	a, b := newRepo(t), newRepo(t)
	a.write(start)
	a.git("add", "-A")
	a.git("commit", "-q", "-m", "start")
	b.write(start)
	b.git("config", "i18n.commitEncoding", "ISO-8859-1")
	first := a.capture("a/0", "")
	a.write(map[string]string{"a file": "other\n"})
	if other := a.capture("a/0", ""); other.Commit == first.Commit {
		t.Error("other files, same commit")
	}
	a.write(start)
	// tracked.log is ignored, and nobody forced it in.
	if got := []string{a.capture("a/0", "").Commit, b.capture("b/0", "").Commit}; got[0] != first.Commit || got[1] != first.Commit {
		t.Errorf("got commits %s, want all to be %s", got, first.Commit)
	}
	if ref := strings.TrimSpace(a.git("rev-parse", refPrefix+"a/0")); ref != first.Commit {
		t.Errorf("ref at %s, want %s", ref, first.Commit)
	}
}

func TestCaptureOutsideOfGit(t *testing.T) {
	r := newRepo(t)
	for name, dir := range map[string]string{"plain folder": t.TempDir(), ".git": filepath.Join(r.dir, ".git")} {
		if got := r.captureIn(dir, "x/0", ""); got.Status != "missing" || got.Commit != "" {
			t.Errorf("%s: got %+v, want it missing", name, got)
		}
		if err := r.c.Delete(t.Context(), dir, []string{refPrefix + "x/0"}); err != nil {
			t.Errorf("%s: delete: %v", name, err)
		}
		if err := r.c.Restore(t.Context(), dir, refPrefix+"x/0"); !errors.Is(err, errNoWorkTree) {
			t.Errorf("%s: restore: got %v", name, err)
		}
	}
	if _, err := r.c.Capture(t.Context(), orch.CaptureRequest{Cwd: filepath.Join(r.dir, "none"), Ref: refPrefix + "x/0"}); err == nil {
		t.Error("a folder that does not exist was captured")
	}
}

// A repository without commits, without files, and with a nested one.
func TestCaptureNewRepository(t *testing.T) {
	r := newRepo(t)
	r.capture("n/0", "")
	r.write(map[string]string{"f": "1\n", "nested/g": "g\n"})
	cmd := exec.Command("git", "init", "-q", filepath.Join(r.dir, "nested"))
	cmd.Env = r.env[:3]
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatal(string(out))
	}
	got := r.capture("n/1", "n/0")
	if diff := cmp.Diff([]orch.CheckpointFile{{Path: "f", Kind: "added", Additions: 1}}, got.Files); diff != "" {
		t.Error(diff)
	}
	r.restore("n/0")
	if content, err := os.ReadFile(filepath.Join(r.dir, "nested", "g")); err != nil || string(content) != "g\n" {
		t.Errorf("nested repository: %q, %v", content, err)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "f")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("f is left: %v", err)
	}
	// A parent that was never captured is none.
	if got := r.capture("n/2", "n/99"); got.Status != "ready" || len(got.Files) > 0 {
		t.Errorf("got %+v, want it ready without files", got)
	}
}

// Below the top, a checkpoint holds the folder and nothing else.
func TestCaptureSubdirectory(t *testing.T) {
	r := newRepo(t)
	r.write(map[string]string{"top": "t\n", "sub dir/in/f": "f\n", ".gitignore": "*.log\n"})
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "start")
	sub := filepath.Join(r.dir, "sub dir", "in")
	r.captureIn(sub, "d/0", "")
	if got := r.git("ls-tree", "-r", "--name-only", refPrefix+"d/0"); got != "f\n" {
		t.Errorf("tree holds %q, want f", got)
	}
	r.write(map[string]string{"top": "changed\n", "sub dir/in/f": "", "sub dir/in/new": "n\n", "sub dir/in/x.log": "log\n", "sub dir/other": "o\n"})
	got := r.captureIn(sub, "d/1", "d/0")
	want := []orch.CheckpointFile{{Path: "f", Kind: "deleted", Deletions: 1}, {Path: "new", Kind: "added", Additions: 1}}
	if diff := cmp.Diff(want, got.Files); diff != "" {
		t.Error(diff)
	}
	if err := r.c.Restore(t.Context(), sub, refPrefix+"d/0"); err != nil {
		t.Fatal(err)
	}
	wantFiles := map[string]string{
		"top": "changed\n", ".gitignore": "*.log\n", "sub dir/in/f": "f\n", "sub dir/in/x.log": "log\n", "sub dir/other": "o\n",
	}
	if diff := cmp.Diff(wantFiles, r.files()); diff != "" {
		t.Error(diff)
	}
	// Even of nothing, and back.
	r.write(map[string]string{"sub dir/in/f": ""})
	r.captureIn(sub, "d/2", "d/0")
	r.write(map[string]string{"sub dir/in/new": "n\n"})
	if err := r.c.Restore(t.Context(), sub, refPrefix+"d/2"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(sub, "new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("new is left: %v", err)
	}
}

// A file that is ignored by now was not when it was captured: it comes back,
// ignore rules and all. An ignored file that a restored one would replace
// stops the restore before anything changes.
func TestRestoreAndIgnoreRules(t *testing.T) {
	r := newRepo(t)
	r.write(map[string]string{"data": "1\n", "out": "file\n", "f": "1\n"})
	r.capture("i/0", "")
	r.write(map[string]string{"data": "2\n", ".gitignore": "data\n"})
	wantChanges := []orch.CheckpointFile{
		{Path: ".gitignore", Kind: "added", Additions: 1}, {Path: "data", Kind: "modified", Additions: 1, Deletions: 1},
	}
	if diff := cmp.Diff(wantChanges, r.capture("i/1", "i/0").Files); diff != "" {
		t.Error(diff)
	}
	r.restore("i/0")
	want := map[string]string{"data": "1\n", "out": "file\n", "f": "1\n"}
	if diff := cmp.Diff(want, r.files()); diff != "" {
		t.Error(diff)
	}

	r.write(map[string]string{"out": "", "out/x.private": "precious\n", "f": "2\n"})
	before := r.files()
	if err := r.c.Restore(t.Context(), r.dir, refPrefix+"i/0"); err == nil {
		t.Error("an ignored file was replaced without a word")
	}
	if diff := cmp.Diff(before, r.files()); diff != "" {
		t.Error(diff)
	}
	if err := r.c.Restore(t.Context(), r.dir, refPrefix+"i/9"); err == nil || !strings.Contains(err.Error(), "no checkpoint at refs/replaypeer/i/9") {
		t.Errorf("restore of nothing: got %v", err)
	}
}

func TestDelete(t *testing.T) {
	r := newRepo(t)
	r.write(map[string]string{"f": "1\n"})
	r.capture("x/0", "")
	r.capture("x/1", "x/0")
	r.git("pack-refs", "--all")
	refs := []string{refPrefix + "x/1", refPrefix + "x/7"}
	for range 2 {
		if err := r.c.Delete(t.Context(), r.dir, refs); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.git("for-each-ref", "--format=%(refname)"); got != refPrefix+"x/0\n" {
		t.Errorf("refs left: %q", got)
	}
	if err := r.c.Delete(t.Context(), r.dir, []string{"refs/heads/main"}); err == nil {
		t.Error("deleted a branch")
	}
	if _, err := r.c.Capture(t.Context(), orch.CaptureRequest{Cwd: r.dir, Ref: "HEAD"}); err == nil {
		t.Error("captured into HEAD")
	}
}

// Threads of one repository do not disturb each other.
func TestConcurrent(t *testing.T) {
	r := newRepo(t)
	r.write(start)
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "start")
	want := r.capture("c/0", "")
	var wg sync.WaitGroup
	for thread := range 6 {
		wg.Go(func() {
			for n := range 4 {
				ref := fmt.Sprintf("%sc%d/%d", refPrefix, thread, n)
				got, err := r.c.Capture(t.Context(), orch.CaptureRequest{Cwd: r.dir, Ref: ref, ParentRef: refPrefix + "c/0"})
				if err != nil || got.Commit != want.Commit || len(got.Files) > 0 {
					t.Errorf("%s: got %+v, %v", ref, got, err)
				}
				if err := r.c.Restore(t.Context(), r.dir, ref); err != nil {
					t.Error(err)
				}
				if err := r.c.Delete(t.Context(), r.dir, []string{ref}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestCancelled(t *testing.T) {
	r := newRepo(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.c.Capture(ctx, orch.CaptureRequest{Cwd: r.dir, Ref: refPrefix + "x/0"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	// Git that hangs is killed.
	dir := t.TempDir()
	r.writeIn(dir, map[string]string{"git": "+x \n"})
	if err := os.WriteFile(filepath.Join(dir, "git"), []byte("#!/bin/sh\necho >"+dir+"/started; exec sleep 600\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfifo", filepath.Join(dir, "started")).CombinedOutput(); err != nil {
		t.Skip(string(out))
	}
	ctx, cancel = context.WithCancel(t.Context())
	go func() {
		os.ReadFile(filepath.Join(dir, "started"))
		cancel()
	}()
	c := New(Config{Git: filepath.Join(dir, "git"), Env: r.env})
	if _, err := c.Capture(ctx, orch.CaptureRequest{Cwd: r.dir, Ref: refPrefix + "x/0"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}
