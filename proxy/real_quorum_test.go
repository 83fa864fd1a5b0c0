//go:build unix

package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/internal/testenv"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/proxy/observe"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// quorumRig is a primary whose application and standbys reach it through links.
type quorumRig struct {
	cluster *lab.PostgresCluster
	tracer  *trace.Tracer
	proxy   *proxy.Proxy
	server  string // as the tracer calls the primary
	begin   string // LSN at which the test began
	names   *trace.StandbyNames
	asked   atomic.Pointer[observe.Primary] // nil: nobody asks the primary
	driver  string                          // of the proxy; empty: the system's best

	gathered[judged]
}

// judged is what was said of one write.
type judged struct {
	level, by, basis           string
	replication, server, total time.Duration
	released, replyIn          wire.Stamp
	xid                        uint32
	acknowledged, behind       int
	unreplicated               bool
	gap                        time.Duration // between the first two acknowledgements
	pid                        int32
	ordinal                    uint64
}

// Consume implements trace.Consumer.
func (r *quorumRig) Consume(f *trace.Finished) {
	if !f.Write || f.Deferred() || f.Conn.From != "app" {
		return
	}
	var gap time.Duration
	if a := f.Replication.Acknowledged; len(a) > 1 {
		gap = a[1].Acknowledged.Sub(a[0].Acknowledged)
	}
	r.add(judged{
		level: f.Postgres.SynchronousCommit, by: f.Replication.ReleasedBy, basis: f.Replication.Basis,
		replication: f.Waits.Replication, server: f.Waits.Server, total: f.Waits.Total,
		released: f.Replication.Released, replyIn: f.Sides[wire.ToClient].LastIn, xid: f.Replication.XID,
		acknowledged: len(f.Replication.Acknowledged), behind: len(f.Replication.Behind),
		pid: f.Peer.BackendPID, ordinal: f.Ordinal, gap: gap, unreplicated: f.Unreplicated(),
	})
}

// standbyDelays are the round trips of the standbys' links.
var standbyDelays = map[string]time.Duration{"s1": 40 * time.Millisecond, "s2": 120 * time.Millisecond}

func newQuorumRig(t *testing.T, binDir string, more ...map[string]string) *quorumRig {
	t.Helper()
	return newQuorumRigOn(t, binDir, "", more...)
}

func newQuorumRigOn(t *testing.T, binDir, driver string, more ...map[string]string) *quorumRig {
	t.Helper()
	r := &quorumRig{server: "pg.p", driver: driver}
	r.tracer = trace.New(1<<16, r)
	r.tracer.WatchCommits(func(*trace.Conn) {
		if p := r.asked.Load(); p != nil {
			p.Committing()
		}
	})
	t.Cleanup(r.tracer.Close)
	settings := maps.Clone(truthSettings)
	for _, m := range more {
		maps.Copy(settings, m)
	}
	var err error
	r.cluster, err = lab.StartPostgresCluster(t.Context(), lab.PostgresClusterOptions{
		BinDir: binDir, Standbys: []string{"s1", "s2"}, Through: r.links, Settings: settings,
	})
	if errors.Is(err, lab.ErrNoPostgres) && os.Getenv("WIREWAIT_CI") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.cluster.Stop(); err != nil {
			t.Error(err)
		}
		now, cancel := context.WithCancel(context.Background())
		cancel()
		_ = r.proxy.Shutdown(now)
	})
	return r
}

// links puts one in front of the primary for each who dials it.
func (r *quorumRig) links(primary string) (map[string]string, error) {
	config := proxy.Config{Tracer: r.tracer, Driver: r.driver}
	for from, d := range map[string]time.Duration{"app": 0, "s1": standbyDelays["s1"], "s2": standbyDelays["s2"]} {
		config.Links = append(config.Links, proxy.LinkConfig{
			Name: from, From: from, To: r.server, Listen: "127.0.0.1:0", Upstream: primary, Protocol: wire.Postgres, Delay: inject.Symmetric(d, 0),
		})
	}
	var err error
	if r.proxy, err = proxy.Start(context.Background(), config); err != nil {
		return nil, err
	}
	return map[string]string{"s1": r.addr("s1"), "s2": r.addr("s2")}, nil
}

func (r *quorumRig) addr(link string) string { return r.proxy.Link(link).Addr().String() }

func (r *quorumRig) setNames(t *testing.T, names string) {
	t.Helper()
	if err := r.cluster.SetSyncNames(t.Context(), names); err != nil {
		t.Fatal(err)
	}
	rule, err := trace.ParseStandbyNames(names)
	if err != nil {
		t.Fatal(err)
	}
	r.names = rule
	if r.asked.Load() == nil {
		r.tracer.SetRule(r.server, rule)
	}
}

// made is a transaction as its client knows it.
type made struct {
	pid   int32
	xid   uint32
	order int
}

