package lab_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/internal/testenv"
)

func startCluster(t *testing.T, o lab.PostgresClusterOptions) *lab.PostgresCluster {
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

// syncStates are the standbys as the primary sees them: "s1 quorum, s2 quorum".
func syncStates(t *testing.T, c *lab.PostgresCluster) string {
	t.Helper()
	conn := connect(t, c.URL(c.Primary.Addr()))
	defer conn.Close(t.Context())
	return queryText(t, conn, "select coalesce(string_agg(application_name || ' ' || sync_state, ', ' order by application_name), '') from pg_stat_replication")
}

func TestPostgresCluster_ReplicatesAndLeavesNothing(t *testing.T) {
	tmp := ownTemp(t)
	c := startCluster(t, lab.PostgresClusterOptions{Standbys: []string{"s1", "s2"}, SyncNames: "ANY 1 (s1, s2)"})
	if got := syncStates(t, c); got != "s1 quorum, s2 quorum" {
		t.Errorf("standbys are %q", got)
	}
	conn := connect(t, c.URL(c.Primary.Addr()))
	if _, err := conn.Exec(t.Context(), "set synchronous_commit = remote_apply; create table t (n int); insert into t values (7)"); err != nil {
		t.Fatal(err)
	}
	if err := c.SetSyncNames(t.Context(), `FIRST 2 (s2, "s1")`); err != nil {
		t.Fatal(err)
	}
	if got := syncStates(t, c); got != "s1 sync, s2 sync" {
		t.Errorf("after a change of synchronous_standby_names standbys are %q", got)
	}
	if _, err := conn.Exec(t.Context(), "set synchronous_commit = remote_apply; insert into t values (8)"); err != nil {
		t.Fatal(err)
	}
	for _, s := range c.Standbys { // both have applied it, since both were waited for
		if got := queryText(t, connect(t, c.URL(s.Addr())), "select count(*)::text from t"); got != "2" {
			t.Errorf("%s has %s rows, want 2", s.Name(), got)
		}
	}
	conn.Close(t.Context())
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if left := runs(t, tmp); len(left) != 0 {
		t.Errorf("left %q behind", left)
	}
	for _, n := range append(c.Standbys, c.Primary) {
		if nc, err := net.Dial("tcp", n.Addr()); err == nil {
			nc.Close()
			t.Errorf("%s still listens", n.Name())
		}
	}
}

// relay passes connections on to addr and counts them.
type relay struct {
	net.Listener
	addr string
	mu   sync.Mutex
	n    int
}

func (r *relay) serve() {
	for {
		in, err := r.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		r.n++
		r.mu.Unlock()
		out, err := net.Dial("tcp", r.addr)
		if err != nil {
			in.Close()
			continue
		}
		go func() { _, _ = io.Copy(out, in); out.Close() }()
		go func() { _, _ = io.Copy(in, out); in.Close() }()
	}
}

func TestPostgresCluster_StandbysDialWhatTheyAreGiven(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r := &relay{Listener: l}
	startCluster(t, lab.PostgresClusterOptions{
		Standbys: []string{"near", "far"},
		Through: func(primary string) (map[string]string, error) {
			r.addr = primary
			go r.serve()
			return map[string]string{"far": l.Addr().String()}, nil
		},
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n == 0 {
		t.Error("the standby that was to go through the relay didn't")
	}
}

func TestPostgresCluster_NodesStopStartAndCrash(t *testing.T) {
	c := startCluster(t, lab.PostgresClusterOptions{Standbys: []string{"s1"}, SyncNames: "s1"})
	s1, ctx := c.Standby("s1"), t.Context()
	insert := func() error {
		conn := connect(t, c.URL(c.Primary.Addr()))
		defer conn.Close(context.Background())
		_, err := conn.Exec(ctx, "create table if not exists t (n int); insert into t values (1)")
		return err
	}
	for _, end := range []func() error{s1.Stop, s1.Kill} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if err := c.WaitGone(ctx, "s1"); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- insert() }() // waits for s1, which is gone
		if err := s1.Start(ctx); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if err := s1.Start(ctx); err == nil || !strings.Contains(err.Error(), "running") {
		t.Errorf("a second start: %v", err)
	}
	if err := c.Primary.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.Primary.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitStreaming(ctx, "s1"); err != nil {
		t.Fatal(err)
	}
	if err := insert(); err != nil {
		t.Fatal(err)
	}
}

func TestPostgresCluster_StartThatFailsLeavesNothing(t *testing.T) {
	tmp := ownTemp(t)
	wrong := errors.New("no way")
	_, err := lab.StartPostgresCluster(t.Context(), lab.PostgresClusterOptions{
		Standbys: []string{"s1"}, Through: func(string) (map[string]string, error) { return nil, wrong },
	})
	if errors.Is(err, lab.ErrNoPostgres) {
		t.Skip(err)
	}
	if !errors.Is(err, wrong) {
		t.Errorf("%v, want the caller's own error", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err = lab.StartPostgresCluster(ctx, lab.PostgresClusterOptions{
		Standbys: []string{"s1"}, Through: func(string) (map[string]string, error) {
			return map[string]string{"s1": "127.0.0.1:1"}, nil // nobody listens
		},
	})
	if err == nil || !strings.Contains(err.Error(), "stream") {
		t.Errorf("%v, want that the standby doesn't stream", err)
	}
	if left := runs(t, tmp); len(left) != 0 {
		t.Errorf("left %q behind", left)
	}
}

// TestPostgresCluster_OtherVersions runs on what internal/interop/clients has
// installed, if it has.
func TestPostgresCluster_OtherVersions(t *testing.T) {
	for _, version := range []string{"17", "18"} {
		t.Run(version, func(t *testing.T) {
			dir := lab.NPMPostgres(version)
			if dir == "" {
				testenv.Missing(t, "no PostgreSQL "+version+": run internal/interop/clients/install.sh postgres-"+version)
			}
			c := startCluster(t, lab.PostgresClusterOptions{BinDir: dir, Standbys: []string{"s1", "s2"}, SyncNames: "FIRST 1 (s2, s1)"})
			if !strings.HasPrefix(c.Version(), version+".") {
				t.Errorf("version %s", c.Version())
			}
			if got := syncStates(t, c); got != "s1 potential, s2 sync" {
				t.Errorf("standbys are %q", got)
			}
		})
	}
}

func BenchmarkPostgresCluster_Start(b *testing.B) {
	for b.Loop() {
		c, err := lab.StartPostgresCluster(b.Context(), lab.PostgresClusterOptions{Standbys: []string{"s1", "s2"}})
		if err != nil {
			b.Skip(err)
		}
		if err := c.Stop(); err != nil {
			b.Fatal(err)
		}
	}
}
