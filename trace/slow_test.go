package trace

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/wirewait/wirewait/wire"
)

// slowWrite ended at a time after the epoch, after total.
func slowWrite(link, w string, ended, total time.Duration) *Finished {
	x := &wire.Exchange{Protocol: wire.MongoDB, Operation: "insert", Write: true, Answered: true, OK: true}
	x.Mongo.WriteConcern = wire.WriteConcern{W: w, Source: "command", Raw: []byte("document")}
	x.Sides[wire.ToServer] = wire.Side{FirstIn: wire.Stamp(ended - total), LastIn: wire.Stamp(ended - total), LastOut: wire.Stamp(ended - total)}
	x.Sides[wire.ToClient] = wire.Side{FirstIn: wire.Stamp(ended), LastIn: wire.Stamp(ended), LastOut: wire.Stamp(ended)}
	return &Finished{Exchange: x, Conn: &Conn{Link: link, Epoch: time.Unix(1_000_000, 0)}, Waits: Split(x)}
}

func TestSlow_KeepsTheSlowestOfEachSecond(t *testing.T) {
	t.Parallel()
	var s Slow
	for second := range 40 {
		for i, total := range []time.Duration{20, 90, 40} {
			s.Consume(slowWrite("app", "majority", time.Duration(second+1)*time.Second+time.Duration(i)*time.Millisecond, total*time.Millisecond))
		}
		s.Consume(slowWrite("app", "1", time.Duration(second+1)*time.Second, time.Millisecond))
	}
	s.Consume(slowWrite("app", "1", 10*time.Second, time.Hour)) // comes late: it counts with the latest second
	writes := s.Writes()
	if len(writes) != 2*slowSeconds {
		t.Fatalf("%d writes, want %d of each kind", len(writes), slowSeconds)
	}
	ids := map[uint64]bool{}
	for i, w := range writes {
		ids[w.ID] = true
		want := 90 * time.Millisecond
		if w.Concern == "w:1" {
			want = time.Millisecond
		}
		if w.Waits.Total != want && w.Waits.Total != time.Hour {
			t.Errorf("%s took %v, want %v", w.Concern, w.Waits.Total, want)
		}
		if i > 0 && w.Ended().After(writes[i-1].Ended()) {
			t.Errorf("write %d ended after the one before it", i)
		}
		if w.Mongo.WriteConcern.Raw != nil {
			t.Error("it holds bytes of the connection")
		}
	}
	if len(ids) != len(writes) {
		t.Errorf("%d names for %d writes", len(ids), len(writes))
	}
	s.Reset()
	if n := len(s.Writes()); n != 0 {
		t.Errorf("%d are left", n)
	}
}

func TestSlow_SharesNothingWithTheTracer(t *testing.T) {
	t.Parallel()
	var s Slow
	f := slowWrite("app", "majority", time.Second, time.Millisecond)
	f.Replication = Replication{Acknowledged: []MemberWait{{Member: "rs0.b"}}, Behind: []string{"rs0.c"}}
	f.Faults = []wire.Fault{{Rule: "late"}}
	s.Consume(f)
	f.Replication.Acknowledged[0].Member, f.Replication.Behind[0], f.Faults[0].Rule = "", "", ""
	f.Operation, f.Write = "", false
	w := s.Writes()[0]
	if w.Operation != "insert" || w.Replication.Acknowledged[0].Member != "rs0.b" || w.Replication.Behind[0] != "rs0.c" || w.Faults[0].Rule != "late" {
		t.Errorf("%+v", w)
	}
}

func TestSlow_IsBounded(t *testing.T) {
	t.Parallel()
	var s Slow
	reads := slowWrite("app", "1", time.Second, time.Hour)
	reads.Write = false
	s.Consume(reads)
	if n := len(s.Writes()); n != 0 {
		t.Errorf("%d reads were kept", n)
	}
	var readers sync.WaitGroup
	readers.Go(func() {
		for range 50 {
			s.Writes()
		}
	})
	for i := range 2 * slowGroups {
		s.Consume(slowWrite(fmt.Sprint("link ", i), "1", time.Duration(i+1)*time.Second, time.Millisecond))
	}
	readers.Wait()
	writes := s.Writes()
	if len(writes) != slowGroups || writes[0].Conn.Link != fmt.Sprint("link ", 2*slowGroups-1) {
		t.Errorf("%d writes, want the latest %d", len(writes), slowGroups)
	}
}

func TestSummary_BucketsAreWhatQuantilesAreWorkedOutFrom(t *testing.T) {
	t.Parallel()
	var s Summary
	for i := range 1000 {
		s.Consume(slowWrite("app", "majority", time.Hour, time.Duration(i+1)*time.Millisecond))
	}
	r := s.Group(By{Buckets: true})[0]
	var seen uint64
	var median time.Duration
	for _, b := range r.Buckets {
		if seen += b.Count; seen >= r.Count/2 && median == 0 {
			median = b.Time
		}
	}
	if seen != r.Count || median != r.Total.P50 {
		t.Errorf("%d durations with a median of %v, want %d with %v", seen, median, r.Count, r.Total.P50)
	}
	if r := s.Group(By{}); r[0].Buckets != nil {
		t.Error("buckets, and nobody asked")
	}
}

// BenchmarkSlow_Consume is what each write pays, most of which aren't the slowest.
func BenchmarkSlow_Consume(b *testing.B) {
	for _, w := range []string{"majority", "1"} {
		b.Run(w, func(b *testing.B) {
			var s Slow
			s.Consume(slowWrite("app", w, time.Second, time.Hour))
			f := slowWrite("app", w, time.Second, time.Millisecond)
			b.ReportAllocs()
			for b.Loop() {
				s.Consume(f)
			}
		})
	}
}