// write has each of some sessions insert rows, through the application's link:
// every second one in blocks, every fourth by simple Query.
func (r *quorumRig) write(t *testing.T, sessions, each int, level string) (all []made) {
	t.Helper()
	var wait sync.WaitGroup
	var mu sync.Mutex
	errs := make(chan error, sessions)
	session := func(n int) error {
		config, err := pgx.ParseConfig(r.cluster.URL(r.addr("app")) + "&synchronous_commit=" + level)
		if err != nil {
			return err
		}
		if n%4 == 3 {
			config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
		}
		conn, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			return err
		}
		defer conn.Close(context.Background())
		for i := range each {
			xid, err := transact(t.Context(), conn, n%2 == 1)
			if err != nil {
				return err
			}
			mu.Lock()
			all = append(all, made{int32(conn.PgConn().PID()), xid, i})
			mu.Unlock()
		}
		return nil
	}
	for n := range sessions {
		wait.Go(func() { errs <- session(n) })
	}
	wait.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// transact is one transaction, explicit or not. It returns its number.
func transact(ctx context.Context, conn *pgx.Conn, block bool) (xid uint32, err error) {
	const statement = "insert into t values ($1) returning pg_current_xact_id()::text::bigint"
	var id uint64
	if !block {
		err = conn.QueryRow(ctx, statement, 1).Scan(&id)
		return uint32(id), err
	}
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, statement, 2).Scan(&id)
	})
	return uint32(id), err
}

func (r *quorumRig) createTable(t *testing.T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), r.cluster.URL(r.cluster.Primary.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "set synchronous_commit = local; create table t (n int)"); err != nil {
		t.Fatal(err)
	}
	r.noteBegin(t)
}

// noteBegin notes where the log ends before the test's own transactions.
func (r *quorumRig) noteBegin(t *testing.T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), r.cluster.URL(r.cluster.Primary.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), "select pg_current_wal_flush_lsn()::text").Scan(&r.begin); err != nil {
		t.Fatal(err)
	}
}

func bases(seen []judged) map[string]int {
	m := map[string]int{}
	for _, j := range seen {
		m[fmt.Sprintf("%s %s", j.by, j.basis)]++
	}
	return m
}

// quorumVersions are those that are tried: the machine's, and 18; at length, 17 too.
func quorumVersions() []string {
	if *quorumTime > 0 {
		return []string{"", "17", "18"}
	}
	return []string{"", "18"}
}

// With s1 at 40 ms and s2 at 120, each rule has its own releaser.
func TestRealQuorum_NamesTheStandbyThatReleasedACommit(t *testing.T) {
	testenv.Timely(t)
	for _, version := range quorumVersions() {
		t.Run("PostgreSQL "+version, func(t *testing.T) {
			r := newQuorumRig(t, binDir(t, version))
			r.createTable(t)
			for _, tt := range []struct{ names, by string }{
				{"ANY 1 (s1, s2)", "s1"}, {"ANY 2 (s1, s2)", "s2"}, {"FIRST 1 (s2, s1)", "s2"},
			} {
				r.setNames(t, tt.names)
				for _, level := range []string{"remote_write", "on", "remote_apply"} {
					var made []made
					var seen []judged
					for _, sessions := range []int{1, 8} {
						made = append(made, r.write(t, sessions, 3, level)...)
						seen = append(seen, r.take(t, 3*sessions)...)
					}
					checkAgainstTruth(t, tt.names+", "+level, r.compare(t, made, seen), tt.by)
					checkReplication(t, seen, tt.by)
				}
			}
			for _, level := range []string{"off", "local"} {
				r.write(t, 1, 3, level)
				if got := bases(r.take(t, 3)); !maps.Equal(got, map[string]int{" " + trace.BasisNotWaited: 3}) {
					t.Errorf("%s: %v, want that it doesn't wait", level, got)
				}
			}
		})
	}
}

func binDir(t *testing.T, version string) string {
	t.Helper()
	if version == "" {
		return ""
	}
	dir := lab.NPMPostgres(version)
	if dir == "" {
		testenv.Missing(t, "no PostgreSQL "+version+": run internal/interop/clients/install.sh postgres-"+version)
	}
	return dir
}

// checkReplication asserts that the wait holds the link's round trip, that the
// release comes before the reply, and that what is left is the server's.
func checkReplication(t *testing.T, seen []judged, want string) {
	t.Helper()
	roundTrip := standbyDelays[want]
	for _, j := range seen {
		if j.by == "" || j.by != want {
			continue
		}
		if j.replication < roundTrip || j.replication > j.total || j.server < 0 || j.released >= j.replyIn {
			t.Errorf("%+v: want at least %v of replication, within the total, and the release before the reply", j, roundTrip)
			return
		}
		if j.acknowledged == 0 || j.acknowledged+j.behind != 2 {
			t.Errorf("%+v: want two standbys, of which one had it", j)
			return
		}
	}
}
