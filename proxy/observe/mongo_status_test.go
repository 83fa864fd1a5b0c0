package observe

import (
	"fmt"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/trace"
)

func marshal(t *testing.T, v any) bson.Raw {
	t.Helper()
	raw, err := bson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// old is serverStatus as 7.0 has it, new as 8.0 does: the same server at two
// moments, n of each thing having happened.
func old(n int) bson.M {
	return bson.M{
		"version": "6.0.14",
		"wiredTiger": bson.M{
			"log": bson.M{"log sync operations": int32(10 * n), "log sync time duration (usecs)": int64(30_000 * n), "log bytes written": int64(4096 * n)},
			"transaction": bson.M{
				"transaction checkpoint currently running": int32(0), "transaction checkpoint most recent time (msecs)": int32(321), "transaction checkpoints": int32(n),
			},
			"concurrentTransactions": bson.M{
				"write": bson.M{"out": int32(128), "available": int32(0), "totalTickets": int32(128)},
				"read":  bson.M{"out": int32(1), "available": int32(127), "totalTickets": int32(128)},
			},
		},
		"flowControl": bson.M{"enabled": true, "isLagged": false, "targetRateLimit": int32(1_000_000_000), "timeAcquiringMicros": int64(2000 * n)},
		"opLatencies": bson.M{"writes": bson.M{"latency": int64(50_000 * n), "ops": int64(5 * n)}},
		"globalLock":  bson.M{"currentQueue": bson.M{"total": int32(6), "readers": int32(1), "writers": int32(5)}},
		"metrics":     bson.M{"operation": bson.M{"writeConflicts": int64(3 * n)}},
	}
}

func recent(n int) bson.M {
	s := old(n)
	s["version"] = "8.0.4"
	wt := s["wiredTiger"].(bson.M)
	delete(wt, "transaction")
	delete(wt, "concurrentTransactions")
	wt["checkpoint"] = bson.M{"progress state": int32(4), "most recent time (msecs)": int32(321), "total succeed number of checkpoints": int32(n)}
	queue := bson.M{"addedToQueue": int64(20 * n), "removedFromQueue": int64(20*n - 7), "queueLength": int64(7), "canceled": int64(n), "totalTimeQueuedMicros": int64(400_000 * n)}
	s["queues"] = bson.M{"execution": bson.M{
		"write": bson.M{"out": int32(4), "available": int32(0), "totalTickets": int32(4), "normalPriority": queue, "lowPriority": bson.M{"queueLength": int64(1)}},
		"read":  bson.M{"out": int32(0), "available": int32(4), "totalTickets": int32(4), "normalPriority": bson.M{"queueLength": int64(0)}},
	}}
	return s
}

// between is the activity of two seconds in which n became m.
func between(t *testing.T, shape func(int) bson.M, n, m int) *trace.Activity {
	t.Helper()
	start := time.Now()
	before, now := newLook(), newLook()
	before.answered, now.answered = start, start.Add(2*time.Second)
	readStatus(marshal(t, shape(n)), before)
	readStatus(marshal(t, shape(m)), now)
	return activity(before, now)
}

func check(t *testing.T, a *trace.Activity, want map[trace.Measure]float64) {
	t.Helper()
	for m, w := range want {
		if v, ok := a.Get(m); !ok || v != w {
			t.Errorf("%v is %v (%v), want %v", m, v, ok, w)
		}
	}
}

func TestMongoStatus_TheSameInOldAndNewPlaces(t *testing.T) {
	t.Parallel()
	common := map[trace.Measure]float64{
		trace.Checkpoint:   1, // one ended meanwhile, or runs
		trace.JournalSyncs: 5, trace.JournalTime: 3, trace.JournalBytes: 2048, trace.CheckpointTime: 321,
		trace.FlowControl: 0, trace.FlowControlRate: 1e9, trace.FlowControlWait: 1,
		trace.Writes: 2.5, trace.WriteTime: 10, trace.WriteConflicts: 1.5,
		trace.TicketsAvailable: 0, trace.WaitingLock: 6,
	}
	a := between(t, old, 3, 4)
	check(t, a, common)
	check(t, a, map[trace.Measure]float64{trace.Tickets: 128, trace.TicketsShort: 1})
	if v, ok := a.Get(trace.TicketsQueued); ok {
		t.Errorf("%v are queued where no queue is shown", v)
	}
	a = between(t, recent, 3, 4)
	check(t, a, common)
	check(t, a, map[trace.Measure]float64{
		trace.Tickets: 4, trace.TicketsQueued: 8, trace.TicketsCanceled: 0.5, trace.TicketWait: 20, trace.TicketsShort: 1,
		trace.ReadTickets: 4, trace.ReadTicketsAvailable: 4, trace.ReadTicketsQueued: 0,
	})
}

// TestMongoStatus_TicketsAreReadByVersion: an empty pool and a long queue, by
// either rule.
func TestMongoStatus_TicketsAreReadByVersion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		version           string
		available, queued int
		short             float64
		rule              string
	}{
		{"4.4.29", 0, 0, 1, emptyRule.words},
		{"6.0.14", 0, 0, 1, emptyRule.words},
		{"6.3.0", 1, 900, 0, emptyRule.words},
		{"7.0.0", 0, 8, 0, queueRule.words},
		{"7.0.0", 0, 9, 1, queueRule.words},
		{"8.3.11", 3, 900, 1, queueRule.words},
		{"", 0, 0, 0, queueRule.words},
	} {
		l := newLook()
		pool := bson.M{"available": c.available, "totalTickets": 8, "normalPriority": bson.M{"queueLength": c.queued}}
		readTickets(marshal(t, bson.M{"queues": bson.M{"execution": bson.M{"write": pool}}}), c.version, l)
		if l.now[trace.TicketsShort] != c.short || l.ticketRule != c.rule {
			t.Errorf("version %q, %d available, %d queued: short %v by %q", c.version, c.available, c.queued, l.now[trace.TicketsShort], l.ticketRule)
		}
	}
}

