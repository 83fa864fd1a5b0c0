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

	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/proxy/admin"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/trace/otlp"
)

// demoGrace is what each part of the demo's end may take.
const demoGrace = 5 * time.Second

// demoCommand shows in a few seconds what wirewait does: real clients, a cluster
// in several places, and what each write waited for.
func demoCommand() *cli.Command {
	command := demoClusterCommand("demo", func() demoCluster { w := defaultMongoWAN(); return &w })
	command.Usage = "a MongoDB replica set in three places: what each write waited for, and who released it"
	command.Description = "Starts a replica set of three members in this process, a model of mongod 8.0 with\n" +
		"journals on disk, puts links in front of its members as a WAN between three places,\n" +
		"writes through them with w:1, w:1 j:true, majority and w:3, and shows what the writes\n" +
		"waited for. It needs nothing installed, takes about 20 seconds, and leaves nothing\n" +
		"behind. wirewait demo postgres does the same with a real PostgreSQL."
	command.Subcommands = []*cli.Command{demoPostgresCommand()}
	return command
}

func demoPostgresCommand() *cli.Command {
	command := demoClusterCommand("postgres", func() demoCluster { w := defaultPostgresWAN(); return &w })
	command.Usage = "a PostgreSQL primary with two standbys in other places: which of them released each commit"
	command.Description = "Starts a primary and two standbys from this machine's PostgreSQL binaries, s1 40 ms and\n" +
		"s2 120 ms away, writes at each level of synchronous_commit, and shows what the commits\n" +
		"waited for. It takes about ten seconds. Nothing stays but 30 MB in the temporary\n" +
		"directory that make the next start faster."
	command.Flags = append(command.Flags,
		&cli.StringFlag{Name: "names", Value: defaultPostgresWAN().syncNames, Usage: "synchronous_standby_names of the primary"})
	return command
}

// demoCluster is a cluster in several places, and a client of it.
type demoCluster interface {
	fmt.Stringer
	// setup takes in the flags that are its own, and says what is wrong with them.
	setup(*cli.Context) error
	// work starts the cluster behind links that d opens, writes d.writes times at
	// each level, and ends the cluster.
	work(ctx context.Context, d *demo) error
	// key is what the rows of the table differ in, and levels are they in order.
	key() string
	levels() []string
	// shown says of a write whether it's worth being drawn.
	shown(*trace.Finished) bool
}

func demoClusterCommand(name string, cluster func() demoCluster) *cli.Command {
	return &cli.Command{
		Name: name,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "writes", Value: 40, Usage: "how many with each write concern or level"},
			&cli.Uint64Flag{Name: "seed", Value: 1, Usage: "of what is left to chance"},
			&cli.StringFlag{Name: "admin", Value: "127.0.0.1:0", Usage: "`HOST:PORT` of the page, of a free port if it's 0, or off"},
			&cli.BoolFlag{Name: "json", Usage: "print the table as JSON, and progress on standard error"},
		},
		Action: func(c *cli.Context) error {
			if err := refuseArguments(c, commandName(c)+" takes flags only"); err != nil {
				return err
			}
			d := &demo{
				cluster: cluster(), writes: c.Int("writes"), seed: c.Uint64("seed"), json: c.Bool("json"),
				out: c.App.Writer, progress: c.App.Writer, errs: c.App.ErrWriter,
			}
			if d.json {
				d.progress = d.errs
			}
			if d.writes < 1 || d.writes > 10_000 {
				return &usageError{commandName(c), []string{fmt.Sprintf("--writes %d: write a number from 1 to 10000", d.writes)}}
			}
			var err error
			if d.page, err = demoPage(c.String("admin")); err != nil {
				return &usageError{commandName(c), []string{err.Error()}}
			}
			if err := d.cluster.setup(c); err != nil {
				return &usageError{commandName(c), []string{err.Error()}}
			}
			if err := d.run(c.Context); err != nil {
				return fmt.Errorf("%s: %w", commandName(c), err)
			}
			return nil
		},
	}
}

// demo is one run of it.
type demo struct {
	cluster             demoCluster
	writes              int
	seed                uint64
	json                bool
	out, progress, errs io.Writer

	tracer  *trace.Tracer
	summary trace.Summary
	slow    trace.Slow
	kept    keeper
	proxy   *proxy.Proxy
	page    string        // where to listen; empty: nowhere
	admin   *admin.Server // nil: no page
}

func (d *demo) run(ctx context.Context) (err error) {
	ctx, cancel := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	log := slog.New(slog.NewTextHandler(d.errs, &slog.HandlerOptions{Level: slog.LevelWarn}))
	info, _ := debug.ReadBuildInfo()
	exporter, err := otlp.Setup(ctx, otlp.Options{Version: moduleVersion(info), Log: log})
	if err != nil {
		return err
	}
	d.kept.want = d.cluster.shown
	d.tracer = trace.New(4096, &d.summary, &d.slow, &d.kept, exporter)
	workErr := d.drive(ctx)
	d.tracer.Close()
	end, stop := context.WithTimeout(context.WithoutCancel(ctx), demoGrace)
	defer stop()
	if err := exporter.Shutdown(end); err != nil && workErr == nil {
		fmt.Fprintf(d.errs, "spans: %v\n", err)
	}
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted")
	case workErr != nil:
		return workErr
	}
	return d.print(exporter)
}

// drive has the cluster work, and ends the links once it's gone.
func (d *demo) drive(ctx context.Context) (err error) {
	fmt.Fprintf(d.progress, "starting %s\n", d.cluster)
	defer func() {
		if d.proxy == nil {
			return
		}
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), demoGrace)
		defer cancel()
		err = errors.Join(err, d.closePage(end), d.proxy.Shutdown(end))
	}()
	return d.cluster.work(ctx, d)
}

// open opens links. They stay until the cluster has gone, whatever ends ctx.
func (d *demo) open(ctx context.Context) func([]proxy.LinkConfig) (*proxy.Proxy, error) {
	return func(links []proxy.LinkConfig) (_ *proxy.Proxy, err error) {
		// Members dial each other before all of them are there: that's no news.
		log := slog.New(slog.NewTextHandler(d.errs, &slog.HandlerOptions{Level: slog.LevelError}))
		d.proxy, err = proxy.Start(context.WithoutCancel(ctx), proxy.Config{Links: links, Tracer: d.tracer, Seed: d.seed, Log: log})
		if err == nil {
			err = d.servePage()
		}
		return d.proxy, err
	}
}
