package mongo

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// Whole conversations as drivers and servers have them, each with the outcome
// that the one behind the proxy relies on. What single messages say is tested
// in request_test.go and reply_test.go.

// say is a message with one document: a command, or a reply to message `to`.
func say(t testing.TB, id, to int, flags uint32, d bson.D) []byte {
	return msg(id, to, flags, kind0(doc(t, d)))
}

// talk feeds turns and returns the exchanges. The session must have read all.
func talk(t *testing.T, turns ...turn) []wire.Exchange {
	t.Helper()
	h := newHarness(t, wire.Options{})
	for _, turn := range turns {
		h.feed(turn.dir, turn.b)
	}
	quiet := h.s.Quiet()
	all := h.end()
	if h.s.Opaque() != nil || len(h.troubles) > 0 || !quiet {
		t.Errorf("opaque %v, troubles %v, quiet %v", h.s.Opaque(), h.troubles, quiet)
	}
	return all
}

func operations(all []wire.Exchange) string {
	s := ""
	for _, x := range all {
		s += fmt.Sprintf(" %s:%v", x.Operation, x.Write)
	}
	return s
}

// A monitor's streaming hello: replies without requests for as long as the
// connection lives (specifications, server-monitoring.md). It is never a write,
// holds one exchange however long it lasts, and each reply is written at once.
func TestConversation_StreamingHello(t *testing.T) {
	hello := bson.D{{Key: "hello", Value: 1}, {Key: "topologyVersion", Value: bson.D{{Key: "processId", Value: bson.ObjectID{1}}, {Key: "counter", Value: int64(3)}}},
		{Key: "maxAwaitTimeMS", Value: 10_000}, {Key: "$db", Value: "admin"}}
	ok := bson.D{{Key: "isWritablePrimary", Value: true}, {Key: "ok", Value: 1.0}}
	for _, id := range append([]byte{255}, allCompressors...) {
		wrap := func(m []byte) []byte {
			if id == 255 {
				return m
			}
			return compress(t, id, m)
		}
		h := newHarness(t, wire.Options{})
		h.feed(wire.ToServer, wrap(say(t, 7, 0, 1<<16, hello)))
		for i := range 1000 {
			to := 7
			if i > 0 {
				to = 99 + i
			}
			h.feed(wire.ToClient, wrap(say(t, 100+i, to, flagMoreToCome, ok)))
		}
		if n := h.s.Open().Len(); n != 1 || !h.s.Quiet() { // a stop need not wait for it
			t.Errorf("compressor %d: %d exchanges open, quiet %v", id, n, h.s.Quiet())
		}
		all := h.end()
		if len(all) != 1 || len(h.troubles) > 0 {
			t.Fatalf("compressor %d: %d exchanges, troubles %v", id, len(all), h.troubles)
		}
		if x := all[0]; x.Operation != "hello" || !x.Mongo.Monitor || x.Write || !x.Mongo.Exhaust || !x.OK {
			t.Errorf("compressor %d: read as %s", id, said(x))
		}
	}
}

