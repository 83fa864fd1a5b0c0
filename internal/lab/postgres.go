package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strconv"
	"time"
)

// PostgresBinEnv names the environment variable with the directory of the
// server binaries to use, where PostgresOptions.BinDir is empty.
const PostgresBinEnv = "WIREWAIT_POSTGRES_BIN"

// ErrNoPostgres is wrapped when the machine has no PostgreSQL server binaries.
// The error's text says where they were looked for and how to get them.
var ErrNoPostgres = errors.New("no postgresql server binaries")

// PostgresOptions say what server to start. The zero value is usable.
type PostgresOptions struct {
	// BinDir holds initdb and postgres. Empty: the directory in the
	// environment variable PostgresBinEnv, else the highest version of those on
	// PATH and under /usr/lib/postgresql.
	BinDir string
	// Settings are added to postgresql.conf and win over the lab's own:
	// {"log_min_duration_statement": "0"}. Values are quoted by the lab.
	Settings map[string]string
	// TLS turns ssl on, with a new certificate for localhost and 127.0.0.1
	// that signs itself; see Postgres.Certificate.
	TLS bool
}

// Postgres is a running throwaway server. Its superuser is "postgres", its
// database "postgres", and it trusts every local connection. Its methods are
// safe for concurrent use.
type Postgres struct {
	site    *workspace
	primary *node
	cert    []byte
}

// StartPostgres starts a server and returns when it accepts connections: about
// a second the first time, half of it later. ctx bounds the start only; the
// server lives until Stop or the end of this process. A root process runs it
// as the user postgres, else nobody, for it refuses to run as root.
func StartPostgres(ctx context.Context, o PostgresOptions) (_ *Postgres, err error) {
	bin, err := findPostgres(ctx, o.BinDir)
	if err != nil {
		return nil, err
	}
	site, err := newWorkspace(ctx, bin)
	if err != nil {
		return nil, fmt.Errorf("prepare a postgresql server: %w", err)
	}
	p := &Postgres{site: site}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Stop())
		}
	}()

	settings := maps.Clone(o.Settings)
	if settings == nil {
		settings = map[string]string{}
	}
	dir, err := site.dataDir(ctx, "primary")
	if err != nil {
		return nil, err
	}
	if o.TLS {
		if p.cert, err = site.writeCertificate(dir); err != nil {
			return nil, err
		}
		settings["ssl"] = "on"
	}
	p.primary, err = site.startNode(ctx, dir, settings)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Stop ends the server and removes its files. It may be called more than once.
func (p *Postgres) Stop() error {
	var err error
	if p.primary != nil {
		err = p.primary.stop()
	}
	return errors.Join(err, p.site.remove())
}

// Addr is the server's TCP address, on 127.0.0.1 and below port 32768, where
// the kernel doesn't take ports for outgoing connections.
func (p *Postgres) Addr() string {
	return p.primary.addr()
}

// Socket is the path of the server's unix socket; empty where the temporary
// directory's name is too long for one.
func (p *Postgres) Socket() string {
	if p.primary.socketDir == "" {
		return ""
	}
	return filepath.Join(p.primary.socketDir, ".s.PGSQL."+strconv.Itoa(p.primary.port))
}

// URL is a connection string for the database and user postgres at addr, which
// is Addr or that of a proxy in front of it. It asks for no encryption; later
// parameters win, so "&sslmode=require" may be appended.
func (p *Postgres) URL(addr string) string {
	return postgresURL(addr)
}

func postgresURL(addr string) string {
	return "postgres://postgres@" + addr + "/postgres?sslmode=disable"
}

// Version is the server's version: "15.20".
func (p *Postgres) Version() string { return p.site.bin.version }

// BinDir is where the server's binaries are, and not links to them, so that
// what was installed with them may be looked for there.
func (p *Postgres) BinDir() string { return p.site.bin.dir }

// Certificate is the server's certificate in PEM, which is its own authority;
// nil without PostgresOptions.TLS.
func (p *Postgres) Certificate() []byte { return p.cert }

// Log is the server's log so far.
func (p *Postgres) Log() string { return p.primary.log() }

// How long the parts of a stop may take before the next, harsher one.
const (
	fastStop      = 5 * time.Second
	immediateStop = 5 * time.Second
)
