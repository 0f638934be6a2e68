package main

import (
	"context"
	"errors"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/replaypeer/replaypeer/internal/proc"
	"github.com/replaypeer/replaypeer/internal/record"
	"github.com/replaypeer/replaypeer/internal/replay"
	"github.com/replaypeer/replaypeer/internal/tool"
	"github.com/replaypeer/replaypeer/pkg/flavors"
)

func stdioCommand(ctx context.Context, stdout *os.File, ended *proc.Exit) *cli.Command {
	return &cli.Command{
		Name:  "stdio",
		Usage: "be the provider's stand-in on stdin and stdout, run the real one, record both ways",
		UsageText: "replay-record stdio --provider P --scenario S -o FILE [flags] -- CMD ARGS…\n\n" +
			"Example: replay-record stdio --provider codex --scenario simple -o simple.ndjson -- codex app-server\n\n" +
			"Returns the provider's exit code, or ends by its signal; 3 when the recording does not hold.",
		Flags:  tapFlags(),
		Action: func(c *cli.Context) error { return tapAction(ctx, c, flavors.Stdio, stdout, ended) },
	}
}

// collectSeldom trades memory for latency: the garbage that recording makes is
// else collected every few megabytes, while frames wait.
func collectSeldom() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(800)
		debug.SetMemoryLimit(512 << 20) // above it, collect as ever
	}
}

// tapFlags are the flags of the commands that stand in for a provider.
func tapFlags() []cli.Flag {
	return []cli.Flag{
		tool.OneOf(&cli.StringFlag{Name: "provider", Usage: "provider that CMD is"}, providers),
		tool.OneOf(&cli.StringFlag{Name: "protocol", Usage: "protocol it speaks; default the provider's usual one"}, protocols),
		&cli.StringFlag{Name: "scenario", Usage: "name of what is recorded"},
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "transcript to write, which must not exist"},
		&cli.StringFlag{Name: "model", Usage: "model for the metadata; default what the traffic tells"},
		tool.OneOf(&cli.StringFlag{Name: "source", Value: "live", Usage: "what stands behind the provider: live or scripted-model"}, tool.Words("live", "scripted-model")),
		&cli.StringFlag{Name: "workspace", Usage: "directory written as <workspace>; default the working directory"},
		&cli.StringSliceFlag{Name: "metadata", Usage: "`KEY=VALUE` for the metadata, repeatable"},
		&cli.BoolFlag{Name: "append", Usage: "add a further process to the transcript where it exists"},
		&cli.StringFlag{Name: "launches", Usage: "append to `FILE` that this process was launched, and then what became of its recording, one JSON object a line"},
		&cli.BoolFlag{Name: "force", Usage: "replace the transcript where it exists"},
	}
}

func tapAction(ctx context.Context, c *cli.Context, transport flavors.Transport, stdout *os.File, ended *proc.Exit) error {
	o, err := tapOptions(c, transport)
	if err != nil {
		return err
	}
	collectSeldom()
	command := proc.Config{Path: c.Args().First(), Args: c.Args().Tail()}
	tap := record.Stdio
	if transport == flavors.HTTP {
		tap = record.HTTP
	}
	launches := c.String("launches")
	if launches != "" {
		if err := (record.Launch{}).Append(launches); err != nil {
			return err
		}
	}
	res, err := tap(ctx, o, command, record.Streams{
		Stdin: c.App.Reader, Stdout: stdout, Stderr: c.App.ErrWriter, Signals: proc.Signals,
	})
	if launches != "" {
		l := record.Launch{Kept: res.Path}
		if err != nil {
			l = record.Launch{Lost: err.Error()}
		}
		err = errors.Join(err, l.Append(launches))
	}
	*ended = res.Exit
	var rejected *record.RejectedError
	var leak *record.LeakError
	switch {
	case errors.As(err, &rejected), errors.As(err, &leak):
		return &tool.ExitError{Code: 3, Err: err}
	case err != nil:
		return err
	case !res.Exit.Success():
		return &tool.ExitError{Code: res.Exit.Status()} // the provider has said what it had to say
	}
	return nil
}

