package scenario

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestWorkspace(t *testing.T) {
	head := func(env ...string) string {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "ws")
		env = append(env, "PATH="+os.Getenv("PATH"))
		if err := makeWorkspace(t.Context(), dir, env, map[string]string{"a/b.txt": "text\n", ".gitignore": "b.txt\n"}); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("git", "-C", dir, "log", "--format=%H %s", "--name-only").Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	first := head()
	if !strings.Contains(first, "a/b.txt") {
		t.Errorf("an ignored file is not in the commit:\n%s", first)
	}
	if second := head("GIT_DIR=/nonexistent", "GIT_AUTHOR_DATE=2001-01-01T00:00:00Z"); second != first {
		t.Errorf("the commit depends on the environment:\n%s%s", first, second)
	}
}
