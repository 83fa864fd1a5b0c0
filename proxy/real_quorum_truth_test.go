//go:build unix

package proxy_test

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/internal/testenv"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// ends are where transactions end in the log.
func (r *quorumRig) ends(t *testing.T) map[uint32]wire.Position {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), r.cluster.URL(r.cluster.Primary.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "set synchronous_commit = local; create extension if not exists pg_walinspect"); err != nil {
		t.Fatal(err)
	}
	rows, err := conn.Query(t.Context(), "select xid::text::bigint, end_lsn::text from pg_get_wal_records_info($1::pg_lsn, "+
		"pg_current_wal_flush_lsn()) where resource_manager = 'Transaction' and record_type = 'COMMIT'", r.begin)
	if err != nil {
		t.Fatal(err)
	}
	ends := map[uint32]wire.Position{}
	var xid uint64
	var end string
	if _, err := pgx.ForEachRow(rows, []any{&xid, &end}, func() error {
		ends[uint32(xid)] = lsn(t, end)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return ends
}

// verdict is what was said of a write beside the truth.
type verdict struct {
	judged
	truth, last string
	end         wire.Position
}

// compare finds each span's write: those of one session come in order.
func (r *quorumRig) compare(t *testing.T, all []made, seen []judged) (list []verdict) {
	t.Helper()
	ends, truth := r.ends(t), r.truth(t)
	bySession := map[int32][]made{}
	for _, m := range all {
		bySession[m.pid] = append(bySession[m.pid], m)
	}
	slices.SortFunc(seen, func(a, b judged) int { return cmp.Compare(a.ordinal, b.ordinal) })
	next := map[int32]int{}
	for _, j := range seen {
		mine := bySession[j.pid]
		if next[j.pid] >= len(mine) {
			t.Fatalf("more spans of backend %d than its client made writes", j.pid)
		}
		m := mine[next[j.pid]]
		next[j.pid]++
		end, ok := ends[m.xid]
		by, last := truth.of(end, j.level, r.names.Any && r.names.Count == 1)
		if !ok || by == "" {
			t.Fatalf("the servers don't know transaction %d: at %v, released by %q", m.xid, end, by)
		}
		if j.xid != 0 && j.xid != m.xid && j.basis != trace.BasisUnknown {
			t.Errorf("the span names transaction %d, the client made %d", j.xid, m.xid)
		}
		list = append(list, verdict{j, by, last, end})
	}
	return list
}

// checkAgainstTruth asserts that no span names a wrong standby, that most name
// one, and that it's mostly the one that the delays make likely: how often it
// isn't is up to the disk and to how busy the machine is. On one that is so busy
// that a walsender stands still for longer than the standbys are apart, what we
// saw isn't what happened; once is let pass.
func checkAgainstTruth(t *testing.T, about string, list []verdict, likely string) {
	t.Helper()
	var wrong, unknown, unexplained, unlikely int
	stood := map[wire.Stamp]bool{} // one acknowledgement may release many
	for _, v := range list {
		switch {
		case v.by == "" && v.truth != likely: // so the two came close together
			unknown++
		case v.by == "":
			unknown++
			unexplained++
		case v.by != v.truth && v.by != v.last:
			wrong++
			stood[v.released] = true
		}
		if v.truth != likely && v.last != likely {
			unlikely++
		}
	}
	if n := len(list); *quiet && unlikely*100 > n {
		t.Errorf("%s: %d of %d not released by %s, want 1%% at most", about, unlikely, n, likely)
	}
	t.Logf("%s: %d writes, %d wrong, %d unknown; %d not released by %s", about, len(list), wrong, unknown, unlikely, likely)
	if n := len(list); wrong*200 > n && len(stood) > 1 || unexplained*20 > n+19 || unlikely*2 > n {
		t.Errorf("%s: of %d writes %d wrong, %d unknown, %d not released by %s", about, n, wrong, unknown, unlikely, likely)
	}
}

// Many sessions at once: the member is certain or unknown, and not wrong.
func TestRealQuorum_ManySessionsAgainstTheServersLog(t *testing.T) {
	testenv.Timely(t)
	for _, version := range quorumVersions() {
		t.Run("PostgreSQL "+version, func(t *testing.T) {
			r := newQuorumRig(t, binDir(t, version))
			r.createTable(t)
			for names, likely := range map[string]string{"ANY 1 (s1, s2)": "s1", "FIRST 2 (s1, s2)": "s2"} {
				r.setNames(t, names)
				all := r.write(t, 32, 20, "on")
				checkAgainstTruth(t, names, r.compare(t, all, r.take(t, 32*20)), likely)
			}
		})
	}
}

// When the standby that was waited for stops, or dies, the other one takes over
// from the first commit on.
func TestRealQuorum_TheOtherStandbyTakesOver(t *testing.T) {
	testenv.Timely(t)
	for _, version := range quorumVersions() {
		t.Run("PostgreSQL "+version, func(t *testing.T) {
			r := newQuorumRig(t, binDir(t, version))
			r.createTable(t)
			if version == "18" {
				r.ask(t)
			}
			r.setNames(t, "FIRST 1 (s1, s2)")
			s1 := r.cluster.Standby("s1")
			for _, end := range []func() error{s1.Stop, s1.Kill} {
				all := r.write(t, 1, 3, "on")
				checkAgainstTruth(t, "with s1", r.compare(t, all, r.take(t, 3)), "s1")
				if err := end(); err != nil {
					t.Fatal(err)
				}
				if err := r.cluster.WaitGone(t.Context(), "s1"); err != nil {
					t.Fatal(err)
				}
				all = r.write(t, 1, 5, "on")
				checkAgainstTruth(t, "without s1", r.compare(t, all, r.take(t, 5)), "s2")
				if err := s1.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := r.cluster.WaitStreaming(t.Context(), "s1", "s2"); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// Standbys that are equally far, over links whose delay varies: either may be
// first, for each commit anew. A wrong one is worse than none.
func TestRealQuorum_EquallyFarStandbys(t *testing.T) {
	testenv.Timely(t)
	r := newQuorumRig(t, "")
	r.createTable(t)
	for _, s := range []string{"s1", "s2"} {
		r.proxy.Link(s).SetDelay(inject.Symmetric(10*time.Millisecond, 2*time.Millisecond))
	}
	wrong, unknown, all := 0, 0, 0
	for _, names := range []string{"ANY 1 (s1, s2)", "ANY 2 (s1, s2)"} {
		r.setNames(t, names)
		for _, sessions := range []int{1, 4, 32} {
			each := 160 / sessions
			for _, v := range r.compare(t, r.write(t, sessions, each, "on"), r.take(t, sessions*each)) {
				all++
				switch {
				case v.by == "":
					unknown++
				case v.by != v.truth && v.by != v.last:
					wrong++
					t.Logf("%s, %d sessions: by %s, %s, in truth %s; acknowledged %v apart, reply %v after",
						names, sessions, v.by, v.basis, v.truth, v.gap, v.replyIn.Sub(v.released))
				}
			}
		}
	}
	t.Logf("%d writes, %d wrong, %d unknown", all, wrong, unknown)
	if wrong*100 > all || unknown == all {
		t.Errorf("of %d writes %d wrong, %d unknown", all, wrong, unknown)
	}
}

// A wait that is cancelled, or whose session is ended, leaves the commit on the
// primary, and the span says that it isn't known to be anywhere else.
func TestRealQuorum_InterruptedWaits(t *testing.T) {
	r := newQuorumRig(t, "")
	r.createTable(t)
	r.setNames(t, "ANY 1 (s1, s2)")
	for _, s := range r.cluster.Standbys {
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	admin, err := pgx.Connect(t.Context(), r.cluster.URL(r.cluster.Primary.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	for _, end := range []string{"pg_cancel_backend", "pg_terminate_backend"} {
		conn, err := pgx.Connect(t.Context(), r.cluster.URL(r.addr("app")))
		if err != nil {
			t.Fatal(err)
		}
		failed := make(chan error, 1)
		go func() {
			_, err := conn.Exec(context.Background(), "insert into t values (1)", pgx.QueryExecModeSimpleProtocol)
			failed <- err
		}()
		for n := 0; n == 0; {
			err := admin.QueryRow(t.Context(), "select count("+end+"(pid)) from pg_stat_activity where wait_event = 'SyncRep'").Scan(&n)
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := <-failed; (err == nil) != (end == "pg_cancel_backend") {
			t.Errorf("%s: the client was told %v", end, err)
		}
		conn.Close(context.Background())
		j := r.take(t, 1)[0]
		if !j.unreplicated || j.by != "" {
			t.Errorf("%s: %+v, want that it's not known to be replicated", end, j)
		}
		if end == "pg_cancel_backend" && j.basis != trace.BasisInterrupted {
			t.Errorf("%s: basis %s", end, j.basis)
		}
	}
}

// Links that are cut in the middle: clients see nothing of it but that commits
// wait, as they would for a standby that is gone, and no wrong member is named.
func TestRealQuorum_LinksThatDie(t *testing.T) {
	r := newQuorumRig(t, "")
	r.createTable(t)
	r.setNames(t, "ANY 1 (s1, s2)")
	r.write(t, 1, 3, "on")
	r.take(t, 3)
	standby := r.cluster.Standby("s1")
	done := make(chan []made)
	go func() { done <- r.write(t, 4, 20, "on") }()
	for range 3 { // its connection comes back each time
		if err := standby.Kill(); err != nil {
			t.Error(err)
		}
		if err := standby.Start(t.Context()); err != nil {
			t.Error(err)
		}
	}
	all := <-done
	wrong := 0
	for _, v := range r.compare(t, all, r.take(t, len(all))) {
		if v.by != "" && v.by != v.truth && v.by != v.last {
			wrong++
		}
	}
	if len(all) != 80 || wrong > 0 {
		t.Errorf("%d of 80 writes, %d attributed to the wrong standby", len(all), wrong)
	}
}

// A standby that comes back with much to catch up with isn't waited for, and not
// named, until it has all: FIRST takes the other one meanwhile.
func TestRealQuorum_CatchingUp(t *testing.T) {
	testenv.Timely(t)
	r := newQuorumRig(t, "")
	r.createTable(t)
	r.setNames(t, "FIRST 1 (s1, s2)")
	s1 := r.cluster.Standby("s1")
	if err := s1.Stop(); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), r.cluster.URL(r.cluster.Primary.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	const much = "set synchronous_commit = local; create table much as select repeat('x', 500) s from generate_series(1, 60000)"
	if _, err := conn.Exec(t.Context(), much); err != nil {
		t.Fatal(err)
	}
	r.proxy.Link("s2").SetDelay(inject.Symmetric(20*time.Millisecond, 0))
	done := make(chan []made)
	go func() { done <- r.write(t, 2, 60, "on") }()
	if err := s1.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := <-done
	count := map[string]int{}
	wrong := map[wire.Stamp]bool{} // one acknowledgement may release both sessions
	for _, v := range r.compare(t, all, r.take(t, len(all))) {
		switch v.by {
		case "":
			count["unknown"]++
		case v.truth:
			count[v.by]++
		default:
			count["wrong"]++
			wrong[v.released] = true
			t.Logf("by %s, %s, in truth %s, acknowledged %v apart, reply %v after", v.by, v.basis, v.truth, v.gap, v.replyIn.Sub(v.released))
		}
	}
	t.Log(count)
	if len(wrong) > 1 || count["s1"]+count["s2"] < len(all)/2 {
		t.Errorf("of %d writes: %v", len(all), count)
	}
}
