//go:build unix

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/zricethezav/gitleaks/v8/detect"
)

// lint measures transcript-lint over a corpus it makes: without the rules about
// secrets, with them, and gitleaks alone over a part of the same bytes.
func (b *bench) lint(size, sample int64) {
	dir := filepath.Join(b.dir, "corpus")
	if err := os.Mkdir(dir, 0o755); err != nil {
		fail(err)
	}
	made := measure(b.self, "corpus", dir, strconv.FormatInt(size, 10))
	planted := strings.Fields(string(made.out))
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		fail(errors.Join(err, errors.New("the corpus is empty")))
	}
	total := bytesOf(files)
	fmt.Printf("lint: a corpus of %d MB, a file of each of %d transcripts, strings distinct in every copy, %d secrets planted\n",
		total/1e6, len(files), len(planted))

	plain := measure(b.linter, append([]string{"check", "--format", "json", "--max-age", "off", "--disable", "TL046", "--disable", "TL047"}, files...)...)
	fmt.Printf("lint, without the secret rules: %s per core, peak resident %s (target ≥ 100 MB/s)\n", plain.rate(total), plain.resident())
	whole := measure(b.linter, append([]string{"check", "--format", "json", "--max-age", "off"}, files...)...)

	part := files[:1]
	for i := range files {
		if bytesOf(files[:i+1]) <= sample {
			part = files[:i+1]
		}
	}
	theirs := measure(b.self, append([]string{"gitleaks"}, part...)...)
	size = bytesOf(part)
	fmt.Printf("lint, with the secret rules: %s per core, peak resident %s; gitleaks alone: %s, over %d MB of the same files, peak %s; %.1f times as fast (target ≥ 3)\n",
		whole.rate(total), whole.resident(), theirs.rate(size), size/1e6, theirs.resident(),
		theirs.cpu.Seconds()/float64(size)/(whole.cpu.Seconds()/float64(total)))
	compare(planted, whole.out, theirs.out, part)
}

func bytesOf(files []string) (n int64) {
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			fail(err)
		}
		n += info.Size()
	}
	return n
}

// measured is what a process took: processor time, so that the figure is per
// core however many it used and whatever else the machine did.
type measured struct {
	cpu   time.Duration
	peak  int64 // resident, in KiB
	floor int64 // what the peak is at the least: ours when it was started
	out   []byte
}

func (m measured) rate(n int64) string {
	return fmt.Sprintf("%.1f MB/s", float64(n)/1e6/m.cpu.Seconds())
}

// resident is the peak, as far as it can be told: a child starts with that of
// its parent.
func (m measured) resident() string {
	if m.peak <= m.floor {
		return fmt.Sprintf("at most %d MiB", m.peak>>10)
	}
	return fmt.Sprintf("%d MiB", m.peak>>10)
}

func measure(name string, args ...string) measured {
	cmd := exec.Command(name, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		fail(err)
	}
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 3) { // 3: there are findings
		fail(fmt.Errorf("%s: %w", name, err))
	}
	s := cmd.ProcessState
	return measured{s.UserTime() + s.SystemTime(), s.SysUsage().(*syscall.Rusage).Maxrss, own.Maxrss, out.Bytes()}
}

// gitleaks is the plain scanner, as a process of its own: a secret a line, as
// FILE TAB RULE TAB SECRET. It reads files in the pieces it reads them in by itself.
func gitleaks(files []string) {
	d, err := detect.NewDetectorDefaultConfig()
	if err != nil {
		fail(err)
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			fail(err)
		}
		//lint:ignore SA1019 the same scan, with fewer parts of its own
		found, err := d.DetectReader(f, 100)
		f.Close()
		if err != nil {
			fail(err)
		}
		for _, x := range found {
			fmt.Printf("%s\t%s\t%s\n", file, x.RuleID, strings.NewReplacer("\n", " ", "\t", " ").Replace(x.Secret))
		}
	}
}

// compare wants every planted secret found, by us in all files and by gitleaks
// in its part, and nothing that gitleaks alone has found.
func compare(planted []string, ours, theirs []byte, part []string) {
	told := map[string]bool{} // by checksum, which is all that findings tell
	findings := 0
	for line := range bytes.Lines(ours) {
		var f struct{ Rule, File, Message string }
		if json.Unmarshal(line, &f) == nil && (f.Rule == "TL046" || f.Rule == "TL047") {
			if _, sum, ok := strings.Cut(f.Message, "sha256 "); ok {
				told[strings.TrimSuffix(sum, ")")] = true
			}
			if slices.Contains(part, f.File) {
				findings++
			}
		}
	}
	known := func(secret string) bool {
		sum := sha256.Sum256([]byte(secret))
		return told[hex.EncodeToString(sum[:4])]
	}
	missed := 0
	for _, secret := range planted {
		if !known(secret) {
			missed++
		}
	}
	all, more := 0, map[string]int{}
	for line := range strings.Lines(string(theirs)) {
		field := strings.SplitN(strings.TrimSpace(line), "\t", 3)
		all++
		if len(field) < 3 || !known(field[2]) {
			more[field[1]]++
		}
	}
	fmt.Printf("lint, findings: %d of %d planted secrets missed; in the files of gitleaks: ours %d, gitleaks %d, of gitleaks alone %v (target: none)\n",
		missed, len(planted), findings, all, more)
	if missed > 0 || len(more) > 0 {
		fail(errors.New("lint: secrets were missed"))
	}
}
