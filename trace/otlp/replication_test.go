package otlp

import (
	"testing"
	"time"

	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// released is a commit that s1 released at 54 ms and s2 had at 60, before the
// reply left at 97; s3 had it not.
func released(t *testing.T) *trace.Finished {
	t.Helper()
	for _, x := range fixtures() {
		if x.name != "postgres_insert_delayed" {
			continue
		}
		f := &trace.Finished{Exchange: x.x, Conn: x.conn, Waits: trace.Split(x.x)}
		at := func(ms int) wire.Stamp { return wire.Stamp(ms) * wire.Stamp(time.Millisecond) }
		f.Replication = trace.Replication{
			Basis: trace.BasisUnanimous, ReleasedBy: "s1", Began: at(53), Released: at(54), Candidates: 1,
			Spread: 2 * time.Millisecond, Commit: wire.LSN(0x16B3748), XID: 2580,
			Acknowledged: []trace.MemberWait{{Member: "s1", Sent: at(53), Acknowledged: at(54)}, {Member: "s2\xff", Sent: at(53), Acknowledged: at(60)}},
			Behind:       []string{"s3", "s4"},
		}
		f.Waits.Server, f.Waits.Replication = f.Waits.Server-time.Millisecond, time.Millisecond
		return f
	}
	t.Fatal("the fixture is gone")
	return nil
}

func TestReplication_AttributesAndChildren(t *testing.T) {
	f := released(t)
	records := made(&spans{limits: newLimits()}, f)
	got := map[string]string{}
	for _, kv := range records[0].attributes {
		got[string(kv.Key)] = kv.Value.String()
	}
	for k, want := range map[string]string{
		"wirewait.released_by": "s1", "wirewait.released_by.basis": "window_unanimous",
		"wirewait.acknowledged_by": "s1,s2\uFFFD", "wirewait.not_waited_for": "s3,s4",
		"postgresql.commit.lsn": "0/16B3748", "postgresql.commit.xid": "2580",
		"wirewait.wait.replication_ms": "1", "wirewait.wait.replication_spread_ms": "2", "wirewait.wait.server_ms": "3",
	} {
		if got[k] != want {
			t.Errorf("%s is %q, want %q", k, got[k], want)
		}
	}
	var names []string
	for _, r := range records[1:] {
		names = append(names, r.name)
		if r.parent.SpanID() != records[0].context.SpanID() || r.start.Before(records[0].start) || r.end.After(records[0].end) {
			t.Errorf("%s: from %v to %v, not within its root", r.name, r.start, r.end)
		}
	}
	want := []string{"request", "server", "replicate s1", "replicate s2\uFFFD", "reply"}
	if len(names) != len(want) {
		t.Fatalf("children %q, want %q", names, want)
	}
	for i := range want {
		if names[i] != want[i] {
			t.Errorf("child %d is %q, want %q", i, names[i], want[i])
		}
	}
	if d := records[3].end.Sub(records[3].start); d != time.Millisecond {
		t.Errorf("replicate s1 took %v, want 1ms", d)
	}
	if records[0].children != len(want) {
		t.Errorf("the root says that it has %d children", records[0].children)
	}
}

func TestReplication_SaysNothingWhereNobodyAsked(t *testing.T) {
	f := released(t)
	f.Replication = trace.Replication{}
	for _, kv := range made(&spans{limits: newLimits()}, f)[0].attributes {
		switch kv.Key {
		case keyReleasedBy, keyReleasedBasis, keyNotWaitedFor, keyReplicaAcks, keyCommitLSN:
			t.Errorf("%s is %q", kv.Key, kv.Value.String())
		}
	}
}
