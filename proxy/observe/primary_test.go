package observe_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/proxy/observe"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

func startCluster(t *testing.T, standbys ...string) *lab.PostgresCluster {
	t.Helper()
	c, err := lab.StartPostgresCluster(t.Context(), lab.PostgresClusterOptions{Standbys: standbys})
	if errors.Is(err, lab.ErrNoPostgres) && os.Getenv("WIREWAIT_CI") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func connect(t *testing.T, c *lab.PostgresCluster) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.URL(c.Primary.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func execute(t *testing.T, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// finding is what a Primary said.
type finding struct {
	mu      sync.Mutex
	found   []*observe.PrimarySettings
	since   []time.Time
	waiting map[wire.Backend]bool
	log     locked
}

// ask asks the cluster's primary as a role, until the test ends.
func (f *finding) ask(t *testing.T, c *lab.PostgresCluster, role string) *observe.Primary {
	t.Helper()
	f.waiting = map[wire.Backend]bool{}
	p := &observe.Primary{
		Server: "pg.p", URI: "postgres://" + role + ":hunter2@nowhere.invalid/postgres?sslmode=disable", Addr: c.Primary.Addr(),
		Every: 100 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&f.log, nil)),
		Found: func(s *observe.PrimarySettings, since time.Time) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.found, f.since = append(f.found, s), append(f.since, since)
		},
		Waiting: func(list []wire.Backend, _ time.Time) {
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, b := range list {
				f.waiting[b] = true
			}
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- p.Watch(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return p
}

// until waits for what a Primary says.
func (f *finding) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		f.mu.Lock()
		is := ok()
		f.mu.Unlock()
		if is {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("never: %s; log: %s", what, f.log.String())
		}
	}
}

func TestPrimary_SaysForWhomCommitsWaitAndWhoDoes(t *testing.T) {
	c := startCluster(t, "s1", "s2")
	conn := connect(t, c)
	execute(t, conn, "create role reader login in role pg_monitor", "create role batch", "create database shop", "create table t (n int)",
		"alter role batch set synchronous_commit = local", "alter database shop set synchronous_commit = 'off'",
		"alter role batch in database shop set synchronous_commit = remote_write",
		"alter role reader set synchronous_commit = remote_apply") // which hides the server's own from it
	if err := c.SetSyncNames(t.Context(), "ANY 1 (s1, s3)"); err != nil {
		t.Fatal(err)
	}
	var f finding
	p := f.ask(t, c, "reader")
	var s *observe.PrimarySettings
	f.until(t, "settings, with the standby that counts", func() bool { // which takes its walsender a moment
		s = p.Settings()
		return s != nil && len(f.found) > 0 && f.found[len(f.found)-1] == s && len(s.Synchronous) == 1 && f.since[0].IsZero()
	})
	if s.Version != c.Version() || s.Recovering || s.StandbyNames != "ANY 1 (s1, s3)" ||
		s.SenderTimeout != time.Minute || fmt.Sprint(s.Standbys, s.Synchronous) != "[s1 s2] [s1]" || !s.SeesAll {
		t.Errorf("%+v", s)
	}
	want := trace.CommitDefaults{Own: []trace.CommitDefault{
		{Role: "batch", Level: "local"}, {Role: "reader", Level: "remote_apply"},
		{Database: "shop", Level: "off"}, {Database: "shop", Role: "batch", Level: "remote_write"},
	}}
	if fmt.Sprint(s.Commit) != fmt.Sprint(want) {
		t.Errorf("synchronous_commit %+v, want %+v", s.Commit, want)
	}

	// While commits pass, those that wait are seen, and a changed setting at once.
	for _, s := range c.Standbys {
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	execute(t, conn, "begin", "insert into t values (1)")
	var xid, pid uint32
	if err := conn.QueryRow(t.Context(), "select pg_current_xact_id()::text::bigint, pg_backend_pid()").Scan(&xid, &pid); err != nil {
		t.Fatal(err)
	}
	committed := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), "commit")
		committed <- err
	}()
	f.until(t, "the session that waits is seen", func() bool {
		p.Committing()
		return f.waiting[wire.Backend{PID: int32(pid), XID: xid}]
	})
	before := time.Now()
	if err := c.SetSyncNames(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if err := <-committed; err != nil {
		t.Fatal(err)
	}
	f.until(t, "the changed setting is found", func() bool {
		p.Committing()
		n := len(f.found)
		return f.found[n-1].StandbyNames == ""
	})
	f.mu.Lock()
	since := f.since[len(f.since)-1]
	f.mu.Unlock()
	if since.Before(before.Add(-time.Second)) || time.Since(since) < 0 {
		t.Errorf("changed between %v and now, said to be since %v", before, since)
	}
	if log := f.log.String(); strings.Contains(log, "can't") || strings.Contains(log, "hunter2") {
		t.Error(log)
	}
}

// The role may lack rights, and the server may go and come back: either is said
// once, and nothing of the password.
func TestPrimary_SaysOnceWhatItCannot(t *testing.T) {
	c := startCluster(t)
	execute(t, connect(t, c), "create role reader login")
	var f finding
	p := f.ask(t, c, "reader")
	f.until(t, "settings", func() bool { return len(f.found) > 0 })
	if s := p.Settings(); s.SeesAll || s.Commit.Server != "on" || s.SenderTimeout != time.Minute || len(s.Standbys) > 0 {
		t.Errorf("%+v", s)
	}
	f.until(t, "missing rights are said", func() bool { return strings.Contains(f.log.String(), "GRANT pg_read_all_stats") })
	if err := c.Primary.Stop(); err != nil {
		t.Fatal(err)
	}
	f.until(t, "it's gone", func() bool { return strings.Contains(f.log.String(), "can't ask") })
	if err := c.Primary.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.until(t, "it's back", func() bool { return strings.Contains(f.log.String(), "answers again") })
	log := f.log.String()
	for _, once := range []string{"GRANT", "can't ask", "answers again"} {
		if n := strings.Count(log, once); n != 1 {
			t.Errorf("%q is said %d times: %s", once, n, log)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if strings.Contains(log, "hunter2") || len(f.found) != 1 {
		t.Errorf("%d times found; %s", len(f.found), log)
	}
}

func TestPrimary_RefusesWhatIsNoURI(t *testing.T) {
	p := &observe.Primary{Server: "pg.p", URI: "postgres://u:hunter2@h:99999/", Log: slog.New(slog.DiscardHandler)}
	if err := p.Watch(t.Context()); err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "pg.p") {
		t.Errorf("%v", err)
	}
}
