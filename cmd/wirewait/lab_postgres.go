package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/proxy/observe"
	"github.com/wirewait/wirewait/trace"
)

func labPostgresCommand() *cli.Command {
	w := defaultPostgresWAN()
	return &cli.Command{
		Name:      "postgres",
		Usage:     "a PostgreSQL primary with standbys, from this machine's binaries",
		UsageText: "wirewait lab postgres [--standby NAME=RTT]... [--names VALUE] [--admin HOST:PORT]",
		Description: "Each standby streams from the primary through a link of its own, as far away as you\n" +
			"say. Spans and wirewait report tell which standby released each commit. Connection\n" +
			"strings are printed on standard output; SIGINT or SIGTERM ends it all, and nothing\n" +
			"stays but 30 MB in the temporary directory that make the next start faster.\n" +
			"WIREWAIT_POSTGRES_BIN is the directory of other server binaries.",
		Flags: labFlags("warn",
			&cli.StringSliceFlag{Name: "standby", Usage: "a standby's `NAME=RTT`, its round trip to the primary (default: s1=40ms, s2=120ms)"},
			&cli.StringFlag{Name: "names", Value: w.syncNames, Usage: "synchronous_standby_names of the primary"},
		),
		Action: labAction(parseLabPostgres),
	}
}

// labPostgres is one run of the lab.
type labPostgres struct {
	wan     postgresWAN
	service *service
	out     io.Writer
}

func parseLabPostgres(r *reader) *labPostgres {
	w := defaultPostgresWAN()
	w.syncNames = r.String("names")
	if list := r.StringSlice("standby"); len(list) > 0 {
		w.standbys = nil
		for _, v := range list {
			name, d, ok := strings.Cut(v, "=")
			rtt, err := time.ParseDuration(d)
			if !ok || name == "" || err != nil || rtt < 0 {
				r.problem("--standby %q: write NAME=RTT, such as s1=40ms", v)
			}
			w.standbys = append(w.standbys, farStandby{name, rtt})
		}
	}
	if _, err := trace.ParseStandbyNames(w.syncNames); err != nil {
		r.problem("--names: %v", err)
	}
	return &labPostgres{wan: w, out: r.App.Writer, service: labService(r)}
}

// run returns when it's asked to stop, and everything has ended: standbys, the
// primary, then the links that lead to it.
func (l *labPostgres) run(ctx context.Context) (err error) {
	ctx, cancel := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	defer func() { l.service.stop(context.WithoutCancel(ctx)) }()
	cluster, err := l.wan.start(ctx, func() *trace.Tracer { return l.service.tracer }, func(links []proxy.LinkConfig) (*proxy.Proxy, error) {
		l.service.options.links = links
		err := l.service.start(ctx)
		return l.service.proxy.Load(), err
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	l.observe(cluster)
	l.print(cluster)
	<-ctx.Done()
	l.service.observers.stop() // before the servers go
	return nil
}

// observe asks the lab's servers what they do, as a file's observe would.
func (l *labPostgres) observe(c *lab.PostgresCluster) {
	ctx, cancel := context.WithCancel(context.Background())
	l.service.observers.cancel = cancel
	primary := &observe.Sampler{Server: wanPrimary, URI: c.URL(c.Primary.Addr()), Log: l.service.log}
	for _, n := range c.Standbys {
		name := "pg." + n.Name()
		primary.Members = append(primary.Members, observe.Member{Name: name, Hosts: []string{n.Name()}})
		l.service.sample(ctx, &observe.Sampler{Server: name, URI: c.URL(n.Addr()), Log: l.service.log})
	}
	l.service.sample(ctx, primary)
}

// print says where everything is.
func (l *labPostgres) print(c *lab.PostgresCluster) {
	fmt.Fprintf(l.out, "PostgreSQL %s from %s: %s\n\n", c.Version(), c.BinDir(), &l.wan)
	app := l.service.proxy.Load().Link(wanAppLink).Addr().String()
	fmt.Fprintf(l.out, "through wirewait   %s\n", c.URL(app))
	fmt.Fprintf(l.out, "the primary        %s\n", c.URL(c.Primary.Addr()))
	for _, s := range c.Standbys {
		fmt.Fprintf(l.out, "standby %-10s %s\n", s.Name(), c.URL(s.Addr()))
	}
	fmt.Fprintln(l.out)
	l.service.announce(l.out)
	fmt.Fprintln(l.out, "SIGINT (Ctrl-C) ends it")
}
