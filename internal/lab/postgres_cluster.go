package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// PostgresClusterOptions say what cluster to start. The zero value is a primary
// without standbys.
type PostgresClusterOptions struct {
	// BinDir holds initdb and postgres; see PostgresOptions.
	BinDir string
	// Standbys are the application names of the standbys, by which
	// synchronous_standby_names knows them.
	Standbys []string
	// SyncNames is synchronous_standby_names. While it's set and too few of the
	// standbys stream, commits wait: use synchronous_commit = local for set-up.
	SyncNames string
	// Through is asked, once the primary accepts connections at its address and
	// before any standby starts, for the address that each standby shall dial
	// instead, by its name: that of a link to the primary. Nil, and standbys that
	// it doesn't name: the primary's own.
	Through func(primary string) (map[string]string, error)
	// Settings are added to postgresql.conf of every node and win over the lab's
	// own.
	Settings map[string]string
}

// clusterSettings are every node's, beside nodeSettings: a standby that was away
// for a while still finds its log, and soon comes back.
var clusterSettings = map[string]string{
	"wal_keep_size":               "32MB",
	"max_prepared_transactions":   "10",
	"wal_retrieve_retry_interval": "100ms",
}

// PostgresCluster is a primary with standbys that stream from it. What is said
// of Postgres holds for each node. Its methods are safe for concurrent use; a
// node's are not to be called at the same time as its own.
type PostgresCluster struct {
	Primary  *PostgresNode
	Standbys []*PostgresNode // in the order of the options

	site *workspace
}

// StartPostgresCluster starts a primary and its standbys and returns when all of
// them stream: in about a second, or two the first time. ctx bounds the start
// only. The standbys are copies of what the primary was made from, which was
// shut down cleanly: no base backup is needed.
func StartPostgresCluster(ctx context.Context, o PostgresClusterOptions) (_ *PostgresCluster, err error) {
	bin, err := findPostgres(ctx, o.BinDir)
	if err != nil {
		return nil, err
	}
	site, err := newWorkspace(ctx, bin)
	if err != nil {
		return nil, fmt.Errorf("prepare a postgresql cluster: %w", err)
	}
	c := &PostgresCluster{site: site}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	settings := maps.Clone(clusterSettings)
	maps.Copy(settings, o.Settings)
	if err := c.startPrimary(ctx, settings, o.SyncNames); err != nil {
		return nil, err
	}
	addrs := map[string]string{}
	if o.Through != nil {
		if addrs, err = o.Through(c.Primary.Addr()); err != nil {
			return nil, fmt.Errorf("a way to the primary: %w", err)
		}
	}
	if err := c.startStandbys(ctx, o.Standbys, settings, addrs); err != nil {
		return nil, err
	}
	return c, c.WaitStreaming(ctx, o.Standbys...)
}

func (c *PostgresCluster) startPrimary(ctx context.Context, settings map[string]string, syncNames string) error {
	dir, err := c.site.dataDir(ctx, "primary")
	if err != nil {
		return err
	}
	settings = maps.Clone(settings)
	settings["synchronous_standby_names"] = syncNames
	n, err := c.site.startNode(ctx, dir, settings)
	if err != nil {
		return err
	}
	c.Primary = &PostgresNode{name: "primary", site: c.site, node: n}
	return nil
}

// startStandbys lays them out one after the other and starts them together.
func (c *PostgresCluster) startStandbys(ctx context.Context, names []string, settings map[string]string, addrs map[string]string) error {
	var wait sync.WaitGroup
	defer wait.Wait()
	errs := make(chan error, len(names))
	var mu sync.Mutex
	nodes := make([]*PostgresNode, len(names))
	for i, name := range names {
		addr := addrs[name]
		if addr == "" {
			addr = c.Primary.Addr()
		}
		dir, own, err := c.layOutStandby(ctx, name, addr, settings)
		if err != nil {
			return err
		}
		wait.Go(func() {
			n, err := c.site.startNode(ctx, dir, own)
			if n != nil {
				mu.Lock()
				nodes[i] = &PostgresNode{name: name, site: c.site, node: n}
				mu.Unlock()
			}
			errs <- err
		})
	}
	var err error
	for range names {
		err = errors.Join(err, <-errs)
	}
	c.Standbys = slices.DeleteFunc(nodes, func(n *PostgresNode) bool { return n == nil })
	return err
}

