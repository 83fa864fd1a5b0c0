package trace

import (
	"testing"

	"github.com/wirewait/wirewait/wire"
)

// A session that was seen in a transaction makes its commit certain, and with it
// the member, whatever others there are.
func TestJudge_ObservedSessionsAreExact(t *testing.T) {
	for _, tt := range []struct {
		about    string
		pid      int32
		xid      uint32
		from, to int // of the query
		by       string
		basis    string
	}{
		{"seen while it waited", 42, 7, 20, 21, "s1", BasisExact},
		{"seen in the other", 42, 8, 20, 21, "s2", BasisExact},
		{"another session", 43, 7, 20, 21, "", BasisUnknown},
		{"a query that began before", 42, 7, 9, 21, "", BasisUnknown},
		{"a query that ended afterwards", 42, 7, 20, 99, "", BasisUnknown},
		{"a transaction of which no commit was seen", 42, 99, 20, 21, "", BasisUnknown},
	} {
		k := twoStandbys(commitOf(7, 100))
		k.sent(20, "s2", 120, commitOf(8, 120))
		k.acked(70, "s2", 120, 120, 120) // s1 has it only later
		k.acked(95, "s1", 120, 120, 120)
		k.g.report(&wire.Report{Kind: wire.ReportObserved, In: ms64(tt.from), Out: ms64(tt.to), Backends: []wire.Backend{{PID: tt.pid, XID: tt.xid}, {PID: 1, XID: 2}}})
		var a attribution
		a.servers = map[string]*replicas{"pg.p": &k.g}
		a.setRule("pg.p", rule(t, "ANY 1 (s1, s2)"))
		f := written("on", 90)
		f.Peer = &wire.Peer{BackendPID: 42}
		a.judge(f)
		if r := &f.Replication; r.ReleasedBy != tt.by || r.Basis != tt.basis || tt.by != "" && r.XID != tt.xid {
			t.Errorf("%s: %+v", tt.about, r)
		}
	}
	var o observations
	for i := range 3 * maxObserved {
		o.add(&wire.Report{Backends: []wire.Backend{{PID: int32(i), XID: 1}, {PID: 1, XID: uint32(i)}}})
	}
	if len(o) > maxObserved+1 || len(o[1]) > maxOfABackend {
		t.Errorf("%d sessions are kept, %d of one", len(o), len(o[1]))
	}
}
