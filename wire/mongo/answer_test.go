package mongo

import (
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/wire"
)

// refused gives a request to a session, has it refused, and returns the answer
// with what the session itself makes of it.
func refused(t *testing.T, h *harness, request []byte, f wire.Failure) ([]byte, wire.Exchange) {
	t.Helper()
	s := h.s.(wire.Inspector)
	h.feed(wire.ToServer, request)
	a := s.Asked()
	if a.Exchange == nil || !a.Known {
		t.Fatalf("asked %+v", a)
	}
	if why := s.CanRefuse(&f); why != wire.Applies {
		t.Fatalf("it can't be refused: %s", why)
	}
	r := s.Refuse(&f)
	if len(r.Forward) != 0 || r.Cut || !s.Turn(a.Exchange) {
		t.Fatalf("%+v, turn %v", r, s.Turn(a.Exchange))
	}
	h.feed(wire.ToClient, r.Answer)
	if len(h.done) == 0 || h.s.Opaque() != nil || len(h.troubles) > 0 {
		t.Fatalf("%d exchanges, %v, %v", len(h.done), h.s.Opaque(), h.troubles)
	}
	return r.Answer, h.done[len(h.done)-1]
}

func TestRefuse_InTheClientsForm(t *testing.T) {
	command := doc(t, bson.D{{Key: "insert", Value: "orders"}, {Key: "$db", Value: "shop"}})
	plain := msg(7, 0, 0, kind0(command))
	requests := map[string]struct {
		request []byte
		op      int32
	}{
		"OP_MSG":               {plain, opMsg},
		"OP_MSG with checksum": {summed(plain), opMsg},
		"OP_QUERY, a command":  {opQueryMsg(7, "shop.$cmd", command), opReply},
		"OP_QUERY, a find":     {opQueryMsg(7, "shop.orders", doc(t, bson.D{})), opReply},
		"OP_COMMAND":           {message(7, 0, opCommand, []byte("shop\x00insert\x00"), command, doc(t, bson.D{})), opCommandReply},
	}
	for _, id := range allCompressors {
		requests["compressed by "+compressorName(id)] = struct {
			request []byte
			op      int32
		}{compress(t, id, plain), opCompressed}
	}
	for name, tt := range requests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, wire.Options{})
			b, x := refused(t, h, tt.request, wire.Failure{Code: "10107", Rule: "r"})
			if x.OK || !x.Answered || x.ErrorCode != "10107" && !strings.Contains(name, "find") {
				t.Errorf("the session makes of it: %s", said(x))
			}
			if op := int32(le32(b[12:])); op != tt.op || le32(b[8:]) != 7 || le32(b) != len(b) {
				t.Errorf("opcode %d to %d, %d bytes: want opcode %d to 7", op, le32(b[8:]), le32(b), tt.op)
			}
			if sum := strings.Contains(name, "checksum"); sum != (b[16]&flagChecksum != 0 && tt.op == opMsg) {
				t.Errorf("checksum: %v", !sum)
			} else if sum && !slices.Equal(summed(cutSum(b)), b) {
				t.Error("the checksum is wrong")
			}
			_, d := (&session{}).opened(b)
			if d == nil && tt.op != opCommandReply {
				t.Fatalf("no document in %x", b)
			}
			if d.Lookup("topologyVersion").Type != 0 {
				t.Error("it has a topologyVersion")
			}
		})
	}
}

// cutSum is an OP_MSG without its checksum.
func cutSum(m []byte) []byte {
	m = slices.Clone(m[:len(m)-4])
	m[16] &^= flagChecksum
	copy(m, u32(len(m)))
	return m
}

func TestRefuse_Labels(t *testing.T) {
	hello := func(version int32) []byte {
		return msg(2, 1, 0, kind0(doc(t, bson.D{{Key: "maxWireVersion", Value: version}, {Key: "ok", Value: 1.0}})))
	}
	lsid := bson.E{Key: "lsid", Value: bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: make([]byte, 16)}}}}
	txn := bson.E{Key: "txnNumber", Value: int64(3)}
	inside := bson.E{Key: "autocommit", Value: false}
	for _, tt := range []struct {
		name    string
		version int32
		command string
		more    bson.D
		code    string
		want    string
	}{
		{"retryable write", 21, "insert", bson.D{lsid, txn}, "189", "RetryableWriteError"},
		{"before 4.4 the driver says so", 8, "insert", bson.D{lsid, txn}, "189", ""},
		{"no txnNumber", 21, "insert", bson.D{lsid}, "189", ""},
		{"not a retryable code", 21, "insert", bson.D{lsid, txn}, "11000", ""},
		{"in a transaction", 21, "insert", bson.D{lsid, txn, inside}, "112", "TransientTransactionError"},
		{"in a transaction, retryable", 21, "insert", bson.D{lsid, txn, inside}, "91", "TransientTransactionError"},
		{"in a transaction, neither", 21, "insert", bson.D{lsid, txn, inside}, "11000", ""},
		{"its commit", 21, "commitTransaction", bson.D{lsid, txn, inside}, "91", "RetryableWriteError"},
		{"its commit, gone", 21, "commitTransaction", bson.D{lsid, txn, inside}, "251", "TransientTransactionError"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHarness(t, wire.Options{})
			h.feed(wire.ToServer, msg(1, 0, 0, kind0(doc(t, bson.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}}))))
			h.feed(wire.ToClient, hello(tt.version))
			request := msg(7, 0, 0, kind0(doc(t, append(bson.D{{Key: tt.command, Value: "c"}, {Key: "$db", Value: "shop"}}, tt.more...))))
			b, _ := refused(t, h, request, wire.Failure{Code: tt.code, Rule: "r"})
			_, d := (&session{}).opened(b)
			got := ""
			if a, ok := d.Lookup("errorLabels").ArrayOK(); ok {
				v, _ := a.Values()
				got = v[0].StringValue()
			}
			if got != tt.want {
				t.Errorf("labels %q, want %q", got, tt.want)
			}
		})
	}
}

