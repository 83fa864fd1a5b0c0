package mongo

import (
	"errors"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/wire"
)

func find(t testing.TB, id int) []byte {
	return msg(id, 0, 0, kind0(doc(t, bson.D{{Key: "find", Value: fmt.Sprintf("c%d", id)}, {Key: "$db", Value: "d"}})))
}

func TestPairing_RepliesOutOfOrderAndRepeatedIDs(t *testing.T) {
	h := newHarness(t, wire.Options{})
	for _, id := range []int{1, 2, 2, 3} {
		h.feed(wire.ToServer, find(t, id))
	}
	n := func(v int) []byte { return kind0(doc(t, bson.D{{Key: "n", Value: v}, {Key: "ok", Value: 1}})) }
	h.feed(wire.ToClient, msg(10, 3, 0, n(30)))
	h.feed(wire.ToClient, msg(11, 2, 0, n(20)))
	h.feed(wire.ToClient, msg(12, 2, 0, n(21)))
	h.feed(wire.ToClient, msg(13, 1, 0, n(10)))
	if !h.s.Quiet() {
		t.Error("not quiet though all is answered")
	}
	want := map[uint64]int64{1: 10, 2: 20, 3: 21, 4: 30}
	for _, x := range h.end() {
		if x.Mongo.N != want[x.Ordinal] {
			t.Errorf("exchange %d got the reply %d, want %d", x.Ordinal, x.Mongo.N, want[x.Ordinal])
		}
	}
}

// A stop must not wait for a driver's monitor, whose stream never ends.
func TestPairing_MonitorStreamIsQuiet(t *testing.T) {
	ok := kind0(doc(t, bson.D{{Key: "ok", Value: 1}}))
	h := newHarness(t, wire.Options{})
	h.feed(wire.ToServer, msg(7, 0, 1<<16, kind0(doc(t, bson.D{{Key: "hello", Value: 1}}))))
	if h.s.Quiet() {
		t.Error("quiet before the first reply")
	}
	h.feed(wire.ToClient, msg(100, 7, flagMoreToCome, ok))
	if !h.s.Quiet() {
		t.Error("not quiet between two replies of a monitor's stream")
	}
	h.feed(wire.ToServer, find(t, 8))
	if h.s.Quiet() {
		t.Error("quiet though a find is not answered")
	}
}

func TestPairing_ExhaustStreamIsOneExchange(t *testing.T) {
	ok := kind0(doc(t, bson.D{{Key: "ok", Value: 1}}))
	h := newHarness(t, wire.Options{})
	h.feed(wire.ToServer, msg(7, 0, 1<<16, kind0(doc(t, bson.D{{Key: "getMore", Value: int64(1)}}))))
	h.feed(wire.ToClient, msg(100, 7, flagMoreToCome, ok))
	h.feed(wire.ToClient, msg(101, 100, flagMoreToCome, ok))
	if h.s.Quiet() || len(h.done) != 0 {
		t.Error("quiet in the middle of a stream")
	}
	h.feed(wire.ToClient, msg(102, 101, 0, ok))
	if !h.s.Quiet() || len(h.done) != 1 {
		t.Fatalf("%d exchanges done after the last reply", len(h.done))
	}
	x := h.end()[0]
	if !x.Mongo.Exhaust || !x.Answered || !x.OK || x.Sides[wire.ToClient].Bytes != int64(3*len(msg(1, 1, 0, ok))) {
		t.Errorf("read as %s", said(x))
	}
	for _, p := range h.pieces[wire.ToClient] {
		if !p.Draw {
			t.Error("a reply of an exhaust stream draws its own jitter")
		}
	}
}

