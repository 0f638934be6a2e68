package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/replaypeer/replaypeer/internal/model"
	"github.com/replaypeer/replaypeer/internal/tool"
)

func modelCommand(ctx context.Context) *cli.Command {
	return &cli.Command{
		Name:  "model",
		Usage: "serve a scripted model on loopback",
		UsageText: "replay-record model --script FILE [--listen ADDR] [--log FILE] [--until-eof]\n\n" +
			"Example: replay-record model --script transcripts/simple/model.yaml --listen 127.0.0.1:8700\n\n" +
			"Prints its URL when it listens. Speaks OpenAI Responses and Chat Completions, Anthropic Messages, and Gemini.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "script", Usage: "what the model says"},
			&cli.StringFlag{Name: "listen", Value: "127.0.0.1:0", Usage: "loopback address"},
			&cli.StringFlag{Name: "log", Usage: "write every request to `FILE`, one JSON object a line"},
			&cli.BoolFlag{Name: "until-eof", Usage: "end when stdin ends, too"},
		},
		Action: func(c *cli.Context) error { return modelAction(ctx, c) },
	}
}

func modelAction(ctx context.Context, c *cli.Context) error {
	if c.String("script") == "" || c.NArg() > 0 {
		return tool.Usagef("model needs --script, and no arguments")
	}
	script, err := model.Load(c.String("script"))
	if err != nil {
		return err
	}
	var log io.Writer
	if name := c.String("log"); name != "" {
		f, err := os.Create(name)
		if err != nil {
			return err
		}
		defer f.Close()
		log = f
	}
	listener, err := model.Listen(c.String("listen"))
	if err != nil {
		return err
	}
	note := func(text string) { fmt.Fprintf(c.App.ErrWriter, "%s: %s\n", c.App.Name, text) }
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if c.Bool("until-eof") {
		ctx = untilEOF(ctx, c.App.Reader)
	}
	if _, err := fmt.Fprintf(c.App.Writer, "http://%s\n", listener.Addr()); err != nil {
		return err
	}
	return model.New(script, log, note).Serve(ctx, listener)
}

// untilEOF returns a context that ends when r does.
func untilEOF(ctx context.Context, r io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		io.Copy(io.Discard, r) // how it ends does not matter
	}()
	return ctx
}
