package interop

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

func startPostgres(t *testing.T) *lab.Postgres {
	t.Helper()
	pg, err := lab.StartPostgres(t.Context(), lab.PostgresOptions{})
	if errors.Is(err, lab.ErrNoPostgres) && os.Getenv("WIREWAIT_CI") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pg.Stop(); err != nil {
			t.Error(err)
		}
	})
	return pg
}

// newDatabase makes a database and returns its URL at addr.
func newDatabase(t *testing.T, pg *lab.Postgres, addr, name string) string {
	t.Helper()
	c, err := pgx.Connect(t.Context(), pg.URL(pg.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	if _, err := c.Exec(t.Context(), "create database "+name); err != nil {
		t.Fatal(err)
	}
	return strings.Replace(pg.URL(addr), "/postgres?", "/"+name+"?", 1)
}

func TestPgx_OutcomeAndWrites(t *testing.T) {
	pg := startPostgres(t)
	direct := runPG(t, newDatabase(t, pg, pg.Addr(), "direct"), 0, pgSteps())
	var want []pgWrite
	for _, s := range pgSteps() {
		want = append(want, s.writes...)
	}
	for name, rtt := range map[string]time.Duration{"undelayed": 0, "delayed": 20 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			r := startLink(t, wire.Postgres, pg.Addr(), rtt)
			compare(t, direct, runPG(t, newDatabase(t, pg, r.Addr(), name), rtt, pgSteps()))
			checkPGWrites(t, r.writes(t), want, name)
		})
	}
}

// checkPGWrites holds what the tracer got against what was written.
func checkPGWrites(t *testing.T, got []trace.Finished, want []pgWrite, database string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(want) {
			t.Errorf("write %d: got %+v, want no more", i, seenPG(&got[i]))
			continue
		}
		if i >= len(got) {
			t.Errorf("write %d: want %+v, got no more", i, want[i])
			continue
		}
		f := &got[i]
		if s := seenPG(f); s != want[i] {
			t.Errorf("write %d:\n got  %+v\n want %+v", i, s, want[i])
		}
		if f.Protocol != wire.Postgres || f.Database != database {
			t.Errorf("write %d: %s of %q", i, f.Protocol, f.Database)
		}
		if !f.Answered || f.OK != (want[i].Code == "") || f.Failed() != (!f.OK || want[i].Undone) {
			t.Errorf("write %d: answered %v, ok %v, failed %v", i, f.Answered, f.OK, f.Failed())
		}
		if f.Peer == nil || f.Peer.User != "postgres" || f.Peer.BackendPID == 0 {
			t.Errorf("write %d: peer %+v", i, f.Peer)
		}
		if f.Statement != "" {
			t.Errorf("write %d: text %q, which nobody asked for", i, f.Statement)
		}
	}
}

func TestPgx_StartupParameterIsTheLevel(t *testing.T) {
	pg := startPostgres(t)
	r := startLink(t, wire.Postgres, pg.Addr(), 0)
	steps := []pgStep{
		exec("create table t (n int)", nil, alone("CREATE TABLE", "local/startup")),
		exec("set synchronous_commit = on", nil),
		exec("insert into t values ($1)", []any{1}, alone("INSERT 0 1", "on/set")),
		exec("reset all", nil),
		exec("insert into t values ($1)", []any{2}, alone("INSERT 0 1", "local/startup")),
	}
	runPG(t, newDatabase(t, pg, r.Addr(), "levels")+"&synchronous_commit=local", 0, steps)
	var want []pgWrite
	for _, s := range steps {
		want = append(want, s.writes...)
	}
	checkPGWrites(t, r.writes(t), want, "levels")
}

func TestPgx_ListenAndNotify(t *testing.T) {
	pg := startPostgres(t)
	for _, rtt := range []time.Duration{0, 40 * time.Millisecond} {
		r := startLink(t, wire.Postgres, pg.Addr(), rtt)
		listener, err := pgx.Connect(t.Context(), pg.URL(r.Addr()))
		if err != nil {
			t.Fatal(err)
		}
		speaker, err := pgx.Connect(t.Context(), pg.URL(r.Addr()))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := listener.Exec(t.Context(), "listen news"); err != nil {
			t.Fatal(err)
		}
		for _, paper := range []string{"morning", "evening"} {
			began := time.Now()
			if _, err := speaker.Exec(t.Context(), "select pg_notify('news', $1)", paper); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			n, err := listener.WaitForNotification(ctx)
			cancel()
			if err != nil || n.Payload != paper || n.PID != speaker.PgConn().PID() {
				t.Errorf("heard %+v, %v; want %s", n, err, paper)
			}
			if d := time.Since(began); d < rtt {
				t.Errorf("heard after %v, want at least %v", d, rtt)
			}
		}
		_, err = rowsOf(t.Context(), listener, "select $1::int", 1)
		if err != nil {
			t.Error(err)
		}
		listener.Close(context.Background())
		speaker.Close(context.Background())
		if got := r.writes(t); len(got) != 0 {
			t.Errorf("%d writes, want none", len(got))
		}
	}
}

// A cancel request takes no delay: it must not hit what follows.
func TestPgx_ContextCancelUnderDelay(t *testing.T) {
	const rtt = 200 * time.Millisecond
	pg := startPostgres(t)
	r := startLink(t, wire.Postgres, pg.Addr(), rtt)
	config, err := pgx.ParseConfig(newDatabase(t, pg, r.Addr(), "cancelled"))
	if err != nil {
		t.Fatal(err)
	}
	// Cancel by request and keep the connection, instead of closing it.
	config.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: time.Minute}
	}
	c, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	if _, err := c.Exec(t.Context(), "create table t (n int)"); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 2*rtt)
		began := time.Now()
		_, err := c.Exec(ctx, "select pg_sleep(60)")
		cancel()
		if code := pgError(err); code != "57014" {
			t.Fatalf("the sleep ended with %v, want 57014", err)
		}
		if d := time.Since(began); d > 30*time.Second {
			t.Errorf("cancelled after %v", d)
		}
		if tag, err := c.Exec(t.Context(), "insert into t values ($1)", i); err != nil || tag.String() != "INSERT 0 1" {
			t.Fatalf("the statement after a cancelled one: %v, %v", tag, err)
		}
	}
	c.Close(context.Background())
	insert := alone("INSERT 0 1", byDefault)
	checkPGWrites(t, r.writes(t), []pgWrite{alone("CREATE TABLE", byDefault), insert, insert, insert}, "cancelled")
}
