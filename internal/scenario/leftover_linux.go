package scenario

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// leftover describes the processes that still run in a directory, or that
// carry the mark of a run in their environment.
func leftover(dir, mark string) []string {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []string
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		// A process that ends meanwhile, or is not ours to look at, reads as nothing.
		cwd, _ := os.Readlink(filepath.Join("/proc", e.Name(), "cwd"))
		env, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if !inside(cwd, dir) && !bytes.Contains(append([]byte{0}, env...), []byte("\x00"+mark+"\x00")) {
			continue
		}
		args, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		command := strings.TrimSpace(strings.ReplaceAll(string(args), "\x00", " "))
		found = append(found, fmt.Sprintf("process %d: %s", pid, shorten(command, 200)))
	}
	return found
}

func inside(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+string(filepath.Separator))
}
