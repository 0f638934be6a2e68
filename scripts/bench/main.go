//go:build unix

// Command bench measures replay-peer against a bare Go child that echoes
// lines, and the recorder's tap around that child, and transcript-lint against
// gitleaks, in one run, and prints the ratios. It makes its own transcripts.
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "gitleaks" {
		gitleaks(os.Args[2:])
		return
	}
	if len(os.Args) == 4 && os.Args[1] == "corpus" {
		makeCorpus(os.Args[2], os.Args[3])
		return
	}
	echo := flag.String("echo", "echo", "the bare child, of scripts/bench/echo")
	peer := flag.String("peer", "replay-peer", "the replay-peer binary")
	record := flag.String("record", "replay-record", "the replay-record binary")
	linter := flag.String("lint", "transcript-lint", "the transcript-lint binary")
	corpus := flag.Int64("corpus", 500e6, "size of the linter's corpus, in bytes; 0 skips it")
	sample := flag.Int64("sample", 25e6, "how much of it gitleaks alone reads, about, in bytes")
	only := flag.String("only", "", "lint or store: only that part; peer: only the peer and the tap")
	frames := flag.Int("frames", 300000, "outbound frames of the pipelined run")
	trips := flag.Int("trips", 20000, "round trips of the lock-step run")
	starts := flag.Int("starts", 40, "process starts")
	big := flag.Int64("big", 1<<30, "size of the large transcript, in bytes; 0 skips it")
	profile := flag.String("profile", "", "a file for the processor profile of this program, which holds the event store")
	flag.Parse()
	b := &bench{echo: *echo, peer: *peer, record: *record, linter: *linter}
	var err error
	if b.dir, err = os.MkdirTemp("", "replay-bench-"); err != nil {
		fail(err)
	}
	defer os.RemoveAll(b.dir)
	if b.self, err = os.Executable(); err != nil {
		fail(err)
	}
	if *only == "" || *only == "peer" {
		b.coldStart(*starts)
		b.pipelined(*frames)
		b.lockStep(*trips)
		b.tap(*trips)
		if *big > 0 {
			b.large(*big)
		}
	}
	if (*only == "" || *only == "lint") && *corpus > 0 {
		b.lint(*corpus, *sample)
	}
	if *only == "" || *only == "store" {
		stop := profiled(*profile)
		b.store()
		stop()
	}
}

// profiled starts a processor profile; an empty path is none.
func profiled(path string) (stop func()) {
	if path == "" {
		return func() {}
	}
	f, err := os.Create(path)
	if err == nil {
		err = pprof.StartCPUProfile(f)
	}
	if err != nil {
		fail(err)
	}
	return func() {
		pprof.StopCPUProfile()
		if err := f.Close(); err != nil {
			fail(err)
		}
	}
}

type bench struct{ echo, peer, record, linter, self, dir string }

const header = `{"type":"transcript_start","provider":"codex","protocol":"codex.app-server","version":"0.0.0","scenario":"bench"}` + "\n"

func request(id int) string {
	return fmt.Sprintf(`{"id":%d,"method":"turn/start","params":{"threadId":"019dadea-f49b-7012-aa03-534f1bfc3181","cwd":"/work","model":"scripted-model","approvalPolicy":"never","sandboxPolicy":{"type":"dangerFullAccess"},"input":[{"type":"text","text":"Respond with exactly: frame number %d of the benchmark, with some more text to make it as long as usual"}]}}`, id, id)
}

func response(id int) string {
	return fmt.Sprintf(`{"id":%d,"result":{"turn":{"id":"019dadea-f4a8-75f0-9e95-07b357d41cfe","items":[],"status":"inProgress","error":null}}}`, id)
}

