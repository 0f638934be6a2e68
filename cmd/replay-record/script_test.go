package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/tidwall/gjson"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"replay-record": main,
		"provider":      provider,
		"mirror":        func() { io.Copy(os.Stdout, os.Stdin) },
		"post":          post,
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", "atexit_sleep_ms=0") // children under the race detector dawdle
			return nil
		},
	})
}

// post URL BODY prints the answer's body.
func post() {
	res, err := http.Post(os.Args[1], "application/json", strings.NewReader(os.Args[2]))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	io.Copy(os.Stdout, res.Body)
}

// provider speaks a little of Codex: it answers every request until its stdin
// ends, then exits with the code given, or ends by SIGTERM.
func provider() {
	how := ""
	if len(os.Args) > 1 {
		how = os.Args[1]
	}
	if how == "--version" {
		fmt.Println("codex-cli 0.171.0")
		return
	}
	dir, _ := filepath.Abs(".")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		if id := gjson.Get(in.Text(), "id"); id.Exists() {
			fmt.Printf("{\"id\":%s,\"result\":{\"cwd\":%q,\"home\":%q}}\n", id.Raw, dir, os.Getenv("HOME"))
		}
	}
	fmt.Fprintln(os.Stderr, "goodbye from", dir)
	if how == "term" {
		self, _ := os.FindProcess(os.Getpid())
		self.Signal(syscall.SIGTERM)
		time.Sleep(time.Minute)
	}
	code, _ := strconv.Atoi(how)
	os.Exit(code)
}