func TestMongoStatus_NothingIsAssumed(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]any{
		"nothing at all":       bson.M{},
		"nothing of its kind":  bson.M{"wiredTiger": 3, "queues": bson.A{}, "flowControl": "on", "opLatencies": bson.M{"writes": 7}},
		"a counter that fell":  old(1),
		"numbers that are not": bson.M{"wiredTiger": bson.M{"log": bson.M{"log sync operations": "many"}}},
	} {
		before, now := newLook(), newLook()
		before.answered, now.answered = time.Now(), time.Now().Add(time.Second)
		readStatus(marshal(t, old(5)), before)
		readStatus(marshal(t, s), now)
		a := activity(before, now)
		for _, m := range []trace.Measure{trace.JournalSyncs, trace.JournalTime, trace.Writes, trace.FlowControlWait} {
			if v, ok := a.Get(m); ok {
				t.Errorf("%s: %v is %v", name, m, v)
			}
		}
	}
	readStatus(nil, newLook())
	readSet(nil, newLook(), func(string, int) string { return "" })
}

func TestMongoSet_LagsOfEachMember(t *testing.T) {
	t.Parallel()
	now := time.Now().Truncate(time.Millisecond)
	at := func(behind time.Duration) bson.DateTime { return bson.NewDateTimeFromTime(now.Add(-behind)) }
	member := func(id int, behind time.Duration) bson.M {
		return bson.M{"_id": id, "name": fmt.Sprintf("h%d:1", id), "lastAppliedWallTime": at(behind), "lastDurableWallTime": at(behind / 2), "optimeDate": at(time.Hour)}
	}
	self := member(0, 0)
	self["self"] = true
	arbiter := bson.M{"_id": 4, "name": "h4:1"}
	earlier := bson.M{"_id": 3, "name": "h3:1", "optimeDate": at(8 * time.Second)} // before wall times were said
	status := bson.M{
		"myState": 1, "optimes": bson.M{"lastAppliedWallTime": at(0), "lastCommittedWallTime": at(3 * time.Second)},
		"members": bson.A{self, member(1, 2*time.Second), member(2, 4*time.Second), earlier, arbiter},
	}
	s := &Sampler{Members: []Member{{Name: "rs0.b", ID: 9, Hosts: []string{"h1:1"}}, {Name: "rs0.c", ID: 2}}}
	l := newLook()
	readSet(marshal(t, status), l, s.nameOf)
	want := fmt.Sprint([]trace.MemberLag{
		{Member: "rs0.b", Written: trace.NoLag, Durable: time.Second, Applied: 2 * time.Second},
		{Member: "rs0.c", Written: trace.NoLag, Durable: 2 * time.Second, Applied: 4 * time.Second},
		{Member: "h3:1", Written: trace.NoLag, Durable: trace.NoLag, Applied: 8 * time.Second},
	})
	if fmt.Sprint(l.lags) != want {
		t.Errorf("%v, want %s", l.lags, want)
	}
	if l.now[trace.MajorityLag] != 3000 || l.now[trace.Lag] != 8000 {
		t.Errorf("majority %v ms, the slowest %v ms", l.now[trace.MajorityLag], l.now[trace.Lag])
	}
	status["myState"] = 2
	l = newLook()
	if readSet(marshal(t, status), l, s.nameOf); len(l.lags) != 0 || len(l.now) != 0 {
		t.Error("a secondary speaks for the set")
	}
}

// FuzzMongoStatus: whatever a server answers, nothing is read that isn't there.
func FuzzMongoStatus(f *testing.F) {
	for _, s := range []bson.M{old(3), recent(3), {"myState": 1, "members": bson.A{bson.M{"self": true, "lastAppliedWallTime": bson.DateTime(5)}, bson.M{"_id": 1, "optimeDate": bson.DateTime(3)}}}} {
		raw, err := bson.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		before, now := newLook(), newLook()
		before.answered, now.answered = time.Unix(1, 0), time.Unix(2, 0)
		readStatus(b, before)
		readStatus(b, now)
		readSet(b, now, func(host string, _ int) string { return host })
		a := activity(before, now)
		for _, m := range trace.Measures() {
			if v, ok := a.Get(m); ok && m.Kind() == trace.Mark && (v < 0 || v > 1) {
				t.Errorf("%v is %v", m, v)
			}
		}
	})
}
