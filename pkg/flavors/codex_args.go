package flavors

import (
	"fmt"
	"slices"
	"strings"
)

// checkExecArgs and checkAppServerArgs tell the two protocols of the one
// binary apart, as it does.
func checkExecArgs(args []string) error {
	if command := codexCommand(args); command != "exec" && command != "e" {
		return fmt.Errorf("%s does not speak codex.exec-jsonl: the transcript is one of codex exec", started(command))
	}
	return nil
}

func checkAppServerArgs(args []string) error {
	if command := codexCommand(args); command == "exec" || command == "e" {
		return fmt.Errorf("%s does not speak codex.app-server: the transcript is one of codex app-server", started(command))
	}
	return nil
}

func started(command string) string {
	return strings.TrimSuffix("codex "+command, " ")
}

// codexCommand returns the subcommand, "" when there is none.
func codexCommand(args []string) string {
	for _, w := range execWords(args) {
		if w.option == "" {
			return w.value
		}
	}
	return ""
}

// execWord is one argument: an option with its value, or a bare word.
type execWord struct {
	option string // the long spelling; "" for a bare word
	value  string
	valued bool // the option has a value
}

// execWords reads a command line as Codex does.
func execWords(args []string) (words []execWord) {
	for i := 0; i < len(args); i++ {
		w := execWord{value: args[i]}
		switch a := args[i]; {
		case a == "--":
			for _, rest := range args[i+1:] {
				words = append(words, execWord{value: rest})
			}
			return words
		case strings.HasPrefix(a, "--"):
			w.option, w.value, w.valued = strings.Cut(a, "=")
		case len(a) > 1 && a[0] == '-':
			w.option, w.value = a[:2], strings.TrimPrefix(a[2:], "=")
			w.valued = w.value != ""
			if long, ok := execShort[w.option]; ok {
				w.option = long
			}
		}
		if w.option != "" && !w.valued && execTakesValue(w.option) && i+1 < len(args) {
			i++
			w.value, w.valued = args[i], true
		}
		if w.option != "" && !w.valued {
			w.value = ""
		}
		words = append(words, w)
	}
	return words
}

var execShort = map[string]string{
	"-c": "--config", "-i": "--image", "-m": "--model", "-p": "--profile", "-s": "--sandbox",
	"-C": "--cd", "-a": "--ask-for-approval", "-o": "--output-last-message",
}

// execKept are the options whose values a frame holds, execHidden those whose
// values are files the client makes up, or secrets.
var (
	execKept = []string{
		"--model", "--sandbox", "--cd", "--add-dir", "--image", "--profile", "--color", "--enable", "--disable",
		"--local-provider", "--thread-source", "--cyber-access-program", "--ask-for-approval",
	}
	execHidden = []string{"--output-schema", "--output-last-message", "--remote", "--remote-auth-token-env"}
	// execConfig are first parts of configuration keys whose values are kept.
	execConfig = []string{
		"model", "model_reasoning_effort", "model_reasoning_summary", "model_verbosity", "approval_policy",
		"sandbox_mode", "sandbox_workspace_write", "web_search", "features", "tools",
	}
	execSwitches = []string{
		"--experimental-json", "--json", "--skip-git-repo-check", "--ephemeral", "--full-auto", "--oss", "--last", "--all",
		"--strict-config", "--trust", "--worktree", "--search", "--approve-for-me", "--ignore-user-config", "--ignore-rules",
		"--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust",
	}
	execCommands = []string{"exec", "e", "resume", "fork", "review", "-"}
)

func execTakesValue(option string) bool {
	return option == "--config" || slices.Contains(execKept, option) || slices.Contains(execHidden, option)
}

const omitted = "<omitted>"

// projectExec returns the arguments as a frame holds them: from the word exec
// on, options before it after it, spelled in one way, without what a
// transcript must not hold.
func projectExec(args []string) (out []string) {
	words := execWords(args)
	if at := slices.IndexFunc(words, func(w execWord) bool { return w.option == "" && (w.value == "exec" || w.value == "e") }); at >= 0 {
		words = slices.Delete(words, at, at+1)
		out = append(out, "exec")
	}
	unknown := false // the word before is an option that may take this one as its value
	for _, w := range words {
		switch {
		case w.option == "" && unknown && !slices.Contains(execCommands, w.value):
			out = append(out, omitted)
		case w.option == "":
			out = append(out, w.value)
		case !w.valued:
			out = append(out, w.option)
		case w.option == "--config":
			out = append(out, w.option, projectConfig(w.value))
		case slices.Contains(execKept, w.option):
			out = append(out, w.option, w.value)
		default:
			out = append(out, w.option, omitted)
		}
		unknown = w.option != "" && !w.valued && !slices.Contains(execSwitches, w.option)
	}
	return out
}

// projectConfig keeps the value of a key that holds no secret.
func projectConfig(override string) string {
	key, _, ok := strings.Cut(override, "=")
	first, _, _ := strings.Cut(key, ".")
	if !ok || slices.Contains(execConfig, first) {
		return override
	}
	return key + "=" + omitted
}
