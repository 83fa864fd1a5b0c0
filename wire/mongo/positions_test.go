package mongo

import (
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/wire"
)

// overheard is a harness that keeps reports.
type overheard struct {
	*harness
	told []wire.Report
}

func overhear(t testing.TB) *overheard {
	h := &overheard{harness: newHarness(t, wire.Options{})}
	h.s.Open().Report = func(r *wire.Report) { h.told = append(h.told, *r) }
	return h
}

func opTime(term int64, i uint32) bson.D {
	return bson.D{{Key: "ts", Value: bson.Timestamp{T: 100, I: i}}, {Key: "t", Value: term}}
}

func at(term, i uint64) wire.Position { return wire.Position{Hi: term, Lo: 100<<32 | i} }

func internalHello(t testing.TB, id int) []byte {
	return msg(id, 0, 0, kind0(doc(t, bson.D{
		{Key: "hello", Value: 1},
		{Key: "client", Value: bson.D{{Key: "application", Value: bson.D{{Key: "name", Value: "OplogFetcher"}}}}},
		{Key: "internalClient", Value: bson.D{{Key: "minWireVersion", Value: 6}, {Key: "maxWireVersion", Value: 25}}},
		{Key: "$db", Value: "admin"},
	})))
}

// member says hello as another member does.
func (h *overheard) member() {
	h.feed(wire.ToServer, internalHello(h.t, 1))
	h.feed(wire.ToClient, okReply(h.t, 2, 1))
}

func updatePosition(t testing.TB, id int, members ...bson.D) []byte {
	return summed(msg(id, 0, 0, kind0(doc(t, bson.D{
		{Key: "replSetUpdatePosition", Value: 1}, {Key: "optimes", Value: members},
		{Key: "$replData", Value: bson.D{{Key: "term", Value: int64(1)}, {Key: "optimes", Value: "not these"}}},
		{Key: "$db", Value: "admin"},
	}))))
}

func TestPositions_UpdatePosition(t *testing.T) {
	h := overhear(t)
	h.member()
	h.feed(wire.ToServer, updatePosition(t, 3,
		bson.D{ // as 8.0 has it
			{Key: "durableOpTime", Value: opTime(2, 20)}, {Key: "appliedOpTime", Value: opTime(2, 10)},
			{Key: "writtenOpTime", Value: opTime(2, 30)}, {Key: "memberId", Value: 1}, {Key: "cfgver", Value: int64(1)},
		},
		bson.D{ // before 8.0, in another order, and nothing durable yet
			{Key: "memberId", Value: 2}, {Key: "appliedOpTime", Value: opTime(1, 7)}, {Key: "durableOpTime", Value: opTime(-1, 0)},
		},
		bson.D{{Key: "appliedOpTime", Value: opTime(1, 7)}}, // nobody's
	))
	h.feed(wire.ToClient, summed(okReply(t, 4, 3)))
	if len(h.told) != 1 || len(h.told[0].Reached) != 2 {
		t.Fatalf("told %+v", h.told)
	}
	r := h.told[0]
	first := wire.Progress{Member: "1", Reached: [wire.Levels]wire.Position{at(2, 30), at(2, 20), at(2, 10)}}
	second := wire.Progress{Member: "2", Reached: [wire.Levels]wire.Position{at(1, 7), {}, at(1, 7)}}
	if r.Kind != wire.ReportReached || r.Reached[0] != first || r.Reached[1] != second {
		t.Errorf("told %+v", r)
	}
	if r.Set == nil || r.Set.ToClient || r.In == 0 || r.Out != r.In+1 {
		t.Errorf("told %+v (%+v)", r, r.Set)
	}
}

func oplogBatch(t testing.TB, id, to int, flags uint32, name string, entries ...bson.D) []byte {
	return summed(msg(id, to, flags, kind0(doc(t, bson.D{
		{Key: "cursor", Value: bson.D{{Key: name, Value: entries}, {Key: "id", Value: int64(9)}, {Key: "ns", Value: "local.oplog.rs"}}},
		{Key: "ok", Value: 1.0}, {Key: "$oplogQueryData", Value: bson.D{{Key: "rbid", Value: 1}}},
	}))))
}

