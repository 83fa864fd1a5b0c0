package observe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// postgresAsker reads the statistics views. pg_monitor is the role that sees all
// of them; without it the waits of others' sessions, and whether a checkpoint
// runs, stay unknown.
type postgresAsker struct {
	sampler *Sampler
	config  *pgconn.Config
	once    once
	refused map[string]bool // views that aren't there, or may not be read

	conn    *pgconn.PgConn // nil: not connected
	buffers buffers
}

func newPostgresAsker(s *Sampler) (*postgresAsker, error) {
	config, err := postgresConfig(s.Server, s.URI, s.Addr)
	if err != nil {
		return nil, err
	}
	return &postgresAsker{sampler: s, config: config, once: once{log: s.Log, name: s.Server}, refused: map[string]bool{}}, nil
}

// postgresConfig is how to connect to one server; addr, where not empty, in the
// place of the URI's host. name is for the error.
func postgresConfig(name, uri, addr string) (*pgconn.Config, error) {
	config, err := pgconn.ParseConfig(uri)
	if err != nil { // which may quote the URI
		return nil, fmt.Errorf("observe of %s is no URI that can be used: write postgres://USER:PASSWORD@HOST:PORT/DATABASE", name)
	}
	config.ConnectTimeout = askTimeout
	// No question waits for a lock for long, and none can write.
	for setting, value := range map[string]string{
		"application_name": "wirewait", "statement_timeout": "5s", "default_transaction_read_only": "on",
	} {
		config.RuntimeParams[setting] = value
	}
	if addr == "" {
		return config, nil
	}
	host, port, err := net.SplitHostPort(addr)
	n, portErr := strconv.ParseUint(port, 10, 16)
	if err != nil || portErr != nil {
		return nil, fmt.Errorf("observe of %s: %q isn't a host and a port", name, addr)
	}
	config.Host, config.Port, config.TLSConfig = host, uint16(n), forHost(config.TLSConfig, host)
	for _, f := range config.Fallbacks { // other ways to the same server: without TLS
		f.Host, f.Port, f.TLSConfig = config.Host, config.Port, forHost(f.TLSConfig, host)
	}
	return config, nil
}

// forHost is a TLS configuration for another host than it was made for.
func forHost(c *tls.Config, host string) *tls.Config {
	if c == nil || c.ServerName == "" {
		return c
	}
	c = c.Clone()
	c.ServerName = host
	return c
}

func (a *postgresAsker) close() {
	if a.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = a.conn.Close(ctx)
		a.conn = nil
	}
}

func (a *postgresAsker) look(ctx context.Context) (*look, error) {
	if a.conn == nil {
		conn, err := pgconn.ConnectConfig(ctx, a.config)
		if err != nil {
			return nil, withoutPassword(err, a.sampler.URI)
		}
		a.conn, a.refused, a.buffers = conn, map[string]bool{}, buffers{}
	}
	l := newLook()
	for _, v := range views {
		if a.refused[v.name] {
			continue
		}
		rows, err := a.ask(ctx, v)
		if err != nil {
			a.close()
			return nil, fmt.Errorf("%s: %w", v.name, err)
		}
		v.read(rows, l, a)
	}
	if err := a.buffers.look(ctx, a, l); err != nil {
		a.close()
		return nil, fmt.Errorf("pg_buffercache: %w", err)
	}
	return l, nil
}

// row is a row's columns by name; a NULL isn't among them.
type row map[string]string

func (r row) number(columns ...string) (float64, bool) {
	for _, c := range columns {
		if v, err := strconv.ParseFloat(r[c], 64); err == nil {
			return v, true
		}
	}
	return 0, false
}

// ask reads a view. What the server refuses is said once and not asked again; the
// error is the connection's.
func (a *postgresAsker) ask(ctx context.Context, v view) ([]row, error) {
	rows, err := a.query(ctx, v.sql)
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return rows, err
	}
	a.refused[v.name] = true
	if !v.optional || refused.Code != undefinedTable {
		a.once.say(v.name, fmt.Errorf("%s (%s)", refused.Message, refused.Code))
	}
	return nil, nil
}

// undefinedTable is the SQLSTATE of a view that the version doesn't have.
const undefinedTable = "42P01"

func (a *postgresAsker) query(ctx context.Context, sql string) ([]row, error) {
	results, err := a.conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, r := range results {
		for _, values := range r.Rows {
			columns := row{}
			for i, v := range values {
				if v != nil {
					columns[r.FieldDescriptions[i].Name] = string(v)
				}
			}
			rows = append(rows, columns)
		}
	}
	return rows, nil
}
