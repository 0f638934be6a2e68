package replaypeer

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shellSetups make a shell on a terminal complete the four tools, insert all
// that fits at ^T, and at ^G write the line to $TYPED and empty it.
var shellSetups = map[string]struct{ file, text, command string }{
	"bash": {"rc", `
for tool in orch-run replay-peer replay-record transcript-lint; do source <($tool completion bash); done
typed() { printf '%s\n' "$READLINE_LINE" >>"$TYPED"; READLINE_LINE= READLINE_POINT=0; }
bind '"\C-t": insert-completions'
bind -x '"\C-g": typed'
PS1=READY
`, "bash --noprofile --rcfile rc -i"},
	"zsh": {".zshrc", `
autoload -Uz compinit && compinit -u -d dump
for tool in orch-run replay-peer replay-record transcript-lint; do source <($tool completion zsh); done
all() { _main_complete; compstate[insert]=all; compstate[list]=; }
typed() { print -r -- "$BUFFER" >>$TYPED; BUFFER=; }
zle -C all complete-word all
zle -N typed
bindkey '^T' all
bindkey '^G' typed
PS1=READY
`, "zsh -d -i"},
}

// TestCompletion types command lines into real shells. All of them complete
// the same: what the tools name, and files where they name nothing.
func TestCompletion(t *testing.T) {
	bin := buildTools(t)
	cases := []struct {
		line string
		want string // what the last word becomes; "" for nothing
	}{
		{"orch-run ex", "exec"},
		{"orch-run exec --pe", "--peer"},
		{"orch-run exec --peer codex=tu", "codex=turn.ndjson"},
		{"orch-run exec --peer codex=turn.ndjson --report", "--report-dir"},
		{"orch-run exec --peer codex=turn.ndjson -- touch mark --", ""}, // another command's, and nothing is run
		{"orch-run exec --peer codex=turn.ndjson -- touch tu", "turn.ndjson"},
		{"orch-run run --scenario todo", "todo_list"},
		{"orch-run run --scenario=todo", "--scenario=todo_list"},
		{"orch-run run --provider claude --scenario thread_fork_", "thread_fork_detached"},
		{"orch-run live --scenario todo_list --provider claude", "claude claude-acp claude-acp-2"},
		{"orch-run run --dir own --scenario ", "mine"},
		{"orch-run run --dir 'own' --provider ", "codex"},
		{"orch-run live --dir own --scenario mine --source=live --provider ", "codex"},
		{`orch-run run --scenario "todo`, "todo_list"},
		{"orch-run run --provider nobod", ""},
		{"orch-run live --source ", "live scripted-model"},
		{"replay-peer serve --idle", "--idle-timeout"},
		{"replay-peer serve --listen 127.0.0.1:0 --pace ", "instant recorded virtual"},
		{"replay-peer serve --report tu", "turn.ndjson"},
		{"replay-peer serve --report=tu", "--report=turn.ndjson"},
		{"replay-peer serve --as regis", "registry"},
		{"replay-peer ctl turn.ndjson re", "release resume"},
		{"replay-record http --provider ", "opencode"},
		{"replay-record stdio --provider codex --protocol codex.ex", "codex.exec-jsonl"},
		{"replay-record accept turn.ndjson --rep", "--report"},
		{"replay-record completion ", "bash fish zsh"},
		{"transcript-lint check --changed", "--changed-since"},
		{"transcript-lint check --format ", "github json sarif text"},
		{"transcript-lint check --format turn", ""}, // no file where words are known
		{"transcript-lint check --disable TL00", "TL001 TL002 TL003 TL004 TL005 TL006 TL007 TL008 TL009"},
		{"transcript-lint diff --format=mark", "--format=markdown"},
		{"transcript-lint rules --format ", "markdown text"},
		{"transcript-lint show tu", "turn.ndjson"},
	}
	for _, name := range tools {
		list := commandList.FindString(help(t, filepath.Join(bin, name)))
		var commands []string
		for _, m := range commandName.FindAllStringSubmatch(list, -1) {
			commands = append(commands, m[1])
		}
		slices.Sort(commands)
		cases = append(cases, struct{ line, want string }{name + " ", strings.Join(commands, " ")})
	}
	for _, shell := range []string{"bash", "fish", "zsh"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			s := newShell(t, shell, bin)
			var lines []string
			for _, c := range cases {
				lines = append(lines, c.line)
			}
			complete := s.onTerminal
			if shell == "fish" {
				complete = s.fish
			}
			for i, got := range complete(t, lines) {
				slices.Sort(got)
				if got := strings.ReplaceAll(strings.Join(got, " "), `"`, ""); got != cases[i].want { // a quote may stay, or not
					t.Errorf("%q is completed to %q: want %q", lines[i], got, cases[i].want)
				}
			}
			if _, err := os.Stat(filepath.Join(s.dir, "mark")); err == nil {
				t.Error("completion ran the command")
			}
		})
	}
}

