package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/replaypeer/replaypeer/internal/record"
	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/internal/tool"
	"github.com/replaypeer/replaypeer/pkg/envelope"
	"github.com/replaypeer/replaypeer/pkg/flavors"
	"github.com/replaypeer/replaypeer/pkg/redact"
)

func redactCommand() *cli.Command {
	return &cli.Command{
		Name:  "redact",
		Usage: "take secrets and personal data out of transcripts",
		UsageText: "replay-record redact FILE\n" +
			"replay-record redact -w FILE…\n\n" +
			"Example: replay-record redact -w simple.ndjson\n\n" +
			"Prints the redacted transcript, or with -w rewrites the files, and tells on\n" +
			"stderr what was replaced. Exit code 3 when something could not be taken out, or\n" +
			"when a transcript that held would not hold any more: nothing is written then.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "write", Aliases: []string{"w"}, Usage: "rewrite the files"},
			&cli.StringFlag{Name: "workspace", Usage: "directory to be written as <workspace>; default none"},
		},
		Action: redactAction,
	}
}

func redactAction(c *cli.Context) error {
	switch {
	case c.NArg() == 0:
		return tool.Usagef("redact needs a transcript")
	case c.NArg() > 1 && !c.Bool("write"):
		return tool.Usagef("redact prints one transcript: use -w to rewrite several")
	}
	for _, file := range c.Args().Slice() {
		out, err := redactFile(c, file)
		if err != nil {
			return err
		}
		if !c.Bool("write") {
			if _, err := c.App.Writer.Write(out.after); err != nil {
				return err
			}
		} else if err := out.rewrite(); err != nil {
			return err
		}
		out.tell(c)
	}
	return nil
}

// redacted is one transcript before and after.
type redacted struct {
	file          string
	before, after []byte
	counts        map[string]int
	lines         map[string][]int
}

// redactFile redacts in memory and proves the result before anything is
// written.
func redactFile(c *cli.Context, file string) (*redacted, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	before, err := envelope.Read(file, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	flavor, err := flavors.ByProtocol(before.Header.Protocol)
	if err != nil {
		flavor = nil
		fmt.Fprintf(c.App.ErrWriter, "%s: %s: %v: text in pieces is not read joined\n", c.App.Name, file, err)
	}
	r := redact.New(record.Rules(redact.Config{
		Workspace: c.String("workspace"), Home: os.Getenv("HOME"), Tmp: os.Getenv("TMPDIR"),
		Users: machineUsers(), Hosts: machineHosts(), Env: os.Environ(), Hold: -1,
		NoBinds: ignores(before.Header.Metadata),
	}, flavor))
	r.Reserve(data)
	after, err := redactTranscript(r, before)
	if err != nil {
		return nil, fmt.Errorf("redact %s: %w", file, err)
	}
	record.Reseal(before, after)
	out := &redacted{file: file, before: data, counts: r.Counts(), lines: r.Lines()}
	if out.after, err = splice(data, before, after); err != nil {
		return nil, fmt.Errorf("redact %s: %w", file, err)
	}
	return out, out.prove(r, before)
}

// ignores says whether parts of outbound frames are not compared.
func ignores(metadata json.RawMessage) bool {
	var m struct {
		Match struct {
			Ignore json.RawMessage `json:"ignore"`
		} `json:"match"`
	}
	return metadata != nil && json.Unmarshal(metadata, &m) == nil && m.Match.Ignore != nil
}

// redactTranscript redacts as often as something new is learned.
func redactTranscript(r *redact.Redactor, t *envelope.Transcript) (*envelope.Transcript, error) {
	header := t.Header
	for pass := 0; ; pass++ {
		known := r.Known()
		entries := make([]envelope.Entry, 0, len(t.Entries))
		for _, e := range t.Entries {
			clear, err := r.Add(e)
			if err != nil {
				return nil, err
			}
			entries = append(entries, clear...)
		}
		clear, err := r.Flush()
		if err != nil {
			return nil, err
		}
		t = &envelope.Transcript{File: t.File, Entries: append(entries, clear...)}
		if r.Known() == known || pass > 2 {
			break
		}
		r.Second()
	}
	var err error
	t.Header, err = r.Header(header)
	return t, err
}

// splice puts the changed lines into the file. The others keep their bytes.
func splice(data []byte, before, after *envelope.Transcript) ([]byte, error) {
	changed := map[int][]byte{before.Header.Line: envelope.AppendHeader(nil, &after.Header)}
	for i, e := range before.Entries {
		line, _ := e.Position()
		a, err := envelope.AppendEntry(nil, e)
		if err != nil {
			return nil, err
		}
		b, err := envelope.AppendEntry(nil, after.Entries[i])
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(a, b) {
			changed[line] = b
		}
	}
	var out bytes.Buffer
	line := 0
	for rest := data; len(rest) > 0; {
		n := bytes.IndexByte(rest, '\n') + 1
		if n == 0 {
			n = len(rest)
		}
		line++
		if b := changed[line]; b == nil {
			out.Write(rest[:n])
		} else {
			out.Write(b)
		}
		rest = rest[n:]
	}
	return out.Bytes(), nil
}

// prove checks that nothing is left, that the structure is the same, and that
// a transcript that held still does.
func (x *redacted) prove(r *redact.Redactor, before *envelope.Transcript) error {
	after, err := envelope.Read(x.file, bytes.NewReader(x.after))
	if err != nil {
		return fmt.Errorf("redact: %w", err)
	}
	if err := redact.SameStructure(before, after); err != nil {
		return fmt.Errorf("redact %s: structure: %w", x.file, err)
	}
	var leak *redact.LeakError
	switch err := r.Check(x.file, bytes.NewReader(x.after)); {
	case errors.As(err, &leak):
		return &tool.ExitError{Code: 3, Err: fmt.Errorf("%w: can't be taken out, nothing is written", err)}
	case err != nil:
		return err
	}
	if replay.SelfCheck(x.file) != nil {
		return nil // it did not hold before
	}
	dir, err := os.MkdirTemp("", "replay-record")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, filepath.Base(x.file))
	if err := os.WriteFile(name, x.after, 0o600); err != nil {
		return err
	}
	if err := replay.SelfCheck(name); err != nil {
		return &tool.ExitError{Code: 3, Err: fmt.Errorf("%s would not hold any more, nothing is written: %w", x.file, err)}
	}
	return nil
}

// rewrite replaces the file at once, when it changed. A symbolic link stays
// one: its target is replaced.
func (x *redacted) rewrite() error {
	if bytes.Equal(x.before, x.after) {
		return nil
	}
	target, err := filepath.EvalSymlinks(x.file)
	if err != nil {
		return err
	}
	return tool.ReplaceFile(target, x.after)
}

// tell prints what was replaced, a rule a line.
func (x *redacted) tell(c *cli.Context) {
	if len(x.counts) == 0 {
		fmt.Fprintf(c.App.ErrWriter, "%s: nothing to redact\n", x.file)
		return
	}
	for _, rule := range slices.Sorted(maps.Keys(x.counts)) {
		lines := make([]string, 0, 12)
		for i, n := range x.lines[rule] {
			if i == 10 {
				lines = append(lines, "…")
				break
			}
			lines = append(lines, strconv.Itoa(n))
		}
		fmt.Fprintf(c.App.ErrWriter, "%s: %s %d, lines %s\n", x.file, rule, x.counts[rule], strings.Join(lines, " "))
	}
}
