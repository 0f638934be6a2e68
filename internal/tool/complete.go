package tool

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// Candidate is a word that may stand somewhere in a command line, and what it
// means; "" where it says so itself.
type Candidate struct{ Word, About string }

// Candidates says what a value may be. The context has the flags and arguments
// before it. None at all stand for a file.
type Candidates func(*cli.Context) []Candidate

// Words are candidates that are always the same.
func Words(words ...string) Candidates {
	list := make([]Candidate, len(words))
	for i, w := range words {
		list[i].Word = w
	}
	return func(*cli.Context) []Candidate { return list }
}

// oneOf is a flag whose values a shell completes.
type oneOf struct {
	*cli.StringFlag
	values Candidates
}

func (f oneOf) candidates(c *cli.Context) []Candidate { return f.values(c) }

// OneOf lets shells complete the values of a flag.
func OneOf(f *cli.StringFlag, values Candidates) cli.Flag { return oneOf{f, values} }

// someOf is one that is repeatable.
type someOf struct {
	*cli.StringSliceFlag
	values Candidates
}

func (f someOf) candidates(c *cli.Context) []Candidate { return f.values(c) }

// SomeOf lets shells complete the values of a repeatable flag.
func SomeOf(f *cli.StringSliceFlag, values Candidates) cli.Flag { return someOf{f, values} }

// Argument makes a command's nth argument, from 0, one that shells complete.
func Argument(n int, values Candidates) cli.BashCompleteFunc {
	return func(c *cli.Context) {
		if c.NArg() == n+1 { // the last is the one to complete
			offer(c.App.Writer, values(c))
		}
	}
}

// FlagsAfter is for commands whose flags may also follow their arguments.
func FlagsAfter(c *cli.Context) {
	if strings.HasPrefix(c.Args().Get(c.NArg()-1), "-") {
		offer(c.App.Writer, flagNames(c.Command.Flags))
	}
}

// offer prints a candidate a line: the word, and after a tab what it means.
func offer(w io.Writer, list []Candidate) {
	for _, c := range list {
		if about, _, _ := strings.Cut(c.About, "\n"); about != "" {
			fmt.Fprintf(w, "%s\t%s\n", c.Word, about)
		} else {
			fmt.Fprintln(w, c.Word)
		}
	}
}

// line is a command line up to a word.
type line struct {
	commands []*cli.Command
	command  *cli.Command // nil for the program itself
	flags    []cli.Flag
	pending  cli.Flag // whose value comes next; nil for none
	given    []string // flags and their values
	args     []string
	over     bool // what follows is another command's
}

// take goes one word on.
func (l *line) take(word string) {
	name, _, inline := strings.Cut(word, "=")
	switch {
	case l.pending != nil:
		l.given = append(l.given, word)
		l.pending = nil
	case word == "--":
		l.over = true
	case len(l.args) == 0 && len(word) > 1 && word[0] == '-':
		l.given = append(l.given, word)
		if f := flagNamed(l.flags, name); f != nil && !inline && takesValue(f) {
			l.pending = f
		}
	default:
		i := slices.IndexFunc(l.commands, func(c *cli.Command) bool { return c.HasName(word) })
		if len(l.args) > 0 || i < 0 {
			l.args = append(l.args, word)
			return
		}
		l.command = l.commands[i]
		l.commands, l.flags, l.given = l.command.Subcommands, l.command.Flags, nil
	}
}

// complete prints what the last word may be, whatever it is so far: to choose
// those that fit is the shell's part, which may forgive capitals and more.
// Nothing stands for a file. words are those after the program's name.
func complete(app *cli.App, words []string) {
	if len(words) == 0 {
		return
	}
	l := &line{commands: app.Commands, flags: app.Flags}
	for _, w := range words[:len(words)-1] {
		l.take(w)
	}
	current := words[len(words)-1]
	name, _, inline := strings.Cut(current, "=")
	switch w := app.Writer; {
	case l.over:
	case l.pending != nil:
		offer(w, l.valuesOf(app, l.pending))
	case len(l.args) > 0:
		l.argument(app, current)
	case inline && strings.HasPrefix(current, "-"):
		list := slices.Clone(l.valuesOf(app, flagNamed(l.flags, name)))
		for i := range list {
			list[i].Word = name + "=" + list[i].Word
		}
		offer(w, list)
	case strings.HasPrefix(current, "-"):
		offer(w, flagNames(l.flags))
	case len(l.commands) > 0:
		for _, c := range l.commands {
			offer(w, []Candidate{{c.Name, c.Usage}})
		}
	default:
		l.argument(app, current)
	}
}

// context is what a command would see of the line.
func (l *line) context(app *cli.App, args ...string) *cli.Context {
	set := flag.NewFlagSet("", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	for _, f := range l.flags {
		f.Apply(set) // an error shows when the command is run
	}
	set.Parse(slices.Concat(l.given, []string{"--"}, args))
	c := cli.NewContext(app, set, nil)
	c.Command = l.command
	return c
}

func (l *line) argument(app *cli.App, current string) {
	if l.command != nil && l.command.BashComplete != nil {
		l.command.BashComplete(l.context(app, append(slices.Clone(l.args), current)...))
	}
}

func (l *line) valuesOf(app *cli.App, f cli.Flag) []Candidate {
	if known, ok := f.(interface {
		candidates(*cli.Context) []Candidate
	}); ok {
		return known.candidates(l.context(app))
	}
	return nil
}

func flagNamed(flags []cli.Flag, word string) cli.Flag {
	name := strings.TrimPrefix(strings.TrimPrefix(word, "-"), "-")
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

func takesValue(f cli.Flag) bool {
	d, ok := f.(cli.DocGenerationFlag)
	return ok && d.TakesValue()
}

func flagNames(flags []cli.Flag) (list []Candidate) {
	for _, f := range append(slices.Clone(flags), cli.HelpFlag) {
		about := ""
		if d, ok := f.(cli.DocGenerationFlag); ok {
			about = strings.ReplaceAll(d.GetUsage(), "`", "")
		}
		for _, name := range f.Names() {
			dashes := "--"
			if len(name) == 1 {
				dashes = "-"
			}
			c := Candidate{dashes + name, about}
			if !slices.Contains(list, c) {
				list = append(list, c)
			}
		}
	}
	return list
}
