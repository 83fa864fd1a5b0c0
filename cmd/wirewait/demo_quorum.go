package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/urfave/cli/v2"

	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/trace/otlp"
)

// quorumLevels are the levels of synchronous_commit, from the weakest.
var quorumLevels = []string{"off", "local", "remote_write", "on", "remote_apply"}

// demoQuorumCommand shows what commits wait for on a primary with standbys.
func demoQuorumCommand() *cli.Command {
	return &cli.Command{
		Name:  "postgres",
		Usage: "a PostgreSQL primary with two standbys in other places: which of them released each commit",
		Description: "Starts a primary and two standbys from this machine's PostgreSQL binaries, s1 40 ms and\n" +
			"s2 120 ms away, writes at each level of synchronous_commit, and shows what the commits\n" +
			"waited for. It takes about ten seconds. Nothing stays but 30 MB in the temporary\n" +
			"directory that make the next start faster.",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "writes", Value: 40, Usage: "commits at each level"},
			&cli.StringFlag{Name: "names", Value: defaultPostgresWAN().syncNames, Usage: "synchronous_standby_names of the primary"},
			&cli.BoolFlag{Name: "json", Usage: "print the table as JSON, and progress on standard error"},
		},
		Action: func(c *cli.Context) error {
			if err := refuseArguments(c, "demo postgres takes flags only"); err != nil {
				return err
			}
			d := &demoQuorum{wan: defaultPostgresWAN(), writes: c.Int("writes"), json: c.Bool("json"),
				out: c.App.Writer, progress: c.App.Writer, errs: c.App.ErrWriter}
			d.wan.syncNames = c.String("names")
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

// demoQuorum is one run of it.
type demoQuorum struct {
	wan                 postgresWAN
	writes              int
	json                bool
	out, progress, errs io.Writer

	tracer  *trace.Tracer
	summary trace.Summary
	shown   keeper
	proxy   *proxy.Proxy
}

func (d *demoQuorum) check() string {
	if d.writes < 1 || d.writes > 10_000 {
		return fmt.Sprintf("--writes %d: write a number from 1 to 10000", d.writes)
	}
	names, err := trace.ParseStandbyNames(d.wan.syncNames)
	if err != nil {
		return "--names: " + err.Error()
	}
	var there []string
	for _, s := range d.wan.standbys {
		there = append(there, s.name)
	}
	if chosen, take := names.Choose(there, nil); take > len(chosen) {
		return fmt.Sprintf("--names %q: commits would wait for ever, for there are s1 and s2 only", d.wan.syncNames)
	}
	return ""
}

func (d *demoQuorum) run(ctx context.Context) (err error) {
	ctx, cancel := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	log := slog.New(slog.NewTextHandler(d.errs, &slog.HandlerOptions{Level: slog.LevelWarn}))
	info, _ := debug.ReadBuildInfo()
	exporter, err := otlp.Setup(ctx, otlp.Options{Version: moduleVersion(info), Log: log})
	if err != nil {
		return err
	}
	d.shown.want = func(f *trace.Finished) bool { return f.Concern() == "on" && f.Operation == "INSERT" }
	d.tracer = trace.New(4096, &d.summary, &d.shown, exporter)
	workErr := d.drive(ctx, log)
	d.tracer.Close()
	end, stop := context.WithTimeout(context.WithoutCancel(ctx), demoGrace)
	defer stop()
	if err := exporter.Shutdown(end); err != nil && workErr == nil {
		fmt.Fprintf(d.errs, "spans: %v\n", err)
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return d.print(exporter, workErr)
}

// drive starts cluster and links, runs the client, and ends them: standbys, the
// primary, then the links.
func (d *demoQuorum) drive(ctx context.Context, log *slog.Logger) (err error) {
	fmt.Fprintf(d.progress, "starting a PostgreSQL primary with %s\n", d.wan)
	defer func() {
		if d.proxy == nil {
			return
		}
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), demoGrace)
		defer cancel()
		err = errors.Join(err, d.proxy.Shutdown(end))
	}()
	cluster, err := d.wan.start(ctx, func() *trace.Tracer { return d.tracer }, func(links []proxy.LinkConfig) (*proxy.Proxy, error) {
		var err error
		d.proxy, err = proxy.Start(context.WithoutCancel(ctx), proxy.Config{Links: links, Tracer: d.tracer, Log: log})
		return d.proxy, err
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	fmt.Fprintf(d.progress, "server  PostgreSQL %s from %s\nclient  pgx: %d inserts at each level of synchronous_commit\n",
		cluster.Version(), cluster.BinDir(), d.writes)
	return d.work(ctx, cluster)
}

func (d *demoQuorum) work(ctx context.Context, c *lab.PostgresCluster) error {
	app := d.proxy.Link(wanAppLink).Addr().String()
	for i, level := range quorumLevels {
		fmt.Fprintf(d.progress, "        %s\n", level)
		url := c.URL(app)
		if i == 0 { // the table is made past the links, which is nobody's wait
			if err := insertAt(ctx, c.URL(c.Primary.Addr()), "local", 0); err != nil {
				return err
			}
		}
		if err := insertAt(ctx, url, level, d.writes); err != nil {
			return fmt.Errorf("synchronous_commit = %s: %w", level, err)
		}
	}
	fmt.Fprintln(d.progress)
	return nil
}

// insertAt makes n inserts at a level; with none it makes the table.
func insertAt(ctx context.Context, url, level string, n int) (err error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return err
	}
	config.RuntimeParams["application_name"] = "wirewait demo"
	config.RuntimeParams["synchronous_commit"] = level
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if n == 0 {
		_, err = conn.Exec(ctx, "create table orders (id bigserial primary key, item text not null)")
		return err
	}
	for i := range n {
		if _, err := conn.Exec(ctx, insertOrder, fmt.Sprintf("%s %d", level, i)); err != nil {
			return err
		}
	}
	return nil
}

// rows are the application's writes by level, from the weakest.
func (d *demoQuorum) rows() []trace.Row {
	rows := d.summary.Group(trace.By{Link: true})
	rows = slices.DeleteFunc(rows, func(r trace.Row) bool { return r.Link != wanAppLink })
	slices.SortStableFunc(rows, func(a, b trace.Row) int {
		return slices.Index(quorumLevels, a.Concern) - slices.Index(quorumLevels, b.Concern)
	})
	return rows
}
