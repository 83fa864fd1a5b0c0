package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/urfave/cli/v2"

	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/trace"
)

const insertOrder = "insert into orders (item) values ($1)"

func (w *postgresWAN) key() string { return "synchronous_commit" }

// levels of synchronous_commit, from the weakest.
func (w *postgresWAN) levels() []string {
	return []string{"off", "local", "remote_write", "on", "remote_apply"}
}

func (w *postgresWAN) shown(f *trace.Finished) bool {
	return f.Concern() == "on" && f.Operation == "INSERT"
}

func (w *postgresWAN) setup(c *cli.Context) error {
	w.syncNames = c.String("names")
	names, err := trace.ParseStandbyNames(w.syncNames)
	if err != nil {
		return fmt.Errorf("--names: %w", err)
	}
	var there []string
	for _, s := range w.standbys {
		there = append(there, s.name)
	}
	if chosen, take := names.Choose(there, nil); take > len(chosen) {
		return fmt.Errorf("--names %q: commits would wait for ever, for there are s1 and s2 only", w.syncNames)
	}
	return nil
}

// work starts cluster and links, runs the client, and ends the cluster: standbys,
// then the primary.
func (w *postgresWAN) work(ctx context.Context, d *demo) (err error) {
	cluster, err := w.start(ctx, func() *trace.Tracer { return d.tracer }, d.open(ctx))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	fmt.Fprintf(d.progress, "server  PostgreSQL %s from %s\nclient  pgx: %d inserts at each level of synchronous_commit\n",
		cluster.Version(), cluster.BinDir(), d.writes)
	return w.insert(ctx, d, cluster)
}

func (w *postgresWAN) insert(ctx context.Context, d *demo, c *lab.PostgresCluster) error {
	// The table is made past the links, which is nobody's wait.
	if err := insertAt(ctx, c.URL(c.Primary.Addr()), "local", 0); err != nil {
		return err
	}
	url := c.URL(d.proxy.Link(wanAppLink).Addr().String())
	for _, level := range w.levels() {
		fmt.Fprintf(d.progress, "        %s\n", level)
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
