package replaypeer

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	commandList = regexp.MustCompile(`(?ms)^COMMANDS:\n(.*?)\n\n`)
	commandName = regexp.MustCompile(`(?m)^   ([a-z]+) `)
)

// TestHelp holds what everybody looks for in the help of a tool: what it does,
// how it is called, its exit codes and an example. And bash completes what the
// help lists.
func TestHelp(t *testing.T) {
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, "./cmd/...").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for _, name := range []string{"orch-run", "replay-peer", "replay-record", "transcript-lint"} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(bin, name)
			text := help(t, program)
			for _, want := range []string{"USAGE:", "Exit codes:", "Examples:", "--version"} {
				if !strings.Contains(text, want) {
					t.Errorf("%s --help lacks %q:\n%s", name, want, text)
				}
			}
			list := commandList.FindString(text)
			var commands []string
			for _, m := range commandName.FindAllStringSubmatch(list, -1) {
				commands = append(commands, m[1])
				text := help(t, program, m[1])
				if !strings.Contains(text, "USAGE:") || !strings.Contains(text, "Example") {
					t.Errorf("%s %s --help lacks usage or example:\n%s", name, m[1], text)
				}
				for line := range strings.Lines(text) {
					if words := strings.Fields(line); len(words) == 2 && strings.HasPrefix(words[0], "--") && words[1] == "value" {
						t.Errorf("%s %s: flag %s says nothing", name, m[1], words[0])
					}
				}
			}
			if len(commands) < 4 {
				t.Fatalf("commands %q in:\n%s", commands, text)
			}
			if got := complete(t, bin, name, ""); !slices.Equal(got, commands) {
				t.Errorf("completed %q: want %q", got, commands)
			}
		})
	}
	// Behind "--" stand another command's flags. Nothing is run to find them.
	mark := filepath.Join(bin, "mark")
	command := []string{"orch-run", "exec", "--peer", "codex=transcripts/simple/codex.ndjson", "--", "touch", mark}
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"orch-run", "ex"}, "exec"},
		{[]string{"orch-run", "exec", "--pe"}, "--peer"},
		{append(command, "--"), ""},
		{[]string{"replay-peer", "serve", "--idle"}, "--idle-timeout"},
		{[]string{"transcript-lint", "check", "--changed"}, "--changed-since"},
	} {
		if got := strings.Join(complete(t, bin, c.words...), " "); got != c.want {
			t.Errorf("%q is completed to %q: want %q", c.words, got, c.want)
		}
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("completion ran the command")
	}
}

func help(t *testing.T, program string, command ...string) string {
	t.Helper()
	cmd := exec.Command(program, append(command, "--help")...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", cmd, err)
	}
	return string(out)
}

// complete returns what bash completes the last word to.
func complete(t *testing.T, bin string, words ...string) []string {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skipf("SKIPPED, completion was not tried: %v", err)
	}
	script := `PATH=$1:$PATH; shift
source <("$1" completion bash)
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_${1//-/_}
printf '%s\n' "${COMPREPLY[@]}"`
	out, err := exec.Command(bash, append([]string{"-euc", script, "bash", bin}, words...)...).Output()
	if err != nil {
		t.Fatalf("complete %q: %v", words, err)
	}
	return strings.Fields(string(out))
}
