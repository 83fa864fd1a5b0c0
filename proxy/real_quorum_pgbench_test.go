//go:build unix

package proxy_test

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"math"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/wirewait/wirewait/internal/testenv"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

var quorumTime = flag.Duration("quorum", 0, "how long pgbench runs against each kind of server, in each of its modes; 0: 3 s and fewer of them")

// 32 clients of pgbench, whose commits wait for standbys at 40 and 120 ms. Every
// COMMIT's transaction is in the primary's log, where its statements are; who
// released it, too (real_quorum_log_test.go). How long it waited is the primary's
// own record of the standby that did, pg_stat_replication.flush_lag: from when the
// walsender found the log on disk until it was told that the standby has it there
// (LagTrackerWrite and LagTrackerRead in src/backend/replication/walsender.c). That
// is sampled, and known for commits that a standby's acknowledgement ends with. All
// of this is the same in 15, 17 and 18.
//
// Observed, the primary's setting changes in the middle, and nobody tells.
func TestRealQuorum_Pgbench(t *testing.T) {
	testenv.Timely(t)
	if _, err := exec.LookPath("pgbench"); err != nil {
		testenv.Missing(t, "no pgbench: apt-get install postgresql-contrib (or postgresql)")
	}
	long := *quorumTime > 0
	howLong := cmp.Or(*quorumTime, 3*time.Second)
	for _, tt := range []struct {
		version, mode string
		observed      bool
		always        bool
	}{
		{"", "simple", true, true}, {"", "prepared", true, false}, {"", "simple", false, true}, {"", "prepared", false, false},
		{"17", "prepared", true, false}, {"18", "prepared", true, true}, {"18", "simple", true, false}, {"18", "simple", false, false}, {"18", "prepared", false, false},
	} {
		if !tt.always && !long {
			continue
		}
		t.Run(fmt.Sprintf("PostgreSQL %s, %s, observed %v", tt.version, tt.mode, tt.observed), func(t *testing.T) {
			r := newQuorumRig(t, binDir(t, tt.version), map[string]string{"log_statement": "all", "wal_keep_size": "2GB", "max_wal_size": "1GB"})
			if tt.observed {
				r.ask(t)
			}
			r.pgbench(t, r.cluster.Primary.Addr(), "-i", "-q", "-s", "2")
			r.noteBegin(t)
			y := &quorumVerdicts{lags: r.sampleLags(t)}
			r.setNames(t, "ANY 1 (s1, s2)")
			var benching sync.WaitGroup
			benching.Go(func() {
				seconds := strconv.Itoa(max(int(howLong.Seconds()), 1))
				r.pgbench(t, r.addr("app"), "-n", "-N", "-M", tt.mode, "-c", "32", "-j", "2", "-T", seconds)
			})
			if tt.observed {
				pause(t, howLong/2)
				r.setNames(t, "FIRST 1 (s2, s1)")
			}
			benching.Wait()
			commits := r.truth(t).commits
			list := r.compare(t, commits, r.take(t, len(commits)))
			y.judge(t, r, list)
			y.check(t, tt.observed)
		})
	}
}

// pause lets a workload run for a while.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// pgbench runs it against an address.
func (r *quorumRig) pgbench(t *testing.T, addr string, args ...string) {
	t.Helper()
	host, port, _ := net.SplitHostPort(addr)
	cmd := exec.CommandContext(t.Context(), "pgbench", append(args, "-h", host, "-p", port, "-U", "postgres", "postgres")...)
	cmd.Env = append(cmd.Environ(), "PGGSSENCMODE=disable", "PGSSLMODE=disable")
	if out, err := cmd.CombinedOutput(); err != nil || bytes.Contains(out, []byte("aborted")) {
		t.Errorf("pgbench %q: %v\n%s", args, err, out)
	}
}

// lagged is a position that a standby has on disk.
type lagged struct {
	by  string
	end wire.Position
}