// entry is one of the oplog: what was written is the user's, whatever it's called.
func entry(term int64, i uint32) bson.D {
	user := bson.D{{Key: "ts", Value: bson.Timestamp{T: 999, I: 999}}, {Key: "t", Value: int64(99)}}
	return bson.D{
		{Key: "op", Value: "i"}, {Key: "o", Value: user}, {Key: "ts", Value: bson.Timestamp{T: 100, I: i}},
		{Key: "t", Value: term}, {Key: "cursor", Value: user},
	}
}

func oplogFind(t testing.TB, id int) []byte {
	return summed(msg(id, 0, 0, kind0(doc(t, bson.D{{Key: "find", Value: "oplog.rs"}, {Key: "tailable", Value: true}, {Key: "$db", Value: "local"}}))))
}

func oplogGetMore(t testing.TB, id int) []byte {
	return summed(msg(id, 0, 1<<16, kind0(doc(t, bson.D{{Key: "getMore", Value: int64(9)}, {Key: "collection", Value: "oplog.rs"}, {Key: "$db", Value: "local"}}))))
}

func TestPositions_OplogStream(t *testing.T) {
	h := overhear(t)
	h.member()
	h.feed(wire.ToServer, oplogFind(t, 3))
	h.feed(wire.ToClient, oplogBatch(t, 4, 3, 0, "firstBatch", entry(1, 5)))
	h.feed(wire.ToServer, oplogGetMore(t, 5))
	h.feed(wire.ToClient, oplogBatch(t, 6, 5, flagMoreToCome, "nextBatch", entry(1, 6), entry(1, 7)))
	h.feed(wire.ToClient, oplogBatch(t, 7, 6, flagMoreToCome, "nextBatch"))
	h.feed(wire.ToClient, oplogBatch(t, 8, 7, flagMoreToCome, "nextBatch", entry(2, 8)))
	want := []wire.Position{at(1, 5), at(1, 7), at(2, 8)}
	if len(h.told) != len(want) {
		t.Fatalf("told %+v", h.told)
	}
	for i, r := range h.told {
		if r.Kind != wire.ReportSent || r.Sent != want[i] || r.Set == nil || r.In == 0 || r.Out != r.In+1 {
			t.Errorf("report %d is %+v, want %v", i, r, want[i])
		}
	}
}

func heartbeat(t testing.TB, id int) []byte {
	return msg(id, 0, 0, kind0(doc(t, bson.D{
		{Key: "replSetHeartbeat", Value: "rs0"}, {Key: "from", Value: "a:27017"}, {Key: "fromId", Value: 0}, {Key: "configVersion", Value: int64(3)},
		{Key: "primaryId", Value: int64(0)}, {Key: "$db", Value: "admin"},
	})))
}

func heartbeatReply(t testing.TB, id, to int) []byte {
	return msg(id, to, 0, kind0(doc(t, bson.D{
		{Key: "ok", Value: 1.0}, {Key: "state", Value: 2}, {Key: "syncingTo", Value: "c:27017"}, {Key: "primaryId", Value: 0},
		{Key: "opTime", Value: opTime(1, 4)}, {Key: "writtenOpTime", Value: opTime(1, 6)}, {Key: "durableOpTime", Value: opTime(1, 5)},
	})))
}

func TestPositions_Heartbeat(t *testing.T) {
	h := overhear(t)
	h.member()
	h.feed(wire.ToServer, heartbeat(t, 3))
	h.feed(wire.ToClient, heartbeatReply(t, 4, 3))
	if len(h.told) != 2 {
		t.Fatalf("told %+v", h.told)
	}
	if got, want := *h.told[0].Set, (wire.SetReport{Client: "0", ClientHost: "a:27017", Primary: "0", IsPrimary: true, Version: 3}); got != want {
		t.Errorf("the request told %+v, want %+v", got, want)
	}
	want := wire.SetReport{ToClient: true, Client: "0", Primary: "0", SyncSource: "c:27017"}
	p := wire.Progress{Reached: [wire.Levels]wire.Position{at(1, 6), at(1, 5), at(1, 4)}}
	if r := h.told[1]; *r.Set != want || len(r.Reached) != 1 || r.Reached[0] != p {
		t.Errorf("the reply told %+v (%+v)", r, r.Set)
	}
}

