package tool

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// shells are the completion scripts: %[1]s is the program, %[2]s its name as
// far as functions may have it. All of them ask the program, with the words up
// to the cursor, and take a file where it names nothing.
var shells = map[string]string{
	// Bash splits words at = and :, too, and leaves quotes in them. What no space
	// parts is put together again, and of the answer only what bash takes for the
	// word goes back.
	"bash": `_%[2]s() {
	local rest=$COMP_LINE words=() word current part known= i
	for ((i = 0; i <= COMP_CWORD; i++)); do
		part=${COMP_WORDS[i]} word=${part//[\\\"\']/}
		if ((i == 0)) || [[ $rest == [[:space:]]* ]]; then words+=("$word"); else words[${#words[@]}-1]+=$word; fi
		rest=${rest#"${rest%%%%[![:space:]]*}"}
		rest=${rest#"$part"}
	done
	current=${words[${#words[@]}-1]}
	part=${current%%"${word#[=:]}"}
	COMPREPLY=()
	while IFS=$'\t' read -r word _; do
		known=1
		[[ $word != "$current"* ]] || COMPREPLY+=("${word#"$part"}")
	done < <("${words[0]}" completion words -- "${words[@]:1}" 2>/dev/null)
	[[ -z $known ]] || compopt +o default +o bashdefault 2>/dev/null
}
complete -o bashdefault -o default -F _%[2]s %[1]s
`,
	"fish": `function __%[2]s_complete
	set -l words (commandline -opc)
	set -l current (commandline -ct)
	set -g __%[2]s_words ($words[1] completion words -- $words[2..-1] "$current" 2>/dev/null)
	test -n "$__%[2]s_words"
end
complete -c %[1]s -e
complete -c %[1]s -n __%[2]s_complete -f -a '$__%[2]s_words'
`,
	// The first line and the last make it a file of $fpath, too.
	"zsh": `#compdef %[1]s
_%[1]s() {
	local line word
	local -a list
	for line in "${(@f)$("${(@Q)words[1]}" completion words -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
		word=${line%%%%$'\t'*}
		[[ -z $word ]] || list+=("${word//:/\\:}${${line#$word}/$'\t'/:}")
	done
	if (($#list)); then
		_describe %[1]s list
	else
		compset -P '*='
		_files
	fi
}
if [[ $funcstack[1] == _%[1]s ]]; then _%[1]s "$@"; else compdef _%[1]s %[1]s; fi
`,
}

// completionCommand prints the script that makes a shell complete app's
// command line, and for the script what may stand at the cursor: words takes
// the line up to there.
func completionCommand(app *cli.App) *cli.Command {
	known := slices.Sorted(maps.Keys(shells))
	return &cli.Command{
		Name:      "completion",
		Usage:     "print the completion script of a shell",
		ArgsUsage: strings.Join(known, "|"),
		Description: "Example, for the bash or zsh you are in:\n" +
			"  source <(" + app.Name + " completion bash)\n" +
			"and for fish:\n" +
			"  " + app.Name + " completion fish | source",
		BashComplete: Argument(0, Words(known...)),
		Action: func(c *cli.Context) error {
			args := c.Args().Slice()
			if len(args) > 1 && args[0] == "words" && args[1] == "--" {
				complete(app, args[2:])
				return nil
			}
			script, ok := shells[c.Args().First()]
			if !ok || len(args) != 1 {
				return Usagef("completion: want %s", strings.Join(known, ", "))
			}
			_, err := fmt.Fprintf(c.App.Writer, script, app.Name, strings.ReplaceAll(app.Name, "-", "_"))
			return err
		},
	}
}
