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
		UsageText: "wirewait report [--watch] [--admin HOST:PORT] [--observe URI] [--json]",
		Description: "Times are since wirewait started, or since report --reset. The exit code is 1, with\n" +
			"\"0 writes seen\", if nothing came through, and 1 if no wirewait answers.",
		Flags: clientFlags(
			&cli.StringFlag{Name: "by", Value: "link", Usage: "what to tell apart besides the write concern: link, operation, basis, replication (how its part is known; `WORDS` with commas)"},
			&cli.BoolFlag{Name: "reads", Usage: "with reads and all else that isn't a write"},
			&cli.BoolFlag{Name: "watch", Usage: "print again and again, until SIGINT"},
			&cli.DurationFlag{Name: "every", Value: time.Second, Usage: "how often --watch does"},
			&cli.StringFlag{Name: "observe", EnvVars: []string{"WIREWAIT_OBSERVE"}, Usage: "ask this server too what it does, by second: mongodb:// or postgres:// `URI`, of which the password shows nowhere; with --admin off nothing else"},
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
			uri := c.String("observe")
			if uri != "" && c.String("admin") == "off" {
				return withoutServer(c, uri)
			}
			return withServer(c, 0, func(server *client) error {
				r := &report{server: server, out: c.App.Writer, json: c.Bool("json")}
				r.query = "?by=" + c.String("by")
				if uri != "" {
					r.observer = startObserver(c.Context, uri, c.Duration("every"), c.App.ErrWriter)
					defer r.observer.stop()
				}
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
	server   *client   // nil: only the observer's server
	observer *observer // nil: nobody is asked besides
	out      io.Writer
	query    string
	json     bool

	now reported
}

// reported is the answer for --json.
type reported struct {
	Waits admin.Waits  `json:"waits"`
	Links []admin.Link `json:"links"`
	// Observed are servers that were asked what they do.
	Observed []admin.ObservedServer `json:"observed,omitempty"`
}

// withoutServer is a report of what a server does and nothing else.
func withoutServer(c *cli.Context, uri string) error {
	if err := refuseArguments(c, "report takes flags only"); err != nil {
		return err
	}
	if c.Bool("reset") {
		return &usageError{commandName(c), []string{"--reset and --admin off: leave one out"}}
	}
	r := &report{out: c.App.Writer, json: c.Bool("json"), observer: startObserver(c.Context, uri, c.Duration("every"), c.App.ErrWriter)}
	defer r.observer.stop()
	report := func() error { return r.once(c.Context, false) }
	if c.Bool("watch") {
		report = func() error { return r.watch(c.Context, c.Duration("every")) }
	}
	if err := report(); err != nil {
		return fmt.Errorf("%s: %w", commandName(c), err)
	}
	return nil
}

// errNothing is how a report says that it had nothing to say.
var errNothing = errors.New("0 writes seen: does the application dial the links, and is its protocol read (encrypted connections aren't)?")

func (r *report) fetch(ctx context.Context) error {
	r.now = reported{}
	if r.observer != nil {
		if err := r.observer.wait(ctx); err != nil {
			return err
		}
		r.now.Observed = append(r.now.Observed, r.observer.observed())
	}
	if r.server == nil {
		return nil
	}
	var links admin.Links
	var observed admin.Observed
	if err := r.server.get(ctx, "/v1/waits"+r.query, &r.now.Waits); err != nil {
		return err
	}
	if err := r.server.get(ctx, "/v1/links", &links); err != nil {
		return err
	}
	r.now.Links = links.Links
	if err := r.server.get(ctx, fmt.Sprintf("/v1/observed?limit=%d", observedSeconds), &observed); err != nil {
		return err
	}
	r.now.Observed = append(observed.Servers, r.now.Observed...)
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
	if r.server != nil && r.now.Waits.Writes == 0 {
		return errNothing
	}
	return nil
}

// print is a table, or with --json an object. A rate of 0 isn't shown.
func (r *report) print(rate float64) error {
	if r.json {
		return printJSON(r.out, r.now)
	}
	text := ""
	if r.server != nil {
		text = renderReport(&r.now, rate)
	}
	for i := range r.now.Observed {
		if text != "" {
			text += "\n"
		}
		text += observedTable(&r.now.Observed[i])
	}
	_, err := io.WriteString(r.out, text)
	return err
}
