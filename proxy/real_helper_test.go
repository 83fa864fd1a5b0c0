//go:build unix

package proxy_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// rig is a proxy with one link, its log, and the exchanges that its tracer got.
type rig struct {
	*proxy.Proxy
	tracer *trace.Tracer
	log    safeBuffer
	mu     sync.Mutex
	seen   map[string]int // writes by operation
	undone map[string]int // of those, what a later error rolled back
	levels map[string]int // the same by their concern and where it's known from
}

// safeBuffer is a log that may be read while it is written.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// Consume counts the writes.
func (r *rig) Consume(f *trace.Finished) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[f.Operation]++
	r.levels[f.Postgres.SynchronousCommit+"/"+f.Postgres.SyncSource]++
	if f.Postgres.RolledBack {
		r.undone[f.Operation]++
	}
}

// newRig starts a proxy. Its end comes with the test's.
func newRig(t *testing.T, lc proxy.LinkConfig) *rig {
	t.Helper()
	r := &rig{seen: map[string]int{}, undone: map[string]int{}, levels: map[string]int{}}
	r.tracer = trace.New(1<<16, r)
	t.Cleanup(r.tracer.Close)
	lc.Listen = "127.0.0.1:0"
	var err error
	r.Proxy, err = proxy.Start(context.Background(), proxy.Config{
		Links: []proxy.LinkConfig{lc}, Tracer: r.tracer, Log: slog.New(slog.NewTextHandler(&r.log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.cut)
	return r
}

// cut ends the proxy and its connections at once.
func (r *rig) cut() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = r.Shutdown(ctx)
}

// writes ends the proxy, whose clients must be gone, and returns how many
// writes it saw, by operation. All of what passed must have been read.
func (r *rig) writes(t *testing.T) map[string]int {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := r.Shutdown(ctx); err != nil {
		t.Errorf("the proxy did not end by itself: %v", err)
	}
	r.tracer.Close()
	n := r.Counters()
	if n.Opaque+n.Encrypted+n.Dropped > 0 || len(n.DecodeFailures) > 0 || n.BytesLive != 0 {
		t.Errorf("counters %+v: want nothing unread, dropped or left; log:\n%s", n, r.log.String())
	}
	return r.seen
}

func (r *rig) addr() string { return r.Links()[0].Addr().String() }

// soon waits for what must come.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// startPostgres starts a real server, or skips where there is none.
func startPostgres(t *testing.T, o lab.PostgresOptions) *lab.Postgres {
	t.Helper()
	pg, err := lab.StartPostgres(t.Context(), o)
	if errors.Is(err, lab.ErrNoPostgres) {
		missing(t, err.Error())
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

func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("WIREWAIT_CI") == "1" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// tool is one of PostgreSQL's programs, ready to be run against a server.
type tool struct {
	*exec.Cmd
	out, err bytes.Buffer
}

// newTool finds the program beside the server's own, else on PATH. The address
// and database are given by environment variables, as all programs take them.
func newTool(t *testing.T, pg *lab.Postgres, addr, db, name string, args ...string) *tool {
	t.Helper()
	path := filepath.Join(pg.BinDir(), name)
	if _, err := os.Stat(path); err != nil {
		if path, err = exec.LookPath(name); err != nil {
			missing(t, name+" is not installed: apt-get install postgresql-client")
		}
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	c := &tool{Cmd: exec.CommandContext(t.Context(), path, args...)}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PG") {
			c.Env = append(c.Env, v)
		}
	}
	c.Env = append(c.Env, "PGHOST="+host, "PGPORT="+port, "PGUSER=postgres", "PGDATABASE="+db,
		"PSQL_HISTORY=/dev/null", "PGCONNECT_TIMEOUT=30", "LC_ALL=C")
	c.Stdout, c.Stderr = &c.out, &c.err
	return c
}

// outcome is what somebody who ran a program sees.
type outcome struct {
	Out, Err string
	Code     int
}

// run runs the program to its end.
func (c *tool) run(t *testing.T) outcome {
	t.Helper()
	var exit *exec.ExitError
	if err := c.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome{c.out.String(), c.err.String(), c.ProcessState.ExitCode()}
}

// must runs the program and fails the test if it fails.
func (c *tool) must(t *testing.T) string {
	t.Helper()
	o := c.run(t)
	if o.Code != 0 {
		t.Fatalf("%s: exit code %d\n%s%s", c.Args, o.Code, o.Out, o.Err)
	}
	return o.Out
}

// psql is a psql that reads no start-up file and stops at the first error.
func psql(t *testing.T, pg *lab.Postgres, addr, db string, args ...string) *tool {
	t.Helper()
	return newTool(t, pg, addr, db, "psql", append([]string{"-X", "-v", "ON_ERROR_STOP=1"}, args...)...)
}

// postgresLink leads to the server as people with a stock Debian cluster run
// it: TLS on, the client preferring it, the proxy declining it.
func postgresLink(pg *lab.Postgres) proxy.LinkConfig {
	return proxy.LinkConfig{Upstream: pg.Addr(), Protocol: wire.Postgres, TLS: proxy.TLSConfig{Client: "decline"}}
}
