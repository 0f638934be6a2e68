package tool

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

// bashScript completes commands and flags by asking the program itself. After
// "--" stands another command: the program must not be asked then, since it
// would run it. Arguments are files.
const bashScript = `_%[2]s() {
	local cur=${COMP_WORDS[COMP_CWORD]} words=("${COMP_WORDS[@]:0:COMP_CWORD}") word
	COMPREPLY=()
	for word in "${words[@]:1}"; do [[ $word != -- ]] || return 0; done
	[[ $cur != -* ]] || words+=("$cur")
	while read -r word; do COMPREPLY+=("$word"); done < <(compgen -W "$("${words[@]}" --generate-bash-completion 2>/dev/null)" -- "$cur")
}
complete -o bashdefault -o default -F _%[2]s %[1]s
`

// completionCommand prints the script that makes a shell complete app's
// command line.
func completionCommand(app *cli.App) *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print the completion script of a shell",
		ArgsUsage: "bash",
		Description: "Only bash is known.\n\nExample, for the shell you are in:\n" +
			"  source <(" + app.Name + " completion bash)",
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 || c.Args().First() != "bash" {
				return Usagef("completion: want bash")
			}
			_, err := fmt.Fprintf(c.App.Writer, bashScript, app.Name, strings.ReplaceAll(app.Name, "-", "_"))
			return err
		},
	}
}
