package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/wirewait/wirewait/trace/otlp"
)

// labAction is a lab's: parse says what the flags ask for, and run goes on until
// it's asked to stop.
func labAction[L interface{ run(context.Context) error }](parse func(*reader) L) cli.ActionFunc {
	return func(c *cli.Context) error {
		if err := refuseArguments(c, strings.TrimPrefix(commandName(c), "wirewait ")+" takes flags only"); err != nil {
			return err
		}
		r := &reader{Context: c}
		l := parse(r)
		if err := r.err(); err != nil {
			return err
		}
		if err := l.run(c.Context); err != nil {
			return fmt.Errorf("%s: %w", commandName(c), err)
		}
		return nil
	}
}

// labFlags are those of every lab, after its own.
func labFlags(level string, own ...cli.Flag) []cli.Flag {
	return append(own,
		&cli.StringFlag{Name: "admin", Value: defaultAdmin, Usage: "`HOST:PORT` of the page, /v1, /metrics and /healthz, or off"},
		&cli.StringFlag{Name: "log-level", Value: level, Usage: "debug, info, warn or error"},
	)
}

// labService is what its links will be served by.
func labService(r *reader) *service {
	o := runOptions{children: otlp.ChildrenAuto, admin: r.admin(), drain: demoGrace}
	_ = o.level.UnmarshalText([]byte(r.choice("log-level", "debug", "info", "warn", "error")))
	return &service{options: o, log: slog.New(slog.NewTextHandler(r.App.ErrWriter, &slog.HandlerOptions{Level: o.level}))}
}

// labCommand starts servers to try things on, and leaves them running.
func labCommand() *cli.Command {
	return &cli.Command{
		Name:      "lab",
		Usage:     "start a cluster in several places, with links between its members, and leave it running",
		UsageText: "wirewait lab postgres|mongodb [FLAGS]",
		Subcommands: []*cli.Command{
			labPostgresCommand(), labMongoCommand(),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return &usageError{"wirewait lab", []string{"say which: wirewait lab postgres, or wirewait lab mongodb"}}
			}
			return &usageError{"wirewait lab", []string{fmt.Sprintf("unknown lab %q: wirewait lab postgres, or wirewait lab mongodb", c.Args().First())}}
		},
	}
}
