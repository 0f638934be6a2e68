package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/replaypeer/replaypeer/internal/lint"
	"github.com/replaypeer/replaypeer/internal/tool"
)

func checkCommand() *cli.Command {
	return &cli.Command{
		Name:  "check",
		Usage: "report what is wrong with transcripts; exit 3 when it is an error",
		UsageText: "transcript-lint check [--format text|json|sarif|github] [--disable RULE]… [PATH…]\n\n" +
			"PATH is a file, a folder that is searched for *.ndjson, or - for standard input;\n" +
			"the default is transcripts. Exit 3 when a finding has severity error; warnings\n" +
			"and infos alone are exit 0. docs/rules.md lists the rules.\n\n" +
			"Example: transcript-lint check --changed-since origin/main transcripts",
		Flags: []cli.Flag{
			tool.OneOf(&cli.StringFlag{Name: "format", Value: "text", Usage: "`FORMAT` of the findings: text, json (one object a line), sarif (2.1.0), or github (annotations of a workflow)"}, tool.Words("text", "json", "sarif", "github")),
			tool.SomeOf(&cli.StringSliceFlag{Name: "disable", Usage: "leave out `RULE`, such as TL018; repeatable"}, ruleIDs),
			&cli.StringFlag{Name: "changed-since", Usage: "only files that differ from git's `REV`, new ones included"},
			&cli.StringFlag{Name: "baseline", Usage: "put aside the findings that `FILE` lists"},
			&cli.BoolFlag{Name: "write-baseline", Usage: "write all findings to the --baseline file instead"},
			tool.OneOf(&cli.StringFlag{Name: "max-age", Usage: "how old a recording may get: `DAYS`, such as 90d, or off; default 180d"}, tool.Words("90d", "180d", "off")),
			&cli.StringFlag{Name: "provider-schemas", Usage: "compare frames with what providers publish of them: `DIR` filled by scripts/schemas.sh"},
			&cli.StringSliceFlag{Name: "current", Usage: "`PROVIDER=VERSION` that is recorded with today; default what scripts/providers pins; repeatable"},
		},
		Action: check,
	}
}

func check(c *cli.Context) error {
	out, err := newPrinter(c)
	if err != nil {
		return err
	}
	opts, err := options(c)
	if err != nil {
		return err
	}
	known, err := readBaseline(c)
	if err != nil {
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
	wanted := func(string) bool { return true }
	if rev := c.String("changed-since"); rev != "" {
		if wanted, err = changedSince(rev); err != nil {
			return err
		}
	}
	if !c.Bool("write-baseline") {
		out.begin()
	}
	var total totals
	fresh := lint.Baseline{Version: 1}
	for _, file := range files {
		if opts.Gates, err = scenarioGates(file); err != nil {
			return err
		}
		found, err := checkFile(file, c.App.Reader, opts)
		if err != nil {
			return err
		}
		if !wanted(file) {
			continue // checked all the same: the others may be its duplicates
		}
		total.Files++
		for _, f := range found {
			if c.Bool("write-baseline") {
				fresh.Add(f)
				continue
			}
			if known.Has(f) {
				total.Known++
				continue
			}
			total.add(f.Severity)
			out.finding(f)
		}
	}
	if c.Bool("write-baseline") {
		return writeBaseline(c, &fresh)
	}
	out.end(total)
	if out.err != nil {
		return out.err
	}
	if !out.machine {
		fmt.Fprintf(c.App.ErrWriter, "transcript-lint: %s\n", total)
		if p := opts.Published; p != nil {
			fmt.Fprintf(c.App.ErrWriter, "transcript-lint: %s compared with their providers' schemas; %d have none, and %s\n",
				count(p.Compared, "frame"), p.Unknown, count(p.Without, "whole file"))
		}
	}
	if total.Errors > 0 {
		return tool.Bad
	}
	return nil
}

func options(c *cli.Context) (lint.Options, error) {
	opts := lint.Options{Disable: c.StringSlice("disable"), Current: pinnedVersions(), Corpus: &lint.Corpus{}}
	if err := knownRules(opts.Disable); err != nil {
		return opts, err
	}
	for _, pair := range c.StringSlice("current") {
		provider, version, ok := strings.Cut(pair, "=")
		if !ok || provider == "" || version == "" {
			return opts, tool.Usagef("current %q: want PROVIDER=VERSION", pair)
		}
		opts.Current[provider] = version
	}
	if dir := c.String("provider-schemas"); dir != "" {
		var err error
		if opts.Published, err = lint.OpenPublished(dir); err != nil {
			return opts, tool.Usagef("provider-schemas: %w: see scripts/schemas.sh", err)
		}
	}
	switch age := c.String("max-age"); age {
	case "":
	case "off":
		opts.MaxAge = -1
	default:
		var days int
		if n, err := fmt.Sscanf(age, "%dd", &days); n != 1 || err != nil || days <= 0 || age != fmt.Sprintf("%dd", days) {
			return opts, tool.Usagef("max-age %q: want a number of days such as 90d, or off", age)
		}
		opts.MaxAge = time.Duration(days) * 24 * time.Hour
	}
	return opts, nil
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
	Known    int `json:"known,omitempty"` // put aside by the baseline
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
	s := fmt.Sprintf("%s: %s, %s, %s",
		count(t.Files, "file"), count(t.Errors, "error"), count(t.Warnings, "warning"), count(t.Infos, "info"))
	if t.Known > 0 {
		s += fmt.Sprintf(", %d in the baseline", t.Known)
	}
	return s
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// printer writes findings; it keeps the first error of writing.
type printer struct {
	w       io.Writer
	format  string
	machine bool // the totals are for people, and not printed
	all     []lint.Finding
	err     error
}

func newPrinter(c *cli.Context) (*printer, error) {
	p := &printer{w: c.App.Writer, format: cmp.Or(c.String("format"), "text")}
	switch p.format {
	case "text", "github":
	case "json", "sarif":
		p.machine = true
	default:
		return nil, tool.Usagef("format %q: want text, json, sarif or github", p.format)
	}
	return p, nil
}

func (p *printer) begin() {
	if p.format == "json" {
		p.object(map[string]any{"version": 1})
	}
}

func (p *printer) finding(f lint.Finding) {
	switch p.format {
	case "json":
		p.object(f)
	case "sarif":
		p.all = append(p.all, f)
	case "github":
		p.line(f.GitHub())
	default:
		p.line(f.String())
	}
}

func (p *printer) end(t totals) {
	switch p.format {
	case "json":
		p.object(map[string]any{"totals": t})
	case "sarif":
		if p.err == nil {
			p.err = lint.WriteSARIF(p.w, tool.BuildVersion(), p.all)
		}
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