// script writes a transcript of n request and answer pairs.
func (b *bench) script(name string, n int, pad string) string {
	path := filepath.Join(b.dir, name)
	f, err := os.Create(path)
	if err != nil {
		fail(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	io.WriteString(w, header)
	for i := 1; i <= n; i++ {
		fmt.Fprintf(w, `{"type":"expect_outbound","label":"turn/start","frame":%s}`+"\n", request(i))
		fmt.Fprintf(w, `{"type":"emit_inbound","label":"turn/start","frame":%s}`+"\n", response(i))
		if pad != "" {
			fmt.Fprintf(w, `{"type":"emit_inbound","label":"note","frame":{"method":"note","params":{"text":%q}}}`+"\n", pad)
		}
	}
	if err := w.Flush(); err != nil {
		fail(err)
	}
	if err := f.Close(); err != nil {
		fail(err)
	}
	return path
}

type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(name string, args ...string) *child { return startTo(os.Stderr, name, args...) }

func startTo(stderr io.Writer, name string, args ...string) *child {
	c := &child{cmd: exec.Command(name, args...)}
	c.cmd.Stderr = stderr
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		fail(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		fail(err)
	}
	c.out = bufio.NewReaderSize(out, 1<<20)
	if err := c.cmd.Start(); err != nil {
		fail(err)
	}
	return c
}

func (c *child) end() {
	c.in.Close()
	io.Copy(io.Discard, c.out)
	if err := c.cmd.Wait(); err != nil {
		fail(fmt.Errorf("%v: %w", c.cmd.Args, err))
	}
}

func (c *child) trip(line []byte) {
	if _, err := c.in.Write(line); err != nil {
		fail(err)
	}
	if _, err := c.out.ReadSlice('\n'); err != nil {
		fail(err)
	}
}

func (b *bench) pipelined(n int) {
	path := b.script("pipe.ndjson", n, "")
	var all bytes.Buffer
	for i := 1; i <= n; i++ {
		all.WriteString(request(i))
		all.WriteByte('\n')
	}
	run := func(name string, args ...string) time.Duration {
		c := start(name, args...)
		warm := request(1) + "\n"
		rest := all.Bytes()[len(warm):]
		c.trip([]byte(warm)) // started and loaded
		t := time.Now()
		go func() {
			c.in.Write(rest)
			c.in.Close()
		}()
		lines := 0
		for {
			_, err := c.out.ReadSlice('\n')
			if err != nil {
				break
			}
			lines++
		}
		d := time.Since(t)
		if err := c.cmd.Wait(); err != nil {
			fail(err)
		}
		if lines != n-1 {
			fail(fmt.Errorf("%s: %d answers to %d frames", name, lines, n-1))
		}
		return d
	}
	peer, bare := run(b.peer, "serve", path), run(b.echo)
	fmt.Printf("pipelined: peer %s validated frames/s (each answered), echo %s lines/s, ratio %.2f (target ≥ 300000)\n",
		rate(n, peer), rate(n, bare), float64(bare)/float64(peer))
}

func (b *bench) lockStep(n int) {
	path := b.script("lock.ndjson", n, "")
	peer, echo := start(b.peer, "serve", path), start(b.echo)
	without, with := alternate(n, echo, peer, func(i int) []byte { return []byte(request(i+1) + "\n") })
	m, bare := median(with), median(without)
	fmt.Printf("lock-step round trip p50: peer %.1f µs, echo %.1f µs, ratio %.2f (target ≤ 2.5)\n",
		float64(m)/1e3, float64(bare)/1e3, float64(m)/float64(bare))
}

// alternate times n round trips of two children, in turns, so that both see
// the same machine, and ends them.
func alternate(n int, one, two *child, line func(i int) []byte) (first, second []time.Duration) {
	for i := range n {
		l := line(i)
		t := time.Now()
		one.trip(l)
		between := time.Now()
		two.trip(l)
		first, second = append(first, between.Sub(t)), append(second, time.Since(between))
	}
	one.end()
	two.end()
	return first, second
}

// tap measures what the recorder adds to a frame. A round trip passes it twice.
func (b *bench) tap(n int) {
	bare := start(b.echo)
	tapped := start(b.record, "stdio", "--provider", "codex", "--scenario", "bench", "-o", filepath.Join(b.dir, "tap.ndjson"), "--", b.echo)
	line := func(i int) []byte {
		return []byte(strings.Replace(request(i), fmt.Sprintf(`{"id":%d,`, i), "{", 1) + "\n")
	}
	for i := range 200 { // started and warm
		bare.trip(line(i))
		tapped.trip(line(i))
	}
	without, with := alternate(n, bare, tapped, line)
	for _, p := range []int{50, 99} {
		w, o := percentile(with, p), percentile(without, p)
		target := ""
		if p == 99 {
			target = " (target ≤ 200 µs)"
		}
		fmt.Printf("recorder, lock-step round trip p%d: tapped %.1f µs, bare %.1f µs, ratio %.2f; added per frame %.1f µs%s\n",
			p, float64(w)/1e3, float64(o)/1e3, float64(w)/float64(o), float64(w-o)/2e3, target)
	}
}

func percentile(list []time.Duration, p int) time.Duration {
	s := slices.Sorted(slices.Values(list))
	return s[min(len(s)*p/100, len(s)-1)]
}

func (b *bench) large(size int64) {
	pad := string(bytes.Repeat([]byte("0123456789abcdef"), 1<<10)) // 16 KiB
	n := int(size / int64(len(pad)+len(request(1))+len(response(1))+160))
	path := b.script("large.ndjson", n, pad)
	info, err := os.Stat(path)
	if err != nil {
		fail(err)
	}
	t := time.Now()
	c := start(b.peer, "serve", path)
	peak := 0
	for i := 1; i <= n; i++ {
		c.trip([]byte(request(i) + "\n"))
		if _, err := c.out.ReadSlice('\n'); err != nil { // the note
			fail(err)
		}
		if i%500 == 0 || i == n {
			peak = max(peak, residentKB(c.cmd.Process.Pid))
		}
	}
	c.end()
	fmt.Printf("large transcript: %d MB replayed in %.1f s, peak resident %d MiB (target ≤ 64)\n",
		info.Size()>>20, time.Since(t).Seconds(), peak>>10)
}

// residentKB reads the peak resident set of a process.
func residentKB(pid int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(b, []byte("VmHWM:"))
	n, _ := strconv.Atoi(string(bytes.Fields(append(rest, ' ', '0'))[0]))
	return n
}

func median(list []time.Duration) time.Duration {
	s := append([]time.Duration(nil), list...)
	sort.Slice(s, func(i, j int) bool { return s[i] < s[j] })
	return s[len(s)/2]
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

func rate(n int, d time.Duration) string {
	return strconv.Itoa(int(float64(n) / d.Seconds()))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}
