//go:build unix

package admin

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// write is one of 100 ms, most of it replication, that ended in a second.
func write(link, w string, second int64) *trace.Finished {
	x := &wire.Exchange{Protocol: wire.MongoDB, Operation: "insert", Database: "shop", Collection: "orders", Write: true, Answered: true, OK: true}
	x.Mongo.WriteConcern = wire.WriteConcern{W: w, Source: "command"}
	x.Peer = &wire.Peer{Application: "orders-api"}
	at := func(ms int64) wire.Stamp { return wire.Stamp(second*1e9 + ms*1e6) }
	x.Sides[wire.ToServer] = wire.Side{FirstIn: at(1), LastIn: at(2), LastOut: at(12), Planned: 10 * time.Millisecond}
	x.Sides[wire.ToClient] = wire.Side{FirstIn: at(90), LastIn: at(91), LastOut: at(101), Planned: 10 * time.Millisecond}
	f := &trace.Finished{Exchange: x, Conn: &trace.Conn{Link: link, From: "app", To: "rs0.a", ClientAddr: "192.0.2.1:4711", Epoch: time.Unix(1_700_000_000, 0)}, Waits: trace.Split(x)}
	f.Replication = trace.Replication{
		Basis: trace.BasisExact, ReleasedBy: "rs0.c", Began: at(13), Released: at(85),
		Acknowledged: []trace.MemberWait{{Member: "rs0.c", Sent: at(13), Acknowledged: at(85), SyncSource: "rs0.a"}}, Behind: []string{"rs0.b"},
	}
	f.Waits.Server, f.Waits.Replication = f.Waits.Server-72*time.Millisecond, 72*time.Millisecond
	return f
}

func TestV1_Writes(t *testing.T) {
	a, _, _ := control(t)
	for second := range int64(5) {
		a.slow.Consume(write("a", "majority", second+1))
		a.slow.Consume(write("b", "1", second+1))
	}
	failed := write("b", "1", 9)
	failed.OK, failed.ErrorCode, failed.Replication = false, "11000", trace.Replication{}
	failed.Faults = []wire.Fault{{Rule: "duplicates"}}
	failed.Marker = &trace.Marker{Scenario: "evening", Step: "slow"}
	a.slow.Consume(failed)
	var all Writes
	if code := a.call("GET", "/v1/writes", "", &all); code != 200 || len(all.Writes) != 11 {
		t.Fatalf("%d, %d writes", code, len(all.Writes))
	}
	if w := all.Writes[0]; w.Outcome != "error" || w.ErrorCode != "11000" || w.Rules[0] != "duplicates" || w.Scenario != "evening: slow" || len(w.Members) != 0 {
		t.Errorf("the latest is %+v", w)
	}
	some := Writes{}
	a.call("GET", "/v1/writes?link=a&waits_for=majority&limit=3", "", &some)
	if len(some.Writes) != 3 {
		t.Fatalf("%d writes, want 3", len(some.Writes))
	}
	w := some.Writes[0]
	if w.Link != "a" || w.Summary != "insert orders" || w.Application != "orders-api" || w.WaitsFor != "majority" || w.Outcome != "ok" || w.ReleasedBy != "rs0.c" || w.Dominant == "" {
		t.Errorf("%+v", w)
	}
	p := w.Parts
	if sum := p.Receive + p.Request + p.Server + p.Replication + p.Reply; math.Abs(sum-w.TotalMS) > 1e-9 || w.TotalMS != 100 {
		t.Errorf("parts add up to %v, the whole is %v", sum, w.TotalMS)
	}
	if w.ReplicationFromMS != 12 || fmt.Sprint(w.Members) != "[{rs0.c 12 84 rs0.a}]" || fmt.Sprint(w.NotWaitedFor) != "[rs0.b]" || w.PlannedMS != 20 || w.AchievedMS != 20 {
		t.Errorf("%+v", w)
	}
	if said := a.refused("GET", "/v1/writes?limit=0", "", 400); !strings.Contains(said, "use a number from 1") {
		t.Error(said)
	}
	a.refused("GET", "/v1/writes?link=nowhere", "", 404)
	a.raw("DELETE", "/v1/waits", "")
	all = Writes{}
	if a.call("GET", "/v1/writes", "", &all); len(all.Writes) != 0 {
		t.Errorf("%d writes are left", len(all.Writes))
	}
}

func TestV1_WaitsBuckets(t *testing.T) {
	a, _, summary := control(t)
	var before, after Waits
	summary.Consume(write("a", "majority", 1))
	a.call("GET", "/v1/waits?by=concern&buckets=true", "", &before)
	for range 3 {
		summary.Consume(write("a", "majority", 1))
	}
	a.call("GET", "/v1/waits?by=concern&buckets=true", "", &after)
	r := after.Rows[0]
	if was := before.Rows[0].Buckets; len(was.MS) != 1 || len(was.Counts) != 1 || was.Counts[0] != 1 || r.Buckets.Counts[0] != 4 || math.Abs(r.Buckets.MS[0]-100) > 1 {
		t.Errorf("before %+v, after %+v", was, r.Buckets)
	}
	if r.ReleasedBy["rs0.c"] != 4 {
		t.Errorf("released by %v", r.ReleasedBy)
	}
	after = Waits{}
	if a.call("GET", "/v1/waits?by=concern", "", &after); after.Rows[0].Buckets != nil {
		t.Error("buckets, and nobody asked")
	}
	a.refused("GET", "/v1/waits?buckets=yes", "", 400)
}