// A tailable cursor: getMore waits on the server for data (awaitData), or its
// batches come in an exhaust stream. Both are reads; a write in between, on
// another connection, is not theirs.
func TestConversation_TailableCursors(t *testing.T) {
	c, s := wire.ToServer, wire.ToClient
	find := bson.D{{Key: "find", Value: "log"}, {Key: "tailable", Value: true}, {Key: "awaitData", Value: true}, {Key: "$db", Value: "d"}}
	more := bson.D{{Key: "getMore", Value: int64(5)}, {Key: "collection", Value: "log"}, {Key: "maxTimeMS", Value: 1000}, {Key: "$db", Value: "d"}}
	batch := func(id int64, key string) bson.D {
		return bson.D{{Key: "cursor", Value: bson.D{{Key: key, Value: bson.A{bson.D{{Key: "n", Value: 1}}}}, {Key: "id", Value: id}, {Key: "ns", Value: "d.log"}}}, {Key: "ok", Value: 1.0}}
	}
	for _, checksum := range []bool{false, true} {
		sum := func(m []byte) []byte {
			if checksum {
				return summed(m)
			}
			return m
		}
		all := talk(t,
			turn{c, sum(say(t, 1, 0, 0, find))}, turn{s, sum(say(t, 50, 1, 0, batch(5, "firstBatch")))},
			turn{c, sum(say(t, 2, 0, 0, more))}, turn{s, sum(say(t, 51, 2, 0, batch(5, "nextBatch")))},
			turn{c, sum(say(t, 3, 0, 1<<16, more))},
			turn{s, sum(say(t, 52, 3, flagMoreToCome, batch(5, "nextBatch")))},
			turn{s, sum(say(t, 53, 52, flagMoreToCome, batch(5, "nextBatch")))},
			// A reply with ok: 0 never has moreToCome: it ends the stream.
			turn{s, sum(say(t, 54, 53, 0, bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: 43}}))},
		)
		if got := operations(all); got != " find:false getMore:false getMore:false" {
			t.Fatalf("checksums %v: read as%s", checksum, got)
		}
		x := all[2]
		if x.Collection != "log" || !x.Mongo.Exhaust || x.OK || x.ErrorCode != "43" || all[1].Mongo.N != -1 {
			t.Errorf("checksums %v: read as %s", checksum, said(x))
		}
	}
}

// A transaction: its writes are writes, wait for nothing of their own, and the
// commit has the write concern and the wait.
func TestConversation_Transaction(t *testing.T) {
	c, s := wire.ToServer, wire.ToClient
	lsid := bson.Binary{Subtype: 4, Data: []byte("0123456789abcdef")}
	in := func(d bson.D) bson.D {
		return append(d, bson.E{Key: "lsid", Value: bson.D{{Key: "id", Value: lsid}}}, bson.E{Key: "txnNumber", Value: int64(4)},
			bson.E{Key: "autocommit", Value: false}, bson.E{Key: "$db", Value: "d"})
	}
	ok := bson.D{{Key: "n", Value: 1}, {Key: "ok", Value: 1.0}}
	first := in(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{}}}})
	first = append(first, bson.E{Key: "startTransaction", Value: true},
		bson.E{Key: "readConcern", Value: bson.D{{Key: "level", Value: "snapshot"}, {Key: "afterClusterTime", Value: bson.Timestamp{T: 7, I: 1}}}})
	commit := in(bson.D{{Key: "commitTransaction", Value: 1}, {Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}, {Key: "wtimeout", Value: 10_000}}}})
	committed := bson.D{{Key: "ok", Value: 1.0}, {Key: "operationTime", Value: bson.Timestamp{T: 9, I: 2}}}
	all := talk(t,
		turn{c, say(t, 1, 0, 0, first)}, turn{s, say(t, 51, 1, 0, ok)},
		turn{c, say(t, 2, 0, 0, in(bson.D{{Key: "find", Value: "c"}}))}, turn{s, say(t, 52, 2, 0, ok)},
		turn{c, say(t, 3, 0, 0, in(bson.D{{Key: "update", Value: "c"}}))}, turn{s, say(t, 53, 3, 0, ok)},
		turn{c, say(t, 4, 0, 0, commit)}, turn{s, say(t, 54, 4, 0, committed)},
		turn{c, say(t, 5, 0, 0, in(bson.D{{Key: "abortTransaction", Value: 1}}))}, turn{s, say(t, 55, 5, 0, ok)},
	)
	if got := operations(all); got != " insert:true find:false update:true commitTransaction:true abortTransaction:true" {
		t.Fatalf("read as%s", got)
	}
	for i, source := range []string{"transaction", "", "transaction", "transaction", "assumed"} {
		x := &all[i]
		if x.Mongo.WriteConcern.Source != source || !x.Mongo.InTransaction || x.Mongo.TxnNumber != 4 || x.Mongo.LSID != wire.HexLSID(lsid.Data) {
			t.Errorf("%s: read as %s, want the concern from %q", x.Operation, said(*x), source)
		}
	}
	x := all[3]
	if x.Mongo.WriteConcern.W != "majority" || x.Mongo.OperationTime.TS != 9<<32|2 || x.Mongo.OpTime.TS != 0 {
		t.Errorf("commit read as %s", said(x))
	}
}

