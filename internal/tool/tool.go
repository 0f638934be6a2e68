// Package tool is the frame around the four command lines: usage errors,
// exit codes and the version, the same everywhere.
//
// Exit codes: 0 good, 1 the tool failed, 2 usage, 3 the tool worked and the
// verdict is bad. stdout is the product, stderr is for people.
package tool

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

// Version is the release version, stamped by the linker; "" in other builds.
var Version string

// ExitError carries an exit code to Main. Its message, when there is one, is
// printed on stderr; a verdict that has been printed already needs none.
type ExitError struct {
	Code int
	Err  error // may be nil
}

// Error returns the cause, or the code where there is none.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e *ExitError) Unwrap() error { return e.Err }

// Usagef returns a usage error: exit 2.
func Usagef(format string, args ...any) error {
	return &ExitError{Code: 2, Err: fmt.Errorf(format, args...)}
}

// Bad is a bad verdict that has been printed: exit 3.
var Bad = &ExitError{Code: 3}

// BuildVersion returns the stamped version, else the module's, else "devel".
func BuildVersion() string {
	if Version != "" {
		return Version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

// Main runs app and returns its exit code. It never exits itself and prints
// usage errors on stderr only. args includes the program name.
func Main(app *cli.App, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	app.Reader, app.Writer, app.ErrWriter = stdin, stdout, stderr
	app.Version = BuildVersion()
	app.HideHelpCommand = true
	app.HideVersion = true // the built-in flag also takes -v
	app.DisableSliceFlagSeparator = true
	app.ExitErrHandler = func(*cli.Context, error) {}
	app.OnUsageError = usage
	app.Flags = append(app.Flags, &cli.BoolFlag{Name: "version", Usage: "print the version and exit", DisableDefaultText: true})
	action := app.Action
	app.Action = func(c *cli.Context) error {
		switch {
		case c.Bool("version"):
			_, err := fmt.Fprintf(c.App.Writer, "%s %s\n", c.App.Name, c.App.Version)
			return err
		case c.NArg() > 0 && action == nil:
			return Usagef("unknown command %q: see %s --help", c.Args().First(), app.Name)
		case action == nil:
			return Usagef("no command: see %s --help", app.Name)
		}
		return action(c)
	}
	app.Commands = append(app.Commands, completionCommand(app))
	prepare(app.Commands)
	err := app.Run(args)
	if err == nil {
		return 0
	}
	code := 1
	var exit *ExitError
	if errors.As(err, &exit) {
		code = exit.Code
		if exit.Err == nil && err == error(exit) {
			return code
		}
	}
	fmt.Fprintf(stderr, "%s: %v\n", app.Name, err)
	return code
}

func prepare(commands []*cli.Command) {
	for _, c := range commands {
		c.OnUsageError = usage
		c.HideHelpCommand = true
		prepare(c.Subcommands)
	}
}

func usage(_ *cli.Context, err error, _ bool) error {
	return &ExitError{Code: 2, Err: err}
}