func tapOptions(c *cli.Context, transport flavors.Transport) (record.Options, error) {
	o := record.Options{
		Path:      c.String("output"),
		Provider:  c.String("provider"),
		Scenario:  c.String("scenario"),
		Model:     c.String("model"),
		Source:    c.String("source"),
		Recorder:  tool.BuildVersion(),
		Workspace: c.String("workspace"),
		Home:      os.Getenv("HOME"),
		Tmp:       os.Getenv("TMPDIR"),
		Users:     machineUsers(),
		Hosts:     machineHosts(),
		Env:       os.Environ(),
		Force:     c.Bool("force"),
		Append:    c.Bool("append"),
		Check:     replay.SelfCheck,
	}
	switch {
	case o.Provider == "" || o.Scenario == "" || o.Path == "":
		return o, tool.Usagef("%s needs --provider, --scenario and -o", c.Command.Name)
	case c.NArg() == 0:
		return o, tool.Usagef("%s needs the provider's command after --", c.Command.Name)
	case o.Source != "live" && o.Source != "scripted-model":
		return o, tool.Usagef("source %q: want live or scripted-model", o.Source)
	case o.Force && o.Append:
		return o, tool.Usagef("--force and --append exclude each other")
	}
	var err error
	if o.Flavor, err = flavorOf(o.Provider, c.String("protocol")); err != nil {
		return o, err
	}
	switch {
	case o.Flavor.Transport == transport:
	case transport == flavors.Stdio:
		return o, tool.Usagef("%s does not speak on stdin and stdout", o.Flavor.Protocol)
	default:
		return o, tool.Usagef("%s does not speak HTTP", o.Flavor.Protocol)
	}
	if o.Workspace == "" {
		if o.Workspace, err = os.Getwd(); err != nil {
			return o, err
		}
	}
	for _, kv := range c.StringSlice("metadata") {
		key, value, ok := strings.Cut(kv, "=")
		if !ok || key == "" || value == "" {
			return o, tool.Usagef("metadata %q: want KEY=VALUE", kv)
		}
		if record.OwnMetadata(key) {
			return o, tool.Usagef("metadata %s is written by the recorder", key)
		}
		o.Metadata = append(o.Metadata, [2]string{key, value})
	}
	return o, nil
}

// providers completes --provider with those that speak as the command records,
// in the protocol that was given or in their usual one.
func providers(c *cli.Context) (list []tool.Candidate) {
	for _, f := range flavors.All {
		for _, name := range f.Providers {
			if usual, err := flavorOf(name, c.String("protocol")); err == nil && usual == f && speaks(c, f) {
				list = append(list, tool.Candidate{Word: name, About: f.Protocol})
			}
		}
	}
	return list
}

// protocols completes --protocol with those of the provider.
func protocols(c *cli.Context) (list []tool.Candidate) {
	for _, f := range flavors.All {
		if name := c.String("provider"); speaks(c, f) && (name == "" || slices.Contains(f.Providers, name)) {
			list = append(list, tool.Candidate{Word: f.Protocol, About: strings.Join(f.Providers, ", ")})
		}
	}
	return list
}

func speaks(c *cli.Context, f *flavors.Flavor) bool {
	return (c.Command.Name == "http") == (f.Transport == flavors.HTTP)
}

func flavorOf(provider, protocol string) (*flavors.Flavor, error) {
	if protocol == "" {
		f, err := flavors.ByProvider(provider)
		if err != nil {
			return nil, tool.Usagef("%v", err)
		}
		return f, nil
	}
	f, err := flavors.ByProtocol(protocol)
	if err != nil {
		return nil, tool.Usagef("%v", err)
	}
	return f, nil
}
