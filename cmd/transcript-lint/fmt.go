package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/replaypeer/replaypeer/internal/lint"
	"github.com/replaypeer/replaypeer/internal/tool"
	"github.com/replaypeer/replaypeer/pkg/envelope"
)

func fmtCommand() *cli.Command {
	return &cli.Command{
		Name:  "fmt",
		Usage: "write transcripts in canonical form; frames stay byte for byte",
		UsageText: "transcript-lint fmt [-w] PATH…\n\n" +
			"PATH is a file, a folder that is searched for *.ndjson, or - for standard input.\n" +
			"The result goes to standard output, or with -w back to the file, whose name is\n" +
			"printed when it changed. A transcript with a bad line is left alone: exit 3.\n\n" +
			"Example: transcript-lint fmt -w transcripts",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "w", Usage: "rewrite the files, each one atomically"},
		},
		Action: format,
	}
}

func format(c *cli.Context) error {
	if c.NArg() == 0 {
		return tool.Usagef("no PATH: see transcript-lint fmt --help")
	}
	files, err := inputs(c.Args().Slice())
	if err != nil {
		return err
	}
	bad := false
	for _, file := range files {
		switch {
		case file == "-" && c.Bool("w"):
			return tool.Usagef("-w cannot rewrite standard input")
		case file == "-":
			err = formatStdin(c.App.Writer, c.App.Reader)
		case c.Bool("w"):
			err = rewrite(c.App.Writer, file)
		default:
			err = formatFile(c.App.Writer, file)
		}
		var syn *envelope.SyntaxError
		if errors.As(err, &syn) {
			fmt.Fprintf(c.App.ErrWriter, "transcript-lint: %v\n", err)
			bad = true
			continue
		}
		if err != nil {
			return err
		}
	}
	if bad {
		return tool.Bad
	}
	return nil
}

func formatStdin(w io.Writer, stdin io.Reader) error {
	var buf bytes.Buffer
	if err := lint.Format(&buf, "stdin", stdin); err != nil {
		return err
	}
	_, err := buf.WriteTo(w)
	return err
}

// formatFile reads the file twice, so that nothing of a bad one is written.
func formatFile(w io.Writer, file string) error {
	for _, to := range []io.Writer{io.Discard, w} {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		err = lint.Format(to, file, f)
		f.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// rewrite replaces the file when its canonical form differs, and prints its
// name then. A symbolic link stays one: its target is replaced.
func rewrite(w io.Writer, file string) error {
	target, err := filepath.EvalSymlinks(file)
	if err != nil {
		return err
	}
	f, err := os.Open(target)
	if err != nil {
		return err
	}
	defer f.Close()
	pending, err := tool.NewPendingFile(target)
	if err != nil {
		return fmt.Errorf("rewrite %s: %w", file, err)
	}
	defer pending.Cleanup()
	if err := lint.Format(pending, file, f); err != nil {
		return err
	}
	same, err := equal(f, pending)
	if err != nil {
		return fmt.Errorf("rewrite %s: %w", file, err)
	}
	if same {
		return nil
	}
	if err := pending.CloseAtomicallyReplace(); err != nil {
		return fmt.Errorf("rewrite %s: %w", file, err)
	}
	_, err = fmt.Fprintln(w, file)
	return err
}

// equal compares two files from their beginnings.
func equal(a, b io.ReadSeeker) (bool, error) {
	for _, f := range []io.Seeker{a, b} {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return false, err
		}
	}
	bufA, bufB := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, errA := io.ReadFull(a, bufA)
		m, errB := io.ReadFull(b, bufB)
		if !bytes.Equal(bufA[:n], bufB[:m]) {
			return false, nil
		}
		switch {
		case ended(errA) && ended(errB):
			return true, nil
		case errA != nil && !ended(errA):
			return false, errA
		case errB != nil && !ended(errB):
			return false, errB
		}
	}
}

func ended(err error) bool { return err == io.EOF || err == io.ErrUnexpectedEOF }