// The server's reply with a writeConcernError is the server's reply, in its form.
func TestFail_ConcernErrorKeepsTheReply(t *testing.T) {
	server := bson.D{
		{Key: "n", Value: int32(2)}, {Key: "opTime", Value: bson.D{{Key: "ts", Value: bson.Timestamp{T: 5, I: 6}}, {Key: "t", Value: int64(1)}}},
		{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: int32(100)}}}, {Key: "ok", Value: 1.0},
	}
	reply := msg(8, 7, 0, kind0(doc(t, server)))
	forms := map[string][]byte{"plain": reply, "with checksum": summed(reply)}
	for _, id := range allCompressors {
		forms["compressed by "+compressorName(id)] = compress(t, id, reply)
	}
	for name, b := range forms {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, wire.Options{})
			s := h.s.(wire.Inspector)
			h.feed(wire.ToServer, insert(t, 7))
			h.feed(wire.ToClient, b)
			acks := s.Acknowledged()
			if len(acks) != 1 || acks[0].Obstacle != wire.Applies {
				t.Fatalf("%+v", acks)
			}
			f := wire.Failure{Code: "64", ConcernError: true, Rule: "r"}
			if why := s.CanFail(acks[0].Exchange, &f); why != wire.Applies {
				t.Fatal(why)
			}
			out := s.Fail(acks[0].Exchange, &f, b, nil)
			x, troubles := exchange(t, insert(t, 7), out)
			m := &x.Mongo
			if !x.OK || m.N != 2 || m.ConcernError != 64 || m.OpTime != (wire.OpTime{T: 1, TS: 5<<32 | 6}) || len(troubles) > 0 {
				t.Errorf("%s %v", said(x), troubles)
			}
			if was, is := le32(b[12:]), le32(out[12:]); was != is {
				t.Errorf("opcode %d became %d", was, is)
			}
		})
	}
	// A reply that can't be read is made anew of what is known.
	h := newHarness(t, wire.Options{})
	h.feed(wire.ToServer, insert(t, 7))
	h.feed(wire.ToClient, okReply(t, 8, 7))
	x := h.s.(wire.Inspector).Acknowledged()[0].Exchange
	out := h.s.(wire.Inspector).Fail(x, &wire.Failure{Code: "64", ConcernError: true}, packedMessage(8, 7, opMsg, 99, packedSnappy, []byte("?")), nil)
	if y, _ := exchange(t, insert(t, 7), out); !y.OK || y.Mongo.ConcernError != 64 {
		t.Error(said(y))
	}
}

func TestAcknowledged(t *testing.T) {
	for name, tt := range map[string]struct {
		reply bson.D
		want  wire.Reason
	}{
		"done":         {bson.D{{Key: "n", Value: 1}, {Key: "ok", Value: 1.0}}, wire.Applies},
		"failed":       {bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: 11000}}, wire.ReplyFailed},
		"write errors": {bson.D{{Key: "n", Value: 0}, {Key: "writeErrors", Value: bson.A{bson.D{{Key: "code", Value: 11000}}}}, {Key: "ok", Value: 1.0}}, wire.ReplyFailed},
	} {
		h := newHarness(t, wire.Options{})
		h.feed(wire.ToServer, insert(t, 7))
		h.feed(wire.ToClient, msg(8, 7, 0, kind0(doc(t, tt.reply))))
		if a := h.s.(wire.Inspector).Acknowledged(); len(a) != 1 || a[0].Obstacle != tt.want {
			t.Errorf("%s: %+v", name, a)
		}
	}
	// More to come is no acknowledgement yet, and a reply to nothing is none.
	h := newHarness(t, wire.Options{})
	h.feed(wire.ToServer, insert(t, 7))
	h.feed(wire.ToClient, msg(8, 7, flagMoreToCome, kind0(doc(t, bson.D{{Key: "ok", Value: 1.0}}))))
	h.feed(wire.ToClient, okReply(t, 99, 98))
	if a := h.s.(wire.Inspector).Acknowledged(); len(a) != 0 {
		t.Errorf("%+v", a)
	}
}

func FuzzFail(f *testing.F) {
	f.Add(okReply(f, 8, 7), "64", true)
	f.Add(summed(okReply(f, 8, 7)), "112", false)
	f.Add(compress(f, packedZstd, okReply(f, 8, 7)), "91", true)
	f.Add([]byte{}, "", false)
	f.Fuzz(func(t *testing.T, b []byte, code string, concern bool) {
		s := New(wire.Options{}).(wire.Inspector)
		failure := wire.Failure{Code: code, ConcernError: concern, Rule: "r"}
		out := s.Fail(&wire.Exchange{}, &failure, b, nil)
		if n := len(out); n > 0 && le32(out) != n {
			t.Errorf("%d bytes that say they are %d", n, le32(out))
		}
	})
}
