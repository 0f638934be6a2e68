package sqlite

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// diskEnv names the folder on which the child of TestFullDisk finds its disk.
const diskEnv = "SQLITE_TEST_DISK"

// inChild runs a test of this binary in a process of its own, behind a command.
func inChild(t *testing.T, test, dir string, command ...string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command = append(command, self, "-test.run=^"+test+"$", "-test.v")
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), diskEnv+"="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+test) {
		t.Errorf("%v\n%s", err, out)
	}
}

// A disk that is full fails the command and loses none before it; with space
// again it goes on without being opened again.
func TestFullDisk(t *testing.T) {
	dir := os.Getenv(diskEnv)
	if dir == "" {
		enter := []string{"unshare", "--user", "--map-root-user", "--mount"}
		if out, err := exec.Command(enter[0], append(enter[1:], "true")...).CombinedOutput(); err != nil {
			t.Skipf("a disk of its own takes a mount namespace: %v: %s", err, out)
		}
		inChild(t, "TestFullDisk", t.TempDir(), enter...)
		return
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "orch.db")
	s := must[*Store](t)(Open(t.Context(), path))
	accepted, err := fill(t, s, 0)
	tells(t, err, path, "disk is full", "free some space", "send again")
	holds(t, s, accepted)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	accepted, err = fill(t, s, accepted)
	tells(t, err, "disk is full")
	holds(t, s, accepted)
	if err := s.Close(); err != nil {
		t.Logf("close: %v", err)
	}
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT, "size=4m"); err != nil {
		t.Fatal(err)
	}
	s = must[*Store](t)(Open(t.Context(), path))
	holds(t, s, accepted)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), path)
	tells(t, err, path, "can't be written", "make the file and its folder writable")
}

// A limit on the size of files is met like a full disk.
func TestFileSizeLimit(t *testing.T) {
	dir := os.Getenv(diskEnv)
	if dir == "" {
		inChild(t, "TestFileSizeLimit", t.TempDir())
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	limit := func(size uint64) {
		t.Helper()
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: 1 << 40}); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "orch.db")
	s := must[*Store](t)(Open(t.Context(), path))
	limit(1 << 20)
	accepted, err := fill(t, s, 0)
	tells(t, err, path, "limit on the size of files", "send again")
	holds(t, s, accepted)
	limit(1 << 30)
	result, err := s.commit(t, "again", "d", batch("d", int64(accepted), 1, "again"), nil)
	if err != nil || result.Receipt.Sequence != int64(accepted+1) {
		t.Errorf("with more room: %+v, %v", result.Receipt, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = must[*Store](t)(Open(t.Context(), path))
	holds(t, s, accepted+1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