// layOutStandby makes a standby's data directory and settings.
func (c *PostgresCluster) layOutStandby(ctx context.Context, name, addr string, settings map[string]string) (string, map[string]string, error) {
	if !settingName.MatchString(name) {
		return "", nil, fmt.Errorf("a standby can't be called %q: use letters, digits and _", name)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", nil, fmt.Errorf("the address that standby %s shall dial: %w", name, err)
	}
	dir, err := c.site.dataDir(ctx, "standby-"+name)
	if err != nil {
		return "", nil, err
	}
	if err := c.site.account.writeFile(dir+"/standby.signal", nil); err != nil {
		return "", nil, err
	}
	settings = maps.Clone(settings)
	settings["primary_conninfo"] = fmt.Sprintf(
		"host=%s port=%s user=postgres application_name=%s sslmode=disable gssencmode=disable", host, port, name)
	return dir, settings, nil
}

// WaitStreaming returns when a standby of each name streams from the primary and
// has acknowledged something.
func (c *PostgresCluster) WaitStreaming(ctx context.Context, names ...string) error {
	if len(names) == 0 {
		return nil
	}
	err := c.poll(ctx, "select count(distinct application_name)::int from pg_stat_replication where state = 'streaming' "+
		"and flush_lsn is not null and application_name = any($1)", len(names), names)
	if err != nil {
		return fmt.Errorf("wait for standbys %v to stream: %w", names, err)
	}
	return nil
}

// WaitGone returns when the primary has no standby of that name any more.
func (c *PostgresCluster) WaitGone(ctx context.Context, name string) error {
	err := c.poll(ctx, "select count(*)::int from pg_stat_replication where application_name = $1", 0, name)
	if err != nil {
		return fmt.Errorf("wait for standby %s to be gone: %w", name, err)
	}
	return nil
}

// reloadTime is what the primary's processes are given to take in a changed
// setting: each does when it next looks, and nothing tells that it has.
const reloadTime = 300 * time.Millisecond

// SetSyncNames changes synchronous_standby_names while the primary runs.
func (c *PostgresCluster) SetSyncNames(ctx context.Context, names string) error {
	text, err := renderSettings(map[string]string{"synchronous_standby_names": names})
	if err != nil {
		return err
	}
	// ALTER SYSTEM writes its own file, which wins, and commits nothing.
	if err := c.exec(ctx, "alter system set "+text); err != nil {
		return err
	}
	if err := c.exec(ctx, "select pg_reload_conf()"); err != nil {
		return err
	}
	if err := c.poll(ctx, "select (current_setting('synchronous_standby_names') = $1)::int", 1, names); err != nil {
		return fmt.Errorf("wait for synchronous_standby_names = %s: %w", names, err)
	}
	return pause(ctx, reloadTime)
}

func (c *PostgresCluster) exec(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, c.URL(c.Primary.Addr()))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
}

// poll asks the primary until it answers with want.
func (c *PostgresCluster) poll(ctx context.Context, sql string, want int, args ...any) error {
	conn, err := pgx.Connect(ctx, c.URL(c.Primary.Addr()))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for {
		var got int
		if err := conn.QueryRow(ctx, sql, args...).Scan(&got); err != nil {
			return err
		}
		if got == want {
			return nil
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// Stop ends the standbys, then the primary, and removes their files. A primary
// that stops first waits for its standbys to receive its last record, through
// whatever delays them. It may be called more than once.
func (c *PostgresCluster) Stop() error {
	var wait sync.WaitGroup
	errs := make([]error, len(c.Standbys))
	for i, n := range c.Standbys {
		wait.Go(func() { errs[i] = n.Stop() })
	}
	wait.Wait()
	err := errors.Join(errs...)
	if c.Primary != nil {
		err = errors.Join(err, c.Primary.Stop())
	}
	return errors.Join(err, c.site.remove())
}

// URL is a connection string for the database and user postgres at addr: a
// node's or a link's.
func (c *PostgresCluster) URL(addr string) string { return postgresURL(addr) }

// Version is the servers' version: "15.20".
func (c *PostgresCluster) Version() string { return c.site.bin.version }

// BinDir is where the servers' binaries are.
func (c *PostgresCluster) BinDir() string { return c.site.bin.dir }

// Standby is the one of that name, or nil.
func (c *PostgresCluster) Standby(name string) *PostgresNode {
	for _, n := range c.Standbys {
		if n.name == name {
			return n
		}
	}
	return nil
}
