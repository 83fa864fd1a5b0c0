package mongo

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/wire"
)

// loop sends the same exchange over one session again and again.
type loop struct {
	s      wire.Session
	off    [2]int64
	pieces []wire.Piece
	now    wire.Stamp
}

func newLoop() *loop {
	l := &loop{s: New(wire.Options{})}
	l.s.Open().Emit = func(*wire.Exchange) bool { return false }
	return l
}

func (l *loop) step(dir wire.Direction, b []byte) {
	l.frame(dir, b)
	l.s.Decode(dir, b, l.pieces)
}

func (l *loop) frame(dir wire.Direction, b []byte) {
	l.now++
	l.pieces = l.s.Frame(dir, b, l.now, l.pieces[:0])
	l.off[dir] += int64(len(b))
	l.s.Open().Departed(dir, l.off[dir], l.now)
}

// typical is an insert as drivers send it: session, write concern, cluster time.
func typical(t testing.TB) []byte {
	return msg(10, 0, 0,
		kind0(doc(t, bson.D{{Key: "insert", Value: "orders"}, {Key: "ordered", Value: true},
			{Key: "lsid", Value: bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: make([]byte, 16)}}}},
			{Key: "txnNumber", Value: int64(9)},
			{Key: "$clusterTime", Value: bson.D{{Key: "clusterTime", Value: bson.Timestamp{T: 7, I: 3}},
				{Key: "signature", Value: bson.D{{Key: "hash", Value: make([]byte, 20)}, {Key: "keyId", Value: int64(0)}}}}},
			{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}, {Key: "j", Value: true}}},
			{Key: "$db", Value: "shop"}})),
		kind1("documents", doc(t, bson.D{{Key: "a", Value: 1}, {Key: "b", Value: "hello"}})))
}

func TestAllocs_FrameAndDecode(t *testing.T) {
	request, answer := typical(t), okReply(t, 99, 10)
	l := newLoop()
	both := testing.AllocsPerRun(500, func() {
		l.step(wire.ToServer, request)
		l.step(wire.ToClient, answer)
	})
	if both != 0 {
		t.Errorf("framing and decoding an exchange allocates %v times", both)
	}
	for _, id := range allCompressors {
		q, a := compress(t, id, request), compress(t, id, answer)
		l := newLoop()
		n := testing.AllocsPerRun(500, func() {
			l.step(wire.ToServer, q)
			l.step(wire.ToClient, a)
		})
		if n > 2 {
			t.Errorf("%s: an exchange allocates %v times", compressorName(id), n)
		}
	}
	halves := testing.AllocsPerRun(500, func() {
		for _, cut := range []int{7, 30, 100} {
			l.step(wire.ToServer, request[:cut])
			l.step(wire.ToServer, request[cut:])
			l.step(wire.ToClient, answer[:cut/2])
			l.step(wire.ToClient, answer[cut/2:])
		}
	})
	if halves != 0 {
		t.Errorf("messages that straddle reads allocate %v times", halves)
	}
}

func BenchmarkFrameAndDecode(b *testing.B) {
	request, answer := typical(b), okReply(b, 99, 10)
	l := newLoop()
	b.ReportAllocs()
	for b.Loop() {
		l.step(wire.ToServer, request)
		l.step(wire.ToClient, answer)
	}
}

func BenchmarkFrameAndDecodeCompressed(b *testing.B) {
	for _, id := range allCompressors {
		b.Run(compressorName(id), func(b *testing.B) {
			request, answer := compress(b, id, typical(b)), compress(b, id, okReply(b, 99, 10))
			l := newLoop()
			b.ReportAllocs()
			for b.Loop() {
				l.step(wire.ToServer, request)
				l.step(wire.ToClient, answer)
			}
		})
	}
}

// The longest that a message of ours keeps the rest of its connection waiting.
func BenchmarkDecodeLateConcern(b *testing.B) {
	for _, id := range allCompressors {
		b.Run(compressorName(id), func(b *testing.B) {
			request := compress(b, id, lateCommand(b, true, text(4_100_000)))
			l := newLoop()
			b.ReportAllocs()
			b.SetBytes(4_100_000)
			for b.Loop() {
				l.step(wire.ToServer, request)
				l.step(wire.ToClient, okReply(b, 2, 1))
			}
		})
	}
}