// What a transaction waits for is its commit's: the commit's own exchange is as
// long as the server took for it, and the writes before it are as short as they
// were, and marked as waiting with it.
func TestConversation_TransactionWaitsAtItsCommit(t *testing.T) {
	h := newHarness(t, wire.Options{})
	command := func(id int, name string, wc bson.D, took time.Duration) {
		d := bson.D{{Key: name, Value: 1}, {Key: "txnNumber", Value: int64(4)}, {Key: "autocommit", Value: false}, {Key: "$db", Value: "admin"}}
		if wc != nil {
			d = append(d, bson.E{Key: "writeConcern", Value: wc})
		}
		h.feed(wire.ToServer, say(t, id, 0, 0, d))
		h.now = h.now.Add(took)
		h.feed(wire.ToClient, say(t, 50+id, id, 0, bson.D{{Key: "ok", Value: 1.0}}))
	}
	command(1, "insert", nil, time.Millisecond)
	command(2, "bulkWrite", nil, time.Millisecond)
	command(3, "commitTransaction", bson.D{{Key: "w", Value: "majority"}}, time.Second)
	var got []string
	for _, x := range h.end() {
		f := trace.Finished{Exchange: &x, Waits: trace.Split(&x)}
		got = append(got, fmt.Sprint(f.Operation, ", ", f.Concern(), ", ", f.Waits.Server.Round(time.Millisecond)))
	}
	want := []string{"insert, in transaction, 1ms", "bulkWrite, in transaction, 1ms", "commitTransaction, majority, 1s"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A retryable write whose acknowledgement got lost, sent again on another
// connection: two exchanges, both writes, told apart from two writes by the
// session and number that they share.
func TestConversation_RetriedWrite(t *testing.T) {
	write := bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{}}}, {Key: "txnNumber", Value: int64(8)},
		{Key: "lsid", Value: bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: make([]byte, 16)}}}}, {Key: "$db", Value: "d"}}
	h := newHarness(t, wire.Options{})
	h.feed(wire.ToServer, say(t, 1, 0, 0, write))
	lost := h.end()
	again := talk(t, turn{wire.ToServer, say(t, 1, 0, 0, write)},
		turn{wire.ToClient, say(t, 2, 1, 0, bson.D{{Key: "n", Value: 1}, {Key: "retriedStmtIds", Value: bson.A{0}}, {Key: "ok", Value: 1.0}})})
	if len(lost) != 1 || len(again) != 1 {
		t.Fatalf("%d and %d exchanges", len(lost), len(again))
	}
	a, b := lost[0], again[0]
	if !a.Write || a.Answered || a.OK || !b.Write || !b.Answered || !b.OK || a.Mongo.InTransaction {
		t.Errorf("read as\n%s\n%s", said(a), said(b))
	}
	if a.Mongo.LSID != b.Mongo.LSID || a.Mongo.LSID == "" || a.Mongo.TxnNumber != 8 || b.Mongo.TxnNumber != 8 || !b.Mongo.HasTxnNumber {
		t.Errorf("read as\n%s\n%s", said(a), said(b))
	}
}

