package trace

import (
	"testing"
	"time"

	"github.com/wirewait/wirewait/wire"
)

// linkWrites consumes n writes of 86 ms over a link, with what change makes of them.
func linkWrites(s *Summary, link string, n int, change func(*wire.Exchange)) {
	for range n {
		x := exchange(10, 12, 52, 55, 56, 96)
		x.Protocol, x.Operation = wire.MongoDB, "insert"
		x.Mongo.WriteConcern = wire.WriteConcern{W: "majority", Source: "command"}
		change(x)
		s.Consume(&Finished{Exchange: x, Conn: &Conn{Link: link}, Waits: Split(x)})
	}
}

func TestSummary_GroupTellsApartWhatWasAsked(t *testing.T) {
	t.Parallel()
	var s Summary
	same := func(*wire.Exchange) {}
	linkWrites(&s, "app-a", 3, same)
	linkWrites(&s, "app-b", 4, same)
	linkWrites(&s, "app-a", 5, func(x *wire.Exchange) { x.Operation = "update" })
	linkWrites(&s, "app-a", 6, func(x *wire.Exchange) { x.Mongo.WriteConcern = wire.WriteConcern{Source: "assumed"} })
	linkWrites(&s, "app-a", 7, func(x *wire.Exchange) { x.Operation, x.Write = "find", false })
	linkWrites(&s, "app-b", 1, func(x *wire.Exchange) { x.Answered = false }) // its reply was lost

	type row struct {
		link, operation, concern, basis string
		count                           uint64
	}
	for name, tt := range map[string]struct {
		by   By
		want []row
	}{
		"writes": {By{}, []row{{"", "", "default", "", 6}, {"", "", "majority", "", 13}}},
		"link":   {By{Link: true}, []row{{"app-a", "", "default", "", 6}, {"app-a", "", "majority", "", 8}, {"app-b", "", "majority", "", 5}}},
		"all": {By{Link: true, Operation: true, Basis: true, Reads: true}, []row{
			{"app-a", "insert", "default", BasisAssumed, 6}, {"app-a", "insert", "majority", BasisExact, 3},
			{"app-a", "update", "majority", BasisExact, 5}, {"app-a", "find", "", "", 7},
			{"app-b", "insert", "majority", BasisExact, 5},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			rows := s.Group(tt.by)
			if len(rows) != len(tt.want) {
				t.Fatalf("%d rows, want %d: %+v", len(rows), len(tt.want), rows)
			}
			for i, w := range tt.want {
				r := rows[i]
				if got := (row{r.Link, r.Operation, r.Concern, r.Basis, r.Count}); got != w {
					t.Errorf("row %d is %+v, want %+v", i, got, w)
				}
				if r.Total.Mean.Round(time.Microsecond) != 86*time.Millisecond || r.Request.Mean.Round(time.Microsecond) != 40*time.Millisecond {
					t.Errorf("row %d: total %v, request %v", i, r.Total.Mean, r.Request.Mean)
				}
			}
		})
	}
	if rows := s.Group(By{Link: true}); rows[2].Missing != 1 || rows[2].Errors != 1 {
		t.Errorf("a lost reply is not counted: %+v", rows[2])
	}
	s.Reset()
	if rows := s.Rows(); len(rows) != 0 {
		t.Errorf("after a reset: %+v", rows)
	}
	linkWrites(&s, "app-a", 1, same)
	if rows := s.Rows(); len(rows) != 1 || rows[0].Count != 1 {
		t.Errorf("one write after a reset: %+v", rows)
	}
}

func TestSummary_DelayErrorsByLinkAndDirection(t *testing.T) {
	t.Parallel()
	var s Summary
	linkWrites(&s, "app-a", 10, func(x *wire.Exchange) {
		x.Sides[wire.ToServer].Planned = 39 * time.Millisecond // of 40
		x.Sides[wire.ToClient].Planned = 40 * time.Millisecond // of 40
	})
	linkWrites(&s, "app-b", 10, func(*wire.Exchange) {})
	all := s.DelayErrors()
	a, ok := all["app-a"]
	if _, b := all["app-b"]; !ok || b {
		t.Fatalf("%v, want app-a only: app-b delays nothing", all)
	}
	if a.Count != [2]uint64{10, 10} || a.Error[wire.ToClient].P99 != 0 || a.Error[wire.ToServer].Mean.Round(time.Microsecond) != time.Millisecond ||
		a.Error[wire.ToServer].P99 < 990*time.Microsecond || a.Error[wire.ToServer].P99 > 1010*time.Microsecond {
		t.Errorf("%+v", a)
	}
}

func TestBasis(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		x    wire.Exchange
		want string
	}{
		{wire.Exchange{Protocol: wire.MongoDB}, ""},
		{wire.Exchange{Protocol: wire.MongoDB, Write: true, Mongo: wire.MongoFields{WriteConcern: wire.WriteConcern{W: "1", Source: "command"}}}, BasisExact},
		{wire.Exchange{Protocol: wire.MongoDB, Write: true, Mongo: wire.MongoFields{WriteConcern: wire.WriteConcern{J: "true", Source: "command"}}}, BasisAssumed},
		{wire.Exchange{Protocol: wire.MongoDB, Write: true, Mongo: wire.MongoFields{WriteConcern: wire.WriteConcern{Source: "assumed"}}}, BasisAssumed},
		{wire.Exchange{Protocol: wire.MongoDB, Write: true, Mongo: wire.MongoFields{InTransaction: true}}, BasisExact},
		{wire.Exchange{Protocol: wire.Postgres, Write: true, Postgres: wire.PostgresFields{SyncSource: "set_local"}}, BasisExact},
		{wire.Exchange{Protocol: wire.Postgres, Write: true, Postgres: wire.PostgresFields{SyncSource: "default"}}, BasisAssumed},
		{wire.Exchange{Protocol: wire.Postgres, Write: true, Postgres: wire.PostgresFields{SyncSource: "unknown"}}, BasisUnknown},
	} {
		if got := (&Finished{Exchange: &tt.x}).Basis(); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.x, got, tt.want)
		}
	}
}
