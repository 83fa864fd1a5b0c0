package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/internal/study"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// primary is what links call a PostgreSQL primary.
const primary = "pg.p"

// Postgres is a PostgreSQL primary, with or without standbys.
type Postgres struct {
	// Lab are the servers that were started; nil: they are real ones, and there are
	// no links.
	Lab *lab.PostgresCluster

	direct string // the primary's connection string, past all links
	uri    string
	begun  bool // something may have been written
	links  links
}

// StartPostgres takes the primary of r.URI, or starts one with these standbys and
// settings, and a link for each. Close ends it.
func StartPostgres(ctx context.Context, r *study.Run, standbys []string, settings map[string]string) (_ *Postgres, err error) {
	p := &Postgres{uri: r.URI, direct: r.URI}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	if p.uri == "" {
		if err := p.startLab(ctx, r, standbys, settings); err != nil {
			return nil, err
		}
	}
	conn, err := p.dial(ctx, p.direct, "local")
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	p.begun = true
	// What an earlier run left, if it was killed, would be in the way.
	for _, sql := range []string{"drop table if exists " + Table, "create table " + Table + " (id bigserial primary key, client int, counter int not null default 0, text text)"} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return nil, fmt.Errorf("begin with an empty table %s: %w", Table, err)
		}
	}
	return p, nil
}

func (p *Postgres) startLab(ctx context.Context, r *study.Run, standbys []string, settings map[string]string) (err error) {
	p.Lab, err = lab.StartPostgresCluster(ctx, lab.PostgresClusterOptions{
		Standbys: standbys, Settings: settings,
		Through: func(addr string) (map[string]string, error) {
			link := func(from string) proxy.LinkConfig {
				return proxy.LinkConfig{Name: from, From: from, To: primary, Listen: "127.0.0.1:0", Upstream: addr, Protocol: wire.Postgres}
			}
			list := []proxy.LinkConfig{link(app)}
			for _, s := range standbys {
				list = append(list, link("pg."+s))
			}
			if err := p.links.open(list, r.Seed); err != nil {
				return nil, err
			}
			through := map[string]string{}
			for _, s := range standbys {
				through[s] = p.links.addr("pg." + s)
			}
			return through, nil
		},
	})
	if err != nil {
		return err
	}
	p.uri, p.direct = p.Lab.URL(p.links.addr(app)), p.Lab.URL(p.Lab.Primary.Addr())
	return nil
}

// Close drops what was written, where that is not the lab's, and ends
// everything: the servers first, then the links.
func (p *Postgres) Close() error {
	var err error
	switch {
	case p.Lab != nil:
		err = p.Lab.Stop()
	case p.begun:
		err = p.drop()
	}
	return errors.Join(err, p.links.close())
}

func (p *Postgres) drop() error {
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	conn, err := p.dial(ctx, p.direct, "local")
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "drop table if exists "+Table)
	return err
}

// Connect opens a session with that synchronous_commit: through the
// application's link on the lab.
func (p *Postgres) Connect(ctx context.Context, level string) (*pgx.Conn, error) {
	return p.dial(ctx, p.uri, level)
}

// Observe opens a session past all links, which waits for no standby.
func (p *Postgres) Observe(ctx context.Context) (*pgx.Conn, error) {
	return p.dial(ctx, p.direct, "local")
}

func (p *Postgres) dial(ctx context.Context, uri, level string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(uri)
	// pgx takes another scheme's URI with a query for keywords and values, of which
	// it knows none, and would connect to whatever server is the machine's own.
	scheme, _, isURI := strings.Cut(uri, "://")
	if err != nil || isURI && !slices.Contains([]string{"postgres", "postgresql"}, scheme) && !strings.ContainsAny(scheme, " =") { // the error may quote the URI
		return nil, errors.New("--uri can't be used: write postgres://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	config.RuntimeParams["application_name"] = "wirewait example"
	config.RuntimeParams["synchronous_commit"] = level
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to the primary: %w", err)
	}
	return conn, nil
}

// Far puts a standby of the lab so far away from the primary, by round trip.
func (p *Postgres) Far(standby string, rtt time.Duration) error {
	return p.links.far("pg."+standby, rtt)
}

// SetNames changes synchronous_standby_names on the lab.
func (p *Postgres) SetNames(ctx context.Context, names *trace.StandbyNames, text string) error {
	p.links.tracer.SetRule(primary, names)
	return p.Lab.SetSyncNames(ctx, text)
}

// Released waits until the last n writes have been judged and says who released
// them, by synchronous_commit. Nil on real servers.
func (p *Postgres) Released(ctx context.Context, n int) (map[string]Released, error) {
	if p.Lab == nil {
		return nil, nil
	}
	return p.links.judge.take(ctx, n)
}
