//go:build unix

package record

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/replaypeer/replaypeer/pkg/envelope"
)

// traffic is a long stream of frames, with huge lines, binary noise and blank
// lines among them, in pieces of odd sizes. It is made while it is read.
type traffic struct {
	frames, huge int
	rng          *rand.Rand
	made         int // frames so far
	rest         []byte
	sum          hash.Hash
	bytes        int64
}

const hugeLine = 20 << 20

func (g *traffic) Read(b []byte) (int, error) {
	if len(g.rest) == 0 {
		if g.made == g.frames {
			return 0, io.EOF
		}
		g.rest = g.more(g.rest[:0])
	}
	n := min(len(b), len(g.rest), 1+g.rng.IntN(1<<g.rng.IntN(18)))
	copy(b, g.rest[:n])
	g.rest = g.rest[n:]
	g.sum.Write(b[:n])
	g.bytes += int64(n)
	return n, nil
}

// more appends some frames, and now and then something else.
func (g *traffic) more(dst []byte) []byte {
	for range min(2000, g.frames-g.made) {
		dst = fmt.Appendf(dst, `{"method":"m","params":{"n":%d}}`+"\n", g.made)
		g.made++
	}
	switch g.rng.IntN(40) {
	case 0:
		noise := make([]byte, 10_000)
		for i := range noise {
			noise[i] = byte(g.rng.Uint32())
		}
		dst = append(append(dst, noise...), '\n')
	case 1:
		dst = append(dst, "\r\n\n \n"...)
	}
	if g.huge > 0 && g.made >= g.frames/(g.huge+1) {
		g.huge--
		dst = append(append(append(dst, `{"method":"huge","params":"`...), bytes.Repeat([]byte("x"), hugeLine)...), "\"}\n"...)
	}
	return dst
}

// sink is a client that adds up what it gets.
type sink struct {
	sum   hash.Hash
	bytes int64
}

func (s *sink) Write(b []byte) (int, error) {
	s.bytes += int64(len(b))
	return s.sum.Write(b)
}

// full says whether the tests below run at their full size, which .ci/run asks
// for; otherwise they take a tenth of it or less.
var full = os.Getenv("RECORD_TESTS") == "full"

// TestMillionFrames passes a million frames both ways, byte for byte, and
// records every one of them, in order.
func TestMillionFrames(t *testing.T) {
	frames, huge := 50_000, 1
	switch {
	case full:
		frames, huge = 1_000_000, 3
	case raced:
		frames = 5_000
	}
	in := &traffic{frames: frames, huge: huge, rng: rand.New(rand.NewPCG(3, 4)), sum: sha256.New()}
	out := &sink{sum: sha256.New()}
	path := target(t)
	start := time.Now()
	if _, err := (&pipes{stdin: in}).recordTo(t, "cat", Options{Path: path}, closing{out}); err != nil {
		t.Fatal(err)
	}
	if in.bytes != out.bytes || !bytes.Equal(in.sum.Sum(nil), out.sum.Sum(nil)) {
		t.Errorf("client got %d bytes, want the same %d", out.bytes, in.bytes)
	}
	took := time.Since(start)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := envelope.NewReader(path, f)
	if _, err := r.Header(); err != nil {
		t.Fatal(err)
	}
	var sent, got, large int
	for {
		e, err := r.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			break
		}
		count, frame := &sent, []byte(nil)
		switch e := e.(type) {
		case *envelope.ExpectOutbound:
			frame = e.Frame
		case *envelope.EmitInbound:
			count, frame = &got, e.Frame
		}
		switch {
		case len(frame) > hugeLine:
			large++
		case bytes.HasPrefix(frame, []byte(`{"method":"m",`)):
			if want := fmt.Sprintf(`{"method":"m","params":{"n":%d}}`, *count); string(frame) != want {
				t.Fatalf("frame %s, want %s", frame, want)
			}
			*count++
		}
	}
	if sent != frames || got != frames || large != 2*huge {
		t.Errorf("recorded %d out, %d in, %d huge: want %d, %d, %d", sent, got, large, frames, frames, 2*huge)
	}
	t.Logf("%d frames, %d MB each way in %v", frames, in.bytes>>20, took.Round(time.Millisecond))
}

// TestKilled kills the recorder or the provider a hundred times, at any
// moment. What is left is a readable prefix that is marked as one, or a
// finished transcript, and no process.
func TestKilled(t *testing.T) {
	rounds := 10
	if full {
		rounds = 100
	}
	rng := rand.New(rand.NewPCG(5, 6))
	var prefixes, finished, none, entries int
	for i := range rounds {
		k := kill(t, rng, i%2 == 0)
		switch {
		case k.none:
			none++
		case k.incomplete:
			prefixes++
		default:
			finished++
		}
		entries += k.entries
	}
	t.Logf("%d marked prefixes, %d finished transcripts, %d killed before there was a file; %d entries", prefixes, finished, none, entries)
	if prefixes == 0 || finished == 0 || entries == 0 {
		t.Error("the moments were not random enough")
	}
}