// What an application does makes no reports, and costs nothing for them.
func TestPositions_ApplicationsTellNothing(t *testing.T) {
	h := overhear(t)
	h.feed(wire.ToServer, oplogFind(t, 3)) // a change stream of one's own making
	h.feed(wire.ToClient, oplogBatch(t, 4, 3, 0, "firstBatch", entry(1, 5)))
	request, reply := insert(t, 5), okReply(t, 6, 5)
	h.feed(wire.ToServer, request)
	h.feed(wire.ToClient, reply)
	if len(h.told) != 0 {
		t.Errorf("told %+v", h.told)
	}
}

// Nor does it for those who ask.
func TestPositions_ApplicationsCostNothing(t *testing.T) {
	h := overhear(t)
	b, reply := insert(t, 5), okReply(t, 6, 5)
	pieces := make([]wire.Piece, 0, 4)
	var sent [2]int64
	pass := func(dir wire.Direction, b []byte) {
		pieces = h.s.Frame(dir, b, 1, pieces[:0])
		sent[dir] += int64(len(b))
		h.s.Open().Departed(dir, sent[dir], 2)
		h.s.Decode(dir, b, pieces)
	}
	h.s.Open().Emit = nil
	if n := testing.AllocsPerRun(100, func() {
		pass(wire.ToServer, b)
		pass(wire.ToClient, reply)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// In any cut the same is told.
func TestPositions_InAnyCut(t *testing.T) {
	want := ""
	for _, step := range []int{1 << 20, 1, 3, 17, 64} {
		h := overhear(t)
		h.member()
		next := func() int { return step }
		h.cuts(wire.ToServer, cat(updatePosition(t, 3, bson.D{{Key: "memberId", Value: 1}, {Key: "durableOpTime", Value: opTime(2, 20)}}),
			oplogFind(t, 5), heartbeat(t, 7)), next)
		h.cuts(wire.ToClient, cat(okReply(t, 4, 3), oplogBatch(t, 6, 5, 0, "firstBatch", entry(1, 5)), heartbeatReply(t, 8, 7)), next)
		got := ""
		for _, r := range h.told {
			got += fmt.Sprintf("%v %v %+v %+v\n", r.Kind, r.Sent, r.Reached, *r.Set)
		}
		if want == "" {
			want = got
		}
		if len(h.told) != 4 || got != want {
			t.Errorf("in steps of %d: told %s, want %s", step, got, want)
		}
	}
}

// A compressed batch is read to its last entry; one too large for that is told as
// blind.
func TestPositions_CompressedBatches(t *testing.T) {
	for _, tt := range []struct {
		size  int
		blind bool
	}{{1000, false}, {1 << 20, false}, {5 << 20, true}} {
		h := overhear(t)
		h.member()
		h.feed(wire.ToServer, oplogGetMore(t, 5))
		big := append(entry(1, 6), bson.E{Key: "o2", Value: noise(tt.size)})
		plain := msg(6, 5, flagMoreToCome, kind0(doc(t, bson.D{
			{Key: "cursor", Value: bson.D{{Key: "nextBatch", Value: bson.A{big, entry(1, 7)}}, {Key: "id", Value: int64(9)}}},
			{Key: "ok", Value: 1.0},
		})))
		h.cuts(wire.ToClient, compress(t, packedSnappy, plain), func() int { return 1 << 16 })
		if len(h.told) != 1 || h.told[0].Blind != tt.blind || !tt.blind && h.told[0].Sent != at(1, 7) {
			t.Errorf("%d bytes: told %+v", tt.size, h.told)
		}
	}
}

// FuzzPositions: whatever members send, nothing panics, and what is told is bounded.
func FuzzPositions(f *testing.F) {
	f.Add(updatePosition(f, 3, bson.D{{Key: "memberId", Value: 1}, {Key: "durableOpTime", Value: opTime(2, 20)}}), okReply(f, 4, 3), uint16(1))
	f.Add(oplogGetMore(f, 5), oplogBatch(f, 6, 5, flagMoreToCome, "nextBatch", entry(1, 6), entry(1, 7)), uint16(2))
	f.Add(heartbeat(f, 3), heartbeatReply(f, 4, 3), uint16(9))
	f.Fuzz(func(t *testing.T, toServer, toClient []byte, step uint16) {
		h := overhear(t)
		h.member()
		next := func() int { return int(step) }
		h.cuts(wire.ToServer, toServer, next)
		h.cuts(wire.ToClient, toClient, next)
		h.end()
		for _, r := range h.told {
			if len(r.Reached) > maxSetMembers || r.Set == nil {
				t.Fatalf("told %+v", r)
			}
		}
	})
}
