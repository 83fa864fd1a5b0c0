package trace

import (
	"testing"
	"time"

	"github.com/wirewait/wirewait/wire"
)

// judgedBy judges a write of session 42 whose window holds two commits: 7, which s1
// released, and 8, which s2 did.
func judgedBy(t *testing.T, change func(*Finished), seen ...wire.Backend) *Replication {
	t.Helper()
	k := twoStandbys(commitOf(7, 100))
	k.sent(20, "s2", 120, commitOf(8, 120))
	k.acked(70, "s2", 120, 120, 120) // s1 has it only later
	k.acked(95, "s1", 120, 120, 120)
	k.g.observed.add(seen, time.Time{}.Add(20*time.Millisecond))
	var a attribution
	a.servers = map[string]*replicas{"pg.p": &k.g}
	a.setRule("pg.p", rule(t, "ANY 1 (s1, s2)"))
	f := written("on", 90)
	f.Peer = &wire.Peer{BackendPID: 42}
	if change != nil {
		change(f)
	}
	a.judge(f)
	return &f.Replication
}

// A session that was seen in a transaction makes its commit certain, and with it
// the member, whatever others there are; and it rules that commit out for others.
func TestJudge_ObservedSessionsAreExact(t *testing.T) {
	for _, tt := range []struct {
		about string
		seen  []wire.Backend
		by    string
		basis string
		xid   uint32
	}{
		{"seen while it waited", []wire.Backend{{PID: 42, XID: 7}}, "s1", BasisExact, 7},
		{"seen in the other", []wire.Backend{{PID: 42, XID: 8}, {PID: 43, XID: 7}}, "s2", BasisExact, 8},
		{"in both, as in a procedure", []wire.Backend{{PID: 42, XID: 7}, {PID: 42, XID: 8}}, "s2", BasisExact, 8},
		{"nobody seen", nil, "", BasisUnknown, 0},
		{"another's, and never seen itself", []wire.Backend{{PID: 43, XID: 7}}, "", BasisUnknown, 0},
		{"a transaction of which no commit was seen", []wire.Backend{{PID: 42, XID: 99}}, "", BasisUnknown, 0},
		{"one is another's", []wire.Backend{{PID: 42, XID: 99}, {PID: 43, XID: 8}}, "s1", BasisThenPrimary, 7},
		{"both are others'", []wire.Backend{{PID: 42, XID: 99}, {PID: 43, XID: 8}, {PID: 44, XID: 7}}, "", BasisUnknown, 0},
	} {
		if r := judgedBy(t, nil, tt.seen...); r.ReleasedBy != tt.by || r.Basis != tt.basis || r.XID != tt.xid {
			t.Errorf("%s: %+v", tt.about, r)
		}
	}
	// What the session said of its level doesn't matter against what was seen.
	r := judgedBy(t, func(f *Finished) { f.Postgres.SynchronousCommit = "remote_apply" }, wire.Backend{PID: 42, XID: 7})
	if r.Basis != BasisExact || r.XID != 7 {
		t.Errorf("another level than was believed: %+v", r)
	}
	// The end of a prepared transaction is of whoever ends it.
	r = judgedBy(t, func(f *Finished) { f.Peer = &wire.Peer{BackendPID: 7} }, wire.Backend{PID: 42, XID: 7}, wire.Backend{PID: 7, XID: 1})
	if r.XID != 8 {
		t.Errorf("another session's write: %+v", r)
	}
	var o observations
	o.add([]wire.Backend{{PID: 42, XID: 7}}, time.Time{})
	if s := o.session(&commit{Commit: wire.Commit{XID: 7, Kind: wire.CommitPrepared}}); s != 0 {
		t.Errorf("whoever prepared it, %d, is taken for who ends it", s)
	}
}

// A session that still waits, long after the acknowledgement that should have
// released it, may have been released by another that came since.
func TestJudge_SeenToWaitAfterItsRelease(t *testing.T) {
	for _, tt := range []struct {
		seen, replyIn int // ms
		basis         string
	}{
		{20, 140, BasisExact}, {50, 140, BasisExact}, {52, 140, BasisUnknown}, {80, 140, BasisUnknown},
		{80, 89, BasisExact}, // nobody else had it then
	} {
		ms, basis := tt.seen, tt.basis
		k := twoStandbys(commitOf(7, 100)) // s1 has it at 41 ms, s2 at 90
		k.g.observed.add([]wire.Backend{{PID: 42, XID: 7}}, time.Time{})
		k.g.observed.add([]wire.Backend{{PID: 42, XID: 7}}, time.Time{}.Add(time.Duration(ms)*time.Millisecond))
		var a attribution
		a.servers = map[string]*replicas{"pg.p": &k.g}
		a.setRule("pg.p", rule(t, "ANY 1 (s1, s2)"))
		f := written("on", tt.replyIn)
		f.Peer = &wire.Peer{BackendPID: 42}
		a.judge(f)
		if r := &f.Replication; r.Basis != basis || (r.ReleasedBy == "s1") != (basis == BasisExact) || r.XID != 7 {
			t.Errorf("seen at %d ms: %+v", ms, r)
		}
	}
}

// What the tracer is told of a server's sessions goes to its writes.
func TestTracer_Observe(t *testing.T) {
	var a attribution
	asked := time.Now()
	a.report(&wire.Report{Kind: wire.ReportObserved, Backends: []wire.Backend{{PID: 42, XID: 7}}}, &Conn{To: "pg.p", Epoch: asked})
	if s := a.servers["pg.p"].observed.sessions[7]; s.pid != 42 || !s.last.Equal(asked) {
		t.Errorf("%+v", s)
	}
}

func TestObservations_AreBounded(t *testing.T) {
	var o observations
	for i := range 3 * maxObserved {
		b := wire.Backend{PID: int32(i/2 + 1), XID: uint32(i + 1)}
		o.add([]wire.Backend{b, b}, time.Time{})
	}
	if len(o.sessions) != maxObserved || len(o.seen) != maxObserved/2 || o.order.Len() != maxObserved {
		t.Errorf("%d transactions and %d sessions are kept", len(o.sessions), len(o.seen))
	}
	if o.sessions[1].pid != 0 || o.sessions[3*maxObserved].pid == 0 {
		t.Error("not the latest are kept")
	}
}