// The bulkWrite command (8.0): operations on many collections in one, and a
// cursor of results, of which more may have to be fetched.
func TestConversation_BulkWrite(t *testing.T) {
	c, s := wire.ToServer, wire.ToClient
	command := doc(t, bson.D{{Key: "bulkWrite", Value: 1}, {Key: "ordered", Value: false}, {Key: "errorsOnly", Value: true},
		{Key: "writeConcern", Value: bson.D{{Key: "w", Value: 2}}}, {Key: "$db", Value: "admin"}})
	ops := kind1("ops", doc(t, bson.D{{Key: "insert", Value: 0}, {Key: "document", Value: bson.D{}}}),
		doc(t, bson.D{{Key: "update", Value: 1}, {Key: "filter", Value: bson.D{}}}), doc(t, bson.D{{Key: "delete", Value: 1}}))
	ns := kind1("nsInfo", doc(t, bson.D{{Key: "ns", Value: "a.b"}}), doc(t, bson.D{{Key: "ns", Value: "c.d"}}))
	reply := bson.D{{Key: "cursor", Value: bson.D{{Key: "id", Value: int64(6)}, {Key: "firstBatch", Value: bson.A{
		bson.D{{Key: "ok", Value: 0.0}, {Key: "idx", Value: 0}, {Key: "code", Value: 11000}, {Key: "n", Value: 0}}}}}},
		{Key: "nErrors", Value: 1}, {Key: "nInserted", Value: 0}, {Key: "nMatched", Value: 2}, {Key: "nModified", Value: 1},
		{Key: "nUpserted", Value: 0}, {Key: "nDeleted", Value: 1}, {Key: "ok", Value: 1.0}}
	more := bson.D{{Key: "getMore", Value: int64(6)}, {Key: "collection", Value: "$cmd.bulkWrite"}, {Key: "$db", Value: "admin"}}
	// The sequences may stand on either side of the command, in either order.
	for i, m := range [][]byte{
		msg(1, 0, 0, kind0(command), ops, ns), msg(1, 0, 0, ns, kind0(command), ops), summed(msg(1, 0, 0, ops, ns, kind0(command))),
	} {
		all := talk(t, turn{c, m}, turn{s, say(t, 50, 1, 0, reply)},
			turn{c, say(t, 2, 0, 0, more)}, turn{s, say(t, 51, 2, 0, bson.D{{Key: "ok", Value: 1.0}})})
		if got := operations(all); got != " bulkWrite:true getMore:false" {
			t.Fatalf("order %d: read as%s", i, got)
		}
		x := all[0]
		if x.Batch != 3 || x.Database != "admin" || x.Mongo.WriteConcern.W != "2" || !x.OK || x.Mongo.N != 3 || x.Mongo.NModified != 1 || x.Mongo.WriteErrors != 1 {
			t.Errorf("order %d: read as %s", i, said(x))
		}
	}
}

// A client that gave up waiting keeps its connection and sends the next command
// (mongo-go-driver v2, x/mongo/driver/topology/connection.go): the late reply
// belongs to the first, and the second still gets its own.
func TestConversation_LateReply(t *testing.T) {
	h := newHarness(t, wire.Options{})
	h.feed(wire.ToServer, insert(t, 1))
	h.feed(wire.ToServer, find(t, 2))
	late := h.now
	h.feed(wire.ToClient, okReply(t, 50, 1))
	h.feed(wire.ToClient, say(t, 51, 2, 0, bson.D{{Key: "n", Value: 9}, {Key: "ok", Value: 1.0}}))
	all := h.end()
	if got := operations(all); got != " insert:true find:false" {
		t.Fatalf("read as%s", got)
	}
	if all[0].Mongo.N != 2 || all[0].Sides[wire.ToClient].FirstIn <= late || all[1].Mongo.N != 9 {
		t.Errorf("read as\n%s\n%s", said(all[0]), said(all[1]))
	}
}

// The server answers with the request's compressor, but need not (OP_COMPRESSED.md
// says "may"): each message is read by what it says of itself.
func TestConversation_MixedCompressors(t *testing.T) {
	pack := func(id byte, m []byte) []byte {
		if id == 255 {
			return m
		}
		return compress(t, id, m)
	}
	ids := append([]byte{255}, allCompressors...)
	for _, there := range ids {
		for _, back := range ids {
			all := talk(t, turn{wire.ToServer, pack(there, insert(t, 1))}, turn{wire.ToClient, pack(back, okReply(t, 2, 1))})
			if len(all) != 1 || all[0].Operation != "insert" || all[0].Batch != 2 || !all[0].OK || all[0].Mongo.N != 2 {
				t.Errorf("%d there, %d back: read as %+v", there, back, all)
			}
		}
	}
}

// The Node.js driver ends its sessions with a write concern, and wants no reply.
func TestConversation_EndSessionsIsNoWrite(t *testing.T) {
	all := talk(t, turn{wire.ToServer, say(t, 1, 0, flagMoreToCome, bson.D{{Key: "endSessions", Value: bson.A{}},
		{Key: "writeConcern", Value: bson.D{{Key: "w", Value: 0}}}, {Key: "$db", Value: "admin"}})})
	if got := operations(all); got != " endSessions:false" || !all[0].NoReply {
		t.Errorf("read as%s", got)
	}
}
