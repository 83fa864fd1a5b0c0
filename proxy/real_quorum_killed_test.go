//go:build unix

package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/wirewait/wirewait/internal/lab"
)

// What is killed while a commit waits for a standby, with links everywhere and
// with none: the client sees the same, and the same is committed.
func TestRealQuorum_WhatIsKilledLooksTheSame(t *testing.T) {
	for _, version := range quorumVersions() {
		t.Run("PostgreSQL "+version, func(t *testing.T) {
			r := newQuorumRig(t, binDir(t, version))
			direct, err := lab.StartPostgresCluster(t.Context(), lab.PostgresClusterOptions{BinDir: binDir(t, version), Standbys: []string{"s1", "s2"}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := direct.Stop(); err != nil {
					t.Error(err)
				}
			})
			with := &killing{PostgresCluster: r.cluster, app: r.addr("app"), cut: func(t *testing.T, standby string) {
				for _, c := range r.proxy.Connections() {
					if c.Link == standby {
						r.proxy.Cut(c.ID)
					}
				}
			}}
			without := &killing{PostgresCluster: direct, app: direct.Primary.Addr(), cut: func(t *testing.T, standby string) {
				admin(t, direct, direct.Primary.Addr(), "select pg_terminate_backend(pid) from pg_stat_replication where application_name = '"+standby+"'")
			}}
			for _, k := range []*killing{with, without} {
				if err := k.SetSyncNames(t.Context(), "s1"); err != nil {
					t.Fatal(err)
				}
				admin(t, k.PostgresCluster, k.Primary.Addr(), "set synchronous_commit = local; create table t (what text)")
			}
			for _, what := range []string{"a link", "the standby", "the primary"} {
				got, want := with.kill(t, what), without.kill(t, what)
				t.Logf("%s: %s", what, got)
				if got != want {
					t.Errorf("%s: through links %s, without %s", what, got, want)
				}
			}
		})
	}
}

// killing is a cluster, with the address that its application has and how the
// connection of a standby is cut.
type killing struct {
	*lab.PostgresCluster
	app string
	cut func(t *testing.T, standby string)
}

// kill kills something while a commit waits for s1, which has stopped to apply its
// log, and gets all going again. It returns what the client saw.
func (k *killing) kill(t *testing.T, what string) string {
	t.Helper()
	s1 := k.Standby("s1")
	admin(t, k.PostgresCluster, s1.Addr(), "select pg_wal_replay_pause()")
	config, err := pgx.ParseConfig(k.URL(k.app) + "&synchronous_commit=remote_apply")
	if err != nil {
		t.Fatal(err)
	}
	saw := ""
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { saw += n.SeverityUnlocalized + " " + n.Code + ", " }
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	ended := make(chan string, 1)
	go func() {
		tag, err := conn.Exec(context.Background(), "insert into t values ('"+what+"')", pgx.QueryExecModeSimpleProtocol)
		ended <- saw + describeEnd(tag.String(), err)
	}()
	for admin(t, k.PostgresCluster, k.Primary.Addr(), "select 1 from pg_stat_activity where wait_event = 'SyncRep'") == 0 {
	}
	restart := func(n *lab.PostgresNode) {
		if err := errors.Join(n.Kill(), n.Start(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	switch what {
	case "a link":
		k.cut(t, "s1")
	case "the standby":
		restart(s1)
	case "the primary":
		restart(k.Primary)
	}
	if what != "the standby" { // which applies its log again by itself
		admin(t, k.PostgresCluster, s1.Addr(), "select pg_wal_replay_resume()")
	}
	outcome := <-ended
	if err := k.WaitStreaming(t.Context(), "s1", "s2"); err != nil {
		t.Fatal(err)
	}
	rows := admin(t, k.PostgresCluster, k.Primary.Addr(), "select 1 from t where what = '"+what+"'")
	return fmt.Sprintf("%s; %d row", outcome, rows)
}

// describeEnd is what a client makes of a statement's end.
func describeEnd(tag string, err error) string {
	var refused *pgconn.PgError
	switch {
	case err == nil:
		return tag
	case errors.As(err, &refused):
		return refused.Severity + " " + refused.Code
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return "end of file"
	case errors.Is(err, syscall.ECONNRESET):
		return "reset"
	}
	return err.Error()
}

// admin runs SQL at an address and returns how many rows its last statement gave.
func admin(t *testing.T, c *lab.PostgresCluster, addr, sql string) int {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.URL(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	results, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return len(results[len(results)-1].Rows)
}
