package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/replaypeer/replaypeer/internal/accept"
	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/internal/tool"
)

func acceptCommand() *cli.Command {
	return &cli.Command{
		Name:  "accept",
		Usage: "take a client's new outbound frames into transcripts",
		UsageText: "replay-record accept FILE… --report REPORT [--report REPORT]… [--yes]\n\n" +
			"FILE is a transcript or a folder of them, REPORT what replay-peer reported, or a\n" +
			"folder of reports. The changes are shown, each once, and written with --yes only.\n" +
			"What the provider said is never touched. Refuses to work where CI is set.\n\n" +
			"Example: replay-record accept transcripts --report reports\n\n" +
			"Exit code 3 when there is something to accept and it was not written, or a\n" +
			"report can't be accepted.",
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "report", Usage: "`REPORT` of a failed replay, or a folder; repeatable"},
			&cli.BoolFlag{Name: "yes", Usage: "write the transcripts"},
			&cli.BoolFlag{Name: "only-reported", Usage: "leave other expectations of the same method alone"},
			&cli.StringFlag{Name: "workspace", Usage: "`DIR` that is written <workspace>"},
			&cli.BoolFlag{Name: "json", Usage: "the changes as one JSON object"},
		},
		Action:       acceptAction,
		BashComplete: tool.FlagsAfter,
	}
}

func acceptAction(c *cli.Context) error {
	if ci := os.Getenv("CI"); ci != "" && ci != "0" && ci != "false" {
		return tool.Usagef("accept: CI is set: what a client sends is accepted by a person, with a look at the changes")
	}
	args, err := flagsAfter(c)
	if err != nil {
		return err
	}
	if len(args.files) == 0 || len(args.reports) == 0 {
		return tool.Usagef("accept wants transcripts and --report")
	}
	files, err := readTranscripts(args.files)
	if err != nil {
		return err
	}
	reports, err := readReports(args.reports)
	if err != nil {
		return err
	}
	plan, err := accept.Make(files, reports, accept.Options{Workspace: args.workspace, Reported: args.reported})
	if err != nil {
		return err
	}
	if args.json {
		e := json.NewEncoder(c.App.Writer)
		e.SetEscapeHTML(false)
		err = e.Encode(struct {
			Version int `json:"version"`
			*accept.Plan
		}{1, plan})
	} else {
		_, err = fmt.Fprint(c.App.Writer, plan.Text())
	}
	if err != nil {
		return err
	}
	for _, r := range plan.Refused {
		fmt.Fprintf(c.App.ErrWriter, "replay-record: %s: %s\n", r.Report, r.Why)
	}
	written := plan.Written()
	if args.yes {
		if err := writeAccepted(c, written); err != nil {
			return err
		}
	} else if len(written) > 0 {
		fmt.Fprintf(c.App.ErrWriter, "replay-record: nothing is written without --yes\n")
	}
	if len(plan.Refused) > 0 || len(written) > 0 && !args.yes {
		return tool.Bad
	}
	return nil
}

// writeAccepted replaces each file once the new one holds against itself.
func writeAccepted(c *cli.Context, written map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(written)) {
		target, err := filepath.EvalSymlinks(name)
		if err != nil {
			return err
		}
		pending, err := tool.NewPendingFile(target)
		if err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		defer pending.Cleanup()
		if _, err := pending.Write(written[name]); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		if err := replay.SelfCheck(pending.Name()); err != nil {
			return fmt.Errorf("%s would not hold: %s", name, strings.ReplaceAll(err.Error(), pending.Name(), name))
		}
		if err := pending.CloseAtomicallyReplace(); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		fmt.Fprintf(c.App.ErrWriter, "replay-record: wrote %s\n", name)
	}
	return nil
}

// acceptArgs are the arguments; flags may also follow the files.
type acceptArgs struct {
	files, reports      []string
	yes, reported, json bool
	workspace           string
}

func flagsAfter(c *cli.Context) (acceptArgs, error) {
	a := acceptArgs{reports: c.StringSlice("report"), yes: c.Bool("yes"), reported: c.Bool("only-reported"), json: c.Bool("json"), workspace: c.String("workspace")}
	rest := c.Args().Slice()
	for i := 0; i < len(rest); i++ {
		name, value, inline := strings.Cut(rest[i], "=")
		switch {
		case name == "--yes":
			a.yes = true
		case name == "--json":
			a.json = true
		case name == "--only-reported":
			a.reported = true
		case name == "--report" || name == "--workspace":
			if !inline {
				if i++; i == len(rest) {
					return a, tool.Usagef("%s wants a value", name)
				}
				value = rest[i]
			}
			if name == "--report" {
				a.reports = append(a.reports, value)
			} else {
				a.workspace = value
			}
		case strings.HasPrefix(rest[i], "-"):
			return a, tool.Usagef("unknown flag %s", rest[i])
		default:
			a.files = append(a.files, rest[i])
		}
	}
	return a, nil
}

// under lists files: path itself, or what a folder holds with the ending,
// hidden ones left out.
func under(path, ending string) (files []string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, tool.Usagef("%w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || p == path:
			return err
		case strings.HasPrefix(d.Name(), ".") && d.IsDir():
			return fs.SkipDir
		case !strings.HasPrefix(d.Name(), ".") && !d.IsDir() && strings.HasSuffix(p, ending):
			files = append(files, p)
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = tool.Usagef("no *%s in %s", ending, path)
	}
	return files, err
}

func readTranscripts(paths []string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, path := range paths {
		names, err := under(path, ".ndjson")
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if files[name], err = os.ReadFile(name); err != nil {
				return nil, err
			}
		}
	}
	return files, nil
}

func readReports(paths []string) (reports []accept.Report, err error) {
	for _, path := range paths {
		names, err := under(path, ".json")
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			r, err := replay.ReadReport(name)
			if err != nil {
				return nil, err
			}
			reports = append(reports, accept.Report{File: name, Report: r})
		}
	}
	return reports, nil
}
