package agent

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/replaypeer/replaypeer/internal/orch"
)

const scriptVariable = "AGENT_TEST_SCRIPT"

// TestMain plays a provider when the test binary is started as one.
func TestMain(m *testing.M) {
	if script := os.Getenv(scriptVariable); script != "" {
		os.Exit(playScript(script))
	}
	goleak.VerifyTestMain(m)
}

// playScript is a provider that does what a script says, a line at a time:
//
//	> TEXT        reads a line, which must be TEXT to the byte; else it refuses
//	< TEXT        writes TEXT and a line end
//	half TEXT     writes TEXT without a line end
//	big N TEXT    writes TEXT with N times x in place of its %s
//	stderr TEXT   writes a line on stderr
//	eof           reads until stdin ends
//	exit N        exits
//	args TEXT     wants its arguments to be TEXT
//
// In place of one script for every start there may be FILE.1, FILE.2, …, one
// for each.
func playScript(file string) int {
	data, err := os.ReadFile(file)
	for n := 1; os.IsNotExist(err) && n < 10; n++ {
		numbered := fmt.Sprintf("%s.%d", file, n)
		if data, err = os.ReadFile(numbered); err == nil {
			err = os.Remove(numbered)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	in := bufio.NewReader(os.Stdin)
	for line := range strings.Lines(string(data)) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch verb {
		case "":
		case ">":
			got, err := in.ReadString('\n')
			if got = strings.TrimSuffix(got, "\n"); got != rest {
				fmt.Fprintf(os.Stderr, "outbound mismatch (%v)\n want %s\n got  %s\n", err, rest, got)
				id, _, _ := strings.Cut(strings.TrimPrefix(got, `{"id":`), ",")
				fmt.Printf(`{"id":%s,"error":{"code":-32603,"message":"outbound mismatch"}}`+"\n", id)
				return 97
			}
		case "<":
			fmt.Println(rest)
		case "half":
			fmt.Print(rest)
		case "big":
			count, text, _ := strings.Cut(rest, " ")
			n, _ := strconv.Atoi(count)
			fmt.Printf(text+"\n", strings.Repeat("x", n))
		case "args":
			if got := strings.Join(os.Args[1:], " "); got != rest {
				fmt.Fprintf(os.Stderr, "arguments mismatch\n want %s\n got  %s\n", rest, got)
				return 97
			}
		case "stderr":
			fmt.Fprintln(os.Stderr, rest)
		case "eof":
			io.Copy(io.Discard, in)
		case "exit":
			n, _ := strconv.Atoi(rest)
			return n
		default:
			fmt.Fprintf(os.Stderr, "bad script line: %s\n", line)
			return 2
		}
	}
	return 0
}

const (
	hello = `> {"id":1,"method":"initialize","params":{"clientInfo":{"name":"replaypeer_orchestrator","title":"replaypeer orchestrator","version":"1"},"capabilities":{"experimentalApi":true}}}
< {"id":1,"result":{"userAgent":"replaypeer_orchestrator/%s (Linux; x86_64)"}}
> {"method":"initialized"}
`
	startThread = `> {"id":2,"method":"thread/start","params":{"cwd":"/w","model":"m"}}
< {"id":2,"result":{"thread":{"id":"T","turns":[]},"model":"m"}}
`
	turnStarted   = `{"method":"turn/started","params":{"threadId":"%s","turn":{"id":"%s","status":"inProgress"}}}`
	turnCompleted = `{"method":"turn/completed","params":{"threadId":"%s","turn":{"id":"%s","status":"%s","error":null}}}`
)

// turnStart is the call for a turn in full access, and its answer.
func turnStart(id int, text, turn string) string {
	return fmt.Sprintf(`> {"id":%d,"method":"turn/start","params":{"threadId":"T","input":[{"type":"text","text":"%s"}],"cwd":"/w","model":"m","approvalPolicy":"never","approvalsReviewer":"user","sandboxPolicy":{"type":"dangerFullAccess"}}}
< {"id":%d,"result":{"turn":{"id":"%s","items":[],"status":"inProgress"}}}
`, id, text, id, turn)
}

var options = orch.ThreadOptions{Cwd: "/w", Model: "m", RuntimeMode: "full-access", InteractionMode: "default"}

func turn(text string) orch.TurnInput {
	return orch.TurnInput{NativeThreadID: "T", Text: text, Options: options}
}

// testContext bounds a test, far beyond what it takes.
func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func fakeCodex(t *testing.T, version, script string) orch.Agent {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, []byte(fmt.Sprintf(hello, version)+script), 0o600); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return NewCodex(CodexConfig{Command: []string{exe}, Env: append(os.Environ(), scriptVariable+"="+file, "GORACE=atexit_sleep_ms=0")})
}

// openFake opens a session on a provider that plays hello and the script.
func openFake(t *testing.T, version, script string) *codexSession {
	t.Helper()
	s, err := fakeCodex(t, version, script).Open(testContext(t), orch.SessionConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return s.(*codexSession)
}

// finish closes the session and returns all events that were not read.
func finish(t *testing.T, s *codexSession) []orch.ProviderEvent {
	t.Helper()
	if err := s.Close(testContext(t)); err != nil {
		t.Error(err)
	}
	return drain(s)
}

func drain(s *codexSession) []orch.ProviderEvent {
	var events []orch.ProviderEvent
	for e := range s.Events() {
		events = append(events, e)
	}
	<-s.events.done
	return events
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
