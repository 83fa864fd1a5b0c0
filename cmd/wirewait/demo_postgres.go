package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// How much the PostgreSQL client does for each level of synchronous_commit. The
// batch updates, so that in the table it isn't mixed with single inserts.
const (
	pgReads   = 8
	pgWrites  = 8
	pgInBlock = 4
	pgInBatch = 10
)

// pgLevels are those that differ on a server without standbys; "on" waits for
// its own disk there, and for a standby's as soon as one is listed.
var pgLevels = []string{"off", "local", "on"}

func startDemoPostgres(ctx context.Context) (*demoServer, error) {
	pg, err := lab.StartPostgres(ctx, lab.PostgresOptions{})
	if err != nil {
		return nil, err
	}
	if err := prepareDemoPostgres(ctx, pg); err != nil {
		return nil, errors.Join(err, pg.Stop())
	}
	return &demoServer{
		protocol: wire.Postgres,
		addr:     pg.Addr(),
		about:    fmt.Sprintf("PostgreSQL %s from %s, started for this on %s", pg.Version(), pg.BinDir(), pg.Addr()),
		workload: fmt.Sprintf("pgx: for synchronous_commit off, local, on each %d reads, %d inserts by themselves, a block of %d more, a batch of %d updates",
			pgReads, pgWrites, pgInBlock, pgInBatch),
		work: func(ctx context.Context, addr string) error {
			for _, level := range pgLevels {
				if err := workPostgres(ctx, pg.URL(addr), level); err != nil {
					return fmt.Errorf("synchronous_commit = %s: %w", level, err)
				}
			}
			return nil
		},
		show: func(f *trace.Finished) bool {
			return f.Concern() == "on" && f.Operation == "INSERT" && f.Postgres.Shared <= 1
		},
		stop: pg.Stop,
	}, nil
}

// prepareDemoPostgres makes the table, past the proxy.
func prepareDemoPostgres(ctx context.Context, pg *lab.Postgres) error {
	conn, err := pgx.Connect(ctx, pg.URL(pg.Addr()))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "create table orders (id bigserial primary key, item text not null, at timestamptz default now())")
	return errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
}

const insertOrder = "insert into orders (item) values ($1)"

// workPostgres is one session at one level of synchronous_commit.
func workPostgres(ctx context.Context, url, level string) (err error) {
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

	for i := range pgReads {
		var n int
		if err := conn.QueryRow(ctx, "select count(*) from orders where id > $1", i).Scan(&n); err != nil {
			return err
		}
	}
	for i := range pgWrites {
		if _, err := conn.Exec(ctx, insertOrder, fmt.Sprintf("autocommit %d", i)); err != nil {
			return err
		}
	}
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for i := range pgInBlock {
			if _, err := tx.Exec(ctx, insertOrder, fmt.Sprintf("block %d", i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	var batch pgx.Batch
	for i := range pgInBatch {
		batch.Queue("update orders set item = $1 where id = $2", "batch", i+1)
	}
	return conn.SendBatch(ctx, &batch).Close()
}