// sampleLags notes what the primary says of its standbys' acknowledgements until
// the returned function is called, which gives it.
func (r *quorumRig) sampleLags(t *testing.T) (stop func() map[lagged]time.Duration) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), r.cluster.URL(r.cluster.Primary.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	noted := make(chan map[lagged]time.Duration, 1)
	go func() {
		defer conn.Close(context.Background())
		lags := map[lagged]time.Duration{}
		for ; ctx.Err() == nil; time.Sleep(4 * time.Millisecond) {
			rows, err := conn.Query(context.WithoutCancel(ctx), "select application_name, flush_lsn::text, (extract(epoch from flush_lag) * 1e6)::bigint "+
				"from pg_stat_replication where flush_lag is not null", pgx.QueryExecModeSimpleProtocol)
			if err != nil {
				t.Error(err)
				break
			}
			var by, end string
			var us int64
			if _, err := pgx.ForEachRow(rows, []any{&by, &end, &us}, func() error {
				if at := (lagged{by, lsn(t, end)}); lags[at] == 0 {
					lags[at] = time.Duration(us) * time.Microsecond
				}
				return nil
			}); err != nil {
				t.Error(err)
				break
			}
		}
		noted <- lags
	}()
	t.Cleanup(cancel)
	return func() map[lagged]time.Duration {
		cancel()
		return <-noted
	}
}

// quorumVerdicts count how what was said of commits compares with what became of
// them.
type quorumVerdicts struct {
	lags func() map[lagged]time.Duration

	all, wrong, unknown, exact int
	bases                      map[string]int
	stood                      map[wire.Stamp]bool // releases that were attributed wrongly
	near                       int
	off                        []time.Duration // of replication: by how much it's longer than the primary's record
}

func (y *quorumVerdicts) judge(t *testing.T, r *quorumRig, list []verdict) {
	t.Helper()
	y.bases, y.stood = map[string]int{}, map[wire.Stamp]bool{}
	lags := y.lags()
	for _, v := range list {
		y.all++
		y.bases[v.basis]++
		if v.basis == trace.BasisExact {
			y.exact++
		}
		switch v.by {
		case "":
			y.unknown++
			continue
		case v.truth, v.last:
		default:
			y.wrong++
			y.stood[v.released] = true
			t.Logf("by %s, %s, in truth %s, last %s; %d acknowledged, %v apart, reply %v after, which came %v in",
				v.by, v.basis, v.truth, v.last, v.acknowledged, v.gap, v.replyIn.Sub(v.released), time.Duration(v.replyIn))
			continue
		}
		if was := lags[lagged{v.by, v.end}]; was > 0 {
			d := v.replication - was
			y.off = append(y.off, d)
			if d.Abs() <= 2*time.Millisecond || float64(d.Abs()) <= 0.03*math.Abs(float64(was)) {
				y.near++
			}
		}
	}
	slices.Sort(y.off)
}

// check prints the figures beside their bounds. Those that hang on how busy the
// machine is are asserted where it's quiet. Where it isn't, this process may stand
// still between an acknowledgement's write and the report of it for longer than a
// write waits to be judged: all that one or two released are let pass.
func (y *quorumVerdicts) check(t *testing.T, observed bool) {
	t.Helper()
	figures := []figure{
		percentage(fmt.Sprintf("attributed to the wrong standby, %d times", len(y.stood)), y.wrong, y.all, 0.5, false),
		percentage("attributed to none", y.unknown, y.all, 2, true),
		percentage("replication_ms off by more than 2 ms and 3%", len(y.off)-y.near, len(y.off), 5, true),
	}
	if observed {
		figures = append(figures, percentage("not exact", y.all-y.exact, y.all, 100, true))
	}
	t.Logf("%d commits, %d of them with the primary's own record: %v", y.all, len(y.off), slices.Sorted(maps.Keys(y.bases)))
	for _, f := range figures {
		t.Logf("%-50s %14s   bound %s", f.what, f.measured, f.bound)
		if !f.holds && (!f.load || *quiet) && (*quiet || len(y.stood) > 2) {
			t.Errorf("%s: %s, want at most %s", f.what, f.measured, f.bound)
		}
	}
	if n := len(y.off); n > 0 {
		t.Logf("replication_ms less the primary's record: 5%% %v, median %v, 95%% %v", y.off[n/20], y.off[n/2], y.off[n*19/20])
	}
	if y.all < 100 || y.unknown*2 > y.all || observed && y.exact*4 < y.all {
		t.Errorf("of %d commits %d attributed to none, %d exact: %v", y.all, y.unknown, y.exact, y.bases)
	}
}

func percentage(what string, n, of int, most float64, load bool) figure {
	share := 100 * float64(n) / float64(max(of, 1))
	return figure{what, fmt.Sprintf("%.2f%% (%d)", share, n), fmt.Sprintf("%g%%", most), share <= most, load}
}