// killed is what one kill left.
type killed struct {
	none, incomplete bool
	entries          int
}

func kill(t *testing.T, rng *rand.Rand, recorder bool) killed {
	t.Helper()
	path := target(t)
	pidFile := filepath.Join(t.TempDir(), "pid")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "RECORD_ROLE=recorder-of:"+path+":chatty:"+pidFile, "GORACE=atexit_sleep_ms=0")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var client sync.WaitGroup
	client.Go(func() { // asks until nobody is there
		for n := 0; ; n++ {
			if _, err := fmt.Fprintf(stdin, `{"id":%d,"method":"ask"}`+"\n", n); err != nil {
				return
			}
		}
	})
	answers := bufio.NewReader(stdout)
	if recorder && rng.IntN(4) == 0 {
		time.Sleep(time.Duration(rng.IntN(15_000)) * time.Microsecond) // maybe before it is up
	} else {
		for range rng.IntN(3000) {
			if _, err := answers.ReadString('\n'); err != nil {
				break
			}
		}
	}
	pid := providerPid(pidFile, !recorder)
	if recorder {
		cmd.Process.Kill()
	} else {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	io.Copy(io.Discard, answers) // ends when recorder and provider are gone
	stdin.Close()
	client.Wait()
	cmd.Wait()
	if pid = max(pid, providerPid(pidFile, false)); pid > 0 {
		wantGone(t, pid)
	}
	return leftBy(t, path, recorder)
}

// providerPid reads the file that the provider writes first.
func providerPid(file string, wait bool) (pid int) {
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		b, _ := os.ReadFile(file)
		if n, _ := fmt.Sscanf(string(b), "%d\n", &pid); n == 1 || !wait || time.Now().After(end) {
			return pid
		}
	}
}

func wantGone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); syscall.Kill(pid, 0) == nil && !zombie(pid); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("process %d is an orphan", pid)
		}
	}
}

// zombie says whether a process has ended and only waits for init.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, ok := strings.Cut(string(stat), ") ")
	return err == nil && ok && after[0] == 'Z'
}

// leftBy reads what there is. A recorder that was killed leaves its partial
// file, one whose provider was killed a finished transcript.
func leftBy(t *testing.T, path string, recorder bool) killed {
	t.Helper()
	partial := filepath.Join(filepath.Dir(path), ".out.ndjson.partial")
	file := path
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if !recorder {
			t.Fatalf("the recorder lives and left %s", names(t, path))
		}
		if file = partial; !exists(partial) {
			return killed{none: true}
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// The last line may be cut off: a recording of a crash ends before it.
	tr, err := envelope.Read(file, bytes.NewReader(data[:bytes.LastIndexByte(data, '\n')+1]))
	if err != nil {
		t.Fatalf("%v\n%.300s", err, data)
	}
	k := killed{incomplete: gjson.GetBytes(tr.Header.Metadata, "incomplete").Bool(), entries: len(tr.Entries)}
	if k.incomplete != (file == partial) {
		t.Errorf("%s: metadata %s", file, tr.Header.Metadata)
	}
	asked, answered := 0, 0
	for i, e := range tr.Entries {
		switch e := e.(type) {
		case *envelope.ExpectOutbound:
			wantFrame(t, i, e.Frame, `{"id":%d,"method":"ask"}`, asked)
			asked++
		case *envelope.EmitInbound:
			wantFrame(t, i, e.Frame, `{"id":%d,"result":{}}`, answered)
			if answered++; answered > asked {
				t.Fatalf("entry %d answers what was not asked", i)
			}
		case *envelope.RuntimeExit:
			if got := string(e.Error); i != len(tr.Entries)-1 || e.Status != envelope.Failed || got != `{"signal":"SIGKILL"}` {
				t.Errorf("entry %d: exit %s %s", i, e.Status, got)
			}
		}
	}
	return k
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func wantFrame(t *testing.T, i int, frame []byte, format string, n int) {
	t.Helper()
	if want := fmt.Sprintf(format, n); string(frame) != want {
		t.Fatalf("entry %d: %s, want %s", i, frame, want)
	}
}

// chatty is a provider that leaves its pid in a file and answers as fast as it
// can. It outlives the end of its input.
func chatty(pidFile string) {
	os.WriteFile(pidFile, fmt.Appendf(nil, "%d\n", os.Getpid()), 0o666)
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		if id, _, ok := strings.Cut(strings.TrimPrefix(in.Text(), `{"id":`), ","); ok {
			fmt.Printf("{\"id\":%s,\"result\":{}}\n", id)
		}
	}
	time.Sleep(time.Hour)
}
