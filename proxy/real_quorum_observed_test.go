//go:build unix

package proxy_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/wirewait/wirewait/internal/testenv"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// Whoever looks at the primary's sessions while they wait makes each commit
// certain: its transaction is the one that the client made, and so is the member.
func TestRealQuorum_ObservedSessions(t *testing.T) {
	testenv.Timely(t)
	r := newQuorumRig(t, "")
	r.createTable(t)
	r.setNames(t, "ANY 1 (s1, s2)")
	r.write(t, 1, 1, "on") // the tracer's clock is on its span
	r.take(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	looked := make(chan error, 1)
	go func() { looked <- r.observe(ctx) }()
	all := r.write(t, 16, 10, "on")
	list := r.compare(t, all, r.take(t, len(all)))
	cancel()
	if err := <-looked; err != nil {
		t.Fatal(err)
	}
	exact, known := 0, 0
	for _, v := range list { // compare has held transactions against what clients made
		if v.basis == trace.BasisExact {
			exact++
			if v.xid == 0 {
				t.Errorf("exact, and without a transaction: %+v", v)
			}
		}
		if v.by != "" {
			known++
		}
	}
	t.Logf("of %d writes %d exact, %d with a member", len(list), exact, known)
	checkAgainstTruth(t, "observed", list, "s1")
	if exact*4 < len(list) { // waits of 40 ms, and a query takes a few on a quiet machine
		t.Errorf("only %d of %d are exact", exact, len(list))
	}
}

// observe tells the tracer who waits in which transaction, until ctx ends.
func (r *quorumRig) observe(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, r.cluster.URL(r.cluster.Primary.Addr()))
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	r.mu.Lock()
	primary := r.conn
	r.mu.Unlock()
	now := func() wire.Stamp { return wire.Stamp(time.Since(primary.Epoch)) }
	const look = "select pid, backend_xid::text::bigint from pg_stat_activity where wait_event = 'SyncRep' and backend_xid is not null"
	for ctx.Err() == nil {
		report := &wire.Report{Kind: wire.ReportObserved, In: now()}
		rows, err := conn.Query(context.WithoutCancel(ctx), look, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			return err
		}
		var pid int32
		var xid int64
		if _, err := pgx.ForEachRow(rows, []any{&pid, &xid}, func() error {
			report.Backends = append(report.Backends, wire.Backend{PID: pid, XID: uint32(xid)})
			return nil
		}); err != nil {
			return err
		}
		report.Out = now()
		r.tracer.OfferReport(report, primary)
	}
	return nil
}