// TestOffered uses the words that the tools offer: none is a usage error.
func TestOffered(t *testing.T) {
	bin := buildTools(t)
	const file = "transcripts/simple/codex.ndjson"
	for _, line := range []string{ // WORD stands for what is offered
		"transcript-lint check --max-age WORD " + file,
		"transcript-lint check --format WORD " + file,
		"transcript-lint diff --format WORD " + file + " " + file,
		"transcript-lint rules --format WORD",
		"replay-peer serve --pace WORD " + file,
		"replay-record stdio --source WORD --provider codex --scenario s -o OUT -- false",
		"replay-record stdio --scenario s -o OUT --provider WORD -- false",
		"replay-record http --scenario s -o OUT --provider WORD -- false",
		"replay-record stdio --scenario s -o OUT --provider codex --protocol WORD -- false",
		"replay-record stdio --scenario s -o OUT --protocol acp.ndjson-jsonrpc --provider WORD -- false",
		"orch-run live --scenario simple --provider codex --source WORD -- false",
	} {
		words := strings.Fields(strings.ReplaceAll(line, "OUT", filepath.Join(t.TempDir(), "out.ndjson")))
		at := slices.Index(words, "WORD")
		program := filepath.Join(bin, words[0])
		out, err := exec.Command(program, slices.Concat([]string{"completion", "words", "--"}, words[1:at], []string{""})...).Output()
		if err != nil || len(out) == 0 {
			t.Errorf("%s: %q, %v", line, out, err)
		}
		for offered := range strings.Lines(string(out)) {
			words[at], _, _ = strings.Cut(strings.TrimSuffix(offered, "\n"), "\t")
			cmd := exec.Command(program, words[1:]...)
			var said bytes.Buffer
			cmd.Stderr = &said
			if cmd.Run(); cmd.ProcessState.ExitCode() == 2 {
				t.Errorf("%q: %s", words, said.Bytes())
			}
		}
	}
}

// realShell is a shell with a home of its own.
type realShell struct {
	name, dir string
	env       []string
}

func newShell(t *testing.T, name, bin string) *realShell {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("SKIPPED, completion in %s was not tried: %v", name, err)
	}
	s := &realShell{name: name, dir: t.TempDir()}
	s.env = []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + s.dir, "ZDOTDIR=" + s.dir, "TYPED=" + filepath.Join(s.dir, "typed"),
		"TERM=dumb", "LANG=C.UTF-8", "INPUTRC=/dev/null", "HISTFILE=",
		"GOCOVERDIR=" + os.Getenv("GOCOVERDIR"),
	}
	setup := shellSetups[name]
	for file, text := range map[string]string{
		"turn.ndjson": "", setup.file: setup.text,
		"own/mine/scenario.yaml": "name: mine\ndescription: One turn.\nproviders: {codex: {model: m}}\nsteps: [{message: {text: a}}]\nassertions: [{path: a, equals: 1}]\n",
	} {
		if file == "" {
			continue
		}
		path := filepath.Join(s.dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// onTerminal types the lines into the shell, behind a terminal that script(1)
// makes, and returns what each one's last word became.
func (s *realShell) onTerminal(t *testing.T, lines []string) [][]string {
	t.Helper()
	if out, err := exec.Command("script", "--version").Output(); err != nil || !bytes.Contains(out, []byte("util-linux")) {
		t.Skipf("SKIPPED, completion in %s was not tried: it needs a terminal, from util-linux's script: %v", s.name, err)
	}
	cmd := exec.CommandContext(t.Context(), "script", "-qec", shellSetups[s.name].command, "/dev/null")
	cmd.Dir, cmd.Env = s.dir, s.env
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
	var shown bytes.Buffer
	screen := bufio.NewReader(io.TeeReader(stdout, &shown))
	for read := ""; !strings.HasSuffix(read, "READY"); {
		b, err := screen.ReadByte()
		if err != nil {
			t.Fatalf("%s does not start: %v\n%s", s.name, err, shown.Bytes())
		}
		read += string(b)
	}
	go func() {
		for _, line := range lines {
			io.WriteString(stdin, line+"\x14\x07")
		}
		io.WriteString(stdin, "exit\n")
		stdin.Close()
	}()
	io.Copy(io.Discard, screen)
	cmd.Wait() // the exit code is that of the last command
	typed, _ := os.ReadFile(filepath.Join(s.dir, "typed"))
	after := strings.Split(strings.TrimSuffix(string(typed), "\n"), "\n")
	if len(after) != len(lines) {
		t.Fatalf("%d of %d lines were typed:\n%s\n%s", len(after), len(lines), typed, shown.Bytes())
	}
	out := make([][]string, len(lines))
	for i, line := range lines {
		kept := strings.LastIndexByte(line, ' ') + 1
		rest, ok := strings.CutPrefix(after[i], line[:kept])
		if !ok {
			t.Fatalf("%q became %q", line, after[i])
		}
		if rest != line[kept:] {
			out[i] = strings.Fields(rest)
		}
	}
	return out
}

// fish asks fish, which needs no terminal for it.
func (s *realShell) fish(t *testing.T, lines []string) [][]string {
	t.Helper()
	var script strings.Builder
	for _, tool := range tools {
		fmt.Fprintf(&script, "%s completion fish | source\n", tool)
	}
	for _, line := range lines {
		fmt.Fprintf(&script, "complete -C %q; echo ---\n", line)
	}
	cmd := exec.CommandContext(t.Context(), "fish", "--no-config", "-c", script.String())
	cmd.Dir, cmd.Env = s.dir, s.env
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("fish: %v\n%s", err, text)
	}
	parts := strings.Split(string(text), "---\n")
	if len(parts) != len(lines)+1 {
		t.Fatalf("%d of %d lines were completed:\n%s", len(parts)-1, len(lines), text)
	}
	out := make([][]string, len(lines))
	for i := range lines {
		for line := range strings.Lines(parts[i]) {
			word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			out[i] = append(out[i], word)
		}
	}
	return out
}
