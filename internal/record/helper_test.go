//go:build unix

package record

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/replaypeer/replaypeer/internal/proc"
	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

// TestMain lets the test binary be the provider, or a recorder to be killed.
func TestMain(m *testing.M) {
	if r := os.Getenv("RECORD_ROLE"); r != "" {
		role(r)
		return
	}
	goleak.VerifyTestMain(m)
}

// role is a child process.
func role(name string) {
	name, arg, _ := strings.Cut(name, ":")
	if len(os.Args) > 1 && name != "versioned" && name != "server" { // asked for a version
		os.Exit(2)
	}
	switch name {
	case "cat": // answers every byte with itself, in odd pieces, as stderr does
		buf := make([]byte, 3001)
		for {
			n, err := os.Stdin.Read(buf)
			os.Stdout.Write(buf[:n/3])
			os.Stdout.Write(buf[n/3 : n])
			if err != nil {
				return
			}
		}
	case "provider": // answers every request, then ends as told
		in := bufio.NewScanner(os.Stdin)
		for n := 0; in.Scan(); n++ {
			if id, _, ok := strings.Cut(strings.TrimPrefix(in.Text(), `{"id":`), ","); ok && id != in.Text() {
				fmt.Printf("{\"id\":%s,\"result\":{\"cwd\":%q}}\n", id, mustGetwd())
			}
		}
		end(arg)
	case "noisy":
		fmt.Print("starting\n\n{\"method\":\"ready\"}\nhalf {")
		fmt.Fprintln(os.Stderr, "warning: \xff", mustGetwd())
		os.Exit(3)
	case "waiter": // ends by a signal only
		signal.Reset(syscall.SIGTERM)
		fmt.Println(`{"method":"ready"}`)
		time.Sleep(time.Hour)
	case "versioned": // says nothing of its version but when asked
		if len(os.Args) > 1 {
			fmt.Println("codex-cli 9.8.7")
			return
		}
		fmt.Println(`{"method":"ready"}`)
		io.Copy(io.Discard, os.Stdin)
	case "script": // reads what it is sent, then writes what a file says
		script(arg)
	case "server":
		server(arg)
	case "chatty":
		chatty(arg)
	case "recorder-of": // records another role into the file
		file, role, _ := strings.Cut(arg, ":")
		os.Setenv("RECORD_ROLE", role)
		Stdio(context.Background(), Options{Path: file, Flavor: flavors.Codex, Scenario: "crash"},
			proc.Config{Path: os.Args[0]}, Streams{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr})
	case "recorder": // records a waiter into the file
		os.Setenv("RECORD_ROLE", "waiter")
		Stdio(context.Background(), Options{Path: arg, Flavor: flavors.Codex, Scenario: "crash"},
			proc.Config{Path: os.Args[0]}, Streams{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr})
	}
}

// script waits for as many lines as the first line of the file says, then
// writes the others: to stderr those that begin with E. A line "W" waits for
// one more line.
func script(file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	first, rest, _ := strings.Cut(string(data), "\n")
	in := bufio.NewReader(os.Stdin)
	n := 0
	fmt.Sscan(first, &n)
	for range n {
		in.ReadString('\n')
	}
	for line := range strings.Lines(rest) {
		switch line[0] {
		case 'E':
			os.Stderr.WriteString(line[1:])
		case 'W':
			in.ReadString('\n')
		default:
			os.Stdout.WriteString(line[1:])
		}
	}
	io.Copy(io.Discard, in)
}

func mustGetwd() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	return dir
}

func end(how string) {
	switch how {
	case "kill":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Minute)
	case "":
	default:
		var code int
		fmt.Sscan(how, &code)
		os.Exit(code)
	}
}

// pipes is a client: what it sends, and what it gets.
type pipes struct {
	stdin          io.Reader
	stdout, stderr bytes.Buffer
}

type closing struct{ io.Writer }

func (closing) Close() error { return nil }

// hangUp is a client that closes its side when the provider's output ends.
type hangUp struct {
	io.Writer
	io.Closer
}

// record runs a role under the tap with the client's whole input.
func (p *pipes) record(t *testing.T, role string, o Options) (Result, error) {
	t.Helper()
	return p.recordTo(t, role, o, closing{&p.stdout})
}

func (p *pipes) recordTo(t *testing.T, role string, o Options, stdout io.WriteCloser) (Result, error) {
	t.Helper()
	o.Flavor = flavors.Codex
	o.Scenario = cmp.Or(o.Scenario, "test")
	return Stdio(t.Context(), o,
		proc.Config{Path: os.Args[0], Env: append(os.Environ(), "RECORD_ROLE="+role, "GORACE=atexit_sleep_ms=0")},
		Streams{Stdin: p.stdin, Stdout: stdout, Stderr: &p.stderr, Signals: []os.Signal{syscall.SIGTERM}})
}

func send(lines ...string) *pipes {
	return &pipes{stdin: strings.NewReader(strings.Join(lines, "\n") + "\n")}
}

func target(t *testing.T) string { return filepath.Join(t.TempDir(), "out.ndjson") }

func read(t *testing.T, path string) *envelope.Transcript {
	t.Helper()
	tr, err := envelope.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// show is a transcript's entries, one short line each.
func show(t *testing.T, path string) string {
	t.Helper()
	var b strings.Builder
	for _, e := range read(t, path).Entries {
		switch e := e.(type) {
		case *envelope.ExpectOutbound:
			fmt.Fprintf(&b, "out %s %s\n", e.Label, e.Frame)
		case *envelope.EmitInbound:
			fmt.Fprintf(&b, "in %s%s %s\n", e.Label, strings.TrimSuffix(" "+string(e.Channel), " "), e.Frame)
		case *envelope.RuntimeExit:
			fmt.Fprintf(&b, "exit %s %s\n", e.Status, e.Error)
		}
	}
	return b.String()
}

// entries lists the names in the directory of the file.
func names(t *testing.T, path string) string {
	t.Helper()
	list, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range list {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}
