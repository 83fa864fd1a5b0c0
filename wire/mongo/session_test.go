package mongo

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/wire"
)

func insert(t testing.TB, id int) []byte {
	return msg(id, 0, 0,
		kind0(doc(t, bson.D{{Key: "insert", Value: "orders"}, {Key: "ordered", Value: true},
			{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}, {Key: "j", Value: true}}},
			{Key: "$db", Value: "shop"}})),
		kind1("documents", doc(t, bson.D{{Key: "a", Value: 1}}), doc(t, bson.D{{Key: "a", Value: 2}})))
}

func okReply(t testing.TB, id, to int) []byte {
	return msg(id, to, 0, kind0(doc(t, bson.D{{Key: "n", Value: 2},
		{Key: "opTime", Value: bson.D{{Key: "ts", Value: bson.Timestamp{T: 7, I: 3}}, {Key: "t", Value: int64(5)}}},
		{Key: "ok", Value: 1.0}, {Key: "operationTime", Value: bson.Timestamp{T: 7, I: 3}}})))
}

func TestSession_InsertAndItsReply(t *testing.T) {
	x, troubles := exchange(t, insert(t, 10), okReply(t, 99, 10))
	if len(troubles) != 0 {
		t.Errorf("troubles: %v", troubles)
	}
	if x.Operation != "insert" || x.Database != "shop" || x.Collection != "orders" || x.Batch != 2 {
		t.Errorf("read as %s", said(x))
	}
	wc := x.Mongo.WriteConcern
	if wc.W != "majority" || wc.J != "true" || wc.Source != "command" || len(wc.Raw) == 0 {
		t.Errorf("write concern %+v", wc)
	}
	if !x.Write || x.WriteBasis != "command" || !x.Answered || !x.OK || x.NoReply {
		t.Errorf("read as %s", said(x))
	}
	want := wire.OpTime{T: 5, TS: 7<<32 | 3}
	if x.Mongo.OpTime != want || x.Mongo.OperationTime != (wire.OpTime{T: -1, TS: want.TS}) || x.Mongo.N != 2 || x.Mongo.NModified != -1 {
		t.Errorf("reply read as %+v", x.Mongo)
	}
	for dir, s := range x.Sides {
		if s.FirstIn == 0 || s.LastIn < s.FirstIn || s.LastOut <= s.LastIn {
			t.Errorf("stamps of side %d: %+v", dir, s)
		}
	}
}

func TestSession_BadHeadersEndFraming(t *testing.T) {
	ok := okReply(t, 1, 1)
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"short length":   {cat(u32(15), u32(1), u32(0), u32(opMsg)), wire.ErrMalformed},
		"long length":    {cat(u32(maxMessage+1), u32(1), u32(0), u32(opMsg)), wire.ErrMalformed},
		"negative":       {cat(u32(-1), u32(1), u32(0), u32(opMsg)), wire.ErrMalformed},
		"opcode":         {cat(u32(20), u32(1), u32(0), u32(99)), wire.ErrMalformed},
		"second message": {cat(ok, u32(3)), wire.ErrMalformed},
		"TLS":            {[]byte{0x16, 3, 1, 2, 0, 1, 0, 1}, wire.ErrEncrypted},
	} {
		for _, step := range []int{1, 3, 1 << 20} {
			h := newHarness(t, wire.Options{})
			h.feed(wire.ToServer, insert(t, 1))
			before := h.s.Opaque()
			dir := wire.ToClient
			h.cuts(dir, c.b, func() int { return step })
			if before != nil || !errors.Is(h.s.Opaque(), c.want) {
				t.Errorf("%s by %d: opaque is %v, want %v", name, step, h.s.Opaque(), c.want)
			}
			for _, dir := range []wire.Direction{wire.ToServer, wire.ToClient} {
				if p := h.frame(dir, ok); len(p) != 1 || !p[0].Opaque {
					t.Errorf("%s: pieces after the end of framing: %+v", name, p)
				}
			}
			if len(h.end()) == 0 {
				t.Errorf("%s: the exchange that waited was lost", name)
			}
		}
	}
}
