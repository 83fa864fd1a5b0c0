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
	"github.com/wirewait/wirewait/internal/testenv"
	"github.com/wirewait/wirewait/proxy/observe"
	"github.com/wirewait/wirewait/trace"
)

func startPostgres(t *testing.T, o lab.PostgresClusterOptions) *lab.PostgresCluster {
	t.Helper()
	c, err := lab.StartPostgresCluster(t.Context(), o)
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

// watched collects what a sampler finds.
type watched struct {
	mu   sync.Mutex
	list []*trace.Activity
}

// watch runs a sampler until the test ends.
func watch(t *testing.T, s *observe.Sampler) *watched {
	t.Helper()
	w := &watched{}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() {
		done <- s.Watch(ctx, func(a *trace.Activity) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.list = append(w.list, a)
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return w
}

// until does something again and again, until a sample is as it must become.
func (w *watched) until(t *testing.T, what string, do func(), ok func(*trace.Activity) bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		do()
		w.mu.Lock()
		list := w.list
		w.list = nil
		w.mu.Unlock()
		for _, a := range list {
			if ok(a) {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// above reports whether a measure is there and above 0.
func above(m trace.Measure) func(*trace.Activity) bool {
	return func(a *trace.Activity) bool {
		v, _ := a.Get(m)
		return v > 0
	}
}

func exec(t *testing.T, c *pgx.Conn, sql string) {
	t.Helper()
	if _, err := c.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func session(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// TestSampler_RealPostgres: what a primary counts shows in the samples, wherever
// its version has it.
func TestSampler_RealPostgres(t *testing.T) {
	for _, version := range []string{"", "16", "17", "18"} {
		t.Run("version="+version, func(t *testing.T) {
			t.Parallel()
			dir := ""
			if version != "" {
				if dir = lab.NPMPostgres(version); dir == "" {
					testenv.Missing(t, "no PostgreSQL "+version+": run internal/interop/clients/install.sh postgres-"+version)
				}
			}
			realPostgres(t, dir)
		})
	}
}

func realPostgres(t *testing.T, binDir string) {
	pg := startPostgres(t, lab.PostgresClusterOptions{
		BinDir: binDir, Standbys: []string{"s1"}, SyncNames: "s1", Settings: map[string]string{"track_wal_io_timing": "on"},
	})
	url := pg.URL(pg.Primary.Addr())
	c := session(t, url)
	exec(t, c, "CREATE TABLE t (n int, text text)")
	s := &observe.Sampler{Server: "pg.p", URI: pg.URL("127.0.0.1:1"), Addr: pg.Primary.Addr(), Every: 50 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
		Members: []observe.Member{{Name: "pg.one", Hosts: []string{"s1"}}}}
	w := watch(t, s)
	write := func() { exec(t, c, "INSERT INTO t SELECT n, repeat('x', 500) FROM generate_series(1, 20) n") }
	nothing := func() {}
	for _, m := range []trace.Measure{trace.JournalSyncs, trace.JournalTime, trace.JournalBytes, trace.SampleCost} {
		w.until(t, m.String(), write, above(m))
	}
	w.until(t, "how far the standby is", write, func(a *trace.Activity) bool {
		return len(a.Lags) == 1 && a.Lags[0].Member == "pg.one" && a.Lags[0].Durable > 0
	})
	checkpoint := func() { write(); exec(t, c, "CHECKPOINT") }
	for _, m := range []trace.Measure{trace.Checkpoint, trace.CheckpointTime, trace.CheckpointBuffers} {
		w.until(t, m.String(), checkpoint, above(m))
	}
	w.until(t, "the checkpoint's end", nothing, func(a *trace.Activity) bool { v, ok := a.Get(trace.Checkpoint); return ok && v == 0 })

	if err := pg.Standby("s1").Stop(); err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	go func() {
		_, err := c.Exec(t.Context(), "INSERT INTO t VALUES (1)")
		waiting <- err
	}()
	w.until(t, "a commit that waits for the standby", nothing, above(trace.WaitingSync))
	if err := pg.SetSyncNames(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; err != nil {
		t.Error(err)
	}
	other := session(t, url)
	exec(t, c, "BEGIN; LOCK TABLE t")
	go func() {
		_, err := other.Exec(t.Context(), "INSERT INTO t VALUES (2)")
		waiting <- err
	}()
	w.until(t, "a session that waits for a lock", nothing, above(trace.WaitingLock))
	exec(t, c, "COMMIT")
	if err := <-waiting; err != nil {
		t.Error(err)
	}
	if _, err := c.Exec(t.Context(), "CREATE EXTENSION pg_buffercache"); err != nil {
		t.Logf("dirty buffers are not looked at: the extension is in another package here: %v", err)
		return
	}
	w = watch(t, s)
	w.until(t, "dirty buffers", nothing, above(trace.DirtyBuffers))
}

// TestSampler_PostgresWithoutRights: what the role may see goes on; what it may
// not is said once each, and never what stands in the URI as a password.
func TestSampler_PostgresWithoutRights(t *testing.T) {
	pg := startPostgres(t, lab.PostgresClusterOptions{})
	url := pg.URL(pg.Primary.Addr())
	c := session(t, url)
	exec(t, c, "CREATE TABLE t (n int); CREATE ROLE reader LOGIN PASSWORD 'hunter2'; REVOKE SELECT ON pg_stat_bgwriter FROM PUBLIC")
	var log locked
	uri := fmt.Sprintf("postgres://reader:hunter2@%s/postgres", pg.Primary.Addr())
	w := watch(t, &observe.Sampler{Server: "pg.p", URI: uri, Every: 10 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil))})
	samples := 0
	w.until(t, "two samples with the journal's bytes, and without what may not be seen", func() { exec(t, c, "INSERT INTO t VALUES (1)") },
		func(a *trace.Activity) bool {
			if _, ok := a.Get(trace.WaitingSync); ok {
				t.Error("a role without rights tells what others wait for")
			}
			if above(trace.JournalBytes)(a) {
				samples++
			}
			return samples >= 2
		})
	for _, what := range []string{"pg_stat_activity", "pg_stat_bgwriter"} {
		if n := strings.Count(log.String(), "what="+what); n != 1 {
			t.Errorf("%s is said %d times in\n%s", what, n, log.String())
		}
	}
	if strings.Contains(log.String(), "hunter2") {
		t.Error("the log has the password")
	}
}

// TestSampler_ServerThatComesBack: nobody to be asked is said once, and so is
// that somebody is there again.
func TestSampler_ServerThatComesBack(t *testing.T) {
	pg := startPostgres(t, lab.PostgresClusterOptions{Standbys: []string{"s1"}})
	standby := pg.Standby("s1")
	if err := standby.Stop(); err != nil {
		t.Fatal(err)
	}
	var log locked
	w := watch(t, &observe.Sampler{Server: "pg.s1", URI: pg.URL(standby.Addr()), Every: 10 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil))})
	for deadline := time.Now().Add(time.Minute); !strings.Contains(log.String(), "can't ask"); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nobody complains of a server that isn't there")
		}
	}
	if err := standby.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.until(t, "a sample of a server that is back", func() {}, func(*trace.Activity) bool { return true })
	text := log.String()
	if n := strings.Count(text, "can't ask"); n == 0 || n != strings.Count(text, "answers again") {
		t.Errorf("each once:\n%s", text)
	}
}

func TestSampler_RefusesWhatIsNoURI(t *testing.T) {
	for _, uri := range []string{"mongodb+srv://u:hunter2@h.example/", "mongodb://u:hunter2@h:99999/", "postgres://u:hunter2@h:port/", "redis://hunter2", ""} {
		s := &observe.Sampler{Server: "rs0.a", URI: uri, Log: slog.New(slog.DiscardHandler)}
		err := s.Watch(t.Context(), func(*trace.Activity) {})
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "rs0.a") {
			t.Errorf("%q: %v", uri, err)
		}
	}
}
