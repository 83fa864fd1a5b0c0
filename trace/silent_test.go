package trace

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/wirewait/wirewait/wire"
)

// A write waits while a standby that counts may have said more than is in.
func TestSilent(t *testing.T) {
	// s1 has the commit at 40 to 42 ms, s2 at 90.
	for _, tt := range []struct {
		about  string
		at     int // ms: the write's end
		level  wire.Level
		change func(*talk)
		want   bool
	}{
		{"both have it all", 41, wire.Durable, nil, false},
		{"before the commit was on its way", 14, wire.Durable, func(k *talk) { k.g.members[1].reached = [wire.Levels + 1]history{} }, false},
		{"s2 hasn't said anything", 60, wire.Durable, func(k *talk) { forgetTold(k, 1) }, true},
		{"but isn't there", 60, wire.Durable, func(k *talk) { forgetTold(k, 1); k.left(61, "s2") }, false},
		{"or has said something later", 60, wire.Durable, func(k *talk) { forgetTold(k, 1); k.acked(95, "s2", 60, 60, 60) }, false},
		{"s1 has it on disk", 60, wire.Durable, func(k *talk) { k.g.members[0].reached[wire.Applied] = history{} }, false},
		{"and has not applied it", 60, wire.Applied, func(k *talk) { k.g.members[0].reached[wire.Applied] = history{} }, true},
	} {
		k := twoStandbys(commitOf(7, 100))
		if tt.change != nil {
			tt.change(k)
		}
		if got := k.g.silent(ms64(tt.at), tt.level); got != tt.want {
			t.Errorf("%s: %v", tt.about, got)
		}
	}
}

// forgetTold takes back what a member acknowledged of the commit.
func forgetTold(k *talk, member int) {
	m := k.g.members[member]
	m.heard = m.heard[:1]
	m.reached = [wire.Levels + 1]history{}
}

// An acknowledgement that is told long after it was passed on, since whoever tells
// it was kept from running, still counts; and nobody waits for ever for one that
// says nothing.
func TestTracer_WaitsForSilentStandbys(t *testing.T) {
	for late, by := range map[time.Duration]string{300 * time.Millisecond: "s1", time.Second: ""} {
		synctest.Test(t, func(t *testing.T) {
			conn := &Conn{To: "pg.p", Epoch: time.Now()}
			got := make(chan string, 1)
			tr := New(100, consumerFunc(func(f *Finished) { got <- f.Replication.ReleasedBy }))
			defer tr.Close()
			tr.SetRule("pg.p", rule(t, "ANY 1 (s1, s2)"))
			acked := func(at int, member string, connection uint64, lsn uint64) {
				p := wire.LSN(lsn)
				tr.OfferReport(&wire.Report{
					Kind: wire.ReportReached, Out: ms64(at), Member: member, Connection: connection,
					Reached: []wire.Progress{{Member: member, Reached: [wire.Levels]wire.Position{p, p, p}}},
				}, conn)
			}
			acked(1, "s1", 1, 50)
			acked(1, "s2", 2, 50)
			tr.OfferReport(&wire.Report{Kind: wire.ReportSent, In: ms64(15), Member: "s1", Connection: 1, Sent: wire.LSN(100), Commits: []wire.Commit{commitOf(7, 100)}}, conn)
			acked(90, "s2", 2, 100)
			time.Sleep(100 * time.Millisecond)
			tr.Offer(written("on", 42).Exchange, conn)
			time.Sleep(late)
			acked(41, "s1", 1, 100) // and that was long ago
			if name := <-got; name != by {
				t.Errorf("told %v later: released by %q, want %q", late, name, by)
			}
			if waited := time.Since(conn.Epoch); waited > 100*time.Millisecond+max(late, maxSettleTime)+2*linger {
				t.Errorf("told %v later: judged after %v", late, waited)
			}
		})
	}
}
