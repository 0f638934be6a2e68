package replaytest_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/replaypeer/replaypeer/pkg/replaytest"
)

func TestMain(m *testing.M) { os.Exit(replaytest.Main(m)) }

// A client that is given its connection speaks to a peer in the same process.
func TestExampleStart(t *testing.T) {
	agent := replaytest.Start(t, "testdata/hello.ndjson", replaytest.Options{})
	fmt.Fprintln(agent.Stdin, `{"id":7,"method":"hello","params":{"name":"world"}}`)
	line, err := bufio.NewReader(agent.Stdout).ReadString('\n')
	if err != nil || line != `{"id":7,"result":{"text":"hello, world"}}`+"\n" {
		t.Errorf("answer %q, %v", line, err)
	}
}

// A client that starts the provider itself finds the fake on the PATH.
func TestExampleFake(t *testing.T) {
	fake := replaytest.Fake(t, "codex", "testdata/hello.ndjson", replaytest.Options{})
	t.Setenv("PATH", filepath.Dir(fake)+string(os.PathListSeparator)+os.Getenv("PATH"))

	cmd := exec.Command("codex", "app-server")
	cmd.Stdin = strings.NewReader(`{"id":7,"method":"hello","params":{"name":"world"}}` + "\n")
	out, err := cmd.Output()
	if err != nil || string(out) != `{"id":7,"result":{"text":"hello, world"}}`+"\n" {
		t.Errorf("answer %q, %v", out, err)
	}
}
