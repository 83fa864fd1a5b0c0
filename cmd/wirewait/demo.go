package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/trace/otlp"
	"github.com/wirewait/wirewait/wire"
)

// demoGrace is what each part of the demo's end may take.
const demoGrace = 5 * time.Second

// demoCommand shows in a few seconds what wirewait does: a real client, a WAN,
// and what each write waited for.
func demoCommand() *cli.Command {
	return &cli.Command{
		Name:  "demo",
		Usage: "run a client through a WAN to a throwaway server, and show what its writes waited for",
		Description: "With PostgreSQL server binaries on this machine, demo starts a throwaway server,\n" +
			"puts itself in front of it as a WAN, and reads and writes through it. Without them\n" +
			"it does the same with a MongoDB replica set in this process, a model of the real one.\n" +
			"It installs nothing. Servers, their files and connections are gone at its end, but\n" +
			"for 30 MB in the temporary directory that make the next start faster.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "protocol", Usage: "which server: postgres or mongodb (default: postgres if its server binaries are found)"},
			&cli.DurationFlag{Name: "rtt", Value: 40 * time.Millisecond, Usage: "the WAN's round trip"},
			&cli.DurationFlag{Name: "jitter", Value: 2 * time.Millisecond, Usage: "the one-way delay's jitter, up and down"},
			&cli.BoolFlag{Name: "json", Usage: "print the table of waits as JSON, and progress on standard error"},
		},
		Subcommands: []*cli.Command{demoQuorumCommand()},
		Action: func(c *cli.Context) error {
			if err := refuseArguments(c, "demo takes flags only"); err != nil {
				return err
			}
			d := &demo{
				protocol: c.String("protocol"), rtt: c.Duration("rtt"), jitter: c.Duration("jitter"),
				json: c.Bool("json"), out: c.App.Writer, progress: c.App.Writer, errs: c.App.ErrWriter,
			}
			if d.json {
				d.progress = d.errs
			}
			if problem := d.check(); problem != "" {
				return &usageError{commandName(c), []string{problem}}
			}
			if err := d.run(c.Context); err != nil {
				return fmt.Errorf("%s: %w", commandName(c), err)
			}
			return nil
		},
	}
}

// demo is one run of the demo.
type demo struct {
	protocol      string
	rtt, jitter   time.Duration
	json          bool
	out, progress io.Writer
	errs          io.Writer
}

// demoServer is what the demo's client talks to.
type demoServer struct {
	protocol wire.Protocol
	addr     string
	about    string // the server, in a line
	workload string // what work does, in a line
	// work is the client: it reads and writes through addr.
	work func(ctx context.Context, addr string) error
	// show says of a write whether it's worth being drawn.
	show func(*trace.Finished) bool
	stop func() error
}

// check says what's wrong with the flags; empty: nothing.
func (d *demo) check() string {
	switch {
	case d.rtt < 0 || d.jitter < 0:
		return "--rtt and --jitter can't be negative"
	case d.protocol != "" && d.protocol != "postgres" && d.protocol != "mongodb":
		return fmt.Sprintf("--protocol %q: use postgres or mongodb", d.protocol)
	}
	return ""
}

func (d *demo) run(ctx context.Context) (err error) {
	ctx, cancel := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	server, err := d.startServer(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	return d.measure(ctx, server)
}

// startServer picks the server that was asked for. PostgreSQL is preferred: it
// is real.
func (d *demo) startServer(ctx context.Context) (*demoServer, error) {
	switch d.protocol {
	case "mongodb":
		return startDemoMongo(ctx)
	case "postgres":
		return startDemoPostgres(ctx)
	}
	server, err := startDemoPostgres(ctx)
	if errors.Is(err, lab.ErrNoPostgres) {
		fmt.Fprintf(d.progress, "%v.\nUntil then, a MongoDB peer in this process:\n\n", err)
		return startDemoMongo(ctx)
	}
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w (or use --protocol mongodb)", err)
	}
	return server, err
}

// measure puts the proxy in front of the server, runs the client through it, and
// prints what was seen.
func (d *demo) measure(ctx context.Context, server *demoServer) error {
	log := slog.New(slog.NewTextHandler(d.errs, &slog.HandlerOptions{Level: slog.LevelWarn}))
	info, _ := debug.ReadBuildInfo()
	exporter, err := otlp.Setup(ctx, otlp.Options{Version: moduleVersion(info), Log: log})
	if err != nil {
		return err
	}
	var summary trace.Summary
	shown := &keeper{want: server.show}
	tracer := trace.New(4096, &summary, shown, exporter)
	workErr := d.drive(ctx, server, tracer, log)
	tracer.Close()

	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), demoGrace)
	defer cancel()
	exportErr := exporter.Shutdown(end)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if workErr != nil {
		return fmt.Errorf("the demo's client: %w", workErr)
	}
	if exportErr != nil {
		fmt.Fprintf(d.errs, "spans: %v\n", exportErr)
	}
	return d.print(server, &summary, shown, exporter)
}

// drive runs the client through a proxy, and returns when both are done, so that
// every exchange has reached the tracer.
func (d *demo) drive(ctx context.Context, server *demoServer, tracer *trace.Tracer, log *slog.Logger) (err error) {
	link := proxy.LinkConfig{
		Name: "demo", From: "app", To: "server", Listen: "127.0.0.1:0", Upstream: server.addr,
		Protocol: server.protocol, Delay: inject.Symmetric(d.rtt, d.jitter),
	}
	if server.protocol == wire.MongoDB {
		link.Set = "demo"
	}
	// The context ends the client. The proxy stays until the client has gone.
	p, err := proxy.Start(context.WithoutCancel(ctx), proxy.Config{
		Tracer: tracer, Reads: true, Log: log,
		Links: []proxy.LinkConfig{link},
	})
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), demoGrace)
		defer cancel()
		err = errors.Join(err, p.Shutdown(end))
	}()
	addr := p.Link("demo").Addr().String()
	fmt.Fprintf(d.progress, "server  %s\nwan     %v round trip, jitter %v each way, in front of it on %s\nclient  %s\n\n",
		server.about, d.rtt, d.jitter, addr, server.workload)
	return server.work(ctx, addr)
}
