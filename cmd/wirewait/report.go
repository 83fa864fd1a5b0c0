package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wirewait/wirewait/proxy/admin"
)

func reportCommand() *cli.Command {
	return &cli.Command{
		Name:      "report",
		Usage:     "print what the writes of a running wirewait waited for, and how its links do",
		UsageText: "wirewait report [--watch] [--admin HOST:PORT] [--json]",
		Description: "Times are since wirewait started, or since report --reset. The exit code is 1, with\n" +
			"\"0 writes seen\", if nothing came through, and 1 if no wirewait answers.",
		Flags: clientFlags(
			&cli.StringFlag{Name: "by", Value: "link", Usage: "what to tell apart besides the write concern: link, operation, basis, replication (how its part is known; `WORDS` with commas)"},
			&cli.BoolFlag{Name: "reads", Usage: "with reads and all else that isn't a write"},
			&cli.BoolFlag{Name: "watch", Usage: "print again and again, until SIGINT"},
			&cli.DurationFlag{Name: "every", Value: time.Second, Usage: "how often --watch does"},
			&cli.BoolFlag{Name: "reset", Usage: "begin to count the writes afresh, once they are printed"},
			jsonFlag(),
		),
		Action: func(c *cli.Context) error {
			if c.Duration("every") <= 0 {
				return &usageError{commandName(c), []string{fmt.Sprintf("--every %v: write a time above 0", c.Duration("every"))}}
			}
			if c.Bool("watch") && c.Bool("reset") {
				return &usageError{commandName(c), []string{"--reset and --watch: leave one out"}}
			}
			return withServer(c, 0, func(server *client) error {
				r := &report{server: server, out: c.App.Writer, json: c.Bool("json")}
				r.query = "?by=" + c.String("by")
				if c.Bool("reads") {
					r.query += "&reads=true"
				}
				if c.Bool("watch") {
					return r.watch(c.Context, c.Duration("every"))
				}
				return r.once(c.Context, c.Bool("reset"))
			})
		},
	}
}

// report is what is known of a running wirewait at one moment, and how to learn
// and print it.
type report struct {
	server *client
	out    io.Writer
	query  string
	json   bool

	now reported
}

// reported is the answer for --json.
type reported struct {
	Waits admin.Waits  `json:"waits"`
	Links []admin.Link `json:"links"`
}

// errNothing is how a report says that it had nothing to say.
var errNothing = errors.New("0 writes seen: does the application dial the links, and is its protocol read (encrypted connections aren't)?")

func (r *report) fetch(ctx context.Context) error {
	var links admin.Links
	r.now = reported{}
	if err := r.server.get(ctx, "/v1/waits"+r.query, &r.now.Waits); err != nil {
		return err
	}
	if err := r.server.get(ctx, "/v1/links", &links); err != nil {
		return err
	}
	r.now.Links = links.Links
	return nil
}

func (r *report) once(ctx context.Context, reset bool) error {
	if err := r.fetch(ctx); err != nil {
		return err
	}
	if reset {
		if err := r.server.do(ctx, "DELETE", "/v1/waits", nil, nil); err != nil {
			return err
		}
	}
	if err := r.print(0); err != nil {
		return err
	}
	return r.verdict()
}

// watch prints until it's interrupted, which is its regular end.
func (r *report) watch(ctx context.Context, every time.Duration) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	tick := time.NewTicker(every)
	defer tick.Stop()
	var before uint64
	for first := true; ; first = false {
		last := r.now
		err := r.fetch(ctx)
		if ctx.Err() != nil {
			r.now = last // what was printed, not what was cut short
			return r.verdict()
		}
		if err != nil {
			return err
		}
		rate := 0.0
		if !first && r.now.Waits.Writes >= before { // else it began afresh
			rate = float64(r.now.Waits.Writes-before) / every.Seconds()
		}
		before = r.now.Waits.Writes
		if !r.json && isTerminal(r.out) {
			fmt.Fprint(r.out, "\x1b[H\x1b[2J") // to the top, and clear
		}
		if err := r.print(rate); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return r.verdict()
		}
	}
}

// verdict is an error if nothing came through.
func (r *report) verdict() error {
	if r.now.Waits.Writes == 0 {
		return errNothing
	}
	return nil
}

// print is a table, or with --json an object. A rate of 0 isn't shown.
func (r *report) print(rate float64) error {
	if r.json {
		return printJSON(r.out, r.now)
	}
	_, err := io.WriteString(r.out, renderReport(&r.now, rate))
	return err
}
