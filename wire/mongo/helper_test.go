package mongo

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/wire"
)

// doc encodes a document by the driver's own encoder.
func doc(t testing.TB, d bson.D) []byte {
	t.Helper()
	b, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func u32(n int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(n)) }

func cat(parts ...[]byte) []byte {
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// message puts a header before a body.
func message(id, to, op int, body ...[]byte) []byte {
	b := cat(body...)
	return cat(u32(len(b)+headerLen), u32(id), u32(to), u32(op), b)
}

func kind0(d []byte) []byte { return cat([]byte{0}, d) }

func kind1(name string, docs ...[]byte) []byte {
	b := cat(append([][]byte{[]byte(name), {0}}, docs...)...)
	return cat([]byte{1}, u32(len(b)+4), b)
}

func msg(id, to int, flags uint32, sections ...[]byte) []byte {
	return message(id, to, opMsg, u32(int(flags)), cat(sections...))
}

// summed adds the checksum of an OP_MSG.
func summed(m []byte) []byte {
	m = cat(m, u32(0))
	binary.LittleEndian.PutUint32(m, uint32(len(m)))
	m[16] |= flagChecksum
	sum := crc32.Checksum(m[:len(m)-4], crc32.MakeTable(crc32.Castagnoli))
	binary.LittleEndian.PutUint32(m[len(m)-4:], sum)
	return m
}

func opQueryMsg(id int, ns string, query []byte) []byte {
	return message(id, 0, opQuery, u32(0), []byte(ns), []byte{0}, u32(0), u32(-1), query)
}

func opReplyMsg(id, to, flags int, docs ...[]byte) []byte {
	return message(id, to, opReply, u32(flags), u32(0), u32(0), u32(0), u32(len(docs)), cat(docs...))
}

// harness drives a session as a connection does: frames, lets the bytes leave,
// decodes.
type harness struct {
	t        testing.TB
	s        wire.Session
	now      wire.Stamp
	sent     [2]int64
	done     []wire.Exchange
	troubles []string
	pieces   [2][]wire.Piece
	later    [2][]undecoded
}

type undecoded struct {
	b      []byte
	pieces []wire.Piece
}

func newHarness(t testing.TB, o wire.Options) *harness {
	h := &harness{t: t}
	o.Trouble = func(r string) { h.troubles = append(h.troubles, r) }
	h.s = New(o)
	h.s.Open().Emit = func(x *wire.Exchange) bool {
		y := *x
		y.Mongo.WriteConcern.Raw = append([]byte(nil), x.Mongo.WriteConcern.Raw...)
		h.done = append(h.done, y)
		return false
	}
	return h
}

// frame frames b, checks that the pieces tile it, and keeps it for decode.
func (h *harness) frame(dir wire.Direction, b []byte) []wire.Piece {
	h.t.Helper()
	h.now++
	b = append([]byte(nil), b...)
	pieces := h.s.Frame(dir, b, h.now, nil)
	n := 0
	for _, p := range pieces {
		if p.Len < 1 {
			h.t.Fatalf("piece of %d bytes", p.Len)
		}
		n += p.Len
	}
	if n != len(b) {
		h.t.Fatalf("pieces cover %d of %d bytes", n, len(b))
	}
	h.sent[dir] += int64(n)
	h.now++
	h.s.Open().Departed(dir, h.sent[dir], h.now)
	h.pieces[dir] = append(h.pieces[dir], pieces...)
	h.later[dir] = append(h.later[dir], undecoded{b, pieces})
	return pieces
}

// decode decodes the oldest bytes that were framed; false if there are none.
func (h *harness) decode(dir wire.Direction) bool {
	if len(h.later[dir]) == 0 {
		return false
	}
	u := h.later[dir][0]
	h.later[dir] = h.later[dir][1:]
	h.s.Decode(dir, u.b, u.pieces)
	for i := range u.b {
		u.b[i] = 0xee // nothing may refer to it any more
	}
	return true
}

func (h *harness) feed(dir wire.Direction, b []byte) {
	h.t.Helper()
	h.frame(dir, b)
	h.decode(dir)
}

// cuts feeds b in pieces that next sizes.
func (h *harness) cuts(dir wire.Direction, b []byte, next func() int) {
	h.t.Helper()
	for len(b) > 0 {
		n := min(max(next(), 1), len(b))
		h.feed(dir, b[:n])
		b = b[n:]
	}
}

func (h *harness) end() []wire.Exchange {
	for dir := range h.later {
		for h.decode(wire.Direction(dir)) {
		}
	}
	h.s.End()
	if n := h.s.Open().Len(); n != 0 {
		h.t.Errorf("%d exchanges left after the end", n)
	}
	return h.done
}

// exchange is one request and its reply, decoded.
func exchange(t *testing.T, request, reply []byte) (wire.Exchange, []string) {
	t.Helper()
	h := newHarness(t, wire.Options{})
	if request != nil {
		h.feed(wire.ToServer, request)
	}
	if reply != nil {
		h.feed(wire.ToClient, reply)
	}
	all := h.end()
	if len(all) != 1 {
		t.Fatalf("%d exchanges, want 1", len(all))
	}
	if err := h.s.Opaque(); err != nil {
		t.Fatal(err)
	}
	return all[0], h.troubles
}

// said is what an exchange says, without its times: for comparing.
func said(x wire.Exchange) string {
	peer := wire.Peer{}
	if x.Peer != nil {
		peer = *x.Peer
	}
	return fmt.Sprintf("%d %s db=%s coll=%s batch=%d write=%v/%s noreply=%v answered=%v ok=%v code=%s comp=%s tp=%s peer=%+v req=%d rep=%d %+v",
		x.Ordinal, x.Operation, x.Database, x.Collection, x.Batch, x.Write, x.WriteBasis, x.NoReply, x.Answered,
		x.OK, x.ErrorCode, x.Compressor, x.Traceparent, peer, x.Sides[0].Bytes, x.Sides[1].Bytes, x.Mongo)
}

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }
