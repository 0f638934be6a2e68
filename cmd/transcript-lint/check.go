package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/replaypeer/replaypeer/internal/lint"
	"github.com/replaypeer/replaypeer/internal/tool"
)

func checkCommand() *cli.Command {
	return &cli.Command{
		Name:  "check",
		Usage: "report what is wrong with transcripts; exit 3 when it is an error",
		UsageText: "transcript-lint check [--format text|json] [--disable RULE]… [PATH…]\n\n" +
			"PATH is a file, a folder that is searched for *.ndjson, or - for standard input;\n" +
			"the default is transcripts. Exit 3 when a finding has severity error; warnings\n" +
			"and infos alone are exit 0.\n\n" +
			"Example: transcript-lint check --disable TL033 transcripts/simple",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "format", Value: "text", Usage: "`FORMAT` of the findings: text or json, one object a line"},
			&cli.StringSliceFlag{Name: "disable", Usage: "leave out `RULE`, such as TL018; repeatable"},
		},
		Action: check,
	}
}

func check(c *cli.Context) error {
	format, opts := c.String("format"), lint.Options{Disable: c.StringSlice("disable")}
	if format != "text" && format != "json" {
		return tool.Usagef("format %q: want text or json", format)
	}
	if err := knownRules(opts.Disable); err != nil {
		return err
	}
	paths := c.Args().Slice()
	if len(paths) == 0 {
		paths = []string{"transcripts"}
	}
	files, err := inputs(paths)
	if err != nil {
		return err
	}
	out := printer{w: c.App.Writer, json: format == "json"}
	out.begin()
	total := totals{Files: len(files)}
	for _, file := range files {
		found, err := checkFile(file, c.App.Reader, opts)
		if err != nil {
			return err
		}
		for _, f := range found {
			total.add(f.Severity)
			out.finding(f)
		}
	}
	out.end(total)
	if out.err != nil {
		return out.err
	}
	if format == "text" {
		fmt.Fprintf(c.App.ErrWriter, "transcript-lint: %s\n", total)
	}
	if total.Errors > 0 {
		return tool.Bad
	}
	return nil
}

func knownRules(ids []string) error {
	known := map[string]bool{}
	for _, r := range lint.Rules {
		known[r.ID] = true
	}
	for _, id := range ids {
		if !known[id] {
			return tool.Usagef("unknown rule %q: see transcript-lint rules", id)
		}
	}
	return nil
}

// inputs returns the transcripts that paths name, standard input as "-".
func inputs(paths []string) ([]string, error) {
	var files []string
	for _, path := range paths {
		if path == "-" {
			files = append(files, path)
			continue
		}
		found, err := lint.Find([]string{path})
		if err != nil {
			return nil, tool.Usagef("%w", err)
		}
		files = append(files, found...)
	}
	return files, nil
}

func checkFile(file string, stdin io.Reader, opts lint.Options) ([]lint.Finding, error) {
	if file == "-" {
		return lint.Check("stdin", stdin, opts)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return lint.Check(file, f, opts)
}

// totals is the last object of the JSON output.
type totals struct {
	Files    int `json:"files"`
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Infos    int `json:"infos"`
}

func (t *totals) add(s lint.Severity) {
	switch s {
	case lint.Error:
		t.Errors++
	case lint.Warning:
		t.Warnings++
	default:
		t.Infos++
	}
}

func (t totals) String() string {
	return fmt.Sprintf("%s: %s, %s, %s",
		count(t.Files, "file"), count(t.Errors, "error"), count(t.Warnings, "warning"), count(t.Infos, "info"))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// printer writes findings; it keeps the first error of writing.
type printer struct {
	w    io.Writer
	json bool
	err  error
}

func (p *printer) begin() {
	if p.json {
		p.object(map[string]any{"version": 1})
	}
}

func (p *printer) finding(f lint.Finding) {
	if p.json {
		p.object(f)
		return
	}
	p.line(f.String())
}

func (p *printer) end(t totals) {
	if p.json {
		p.object(map[string]any{"totals": t})
	}
}

func (p *printer) object(v any) {
	b, err := json.Marshal(v)
	if err != nil && p.err == nil {
		p.err = err // unreachable: findings are strings and numbers
	}
	p.line(string(b))
}

func (p *printer) line(s string) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, s)
	}
}