func TestPairing_NoReplyIsDoneWhenItHasLeft(t *testing.T) {
	h := newHarness(t, wire.Options{})
	h.feed(wire.ToServer, msg(1, 0, flagMoreToCome, kind0(doc(t, bson.D{{Key: "insert", Value: "c"}}))))
	if len(h.done) != 1 || !h.done[0].NoReply || h.done[0].Answered || !h.done[0].Write || !h.s.Quiet() {
		t.Fatalf("after a request without reply: %+v", h.done)
	}
	// Some servers answer all the same; that is an exchange of its own.
	h.feed(wire.ToClient, okReply(t, 5, 1))
	if all := h.end(); len(all) != 2 || all[1].Operation != "" || !all[1].Answered {
		t.Errorf("an unasked reply: %+v", all)
	}
}

func TestPairing_LoneServerStream(t *testing.T) {
	h := newHarness(t, wire.Options{})
	h.feed(wire.ToClient, cat(okReply(t, 5, 1), okReply(t, 6, 2)))
	all := h.end()
	if len(all) != 2 || !all[0].OK || all[0].Mongo.RequestID != 1 || all[1].Mongo.RequestID != 2 || all[1].Sides[wire.ToServer].Bytes != 0 {
		t.Errorf("read as %+v", all)
	}
}

func TestPairing_ReplyBeforeItsRequestIsWhole(t *testing.T) {
	h := newHarness(t, wire.Options{})
	m := insert(t, 1)
	h.feed(wire.ToServer, m[:40])
	h.feed(wire.ToClient, okReply(t, 5, 1))
	if len(h.done) != 0 {
		t.Fatal("done before its request was whole")
	}
	h.feed(wire.ToServer, m[40:])
	if all := h.end(); len(all) != 1 || all[0].Operation != "insert" || all[0].Sides[wire.ToServer].Bytes != int64(len(m)) {
		t.Errorf("read as %+v", all)
	}
}

func TestPairing_UnansweredAtTheEndInOrder(t *testing.T) {
	h := newHarness(t, wire.Options{})
	for id := range 50 {
		h.feed(wire.ToServer, find(t, 1000-id))
	}
	all := h.end()
	if len(all) != 50 {
		t.Fatalf("%d exchanges", len(all))
	}
	for i, x := range all {
		if x.Ordinal != uint64(i+1) || x.Answered {
			t.Fatalf("exchange %d is number %d, answered %v", i, x.Ordinal, x.Answered)
		}
	}
}

func TestPairing_TooManyOpen(t *testing.T) {
	h := newHarness(t, wire.Options{MaxOpen: 3})
	for id := 1; id <= 3; id++ {
		h.feed(wire.ToServer, find(t, id))
	}
	h.feed(wire.ToClient, okReply(t, 9, 1))
	h.feed(wire.ToServer, find(t, 4))
	if err := h.s.Opaque(); err != nil {
		t.Fatalf("three open of three allowed: %v", err)
	}
	h.feed(wire.ToServer, find(t, 5))
	if err := h.s.Opaque(); !errors.Is(err, wire.ErrMalformed) {
		t.Fatalf("four open of three allowed: %v", err)
	}
	if all := h.end(); len(all) != 4 {
		t.Errorf("%d exchanges, want 4", len(all))
	}
}

func TestSession_RecordsAreUsedAgain(t *testing.T) {
	s := New(wire.Options{})
	emitted := map[*wire.Exchange]int{}
	s.Open().Emit = func(x *wire.Exchange) bool {
		emitted[x]++
		if x.Operation != "insert" || x.Batch != 2 || !x.OK || x.Mongo.WriteConcern.W != "majority" {
			t.Fatalf("read as %s", said(*x))
		}
		return false
	}
	var off [2]int64
	var pieces []wire.Piece
	step := func(dir wire.Direction, b []byte, at wire.Stamp) {
		pieces = s.Frame(dir, b, at, pieces[:0])
		off[dir] += int64(len(b))
		s.Open().Departed(dir, off[dir], at)
		s.Decode(dir, b, pieces)
	}
	for i := range 100 {
		step(wire.ToServer, insert(t, i), wire.Stamp(i+1))
		step(wire.ToClient, okReply(t, i, i), wire.Stamp(i+1))
	}
	if len(emitted) != 1 {
		t.Errorf("%d records for one exchange at a time", len(emitted))
	}
}
